package traces

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// calls returns an assistant's message with calls of the given ids and names.
func calls(idsAndNames ...string) string {
	list := ""
	for i := 0; i < len(idsAndNames); i += 2 {
		if i > 0 {
			list += ","
		}
		list += `{"id":"` + idsAndNames[i] + `","type":"function","function":{"name":"` + idsAndNames[i+1] + `","arguments":"{}"}}`
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + list + `]}`
}

func result(id, content string) string {
	return `{"role":"tool","tool_call_id":"` + id + `","content":"` + content + `"}`
}

func said(author, parts string) string {
	return `{"author":"` + author + `","content":{"role":"model","parts":[` + parts + `]}}`
}

// Each row is a log, and the steps that its entries make; see shape.
func TestStepsOfLogs(t *testing.T) {
	const sys, hi, more = `{"role":"system","content":"s"}`, `{"role":"user","content":"hi"}`, `{"role":"user","content":"more"}`
	const hello, exit = `{"role":"assistant","content":"hello"}`, `{"role":"exit","content":"done"}`
	const both = `{"role":"assistant","content":"a","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`
	for _, test := range []struct{ name, log, steps string }{
		{"a turn", tau(sys, hi, hello), "[s hi > hello]"},
		{"what is said after it", tau(hi, hello, more), "[hi > hello]more"},
		{"turns in a row", tau(hello, hello), "[ > hello][ > hello]"},
		{"text and calls, and their result", tau(hi, both, result("1", "x"), hello), "[hi > a f() =x][ > hello]"},
		{"results in another order", tau(calls("1", "f", "2", "g"), result("2", "a"), result("1", "b")), "[ > f() =a =b]"},
		{"a list of calls that a result answers", tau(calls("1", "f", "2", "g"), `{"role":"tool","tool_call_ids":["1","2"],"content":"x"}`), "[ > f() =x =x]"},
		{"no ids", tau(calls("", "f"), `{"role":"tool","content":"x"}`), "[ > f() =x]"},
		{"before there were tools", tau(`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"x"}`), "[ > f() =x]"},
		{"a late result keeps its place", tau(calls("1", "f"), more, result("1", "late")), "[ > f()]more =late"},
		{"notes of the harness", tau(hi, hello, exit), "[hi > hello]"},
		{"a turn of the Responses API", `{"info":{},"messages":[` + hi + `,{"output":[{"type":"message","role":"assistant","content":"a"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}]},{"type":"function_call_output","call_id":"1","output":"x"}]}`,
			"[hi > a f() =x]"},
		{"ADK", adk(`{"author":"user","content":{"role":"user","parts":[{"text":"hi"}]}}`, said("x", `{"text":"a"},{"function_call":{"name":"f"}}`), `{"author":"x","content":{"role":"user","parts":[{"function_response":{"name":"f","response":{"r":1}}}]}}`, said("x", `{"text":"hello"}`)),
			`[hi > a f() ={"r":1}][ > hello]`},
		{"events that are no turn", adk(`{"author":"user","content":{"role":"user","parts":[{"text":"hi"}]}}`, `{"author":"x","actions":{"state_delta":{"n":1.0}}}`, `{"author":"x","content":null}`, said("x", ``), said("x", `{"text":"hello"}`)),
			"[hi > hello]"},
		{"a result and a text in an event", adk(said("x", `{"function_call":{"name":"f"}}`), said("x", `{"function_response":{"name":"f","response":{}}},{"text":"so"}`)), "[ > f() ={}][ > so]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, []string{test.steps}, shape([]*Run{one(t, test.log)}))
		})
	}
}

// An entry that the codec refuses is an error of the request.
func TestEntriesThatNoRequestHas(t *testing.T) {
	deep := strings.Repeat(`[`, 70) + strings.Repeat(`]`, 70)
	played := PlayFile([]byte(tau(`{"role":"user","content":`+deep+`}`)), Options{})
	require.ErrorContains(t, played.Err, "limit Depth")
	require.Equal(t, 1, played.Total().Failures)
}

func TestRawIsTheTurnAsItIsInTheFile(t *testing.T) {
	const turn = "{ \"role\" : \"assistant\",\n\t\"content\": \"\\u0041 < \\/ é\", \"n\": [ 1.0 , -0.0 ] }"
	step := one(t, tau(turn)).Steps[0]
	require.Equal(t, turn, step.Raw)
	require.Equal(t, "$.traj[0]", step.Path)
}

