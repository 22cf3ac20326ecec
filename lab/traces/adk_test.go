package traces

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func said(author, parts string) string {
	return `{"author":"` + author + `","content":{"role":"model","parts":[` + parts + `]}}`
}

// Each row is the parts of an event, and the messages that become of them.
func TestParts(t *testing.T) {
	for _, test := range []struct {
		name, parts string
		out         []string
	}{
		{"text", `{"text":"a"}`, []string{
			`{"type":"text","role":"model","content":"a","author":"x"}`}},
		{"texts and other parts", `{"text":"a","thought":true},{"inline_data":{"data":"AA=="}},{"text":null}`, []string{
			`{"type":"text","role":"model","content":[{"type":"text","text":"a","thought":true},{"inline_data":{"data":"AA=="}},{"text":null}],"author":"x"}`}},
		{"calls in both cases", `{"function_call":{"name":"f","args":{"a":3.0}}},{"functionCall":{"id":"1","name":"g"},"thoughtSignature":"s"}`, []string{
			`{"type":"tool_call","role":"model","tools":[{"name":"f","input":{"a":3.0}},{"id":"1","name":"g","thoughtSignature":"s"}],"author":"x"}`}},
		{"text, a call and text again", `{"text":"a"},{"function_call":{"name":"f","args":null}},{"text":"b"}`, []string{
			`{"type":"text","role":"model","content":"a","author":"x"}`,
			`{"type":"tool_call","role":"model","tools":[{"name":"f","input":null}]}`,
			`{"type":"text","role":"model","content":"b"}`}},
		{"members that are null", `{"text":"a","function_call":null,"function_response":null}`, []string{
			`{"type":"text","role":"model","content":[{"type":"text","text":"a","function_call":null,"function_response":null}],"author":"x"}`}},
		{"parts of no known shape", `1,null`, []string{
			`{"type":"other","role":"model","content":[1,null],"author":"x"}`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := one(t, adk(said("x", test.parts)))
			require.Len(t, run.Steps, 1)
			require.Equal(t, test.out, raws(run.Steps[0].Output))
			require.Equal(t, "x", run.Steps[0].Agent)
			require.Equal(t, said("x", test.parts), run.Steps[0].Raw)
		})
	}
}

// Results have no ids: those of one name belong to the calls in their order.
func TestResponsesBelongToCalls(t *testing.T) {
	run := one(t, adk(
		said("x", `{"function_call":{"name":"f","args":{"n":1}}},{"function_call":{"name":"g"}},{"function_call":{"name":"f","args":{"n":2}}}`),
		said("x", `{"function_response":{"name":"g","response":{}}},{"function_response":{"name":"f","response":{"r":1}}}`),
		said("x", `{"function_response":{"name":"f","response":{"r":2}}}`)))
	require.Len(t, run.Steps, 1)
	require.Equal(t, []string{
		`{"type":"tool_result","role":"model","tool":{"name":"g"},"content":{},"author":"x","function_response":{"name":"g"}}`,
		`{"type":"tool_result","role":"model","tool":{"name":"f","input":{"n":1}},"content":{"r":1},"function_response":{"name":"f"}}`,
		`{"type":"tool_result","role":"model","tool":{"name":"f","input":{"n":2}},"content":{"r":2},"author":"x","function_response":{"name":"f"}}`,
	}, raws(run.Steps[0].Results))
}

// Each of several concurrent agents gets the results of its own calls.
func TestResponsesBelongToTheirAgent(t *testing.T) {
	run := one(t, adk(
		said("a", `{"function_call":{"name":"f","args":{"by":"a"}}}`),
		said("b", `{"function_call":{"name":"f","args":{"by":"b"}}}`),
		said("a", `{"function_response":{"name":"f","response":1}}`),
		said("b", `{"function_response":{"name":"f","response":2}}`)))
	require.Len(t, run.Rest, 2) // a's is late, and so b's comes after another message
	require.Contains(t, string(run.Rest[0].Raw()), `"input":{"by":"a"}`)
	require.Contains(t, string(run.Rest[1].Raw()), `"input":{"by":"b"}`)
}

func TestTransfer(t *testing.T) {
	run := one(t, adk(
		`{"author":"user","content":{"role":"user","parts":[{"text":"book it"}]}}`,
		said("root", `{"function_call":{"name":"transfer_to_agent","args":{"agent_name":"flights"}}}`),
		`{"author":"root","content":{"role":"user","parts":[{"function_response":{"name":"transfer_to_agent","response":{}}}]},"actions":{"transfer_to_agent":"flights"}}`,
		said("flights", `{"text":"where to?"}`)))
	require.Len(t, run.Steps, 2)
	require.Equal(t, "root", run.Steps[0].Agent)
	require.Len(t, run.Steps[0].Results, 1)
	require.Equal(t, "flights", run.Steps[1].Agent)

	stats, err := Play(run, Options{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"root": 1, "flights": 1}, stats.Agents)
}

func TestEventsThatAreNoTurn(t *testing.T) {
	run := one(t, adk(
		`{"author":"user","content":{"parts":[{"text":"a"},{"function_call":{"name":"f"}}]}}`,
		`{"author":"x","actions":{"state_delta":{"n":1.0}}}`,
		`{"author":"x","content":null}`,
		`{"author":"x","content":{"role":"model","parts":[]}}`,
		`{"content":{"role":"model","parts":[{"text":"b"}]}}`))
	require.Len(t, run.Steps, 1)
	require.Equal(t, "model", run.Steps[0].Agent)
	require.Equal(t, []string{
		`{"type":"text","role":"user","content":"a","author":"user"}`,
		`{"type":"tool_call","role":"user","tools":[{"name":"f"}]}`,
		`{"type":"event","role":"model","author":"x","actions":{"state_delta":{"n":1.0}}}`,
		`{"type":"event","role":"model","author":"x","content":null}`,
		`{"type":"event","role":"model","author":"x","content":{"role":"model","parts":[]}}`,
	}, raws(run.Steps[0].Said))
}

func TestEventWithAResultAndText(t *testing.T) {
	run := one(t, adk(
		said("x", `{"function_call":{"name":"f"}}`),
		said("x", `{"function_response":{"name":"f","response":1}},{"text":"so"}`)))
	require.Len(t, run.Steps, 2)
	require.Len(t, run.Steps[0].Results, 1)
	require.Equal(t, []string{`{"type":"text","role":"model","content":"so"}`}, raws(run.Steps[1].Output))
}

func TestTimeOfATurn(t *testing.T) {
	for number, want := range map[string]time.Time{
		`1733043688.1030986`: time.Date(2024, 12, 1, 9, 1, 28, 103099000, time.UTC),
		`"1733043688"`:       time.Date(2024, 12, 1, 9, 1, 28, 0, time.UTC),
		`1e400`:              {},
		`-5`:                 {},
		`"soon"`:             {},
		`null`:               {},
	} {
		run := one(t, adk(`{"author":"x","timestamp":`+number+`,"content":{"parts":[{"text":"a"}]}}`))
		require.Equal(t, want, run.Steps[0].Time, number)
	}
}
