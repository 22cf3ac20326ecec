package workspace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

var lamp = work.File{Type: "image/png", Name: "lamp.png", Data: []byte("the picture of a lamp")}

func addFile(t testing.TB, m *workspace.Manager, user string, f work.File) string {
	t.Helper()
	url, err := m.AddFile(t.Context(), user, f)
	require.NoError(t, err)
	return url
}

// saysFile returns a message of a person with a file.
func saysFile(t testing.TB, id, url string) workspace.Message {
	m, err := state.Parts("user", state.JSON(fmt.Sprintf(`{"type":"image_url","image_url":{"url":%q}}`, url)))
	require.NoError(t, err)
	return workspace.Message{ID: id, Content: m}
}

func fileKeys(t testing.TB, db store.Store) (keys []string) {
	for key := range entries(t, db) {
		if strings.HasPrefix(key, "agent:file:") {
			keys = append(keys, key)
		}
	}
	return keys
}

// A file that is added twice is one. Its user reads it, also in another process, with
// and without keys, and nobody else.
func TestFiles(t *testing.T) {
	for name, keys := range map[string][]workspace.Key{"plain": nil, "sealed": {key("a")}} {
		t.Run(name, func(t *testing.T) {
			db := store.NewMemory()
			m := open(t, db, workspace.Options{Keys: keys})
			url := addFile(t, m, "ann", lamp)
			require.Equal(t, url, addFile(t, m, "ann", lamp))
			require.Len(t, fileKeys(t, db), 1)
			other := lamp
			other.Name = "other.png"
			require.NotEqual(t, url, addFile(t, m, "ann", other))
			m = open(t, db, workspace.Options{Keys: keys})
			f, err := m.File(t.Context(), "ann", url)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(lamp, f))
			for _, user := range []string{"bob", "an", "anna", "ann/1", "ann/", "Ann", "ann:"} {
				_, err := m.File(t.Context(), user, url)
				require.ErrorIs(t, err, workspace.ErrNotFound, user)
			}
			for key, value := range entries(t, db) {
				require.Equal(t, keys != nil, !strings.Contains(value, "picture of a lamp") && !strings.Contains(value, "png"), key)
			}
			ofBob := addFile(t, m, "bob", lamp)
			require.Equal(t, keys != nil, url != ofBob, "a name of what is sealed says nothing about it")
		})
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{})
	for _, f := range []work.File{
		{}, {Type: "image/png"}, {Type: "image", Data: []byte("x")}, {Type: "image/", Data: []byte("x")}, {Type: "a b/c", Data: []byte("x")},
		{Type: "image/png\r\nX: y", Data: []byte("x")}, {Type: `image/p"ng`, Data: []byte("x")}, {Type: "image/png", Data: make([]byte, workspace.MaxFile+1)},
		{Type: "image/png", Name: "../a", Data: []byte("x")}, {Type: "image/png", Name: `a\b`, Data: []byte("x")},
		{Type: "image/png", Name: "a\nb", Data: []byte("x")}, {Type: "image/png", Name: "a\u202eb", Data: []byte("x")},
		{Type: "image/png", Name: "\xff", Data: []byte("x")}, {Type: "image/png", Name: strings.Repeat("x", 256), Data: []byte("x")},
	} {
		_, err := m.AddFile(t.Context(), "ann", f)
		require.ErrorIs(t, err, workspace.ErrInvalid, "%q %q", f.Type, f.Name)
	}
	_, err := m.AddFile(t.Context(), "", lamp)
	require.ErrorIs(t, err, workspace.ErrInvalid)
	require.Empty(t, fileKeys(t, db))
	url := addFile(t, m, "ann", work.File{Type: "Image/PNG; charset=x", Data: make([]byte, workspace.MaxFile)})
	f, err := m.File(t.Context(), "ann", url)
	require.NoError(t, err)
	require.Equal(t, "image/png", f.Type)
	for _, bad := range []string{"", "agent-file:", url + "x", url[:len(url)-1], "agent-file:../" + url[14:], strings.ToUpper(url[:11]) + url[11:], "data:image/png;base64,AA"} {
		_, err := m.File(t.Context(), "ann", bad)
		require.ErrorIs(t, err, workspace.ErrNotFound, bad)
	}
	_, err = open(t, store.ReadOnly(db), workspace.Options{}).AddFile(t.Context(), "ann", lamp)
	require.ErrorIs(t, err, store.ErrReadOnly)
}

