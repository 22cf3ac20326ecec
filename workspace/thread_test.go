package workspace_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

func TestThreadIDs(t *testing.T) {
	for id, names := range map[string][2]string{
		"ann":              {"ann", ""},
		"ann/1":            {"ann", "1"},
		"ann%2F1":          {"ann/1", ""},
		"ann%2F1/2":        {"ann/1", "2"},
		"ann/1%2F2":        {"ann", "1/2"},
		"ann%252F1":        {"ann%2F1", ""},
		"ann%25/%25":       {"ann%", "%"},
		"ann/%2F":          {"ann", "/"},
		"ann/..%2Fbob":     {"ann", "../bob"},
		"ann/%252F..":      {"ann", "%2F.."},
		"ann%2F/1":         {"ann/", "1"},
		"é\u2215/\u0301\n": {"é\u2215", "\u0301\n"}, // a slash of another alphabet is none
		"a\x00/\x00":       {"a\x00", "\x00"},
		"\xff/\xfe":        {"\xff", "\xfe"},
	} {
		require.Equal(t, id, workspace.Thread(names[0], names[1]))
		user, thread := workspace.SplitThread(id)
		require.Equal(t, names, [2]string{user, thread})
	}
}

func TestThreadIDsAreDistinct(t *testing.T) {
	name := rapid.OneOf(rapid.String(), rapid.StringMatching(`[/%2F5a]{0,4}`), rapid.SampledFrom([]string{"\xff", "%2", "%2f", "%25", "%2F"}))
	property.Check(t, func(t *rapid.T) {
		a := [2]string{name.Draw(t, "user"), name.Draw(t, "thread")}
		b := [2]string{name.Draw(t, "other user"), name.Draw(t, "other thread")}
		id := workspace.Thread(a[0], a[1])
		user, thread := workspace.SplitThread(id)
		require.Equal(t, a, [2]string{user, thread})
		require.Equal(t, a == b, id == workspace.Thread(b[0], b[1]))
		require.NotEqual(t, workspace.Shared(a[0]), workspace.Thread(b[0], b[1]))
		require.Equal(t, a[0] == b[0], workspace.Shared(a[0]) == workspace.Shared(b[0]))
		user, _ = workspace.SplitThread(workspace.Shared(a[0]))
		require.Equal(t, a[0], user)
	})
}

// A Manager takes exactly the ids that Thread makes of names that are not empty.
func TestInvalidThreadIDs(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	for _, id := range []string{
		"", "/", "/1", "//", "ann//", "ann//1", "ann/1/", "ann/1/2", "ann/../bob",
		"%", "50%", "ann%40example.com", "ann%2f1", "ann/%2f", "ann/%", "ann%2", "%61nn", "%25/%2",
		"\xff", "ann/\xff", workspace.Thread("", "1"), workspace.Shared(""),
	} {
		_, err := m.View(t.Context(), id)
		require.ErrorIs(t, err, workspace.ErrInvalid, "%q", id)
		if len(strings.Trim(id, "/")) > 2 {
			require.ErrorContains(t, err, strings.Trim(strings.ToValidUTF8(id, ""), "/"))
		}
	}
	property.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[/%2F5a]{1,8}`).Draw(t, "id")
		user, thread := workspace.SplitThread(id)
		made := user != "" && (id == workspace.Thread(user, thread) || id == workspace.Shared(user))
		_, err := m.View(t.Context(), id)
		require.Equal(t, made, err == nil, "%q: %v", id, err)
	})
}

func TestNewThreadIsOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ids []string
		for range 20 {
			ids = append(ids, workspace.NewThread("a/n"))
			time.Sleep(7 * time.Millisecond)
		}
		newest := slices.Clone(ids)
		slices.Reverse(newest)
		require.IsIncreasing(t, newest)
		user, thread := workspace.SplitThread(ids[0])
		require.Equal(t, "a/n", user)
		require.Len(t, thread, 43)
		require.NotEqual(t, workspace.NewThread("ann"), workspace.NewThread("ann")) // also at one time
	})
}

// List yields each user once, whatever the names are that stand between the
// threads of the user.
func TestListYieldsUsersOnce(t *testing.T) {
	name := rapid.StringMatching(`[a/%. 0]{1,3}`)
	property.Check(t, func(t *rapid.T) {
		m, err := workspace.Open(context.Background(), store.NewMemory(), nil)
		require.NoError(t, err)
		defer func() { _ = m.Close() }()
		want, ids := map[string]bool{}, map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "workspaces") {
			user := name.Draw(t, "user")
			id := rapid.SampledFrom([]string{
				workspace.Thread(user, ""), workspace.Thread(user, name.Draw(t, "thread")), workspace.Shared(user),
			}).Draw(t, "id")
			require.NoError(t, m.Update(context.Background(), id, func(w *workspace.Workspace) error { return w.Memory().Set("k", "v") }))
			want[user], ids[id] = true, true
			if _, thread := workspace.SplitThread(id); thread != "" {
				ids[workspace.Shared(user)] = true
			}
		}
		var users []string
		for user, err := range m.List(context.Background()) {
			require.NoError(t, err)
			users = append(users, user)
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(want)), users)
		var all []string
		for s, err := range m.Summaries(context.Background(), "") {
			require.NoError(t, err)
			all = append(all, s.UserID)
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(ids)), all)
	})
}
