package traces

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
