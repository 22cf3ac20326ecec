package traces

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/stretchr/testify/require"
)

// one reads the only run in a file and plays it with all checks.
func one(t *testing.T, data string) *Run {
	t.Helper()
	file, err := Read([]byte(data))
	require.NoError(t, err)
	require.Empty(t, file.Others)
	require.Len(t, file.Runs, 1)
	_, err = Play(file.Runs[0], Options{Verify: true})
	require.NoError(t, err)
	return file.Runs[0]
}

func tau(messages ...string) string {
	return `{"task_id":1,"traj":[` + strings.Join(messages, ",") + `]}`
}

func adk(events ...string) string {
	return `{"id":"s","events":[` + strings.Join(events, ",") + `]}`
}

// raws returns the JSON of messages, without keys.
func raws[M state.Message](msgs []M) []string {
	list := []string{}
	for _, m := range msgs {
		list = append(list, string(keyless(m)))
	}
	return list
}

func TestLogs(t *testing.T) {
	const hi, hello = `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"hello"}`
	for _, test := range []struct{ name, data, kind string }{
		{"τ-bench", tau(hi, hello), "τ-bench"},
		{"SWE-agent", `{"history":[` + hi + `,` + hello + `],"trajectory":[],"info":null}`, "SWE-agent"},
		{"mini-swe-agent", `{"info":{},"messages":[` + hi + `,` + hello + `],"trajectory_format":"1"}`, "mini-swe-agent"},
		{"ADK", adk(`{"author":"user","content":{"role":"user","parts":[{"text":"hi"}]}}`, `{"author":"a","content":{"role":"model","parts":[{"text":"hello"}]}}`), "ADK session"},
		{"space around it", " \n" + tau(hi, hello) + "\r\n ", "τ-bench"},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := one(t, test.data)
			require.Equal(t, test.kind, run.Kind)
			require.Equal(t, 2, run.Entries)
			require.Len(t, run.Steps, 1)
			require.Equal(t, "hello", run.Steps[0].Output[0].(state.TextMessage).Text())
			require.Equal(t, "hi", run.Steps[0].Said[0].(state.TextMessage).Text())
		})
	}
}

