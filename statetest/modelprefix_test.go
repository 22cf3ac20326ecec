package statetest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/wire"
)

func init() {
	programs = append(programs, mistakes.Program{Part: "model", Name: "state described in front of the conversation", Run: describeInFront,
		Words: []string{"requests share", "want 95.0 %", "differs most from the one before, from byte"}})
}

func describeInFront(t *testing.T, mistake bool) {
	if mistake {
		describeTurns(t, &wire.Transport{Prompt: described})
		return
	}
	describeTurns(t, &wire.Transport{Context: described, Cache: true})
}

func described(_ context.Context, st *state.State) string { return st.Describe() }

// describeTurns lets two agents ask in turn, of a state that changes.
func describeTurns(t *testing.T, transport *wire.Transport) {
	t.Helper()
	m := statetest.NewModel(t, provider.OpenAI, statetest.Say(strings.Repeat("Yes. ", 20)).Times(-1))
	transport.Base = m
	turns := &state.Field[int]{Name: "turns", Handler: state.Sum[int]()}
	st := state.New(state.MustSchema(turns))
	for i := range 20 {
		require.NoError(t, turns.Set(st, 1))
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(fmt.Sprintf("Question %d?", i))}))
		me := st.As([]string{"ann", "bob"}[i%2])
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":"You are %s."}]}`, me.Agent())
		req, err := http.NewRequestWithContext(state.NewContext(t.Context(), me), http.MethodPost, "http://model/chat/completions", strings.NewReader(body))
		require.NoError(t, err)
		resp, err := (&http.Client{Transport: transport}).Do(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	m.Prefix(0.95)
}

func TestPrefixOfNoRequests(t *testing.T) {
	m := statetest.NewModel(t, provider.OpenAI, statetest.Say("Hi.").Times(-1))
	m.Prefix(1)
	_, err := m.Next(t.Context(), "ann", []state.Message{state.UserText("Hi!")})
	require.NoError(t, err)
	m.Prefix(1)
}