// Deleting a thread leaves the files, which others may refer to. They go with the user,
// and those that are added meanwhile.
func TestFilesOfADeletedUser(t *testing.T) {
	var m *workspace.Manager
	inside, late := false, error(nil)
	db := fakestore.New(store.NewMemory(), func(ctx context.Context, c fakestore.Call, do func() error) error {
		if len(c.Writes) == 1 && strings.HasPrefix(c.Writes[0].Key, "agent:file:ann:") && inside {
			inside = false
			late = m.DeleteUser(ctx, "ann") // is done before the write
		}
		return do()
	})
	m = open(t, db, workspace.Options{Run: nothing})
	url := addFile(t, m, "ann", lamp)
	kept := addFile(t, m, "anna", lamp)
	_, err := m.Handle(t.Context(), "ann/1", saysFile(t, "1", url))
	require.NoError(t, err)
	require.NoError(t, m.Fork(t.Context(), "ann/1", "ann/2", workspace.ForkPoint{}))
	require.NoError(t, m.Delete(t.Context(), "ann/1"))
	_, err = m.File(t.Context(), "ann", url)
	require.NoError(t, err)

	inside = true
	_, err = m.AddFile(t.Context(), "ann", work.File{Type: "text/plain", Data: []byte("late")})
	require.ErrorIs(t, err, workspace.ErrUserDeleted)
	require.NoError(t, late)
	require.Equal(t, []string{"agent:file:anna:" + strings.TrimPrefix(kept, "agent-file:")}, fileKeys(t, db))
	_, err = m.AddFile(t.Context(), "ann", lamp)
	require.ErrorIs(t, err, workspace.ErrUserDeleted)

	_, err = store.Put(t.Context(), db, "agent:file:ann:"+strings.Repeat("x", 32), []byte("of a process that has died"), store.Always)
	require.NoError(t, err)
	_, err = m.Expire(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, fileKeys(t, db), 1)
	addFile(t, m, "ann", lamp) // the user may come back
}

// An export has the files to which the workspace refers, also of messages that wait,
// under the ids by which they name them.
func TestExportOfFiles(t *testing.T) {
	from := open(t, store.NewMemory(), workspace.Options{Run: nothing, Keys: []workspace.Key{key("a")}})
	url, other := addFile(t, from, "ann", lamp), addFile(t, from, "ann", work.File{Type: "text/plain", Data: []byte("of another thread")})
	_, err := from.Handle(t.Context(), "ann/1", saysFile(t, "1", url))
	require.NoError(t, err)
	_, err = from.Handle(t.Context(), "ann/1", saysFile(t, "2", "agent-file:"+strings.Repeat("x", 32)))
	require.NoError(t, err)
	data, err := from.Export(t.Context(), "ann/1")
	require.NoError(t, err)

	for name, keys := range map[string][]workspace.Key{"plain": nil, "sealed": {key("b")}} {
		db := store.NewMemory()
		to := open(t, db, workspace.Options{Run: nothing, Keys: keys})
		require.NoError(t, to.ImportWorkspace(t.Context(), "bob/1", data), name)
		f, err := to.File(t.Context(), "bob", url)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(lamp, f))
		_, err = to.File(t.Context(), "bob", other)
		require.ErrorIs(t, err, workspace.ErrNotFound)
		report, err := to.Verify(t.Context(), "bob/1")
		require.NoError(t, err)
		require.Equal(t, 1, report.Files)
		require.NoError(t, to.ImportWorkspace(t.Context(), "bob/2", data), "the files are the same")
		forged := bytes.Replace(data, []byte(`"name":"lamp.png"`), []byte(`"name":"evil.png"`), 1)
		require.NoError(t, to.ImportWorkspace(t.Context(), "bob/3", forged))
		f, err = to.File(t.Context(), "bob", url)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(lamp, f), "a file that is there is not overwritten")
		for _, wrong := range []string{`"id":"../`, `"type":"x`} {
			var in map[string]any
			require.NoError(t, json.Unmarshal(data, &in))
			member, value, _ := strings.Cut(strings.Trim(wrong, `"`), `":"`)
			in["files"].([]any)[0].(map[string]any)[member] = value
			bad, err := json.Marshal(in)
			require.NoError(t, err)
			require.ErrorIs(t, to.ImportWorkspace(t.Context(), "bob/4", bad), workspace.ErrInvalid)
		}
	}
}

