package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/internal/test/fakestore"
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

// threadsOf returns the summaries of the threads of a user after an id.
func threadsOf(t testing.TB, m *workspace.Manager, user, after string) (list []workspace.Summary) {
	t.Helper()
	for s, err := range m.Threads(t.Context(), user, after) {
		require.NoError(t, err)
		list = append(list, s)
	}
	return list
}

func idsIn(list []workspace.Summary) (ids []string) {
	for _, s := range list {
		ids = append(ids, s.UserID)
	}
	return ids
}

func TestThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := fakestore.Count(store.NewMemory())
		m := open(t, counted, workspace.Options{Run: visit})
		var made []string
		for range 5 {
			time.Sleep(time.Second)
			id := workspace.NewThread("ann")
			_, err := m.Handle(t.Context(), id, text("1"))
			require.NoError(t, err)
			made = append(made, id)
		}
		for _, id := range []string{"ann", "ann.", "anna/1", "ann%2F1/2", "bob/1"} {
			_, err := m.Handle(t.Context(), id, text("1"))
			require.NoError(t, err)
		}
		require.NoError(t, m.Delete(t.Context(), made[3]))
		want := []string{"ann", made[4], made[2], made[1], made[0]}
		lists, gets := counted.Calls("List"), counted.Calls("Get")
		list := threadsOf(t, m, "ann", "")
		require.Equal(t, 1, counted.Calls("List")-lists)
		require.LessOrEqual(t, counted.Calls("Get")-gets, 1)
		require.Equal(t, want, idsIn(list))
		for i, s := range list {
			require.NoError(t, s.Err)
			require.Positive(t, s.Version)
			require.Equal(t, i == 0, s.LastActive.After(list[1].LastActive) || s.UserID == "ann")
		}
		for i, id := range want {
			require.Equal(t, want[i+1:], append([]string{}, idsIn(threadsOf(t, m, "ann", id))...))
		}
		require.Equal(t, []string{"ann%2F1/2"}, idsIn(threadsOf(t, m, "ann/1", "")))
		require.Empty(t, threadsOf(t, m, "nobody", ""))
		for _, err := range m.Threads(t.Context(), "", "") {
			require.ErrorIs(t, err, workspace.ErrInvalid)
		}
	})
}

// Threads shows a thread whose head is damaged, and goes on.
func TestThreadsWithDamage(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: visit})
	for _, id := range []string{"ann", "ann/1", "ann/2"} {
		_, err := m.Handle(t.Context(), id, text("1"))
		require.NoError(t, err)
	}
	for _, key := range []string{"agent:workspace:ann", "agent:workspace:ann%2F1"} {
		_, err := store.Put(t.Context(), db, key, []byte("damaged"), store.Always)
		require.NoError(t, err)
	}
	list := threadsOf(t, open(t, db, workspace.Options{}), "ann", "")
	require.Equal(t, []string{"ann", "ann/1", "ann/2"}, idsIn(list))
	require.ErrorIs(t, list[0].Err, workspace.ErrCorrupt)
	require.ErrorIs(t, list[1].Err, workspace.ErrCorrupt)
	require.NoError(t, list[2].Err)
}

// A title is kept in the head: masked, short, and until there is another one.
func TestTitles(t *testing.T) {
	var title func(st *state.State) string
	db := store.NewMemory()
	m := open(t, db, workspace.Options{
		Title: func(st *state.State) string { return title(st) },
		Run: func(ctx context.Context, run *workspace.Run) error {
			if err := errors.Join(token.Set(run.State(), "hunter2-hunter2"), run.Commit(ctx)); err != nil {
				return err
			}
			return visits.Set(run.State(), 1)
		},
	})
	stored := func() string {
		t.Helper()
		s, err := open(t, db, workspace.Options{}).Summary(t.Context(), "ann/1")
		require.NoError(t, err)
		return s.Title
	}
	for n, c := range []struct {
		title func(st *state.State) string
		want  string
	}{
		{func(*state.State) string { return "" }, ""},
		{func(st *state.State) string { return fmt.Sprint(len(state.Messages.GetOr(st, nil)), " messages") }, "2 messages"},
		{func(*state.State) string { return "" }, "2 messages"},
		{func(*state.State) string { panic("no title") }, "2 messages"},
		{func(st *state.State) string { return "token " + token.GetOr(st, "") }, "token [SECRET]"},
		{func(*state.State) string { return strings.Repeat("é", 150) }, strings.Repeat("é", 100)},
		{func(*state.State) string { return "a\xffb" }, "a\uFFFDb"},
		{func(st *state.State) string { return fmt.Sprint("visit ", visits.Set(st, 7) != nil) }, "visit true"},
	} {
		title = c.title
		out, err := m.Handle(t.Context(), "ann/1", text(fmt.Sprint(n)))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status)
		require.Equal(t, c.want, stored())
	}
	title = func(st *state.State) string { return "of " + fmt.Sprint(visits.GetOr(st, 0)) }
	require.NoError(t, m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }))
	require.Equal(t, "of 9", stored())
	_, err := m.Reset(t.Context(), "ann/1")
	require.NoError(t, err)
	require.Empty(t, stored())
}