func TestAgentsOfTurns(t *testing.T) {
	agents := func(run *Run) (names []string) {
		for _, step := range run.Steps {
			names = append(names, step.Agent)
		}
		return names
	}
	require.Equal(t, []string{"main", "Web (surfer)", "assistant", "assistant"}, agents(one(t, tau(
		`{"role":"assistant","content":"","agent":"main","name":"n"}`, `{"role":"assistant","content":"","name":"Web (surfer)"}`,
		`{"role":"assistant","content":""}`, `{"role":"assistant","content":"","agent":null}`))))

	transfer := one(t, adk(said("root", `{"function_call":{"name":"transfer_to_agent","args":{"agent_name":"flights"}}}`),
		`{"author":"root","content":{"role":"user","parts":[{"function_response":{"name":"transfer_to_agent","response":{}}}]}}`, said("flights", `{"text":"where to?"}`)))
	require.Equal(t, []string{"root", "flights"}, agents(transfer))
	stats, err := Play(transfer, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"root": 1, "flights": 1}, stats.Agents)
}

// Each row is a log, and the request and the response that it tells of.
func TestSent(t *testing.T) {
	const hi, hello = `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"hello"}`
	const item = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]}`
	const reply = `{"object":"response","output":[` + item + `]}`
	mini := func(messages string) string { return `{"info":{},"messages":[` + messages + `]}` }
	for _, test := range []struct{ name, log, request, response string }{
		{"a model's turn is the end", tau(hi, hello), `{"messages":[` + hi + `]}`, `{"choices":[{"message":` + hello + `}]}`},
		{"the user's turn is the end", tau(hi, hello, hi), `{"messages":[` + hi + `,` + hello + `,` + hi + `]}`, ``},
		{"nothing", tau(), `{"messages":[]}`, ``},
		{"notes of the harness", tau(hi, hello, `{"role":"exit","content":"done"}`), `{"messages":[` + hi + `]}`, `{"choices":[{"message":` + hello + `}]}`},
		{"a list of calls that a result answers", tau(calls("1", "f", "2", "g"), `{"role":"tool","tool_call_ids":["1","2"],"content":"x"}`),
			`{"messages":[` + calls("1", "f", "2", "g") + `,{"role":"tool","content":"x","tool_call_id":"1"},{"role":"tool","content":"x","tool_call_id":"2"}]}`, ``},
		{"the Responses API", mini(hi + `,` + reply + `,{"type":"function_call_output","call_id":"1","output":"x"},` + reply),
			`{"input":[` + hi + `,` + item + `,{"type":"function_call_output","call_id":"1","output":"x"}]}`, reply},
		{"the Responses API, the user's turn is the end", mini(reply + `,` + hi + `,{"role":"exit"}`), `{"input":[` + item + `,` + hi + `]}`, ``},
		{"ADK", adk(`{"author":"user","content":{"role":"user","parts":[{"text":"hi"}]}}`, `{"author":"x","partial":true,"content":{"role":"model","parts":[{"text":"he"}]}}`, said("x", `{"text":"hello"}`), `{"author":"x"}`),
			`{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]}}]}`},
		{"ADK, a result is the end", adk(said("x", `{"function_call":{"name":"f"}}`), `{"author":"x","content":{"role":"user","parts":[{"function_response":{"name":"f"}}]}}`),
			`{"contents":[{"role":"model","parts":[{"function_call":{"name":"f"}}]},{"role":"user","parts":[{"function_response":{"name":"f"}}]}]}`, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := one(t, test.log).exchanges[0]
			require.Equal(t, test.request, string(x.request))
			require.Equal(t, test.response, string(x.response))
			require.Equal(t, outcomeAccepted, x.outcome)
			require.Empty(t, x.check(&Stats{}, false))
		})
	}
}

// Each of several agents was sent the session in a different form, so nothing
// follows from its content.
func TestSessionsOfSeveralAgentsWereSentToNone(t *testing.T) {
	run := one(t, adk(`{"author":"user","content":{"role":"user","parts":[{"text":"hi"}]}}`, said("x", `{"text":"a"}`), said("y", `{"function_call":{"name":"f"}}`)))
	require.Equal(t, outcomeUnsent, run.exchanges[0].outcome)
	require.Empty(t, run.exchanges[0].check(&Stats{}, true))
}