// Verify finds a file that was edited or moved, and the keys that files need. Compact
// seals them with the first key.
func TestVerifyAndResealFiles(t *testing.T) {
	ids := func(m *workspace.Manager) []string {
		report, err := m.Verify(t.Context(), "ann/1")
		require.NoError(t, err)
		require.Equal(t, 2, report.Files)
		return report.Keys
	}
	for _, keys := range [][]workspace.Key{nil, {key("a")}} {
		db := store.NewMemory()
		m := open(t, db, workspace.Options{Run: nothing, Keys: keys})
		url := addFile(t, m, "ann", lamp)
		addFile(t, m, "ann", work.File{Type: "text/plain", Data: []byte("another one")})
		_, err := m.Handle(t.Context(), "ann/1", saysFile(t, "1", url))
		require.NoError(t, err)
		if keys != nil {
			m = open(t, db, workspace.Options{Run: nothing, Keys: []workspace.Key{key("b"), key("a")}})
			require.Equal(t, []string{"a"}, ids(m))
			require.NoError(t, m.Compact(t.Context(), "ann/1"))
			require.Equal(t, []string{"b"}, ids(m))
			m = open(t, db, workspace.Options{Run: nothing, Keys: []workspace.Key{key("b")}})
			f, err := m.File(t.Context(), "ann", url)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(lamp, f))
		}
		all := fileKeys(t, db)
		values := entries(t, db)
		for _, damaged := range []string{values[all[1]], values[all[0]][:len(values[all[0]])-1], "x", ""} {
			_, err := store.Put(t.Context(), db, all[0], []byte(damaged), store.Always)
			require.NoError(t, err)
			_, err = m.Verify(t.Context(), "ann/1")
			require.Error(t, err)
			require.Contains(t, err.Error(), all[0])
		}
	}
}

// A program that makes requests without wire has the files in a run of the user.
func TestFilesInARun(t *testing.T) {
	var shown []state.Message
	m := open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) (err error) {
		shown, err = transcript.WithFiles(ctx, state.Messages.GetOr(run.State(), nil))
		return err
	}})
	url := addFile(t, m, "ann", lamp)
	for _, id := range []string{"ann/1", "bob"} {
		_, err := m.Handle(t.Context(), id, saysFile(t, "1", url))
		require.NoError(t, err)
		require.Equal(t, id == "ann/1", strings.Contains(string(shown[0].Raw()), "data:image/png;base64,dGhlIHBpY3R1cmUgb2YgYSBsYW1w"), id)
		require.NotContains(t, string(shown[0].Raw()), url)
	}
	alone, err := transcript.WithFiles(t.Context(), []state.Message{state.UserText(url), saysFile(t, "1", url).Content})
	require.NoError(t, err)
	require.Equal(t, url, alone[0].Text())
	require.Contains(t, string(alone[1].Raw()), "It is not sent")
}

// A model that makes a summary, which is behind the run, is sent the files as well.
func TestFilesInSummaries(t *testing.T) {
	summarized := make(chan string, 1)
	m := windowed(t, store.NewMemory(), func(ctx context.Context, p transcript.Past) (string, error) {
		sent, err := transcript.WithFiles(ctx, p.Shown())
		if err != nil {
			return "", err
		}
		select {
		case summarized <- string(sent[0].Raw()):
		default:
		}
		return "short", nil
	})
	_, err := m.Handle(t.Context(), "ann", saysFile(t, "1", addFile(t, m, "ann", lamp)))
	require.NoError(t, err)
	for _, text := range []string{"2", "3", "4", "5"} {
		say(t, m, text)
	}
	require.Contains(t, <-summarized, "dGhlIHBpY3R1cmUgb2YgYSBsYW1w")
}
