package workspace_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

const (
	fieldSecret  = "tok-qwxz-qwxz"
	memorySecret = `pin "xzwq-zxqw"`
)

// requireMasked checks that v shows no secret, whatever prints it.
// The secrets have no digits: a time may contain any four of them.
func requireMasked(t *testing.T, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
	shown := []string{string(data), log.String()}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(format, v))
	}
	for _, text := range shown {
		for _, secret := range []string{"qwxz", "xzwq", "zxqw", "hidden-config"} {
			require.NotContains(t, text, secret)
		}
	}
}

// Secrets are planted in every place of a workspace that holds text.
func TestWorkspacesAreMasked(t *testing.T) {
	leak := "the secrets are " + fieldSecret + " and " + memorySecret
	secrets := func(w *workspace.Workspace) {
		require.NoError(t, token.Set(w.State(), fieldSecret))
		require.NoError(t, w.Memory().SetSecret("pin", memorySecret))
		require.NoError(t, w.Memory().Set("note", leak))
		require.NoError(t, notes.Set(w.State(), []string{leak}))
		require.NoError(t, state.Messages.Set(w.State(), []state.Message{state.AssistantText(leak)}))
		require.NoError(t, w.SetSettings(func(s *workspace.Settings) {
			s.ChatID = leak
			s.MCPServers = map[string]state.JSON{"github": `{"token":"hidden-config"}`}
		}))
		requireMasked(t, w)
		requireMasked(t, *w)
	}
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
		secrets(&run.Workspace)
		run.SetReply(leak)
		requireMasked(t, run)
		return errors.New(leak)
	}})
	message := workspace.Message{ID: fieldSecret, ChatID: leak, Content: state.UserText(leak)}
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { secrets(w); return nil }))
	_, err := m.Handle(t.Context(), "ann", message)
	require.Error(t, err)
	requireMasked(t, view(t, m, "ann"))
	require.NoError(t, m.Discard(t.Context(), "ann", fieldSecret))
	require.NoError(t, m.Close())
	m, runs := hold(t, db, workspace.Options{})
	message.ID = "2"
	run := runs.Begin(t, "ann", message)
	_, err = m.Submit(t.Context(), "ann", workspace.Message{ID: "3", Content: state.UserText(leak)})
	require.NoError(t, err)
	require.NoError(t, m.Cancel(t.Context(), "ann", run.ID(), leak))
	v := view(t, m, "ann")
	requireMasked(t, v)
	requireMasked(t, *v)
	require.Equal(t, "the secrets are [SECRET] and [SECRET]", v.Ended[len(v.Ended)-1].Reason)
	out, err := m.Submit(t.Context(), "ann", message)
	require.NoError(t, err)
	require.Equal(t, "the secrets are [SECRET] and [SECRET]", out.Reason)
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.Contains(t, string(data), "the secrets are [SECRET] and [SECRET]")
	require.Contains(t, string(data), `"mcp_servers":["github"]`)
}

func TestViewJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs := hold(t, store.NewMemory(), workspace.Options{})
		run := runs.Begin(t, "ann", text("1"))
		run.Fail(t, errors.New("no"))
		time.Sleep(time.Second)
		run = runs.Begin(t, "ann", text("2"))
		run.Finish(t)
		run = runs.Begin(t, "ann", text("3"))
		_, err := m.Submit(t.Context(), "ann", text("4"))
		require.NoError(t, err)
		data, err := json.Marshal(view(t, m, "ann"))
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(data, &got))
		message := func(id string) map[string]any {
			return map[string]any{"id": id, "content": map[string]any{
				"type": "text", "role": "user", "content": "text of " + id,
			}}
		}
		const began, later = "2000-01-01T00:00:00Z", "2000-01-01T00:00:01Z"
		dead := got["dead_letters"].([]any)[0].(map[string]any)
		want := map[string]any{
			"user_id": "ann", "version": 2.0, "oldest": 0.0, "last_active": later,
			"state":    map[string]any{"version": 1.0, "results": 0.0, "values": map[string]any{}},
			"settings": map[string]any{},
			"run": map[string]any{"id": run.ID(), "message": message("3"), "began": later, "attempt": 0.0,
				"step": 0.0, "lease_id": m.Held()[0].LeaseID, "ttl_ms": 4_000.0, "heartbeat": 1.0},
			"queue": []any{message("4")},
			"dead_letters": []any{map[string]any{
				"message": message("1"), "run_id": dead["run_id"], "attempts": 1.0, "at": began, "reason": "no",
			}},
			"ended":    []any{map[string]any{"id": "2", "as": "finished", "at": later}},
			"messages": []any{map[string]any{"number": 1.0, "behind": 0.0, "run": "2", "time": later, "message": message("2")["content"]}},
		}
		require.Empty(t, cmp.Diff(want, got))
	})
}

func TestEnded(t *testing.T) {
	m, runs := hold(t, store.NewMemory(), workspace.Options{})
	var want []string
	finish := func(n int) {
		for range n {
			id := fmt.Sprint(len(want) + 1)
			run := runs.Begin(t, "ann", text(id))
			run.Finish(t)
			want = append(want, id+" finished")
		}
	}
	ended := func() (list []string) {
		for _, e := range view(t, m, "ann").Ended {
			list = append(list, e.ID+" "+string(e.As))
		}
		return list
	}
	require.Empty(t, ended())
	finish(40)
	run := runs.Begin(t, "ann", text("a"))
	for _, id := range []string{"b", "c"} {
		_, err := m.Submit(t.Context(), "ann", text(id))
		require.NoError(t, err)
	}
	require.NoError(t, m.Discard(t.Context(), "ann", "b"))
	require.NoError(t, m.Cancel(t.Context(), "ann", run.ID(), "why"))
	require.Equal(t, append(want, "b discarded", "a cancelled"), ended())
	v := view(t, m, "ann")
	require.Equal(t, "why", v.Ended[len(v.Ended)-1].Reason)
	require.False(t, v.Ended[0].At.IsZero())
	_, err := m.Reset(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, "c reset", ended()[len(ended())-1])
	finish(70)
	require.Equal(t, want[len(want)-64:], ended(), "the newest stay")
}

func TestLastActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, store.NewMemory(), workspace.Options{})
		s, err := m.Summary(t.Context(), "ann")
		require.NoError(t, err)
		require.Zero(t, s.LastActive)
		time.Sleep(time.Hour)
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return visits.Set(w.State(), 1) }))
		changed := time.Now()
		time.Sleep(time.Hour)
		require.NoError(t, m.Compact(t.Context(), "ann"), "which is no activity")
		s, err = m.Summary(t.Context(), "ann")
		require.NoError(t, err)
		require.True(t, changed.Equal(s.LastActive))
		require.True(t, view(t, m, "ann").LastActive.Equal(s.LastActive))
	})
}
