package wire_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// A window counts what a request has besides the conversation, and a request that
// does not fit is not sent.
func TestWindowsCountTheWholeRequest(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		var talk []state.Message
		for i := range 20 {
			talk = append(talk, state.UserText(fmt.Sprint("question ", i)), state.AssistantText("answer"))
		}
		talk = append(talk, state.UserText("the last"))
		server := newRecorder(t, a, streamed)
		send := func(extra int) (int, error) {
			st := newState(t, talk...)
			window := &transcript.Window{Target: 230, Keep: 150, Tokens: func(state.Message) int { return 3 }}
			transport := &wire.Transport{Window: window, Context: say(strings.Repeat("word", extra))}
			resp, err := tryPost(newClient(t, transport), st, server.URL+a.pathOf(streamed), a.body(streamed))
			if err != nil {
				return 0, err
			}
			defer resp.Body.Close()
			_, err = readAll(resp)
			result, _ := st.History().Last()
			return len(result.History), err
		}
		n, err := send(1)
		require.NoError(t, err)
		require.Equal(t, 41, n)
		n, err = send(100) // of the 150 of Keep
		require.NoError(t, err)
		require.Less(t, n, 13)
		before := len(server.bodies)
		_, err = send(150)
		require.ErrorIs(t, err, transcript.ErrWindow)
		require.ErrorContains(t, err, "wire: request: ")
		require.Len(t, server.bodies, before)
	})
}

// The window of a workspace outlives the process.
func TestWindowsAreStoredInWorkspaces(t *testing.T) {
	a, db, summaries := apis[0], store.NewMemory(), 0
	server := newRecorder(t, a, false)
	ask := func(max int, text string) string {
		transport := &wire.Transport{Window: &transcript.Window{
			Target: max, Keep: 8, Tokens: func(state.Message) int { return 2 },
			Summarize: func(context.Context, transcript.Past) (string, error) {
				summaries++
				return fmt.Sprint("summary ", summaries), nil
			},
		}}
		client := newClient(t, transport)
		m, err := workspace.Open(t.Context(), db, &workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			return callModel(ctx, client, server.URL+a.path, `{"messages":[]}`)
		}})
		require.NoError(t, err)
		defer m.Close()
		_, err = m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText(text)})
		require.NoError(t, err)
		for user, err := range m.Check(t.Context(), nil) {
			require.NoError(t, err, user)
		}
		return server.bodies[len(server.bodies)-1]
	}
	for _, text := range []string{"one", "two", "three", "four"} {
		require.NotContains(t, ask(20, text), "summary")
	}
	sent := ask(9, "five")
	require.Contains(t, sent, "summary 1")
	require.NotContains(t, sent, "two")
	sent = ask(1000, "six")
	require.Contains(t, sent, "summary 1")
	require.NotContains(t, sent, "two")
	require.Contains(t, sent, "five")
}
