package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// fillAll makes a workspace with everything that one can have, and returns its
// run, which has committed a change.
func fillAll(t *testing.T, runs *heldRuns) *heldRun {
	t.Helper()
	large := workspace.Message{ID: "large", Content: state.UserText(strings.Repeat("large ", 400))}
	for _, msg := range []workspace.Message{text("dead"), large} {
		runs.Begin(t, "ann", msg).Fail(t, errors.New("no"))
	}
	run := runs.Begin(t, "ann", workspace.Message{ID: "1", ChatID: "c", Content: state.UserText("Hello")})
	require.NoError(t, token.Set(run.State(), "secret token"))
	require.NoError(t, notes.Set(run.State(), []string{"a", "b"}))
	require.NoError(t, run.State().History().Append(state.InferenceResult{
		ID: "r1", Prompt: []state.Message{state.SystemText("Be kind.")}, Output: []state.Message{state.AssistantText("Hi")},
	}))
	require.NoError(t, run.Memory().SetSecret("pin", "4711 4711"))
	run.SetReply("Hi")
	run.Finish(t)
	require.NoError(t, runs.Store("ann").Set(t.Context(), "card", "\xff is not UTF-8"))
	run = runs.Begin(t, "ann", text("2"))
	for _, id := range []string{"3", "4"} {
		_, err := runs.Submit(t.Context(), "ann", text(id))
		require.NoError(t, err)
	}
	require.NoError(t, visits.Set(run.State(), 1))
	require.NoError(t, run.Commit(t.Context()))
	return run
}

func TestExport(t *testing.T) {
	from, runs := hold(t, store.NewMemory(), workspace.Options{Keys: []workspace.Key{key("a")}})
	fillAll(t, runs)
	data, err := from.Export(t.Context(), "ann")
	require.NoError(t, err)
	require.True(t, json.Valid(data))
	for _, plain := range []string{"secret token", "4711 4711"} {
		require.Contains(t, string(data), plain, "an export is not masked")
	}

	db := store.NewMemory()
	to := open(t, db, workspace.Options{Keys: []workspace.Key{key("b")}})
	require.NoError(t, to.ImportWorkspace(t.Context(), "bob", data))
	for key, value := range entries(t, db) {
		if strings.HasPrefix(key, "agent:busy:") {
			require.Empty(t, value)
			continue
		}
		require.Contains(t, value, `"sealed":true`, key)
	}
	again, err := to.Export(t.Context(), "bob")
	require.NoError(t, err)
	require.Equal(t, strings.Replace(string(data), `"user_id":"ann"`, `"user_id":"bob"`, 1),
		strings.ReplaceAll(string(again), `"version":1,"at"`, `"version":3,"at"`))

	v := view(t, to, "bob")
	require.Equal(t, []string{"Hello", "Hi"}, conversation(t, v), "without the run that is under way")
	require.Equal(t, "secret token", token.GetOr(v.State(), ""))
	require.Zero(t, visits.GetOr(v.State(), 0))
	require.Equal(t, 1, v.State().History().Len())
	require.Equal(t, "c", v.Settings().ChatID)
	pin, _ := v.Memory().Get("pin")
	require.True(t, pin.Secret)
	require.Equal(t, "2", v.Run.Message.ID)
	require.Len(t, v.Queue, 2)
	require.Len(t, v.DeadLetters, 2)
	require.Len(t, v.DeadLetters[1].Message.Content.Raw(), len(state.UserText(strings.Repeat("large ", 400)).Raw()))
	card, _, err := to.Store("bob").Get(t.Context(), "card")
	require.NoError(t, err)
	require.Equal(t, "\xff is not UTF-8", card)
	for record, err := range to.Records(t.Context(), "bob", 0) {
		require.NoError(t, err)
		require.Equal(t, work.Kind("import"), record.Kind)
	}
	out, err := to.Await(t.Context(), "bob", "1")
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)
	require.Equal(t, "Hi", out.Reply)

	before := entries(t, db)
	require.ErrorIs(t, to.ImportWorkspace(t.Context(), "bob", data), workspace.ErrExists)
	require.Empty(t, cmp.Diff(before, entries(t, db)))
}

// The messages that wait in an import are handled at once, with no attempts
// counted.
func TestImportIsHandled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, runs := hold(t, store.NewMemory(), workspace.Options{})
		fillAll(t, runs)
		data, err := from.Export(t.Context(), "ann")
		require.NoError(t, err)
		w := newWorker()
		to := open(t, store.NewMemory(), workspace.Options{Run: w.run})
		require.NoError(t, to.ImportWorkspace(t.Context(), "ann", data))
		synctest.Wait()
		require.Equal(t, []string{"2", "3", "4"}, w.handled)
		require.Equal(t, []int{0, 0, 0}, w.attempts)
		require.Equal(t, 3, visits.GetOr(view(t, to, "ann").State(), 0))

		require.NoError(t, to.Delete(t.Context(), "ann"))
		require.NoError(t, to.ImportWorkspace(t.Context(), "ann", data), "it was deleted")
		synctest.Wait()
		require.Equal(t, 3, visits.GetOr(view(t, to, "ann").State(), 0))
		require.Equal(t, []string{"ann"}, users(t, to))
	})
}

