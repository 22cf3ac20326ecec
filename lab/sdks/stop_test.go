package sdks

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	stateprovider "github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
)

// How Loop ends does not depend on the SDK: one that does not know a word passes the
// answer on, and one that reads no body to its end does not hide a failure.
func TestLoopStops(t *testing.T) {
	formats := map[string]*stateprovider.Format{
		"chat": stateprovider.OpenAI, "responses": stateprovider.OpenAIResponses,
		"anthropic": stateprovider.Anthropic, "gemini": stateprovider.Gemini,
	}
	words := map[string]map[state.Stop]string{
		"chat":      {state.StopLength: "length", state.StopFiltered: "content_filter", state.StopFailed: "error", state.StopUnknown: "tired"},
		"responses": {state.StopLength: "max_output_tokens", state.StopFiltered: "content_filter", state.StopInterrupted: "steered"},
		"anthropic": {state.StopLength: "max_tokens", state.StopRefused: "refusal", state.StopPaused: "pause_turn", state.StopUnknown: "tired"},
		"gemini":    {state.StopLength: "MAX_TOKENS", state.StopFiltered: "SAFETY", state.StopFailed: "MALFORMED_FUNCTION_CALL"},
	}
	each(t, func(t *testing.T, s sdk, streamed bool) {
		for stop, word := range words[s.api] {
			for name, first := range map[string]statetest.Reply{
				"text": statetest.Say("The half"), "call": statetest.Call("lookup", `{"order":"#"}`),
			} {
				t.Run(word+"/"+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						m := statetest.NewModel(t, formats[s.api], first.Stops(word), statetest.Say("All.").Times(-1))
						ask := s.scripted(t, m, streamed)
						st := state.New(nil)
						require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Go.")}))
						l := &loop.Loop{Agents: map[string]loop.Agent{"": {
							Ask:   func(ctx context.Context, _ *loop.Turn) error { return ask(ctx, "", never) },
							Tools: []*tool.Tool{lookup},
						}}}
						reply, err := l.Run(t.Context(), st)
						cut := name == "call"
						if stop == state.StopPaused || stop == state.StopFailed || cut && stop == state.StopLength {
							require.NoError(t, err)
							require.Equal(t, "All.", reply)
						} else {
							var stopped *loop.StopError
							require.ErrorIs(t, err, loop.ErrStopped)
							require.ErrorAs(t, err, &stopped)
							require.Equal(t, stop, stopped.Stop)
						}
						if first, ok := st.History().At(0); ok && (cut || stop != state.StopFailed) {
							require.Equal(t, []string{string(stop), word}, []string{string(first.Stop), first.StopWord})
						}
						require.Empty(t, st.History().Pending())
					})
				})
			}
		}
	})
}

// scripted returns the model of an SDK whose answers are those of a script.
func (s sdk) scripted(t testing.TB, m *statetest.Model, streamed bool) model {
	whole, stream := s.open(t, "https://model.test", &http.Client{Transport: &wire.Transport{Base: m}})
	if streamed {
		return stream
	}
	return whole
}