// Watch of a user part tells which workspaces of the user have changed, whoever
// has changed them.
func TestWatchTellsOfThreads(t *testing.T) {
	for name, wrap := range map[string]func(store.Store) store.Store{
		"a store that reports changes": func(db store.Store) store.Store { return db },
		"one that does not":            func(db store.Store) store.Store { return fakestore.Bare{Store: db} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := store.NewMemory()
				here, there := open(t, wrap(db), workspace.Options{Run: visit}), open(t, db, workspace.Options{Run: visit})
				send := func(m *workspace.Manager, id, msg string) {
					t.Helper()
					_, err := m.Handle(t.Context(), id, text(msg))
					require.NoError(t, err)
				}
				send(there, "ann/0", "1")
				ctx, cancel := context.WithCancel(t.Context())
				told := map[string]workspace.Summary{}
				var first *workspace.Event
				ended := make(chan error, 1)
				go func() {
					for e, err := range here.Watch(ctx, workspace.Shared("ann")).AsHost() {
						if err != nil {
							ended <- err
							return
						}
						if first == nil {
							first = &e
							continue
						}
						told[e.UserID] = e.Summary
					}
					ended <- nil
				}()
				after := func(d time.Duration) map[string]workspace.Summary {
					time.Sleep(d)
					synctest.Wait()
					now := told
					told = map[string]workspace.Summary{}
					return now
				}
				require.Empty(t, after(10*time.Second), "what there was is not told")
				require.Equal(t, "ann/", first.UserID)
				for _, id := range []string{"ann", "ann/1", "anna/1", "bob", "ann%2F1"} {
					send(here, id, "1")
				}
				require.ElementsMatch(t, []string{"ann", "ann/", "ann/1"}, slices.Collect(maps.Keys(after(time.Second))))
				for _, id := range []string{"ann", "ann/0", "ann/2", "bob/1"} {
					send(there, id, "2")
				}
				now := after(6 * time.Second)
				require.ElementsMatch(t, []string{"ann", "ann/", "ann/0", "ann/2"}, slices.Collect(maps.Keys(now)))
				view, err := there.View(t.Context(), "ann/0")
				require.NoError(t, err)
				require.Equal(t, view.Version, now["ann/0"].Version, "the newest")
				require.NoError(t, there.Delete(t.Context(), "ann/2"))
				require.Equal(t, map[string]workspace.Summary{"ann/2": {UserID: "ann/2"}}, after(2*time.Second))
				for i := range 100 {
					send(there, fmt.Sprint("ann/many", i), "1")
				}
				send(there, "ann/0", "3")
				require.Len(t, after(2*time.Second), 102, "also what did not fit")
				cancel()
				require.NoError(t, <-ended)
			})
		})
	}
}

// Runs of different threads are handled at the same time, as many as UserRuns.
func TestUserRuns(t *testing.T) {
	for _, most := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				now, peak := map[string]int{}, map[string]int{}
				m := open(t, store.NewMemory(), workspace.Options{
					UserRuns: most,
					Run: func(_ context.Context, run *workspace.Run) error {
						user, _ := workspace.SplitThread(run.UserID())
						count := func(n int) {
							mu.Lock()
							defer mu.Unlock()
							now[user] += n
							peak[user] = max(peak[user], now[user])
						}
						count(1)
						defer count(-1)
						time.Sleep(time.Second)
						return visits.Set(run.State(), 1)
					},
				})
				began := time.Now()
				for i := range 6 {
					for _, user := range []string{"ann", "bob"} {
						for _, msg := range []string{"1", "2"} {
							_, err := m.Submit(t.Context(), workspace.Thread(user, fmt.Sprint(i)), text(msg))
							require.NoError(t, err)
						}
					}
				}
				require.NoError(t, m.Wait(t.Context()))
				want := most
				if most == 0 {
					want = 6
				}
				require.Equal(t, map[string]int{"ann": want, "bob": want}, peak)
				require.Less(t, time.Since(began), time.Duration(12/want+2)*time.Second)
				for i := range 6 {
					v, err := m.View(t.Context(), workspace.Thread("ann", fmt.Sprint(i)))
					require.NoError(t, err)
					require.Equal(t, 2, visits.GetOr(v.State(), 0))
				}
			})
		})
	}
}

// A run that waits for a message of another thread lends its place.
func TestUserRunsOfRunsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *workspace.Manager
		m = open(t, store.NewMemory(), workspace.Options{UserRuns: 1, Run: func(ctx context.Context, run *workspace.Run) error {
			if run.UserID() != "ann/1" {
				return visits.Set(run.State(), 1)
			}
			_, err := m.Handle(ctx, "ann/2", text("1"))
			_, submitErr := m.Submit(ctx, "ann/3", text("1"))
			_, awaitErr := m.Await(ctx, "ann/3", "1")
			return errors.Join(err, submitErr, awaitErr)
		}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := m.Handle(ctx, "ann/1", text("1"))
		require.NoError(t, err)
	})
}
