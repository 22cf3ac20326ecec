package traces

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// decodeOne returns the message of a chat entry.
func decodeOne(entry string) (state.Message, error) {
	request, err := provider.OpenAI.DecodeRequest([]byte(`{"messages":[` + entry + `]}`))
	if err != nil {
		return nil, err
	}
	return request.Messages[0], nil
}

// shape is what came of a recording: a line for each run, in it each step as
// "what was said > output results", messages by their text, call or result.
func shape(runs []*Run) []string {
	short := func(msgs []state.Message) string {
		var list []string
		for _, m := range msgs {
			switch m := m.(type) {
			case state.TextMessage:
				list = append(list, m.Text())
			case state.ToolCallMessage:
				list = append(list, m.Calls()[0].Name+"()")
			case state.ToolResultMessage:
				list = append(list, "="+m.Text())
			}
		}
		return strings.Join(list, " ")
	}
	var lines []string
	for _, run := range runs {
		line := ""
		for _, step := range run.Steps {
			results := ""
			for _, m := range step.Results {
				results += " =" + m.Text()
			}
			line += fmt.Sprintf("[%s > %s%s]", short(step.Said), short(step.Output), results)
		}
		lines = append(lines, line+short(run.Rest))
	}
	return lines
}

// Each row is a recording, and the runs that its exchanges make.
func TestThreads(t *testing.T) {
	const (
		sys, hi, more = `{"role":"system","content":"s"}`, `{"role":"user","content":"hi"}`, `{"role":"user","content":"more"}`
		hello, bye    = `{"role":"assistant","content":"hello","refusal":null}`, `{"role":"assistant","content":"bye"}`
		again         = `{"role":"assistant","content":"hello"}` // as an application sends it
		other         = `{"role":"user","content":"other"}`
	)
	call, res := calls("1", "f"), result("1", "x")
	refused := func(messages ...string) string {
		return `{"api":"openai_chat","status":400,"request":{"messages":[` + strings.Join(messages, ",") + `]},"response":{"error":{"type":"e"}}}`
	}
	responses := func(id, after, in, out string) string {
		return `{"api":"openai_responses","status":200,"request":{"previous_response_id":` + after + `,"input":"` + in + `"},"response":{"id":"` + id +
			`","object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + out + `"}]}]}}`
	}
	for _, test := range []struct {
		name      string
		exchanges []string
		runs      []string
	}{
		{"one", []string{chatExchange(hello, sys, hi)}, []string{"[s hi > hello]"}},
		{"one goes on", []string{chatExchange(hello, sys, hi), chatExchange(bye, sys, hi, again, more)},
			[]string{"[s hi > hello][more > bye]"}},
		{"results go to their turn", []string{chatExchange(call, hi), chatExchange(hello, hi, call, res), chatExchange(bye, hi, call, res, again, more)},
			[]string{"[hi > f() =x][ > hello][more > bye]"}},
		{"a result and what the user said", []string{chatExchange(call, hi), chatExchange(bye, hi, call, res, more)},
			[]string{"[hi > f() =x][more > bye]"}},
		{"another answer than it got", []string{chatExchange(hello, hi), chatExchange(bye, hi, `{"role":"assistant","content":"changed"}`, more)},
			[]string{"[hi > hello]", "[hi changed more > bye]"}},
		{"another beginning", []string{chatExchange(hello, hi), chatExchange(bye, other)},
			[]string{"[hi > hello]", "[other > bye]"}},
		{"two agents in turn", []string{chatExchange(hello, hi), chatExchange(bye, other), chatExchange(bye, hi, again, more)},
			[]string{"[hi > hello][more > bye]", "[other > bye]"}},
		{"one that is refused", []string{refused(hi)}, []string{"hi"}},
		{"refused, and tried again", []string{refused(hi), chatExchange(hello, hi, more)}, []string{"[hi more > hello]"}},
		{"refused after a turn", []string{chatExchange(call, hi), refused(hi, call, res), chatExchange(bye, hi, call, res)},
			[]string{"[hi > f() =x][ > bye]"}},
		{"after a response that the provider holds", []string{responses("1", "null", "a", "b"), responses("2", `"1"`, "c", "d"), responses("3", `"9"`, "e", "f")},
			[]string{"[a > b][c > d]", "[e > f]"}},
		{"nothing that was asked", []string{`{"api":"openai_chat","status":200,"request":null,"response":` + chatBody + `}`, chatExchange(bye, hi)},
			[]string{"[ > a]", "[hi > bye]"}},
		{"frames between", []string{chatExchange(hello, hi), `{"api":"mcp_jsonrpc"}`, chatExchange(bye, hi, again, more)},
			[]string{"[hi > hello][more > bye]"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, err := Read([]byte(recording(test.exchanges...)))
			require.NoError(t, err)
			require.Equal(t, test.runs, shape(file.Runs))
			for _, run := range file.Runs {
				_, err := Play(run, Options{Verify: true})
				require.NoError(t, err)
			}
		})
	}
}

// After an exchange, the history has the response as it is in the file.
func TestExchangeInTheHistory(t *testing.T) {
	body := "{ \"choices\" : [ {\"message\":{\"role\":\"assistant\",\"content\":\"\\u0061\"}} ], \"created\": 1700000000, \"n\": 1.0 }"
	file, err := Read([]byte(recording(`{"api":"openai_chat","status":200,"request":{"messages":[{"role":"user","content":"u"}]},"response":` + body + `}`)))
	require.NoError(t, err)
	step := file.Runs[0].Steps[0]
	require.Equal(t, body, step.Raw)
	require.Equal(t, "$.exchanges[0].response", step.Path)
	require.Equal(t, int64(1700000000), step.Time.Unix())
	require.Equal(t, "u", step.input())
}
