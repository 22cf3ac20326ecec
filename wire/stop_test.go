package wire_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/tool"
)

// stopWords are the words of an API for each way in which an answer ends that is
// tried here.
var stopWords = map[*provider.Format]map[state.Stop]string{
	provider.OpenAI:          {state.StopLength: "length", state.StopFiltered: "content_filter", state.StopFailed: "error", state.StopUnknown: "tired"},
	provider.OpenAIResponses: {state.StopLength: "max_output_tokens", state.StopFiltered: "content_filter", state.StopInterrupted: "steered", state.StopUnknown: "tired"},
	provider.Anthropic:       {state.StopLength: "max_tokens", state.StopRefused: "refusal", state.StopPaused: "pause_turn", state.StopUnknown: "tired"},
	provider.Gemini: {
		state.StopLength: "MAX_TOKENS", state.StopRefused: "LANGUAGE", state.StopFiltered: "SAFETY",
		state.StopFailed: "MALFORMED_FUNCTION_CALL", state.StopUnknown: "OTHER",
	},
}

// Whatever the API, and whether the answer comes whole or is streamed, Loop does the
// same after each way in which an answer ends.
func TestLoopStopsOverEachAPI(t *testing.T) {
	for _, a := range apis {
		for stop, word := range stopWords[a.format] {
			for _, streams := range []bool{false, true} {
				for _, calls := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s/%s/streams=%v/calls=%v", a.format, word, streams, calls), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { testStop(t, a, stop, word, streams, calls) })
					})
				}
			}
		}
	}
}

func testStop(t *testing.T, a api, stop state.Stop, word string, streams, calls bool) {
	path, body := a.path, fmt.Sprintf(a.request, "")
	if streams {
		path, body = a.stream, fmt.Sprintf(a.request, ` "stream":true,`)
	}
	first := statetest.Say("The half")
	if calls {
		first = statetest.Call("pay", `{"to":"Gr"}`)
	}
	model := statetest.NewModel(t, a.format, first.Stops(word), statetest.Say("All.").Times(-1))
	made := false
	pay := tool.Must(tool.New("pay", "Pays.", func(context.Context, struct {
		To string `json:"to"`
	}) (string, error) {
		made = true
		return "paid", nil
	}))
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Go.")}))
	ask := asksOf(model, path, body)
	reply, err := (&loop.Loop{Agents: map[string]loop.Agent{"": {Ask: ask, Tools: []*tool.Tool{pay}}}}).Run(t.Context(), st)

	first1, _ := st.History().At(0)
	goesOn := stop == state.StopPaused || stop == state.StopFailed || calls && stop == state.StopLength
	if goesOn {
		require.NoError(t, err)
		require.Equal(t, "All.", reply)
	} else {
		var stopped *loop.StopError
		require.ErrorIs(t, err, loop.ErrStopped)
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, stop, stopped.Stop)
		require.Equal(t, word, stopped.Word)
		if !calls {
			require.Equal(t, "The half", reply)
		}
	}
	require.Equal(t, calls && stop == state.StopPaused, made)
	if stop == state.StopFailed && !calls {
		require.Equal(t, 1, st.History().Len(), "what has failed is not recorded")
		return
	}
	require.Equal(t, []string{string(stop), word}, []string{string(first1.Stop), first1.StopWord})
	require.Empty(t, st.History().Pending())
}

// A response whose status says that it failed is asked for again, with what had come of
// it or without. One that somebody has cancelled is not.
func TestFailedResponsesAreAskedForAgain(t *testing.T) {
	said := `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[]}]}`
	for name, tc := range map[string]struct {
		status, output string
		asked          int
	}{
		"failed": {"failed", said, 2}, "failed at once": {"failed", "", 2}, "cancelled": {"cancelled", said, 1},
	} {
		for _, streams := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				answer := func(code, output string) func(*http.Request) (*http.Response, error) {
					body := `{"id":"r","object":"response","status":"` + code + `","error":{"code":"server_error","message":"x"},"output":[` + output + `]}`
					if code == "completed" {
						body = strings.Replace(body, `{"code":"server_error","message":"x"}`, "null", 1)
					}
					if streams {
						return status(200, "data: {\"type\":\"response."+code+"\",\"response\":"+body+"}\n\n", "Content-Type", "text/event-stream")
					}
					return status(200, body)
				}
				p := &provided{answers: []func(*http.Request) (*http.Response, error){answer(tc.status, tc.output), answer("completed", said)}}
				st := state.New(nil)
				require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Go.")}))
				_, err := (&loop.Loop{Agents: map[string]loop.Agent{"": {Ask: asks(p, "/v1/responses", `{"model":"m"}`)}}}).Run(t.Context(), st)
				require.Equal(t, tc.asked == 1, err != nil, "%s: %v", name, err)
				require.Len(t, p.bodies, tc.asked, name)
				require.Equal(t, tc.asked-1, st.History().Len(), name)
			})
		}
	}
}

// A paused answer is sent back as it is, with the call of the provider's own tool that
// has no result yet.
func TestPausedAnswerGoesBack(t *testing.T) {
	message := func(id, content, stop string) func() string {
		return func() string {
			return `{"id":"` + id + `","type":"message","role":"assistant","model":"m","content":[` + content + `],"stop_reason":"` + stop + `","usage":{"input_tokens":1,"output_tokens":1}}`
		}
	}
	use := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}`
	p := &provided{}
	for _, body := range []func() string{
		message("m1", `{"type":"text","text":"Searching."},`+use, "pause_turn"),
		message("m2", `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"The answer."}`, "end_turn"),
	} {
		p.answers = append(p.answers, status(200, body()))
	}
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Go on.")}))
	ask := asks(p, "/v1/messages", `{"model":"m","max_tokens":10,"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`)
	reply, err := (&loop.Loop{Agents: map[string]loop.Agent{"": {Ask: ask}}}).Run(t.Context(), st)
	require.NoError(t, err)
	require.Equal(t, "The answer.", reply)
	require.Len(t, p.bodies, 2)
	require.Contains(t, p.bodies[1], `{"role":"assistant","content":[{"type":"text","text":"Searching."},`+use+`]}`)
}