// The workspaces of a user, exported and imported in the order of Summaries, are
// the same in another store, with what the threads share.
func TestUserMovesWithThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, runs := hold(t, store.NewMemory(), workspace.Options{Schema: sharedFields})
		for i, thread := range []string{"1", "2", ""} {
			run := runs.Begin(t, workspace.Thread("ann", thread), hello(fmt.Sprint(i)))
			require.NoError(t, sharedCount.Set(run.State(), 2))
			require.NoError(t, ownNote.Set(run.State(), run.UserID()))
			require.NoError(t, run.Memory().Set("from", "ann"))
			run.Finish(t)
		}
		runs.Begin(t, "ann/2", hello("waits")) // a run under way is exported as a message that waits

		var seen []int
		to := open(t, store.NewMemory(), workspace.Options{Schema: sharedFields, Run: func(_ context.Context, run *workspace.Run) error {
			seen = append(seen, sharedCount.GetOr(run.State(), 0))
			return sharedCount.Set(run.State(), 10)
		}})
		ids := idsOf(t, from)
		require.Len(t, ids, 4)
		for _, id := range ids {
			require.NoError(t, to.ImportWorkspace(t.Context(), id, exported(t, from, id)), id)
		}
		synctest.Wait()
		require.Equal(t, ids, idsOf(t, to))
		require.Equal(t, []int{6}, seen)
		for _, id := range ids {
			v := view(t, to, id)
			require.Equal(t, 16, sharedCount.GetOr(v.State(), 0), id)
			require.Equal(t, ownNote.GetOr(view(t, from, id).State(), ""), ownNote.GetOr(v.State(), ""), id)
			note, _ := v.Memory().Get("from")
			require.Equal(t, "ann", note.Value)
			_, err := to.Verify(t.Context(), id)
			require.NoError(t, err)
		}
	})
}

func TestExportInvalid(t *testing.T) {
	db := store.NewMemory()
	m, runs := hold(t, db, workspace.Options{})
	_, err := m.Export(t.Context(), "nobody")
	require.ErrorIs(t, err, workspace.ErrNotFound)
	_, err = m.Export(t.Context(), "")
	require.ErrorIs(t, err, workspace.ErrInvalid)
	fillAll(t, runs)
	data, err := m.Export(t.Context(), "ann")
	require.NoError(t, err)
	edit := func(old, new string) string {
		require.Contains(t, string(data), old)
		return strings.Replace(string(data), old, new, 1)
	}
	for name, c := range map[string]struct {
		data string
		want error
	}{
		"nothing":          {"", workspace.ErrInvalid},
		"not JSON":         {"{", workspace.ErrInvalid},
		"not an export":    {`{"version":1}`, workspace.ErrInvalid},
		"a list":           {`[]`, workspace.ErrInvalid},
		"cut":              {string(data[:len(data)/2]), workspace.ErrInvalid},
		"a newer format":   {edit(`"format":1`, `"format":9`), workspace.ErrNewerFormat},
		"no content":       {`{"format":1,"user_id":"ann"}`, workspace.ErrInvalid},
		"a ticket":         {edit(`"messages":[{`, `"messages":[{"ticket":true,`), workspace.ErrInvalid},
		"a foreign blob":   {edit(`"messages":[{`, `"messages":[{"blob":"x",`), workspace.ErrInvalid},
		"one id twice":     {edit(`"id":"3","at"`, `"id":"2","at"`), workspace.ErrInvalid},
		"broken message":   {edit(`"body":{"id":"2","content":{"type":"text"`, `"body":{"id":"2","content":{"type":7`), workspace.ErrInvalid},
		"another schema":   {edit(`"notes":["a","b"]`, `"notes":7`), workspace.ErrSchema},
		"broken data":      {edit(`"card":"`, `"card":"?`), workspace.ErrInvalid},
		"another alphabet": {edit(`"content":{`, `"content":[],"x":{`), workspace.ErrInvalid},
	} {
		before := entries(t, db)
		err := m.ImportWorkspace(t.Context(), "bob", []byte(c.data))
		require.ErrorIs(t, err, c.want, name)
		require.NotContains(t, err.Error(), "secret token", name)
		require.Empty(t, cmp.Diff(before, entries(t, db)), name)
	}

	// A key of Store with another value stays as it is.
	require.NoError(t, m.Store("bob").Set(t.Context(), "card", "bob's"))
	require.ErrorIs(t, m.ImportWorkspace(t.Context(), "bob", data), workspace.ErrExists)
	card, _, err := m.Store("bob").Get(t.Context(), "card")
	require.NoError(t, err)
	require.Equal(t, "bob's", card)
	require.NotContains(t, users(t, m), "bob")
}