func TestOtherKindsAreNamed(t *testing.T) {
	for data, what := range map[string]string{
		`{"exchanges":[]}`: "a recording without exchanges",
		`{"exchanges":[{"api":"bedrock_converse","status":200,"request":{},"response":{}}]}`: "a Bedrock Converse exchange",
		`{"exchanges":[{"api":"mcp_jsonrpc","status":200,"request":{},"stream":[]}]}`:        "MCP frames",
		`{"exchanges":[{"api":"a2a_jsonrpc","status":200,"request":{},"stream":[]}]}`:        "A2A frames",
		`{"exchanges":[{"api":"cohere","status":200}]}`:                                      `an exchange of api "cohere", which is none of openai_chat, openai_responses, anthropic_messages, gemini_generateContent`,
		`{"exchanges":[{"status":200}]}`:                                                     "an exchange that names neither api nor url",
		`{"eval_cases":[],"events":[]}`:                                                      "an evaluation set",
		`[{"query":"q","expected_tool_use":[],"reference":"r"}]`:                             "an evaluation set",
		`{"vendor":"v","events":[{"kind":"ws","direction":"sent"}]}`:                         "a realtime session",
		`{"id":"i","status":"completed","steps":[]}`:                                         "a Gemini interaction",
		`[{"event_type":"interaction.created"},{}]`:                                          "the stream of a Gemini interaction",
		`{"output":{"message":{"role":"assistant","content":[]}},"stopReason":"end_turn"}`:   "a Bedrock Converse response",
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`:                          "JSON-RPC frames",
		`{"vendor":"v","events":[{"kind":"ws"}]}`:                                            `an object with "vendor", "events"`,
		`{"model":"m","messages":[]}`:                                                        `an object with "model", "messages"`,
		`{"history":[]}`:                                                                     `an object with "history"`,
		`{"traj":"none"}`:                                                                    `an object with "traj"`,
		`{"error":{"oops":1}}`:                                                               `an object with "error"`,
		`{"a":1,"b":1,"c":1,"d":1,"e":1}`:                                                    `an object with "a", "b", "c", "d", …`,
		`{}`:                                                                                 "an empty object",
		`[]`:                                                                                 "an empty array",
		`[[1],2]`:                                                                            "an array, and its first element is an array, and its first element is JSON of type number",
		`["not JSON"]`:                                                                       "an array, and its first element is JSON of type string",
		`"x"`:                                                                                "JSON of type string",
	} {
		file, err := Read([]byte(data))
		require.NoError(t, err, data)
		require.Equal(t, []string{what}, file.Others, data)
		require.Empty(t, file.Runs)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	for _, test := range []struct{ name, data, path, problem string }{
		{"cut off", `{"traj":[{"role":"user"`, "$.traj[0]", "byte 23"},
		{"no JSON", `{"traj":[{"role":nil}]}`, "$.traj[0].role", "byte 19"},
		{"nothing", ``, "$:", "byte 0"},
		{"no object", tau(`{"role":"user","content":""}`, `7`), "$.traj[1]", "want object, got number"},
		{"twice", tau(`{"role":"user","x":[{"a/b":1,"a/b":2}]}`), `$.traj[0].x[0]["a/b"]`, ""},
		{"half a character", tau(`{"role":"user","content":"\ud83d"}`), "$.traj[0].content: invalid escape", "byte 26 of the entry"},
		{"no UTF-8", tau("{\"role\":\"user\",\"content\":\"\xff\"}"), "$.traj[0].content", "UTF-8 at byte 26 of the entry"},
		{"in an array", `[` + tau() + `,` + tau(`null`) + `]`, "$[1].traj[0]", "got null"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read([]byte(test.data))
			require.ErrorContains(t, err, test.path)
			require.ErrorContains(t, err, test.problem)
		})
	}
}

// Errors in parts that are not read do not matter.
func TestUnreadPartsMayBeAnything(t *testing.T) {
	run := one(t, `{"x":"\ud83d","x":1,"info":{"a":1,"a":2},"traj":[{"role":"assistant","content":"a"}]}`)
	require.Len(t, run.Steps, 1)
}

func TestArrayOfRuns(t *testing.T) {
	a, b := `{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"b"}`
	file, err := Read([]byte(`[` + tau(a) + `,{"error":"x"},` + tau() + `,` + tau(b, `0`) + `,` + tau(a, b) + `]`))
	var failed []string
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		failed = append(failed, err.Error())
	}
	require.Equal(t, []string{`$[1]: not a trace: an object with "error"`, "$[3].traj[1]: want object, got number"}, failed)
	var got []string
	for _, run := range file.Runs {
		got = append(got, fmt.Sprint(run.Path, " ", len(run.Steps)))
	}
	require.Equal(t, []string{"$[0].traj 1", "$[2].traj 0", "$[4].traj 2"}, got)

	played := PlayFile([]byte(`[`+tau(a)+`,{"error":"x"},`+tau(a, b)+`]`), Options{})
	require.ErrorContains(t, played.Err, "$[1]: not a trace")
	stats := played.Kinds["τ-bench"]
	require.Equal(t, 3, stats.Results)
	require.Equal(t, 2, stats.Runs)
}

func TestErrorsOfAPartGetItsPath(t *testing.T) {
	require.EqualError(t, atPath("$[1]", &fault.Error{Path: "$.a", Got: "no"}), "$[1].a: no")
	require.EqualError(t, atPath("$[1]", &fault.LimitError{Path: "$.a", Name: "Depth", Limit: 1, Got: 2}), "$[1].a: limit Depth: 2 is more than 1")
	err := atPath("$[1]", io.ErrUnexpectedEOF)
	require.EqualError(t, err, "$[1]: unexpected EOF")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// FuzzRead checks that Read says something of every file, and that whatever can
// be read can be played with all checks, and is the same when it is encoded
// again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		tau(`{"role":"system","content":"s"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}}]}`, `{"role":"tool","tool_call_id":"1","content":"299.0"}`),
		`[` + tau(`{"role":"assistant","content":[{"type":"text","text":"x"}],"type":"t","tools":1}`) + `,{"traj":[]}]`,
		`{"info":1,"history":[{"role":"assistant","agent":"main","content":"x","tool_calls":[{"function":{"name":"f","arguments":""}}]},{"role":"tool","tool_call_ids":["a",null],"content":""}]}`,
		`{"info":1,"messages":[{"object":"response","output":[{"type":"message","content":[]},{"type":"function_call","call_id":"c","arguments":"{}"},3]},{"type":"function_call_output","call_id":"c","output":"o"}]}`,
		adk(`{"author":"a","timestamp":1733043688.1030986,"content":{"role":"model","parts":[{"text":"x"},{"functionCall":{"name":"f","args":{}}},{"inline_data":null}]}}`, `{"author":"a","content":{"parts":[{"function_response":{"name":"f","response":null}}]}}`, `{"author":"b"}`),
		recording(
			chatExchange(calls("1", "f"), `{"role":"user","content":"u"}`),
			chatExchange(`{"role":"assistant","content":"a"}`, `{"role":"user","content":"u"}`, calls("1", "f"), result("1", "x"))),
		recording(`{"api":"openai_responses","request":{"instructions":"s","input":"u"},"response":`+responseBody+`}`,
			`{"api":"anthropic_messages","status":"400","request":{"system":"s","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}}`,
			`{"api":"gemini_generateContent","request":{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]}]},"stream":[{"data":`+geminiBody+`}]}`),
		anthropicBody,
		`["not JSON",{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}},{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Read(data)
		require.True(t, err != nil || len(file.Runs)+len(file.Others) > 0, "nothing was said of the file")
		for _, run := range file.Runs {
			_, err := Play(run, Options{Verify: true})
			require.NoError(t, err)
			for _, x := range run.exchanges {
				if x.requestErrs == nil && x.answerErrs == nil {
					x.checkRequest()
					x.checkAnswer()
					require.Empty(t, append(x.requestErrs, x.answerErrs...))
				}
			}
		}
	})
}
