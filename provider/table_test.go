package provider_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/provider/providertest"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// bedrockRecordings are exchanges with the API of the example.
var bedrockRecordings = os.DirFS("testdata/bedrock")

func TestTableOfExample(t *testing.T) {
	providertest.Run(t, bedrockFormat, bedrockRecordings)
}

// The laws hold for what Bedrock was sent and has answered.
func TestTableOnTraces(t *testing.T) {
	found := fstest.MapFS{}
	for _, folder := range []string{"exchange_bedrock_converse", "raw_bedrock"} {
		for _, f := range recordings(t, folder) {
			found[folder+"/"+f.name] = &fstest.MapFile{Data: f.data}
		}
	}
	if len(found) == 0 {
		t.Skip("the recordings have none of Bedrock: the table is tested on the project's own exchanges")
	}
	providertest.Run(t, bedrockFormat, found)
}

// chatty is an API whose calls have a member of their own, as texts, and whose
// results are entries. Its prompts are entries, and its parts have types.
var chatty = provider.Table{
	Entries: "turns", Content: "says", Model: "bot", Bare: true, Typed: true, Calls: "uses",
	Call:      provider.Word{ID: "key", Name: "tool", Value: "with", Text: true},
	Result:    provider.Word{Role: "tool", ID: "key", Value: "says", Failed: "bad"},
	ReadPart:  func(state.JSON) (provider.Part, bool) { return provider.Part{}, false },
	WritePart: func(string, provider.Part) (state.JSON, bool) { return "", false },
	ReadTool: func(element state.JSON) (provider.Tool, bool) {
		return provider.Tool{Name: text(in(element), "tool"), Description: text(in(element), "about"), Schema: in(element)["takes"]}, true
	},
	WriteTool: func(t provider.Tool) state.JSON {
		return object(members{"tool": state.JSONText(t.Name), "about": state.JSONText(t.Description), "takes": t.Schema})
	},
	ReadResponse: func(body state.JSON) (provider.Response, error) {
		return provider.Response{ID: text(in(body), "id"), Entry: in(body)["turn"]}, nil
	},
	Summarize: func(_ *provider.Summary, body state.JSON) bool { return in(body)["turn"] != "" },
	NewAssembler: func(emit func(provider.Delta)) provider.Assembler {
		return &converseStream{emit: emit, byIndex: map[state.JSON]*streamedBlock{}}
	},
}

var chattyRecordings = fstest.MapFS{
	"exchange.json": {Data: []byte(`{"request":{"turns":[{"role":"system","says":"Be brief."},{"role":"user","says":[{"type":"text","text":"What is 2+3?"},{"type":"smile","at":"you"}]},
		{"role":"bot","says":"I add.","uses":[{"key":"u1","tool":"add","with":"{\"a\": 2}"},{"key":"u2","tool":"now","with":""}],"mood":"calm"},
		{"role":"tool","key":"u2","says":"noon","bad":true},{"role":"tool","key":"u1","says":"5"},{"role":"bot","says":[]}],"tools":[{"tool":"add","about":"Adds."}]},
		"response":{"id":"r","turn":{"role":"bot","says":null,"uses":[{"key":"u3","tool":"add","with":"{}"}]}}}`)},
}

func TestTableWithCallsAside(t *testing.T) {
	providertest.Run(t, provider.New("chatty", transcript.Profile{}, chatty), chattyRecordings)
}

// Formats have any name: it is not confused with those of package provider.
func TestNamesOfFormats(t *testing.T) {
	for _, name := range []string{"", "openai", "a.b", "\xff"} {
		format := provider.New(name, transcript.Profile{}, bedrock)
		if name == "openai" || name == "\xff" { // a law takes as long for every name
			providertest.Run(t, format, fstest.MapFS{})
		}
		require.Equal(t, name, format.String())
		request := roundTrip(t, format, []byte(`{"messages":[{"role":"user","content":[{"text":"a"}],"x":1},{"role":"user"}]}`))
		body, omitted, err := provider.OpenAI.EncodeRequest(request)
		require.NoError(t, err)
		require.NotContains(t, string(body), `"x"`)
		require.Len(t, omitted, 2)
	}
}

// faulty is a fault of a table and the law that it breaks.
type faulty struct {
	law   string
	spoil func(t *provider.Table)
}

// faultyStream is the assembler of the example with a function replaced.
type faultyStream struct {
	*converseStream
	add      func(event state.JSON) error
	complete bool
}

func (s faultyStream) Add(event state.JSON) error {
	if s.add != nil {
		return s.add(event)
	}
	return s.converseStream.Add(event)
}

func (s faultyStream) Result() (state.JSON, bool) {
	body, complete := s.converseStream.Result()
	return body, complete || s.complete
}

// streaming replaces the assembler of a table.
func streaming(replace func(s *converseStream) provider.Assembler) func(*provider.Table) {
	return func(t *provider.Table) {
		begin := t.NewAssembler
		t.NewAssembler = func(emit func(provider.Delta)) provider.Assembler {
			return replace(begin(emit).(*converseStream))
		}
	}
}

func faults() map[string]faulty {
	return map[string]faulty{
		"says two things in one member": {"Requests", func(t *provider.Table) { t.Call.ID = t.Call.Name }},
		"refuses null": {"Null", func(t *provider.Table) {
			t.ReadResponse = func(body state.JSON) (provider.Response, error) {
				if in(body)["stopReason"] == "null" {
					return provider.Response{}, errors.New("no reason")
				}
				return readConverse(body)
			}
		}},
		"pretends to have sounds": {"Omissions", func(t *provider.Table) {
			t.WritePart = func(role string, p provider.Part) (state.JSON, bool) {
				if p.Kind == provider.PartAudio {
					return `{"sound":{}}`, true
				}
				return writeBlock(role, p)
			}
		}},
		"loses descriptions": {"Tools", func(t *provider.Table) {
			t.WriteTool = func(tool provider.Tool) state.JSON {
				tool.Description = ""
				return writeSpec(tool)
			}
		}},
		"does not read tools": {"Tools", func(t *provider.Table) {
			t.ReadTool = func(state.JSON) (provider.Tool, bool) { return provider.Tool{}, false }
		}},
		"takes a failure for an answer": {"Responses", func(t *provider.Table) {
			t.ReadResponse = func(state.JSON) (provider.Response, error) { return provider.Response{}, nil }
		}},
		"counts the output twice": {"Usage", func(t *provider.Table) {
			t.Summarize = func(s *provider.Summary, body state.JSON) bool {
				ok := summarizeConverse(s, body)
				s.Usage.Output *= 2
				return ok
			}
		}},
		"takes a request for a response": {"Usage", func(t *provider.Table) {
			t.Summarize = func(s *provider.Summary, body state.JSON) bool {
				return summarizeConverse(s, body) || strings.Contains(string(body), "messages")
			}
		}},
		"is complete without the end": {"Streams", streaming(func(s *converseStream) provider.Assembler {
			return faultyStream{converseStream: s, complete: true}
		})},
		"loses a piece": {"Streams", streaming(func(s *converseStream) provider.Assembler {
			return faultyStream{converseStream: s, add: func(event state.JSON) error {
				if strings.Contains(string(event), `"text":"I "`) {
					return nil
				}
				return s.Add(event)
			}}
		})},
		"emits nothing": {"Streams", streaming(func(s *converseStream) provider.Assembler {
			s.emit = func(provider.Delta) {}
			return s
		})},
		"panics at a number": {"Hostile", func(t *provider.Table) {
			t.ReadPart = func(block state.JSON) (provider.Part, bool) {
				if in(block)["image"] == "7" {
					panic("no image")
				}
				return readBlock(block)
			}
		}},
		"panics at an event": {"Hostile", streaming(func(s *converseStream) provider.Assembler {
			return faultyStream{converseStream: s, add: func(event state.JSON) error {
				if strings.Contains(string(event), `"text":7`) {
					panic("no text")
				}
				return s.Add(event)
			}}
		})},
	}
}

const faultVariable = "PROVIDERTEST_FAULT"

var failedLaw = regexp.MustCompile(`--- FAIL: TestFaulty/(\S+)`)

// Each law fails for a table that breaks it. The test that must fail runs in a
// process of its own.
func TestFaultsAreDetected(t *testing.T) {
	for name, fault := range faults() {
		t.Run(fault.law+"/"+strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestFaulty$/^"+fault.law+"$")
			child.Env = append(os.Environ(), faultVariable+"="+name)
			output, err := child.CombinedOutput()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, "the law holds:\n%s", output)
			var laws []string
			for _, match := range failedLaw.FindAllStringSubmatch(string(output), -1) {
				laws = append(laws, match[1])
			}
			require.Contains(t, laws, fault.law, "%s", output)
			require.NotContains(t, string(output), "goroutine ", "it must fail and not panic")
		})
	}
}

// TestFaulty runs in the child process.
func TestFaulty(t *testing.T) {
	name := os.Getenv(faultVariable)
	if name == "" {
		return
	}
	fault, ok := faults()[name]
	require.True(t, ok, "unknown fault")
	table := bedrock
	fault.spoil(&table)
	providertest.Run(t, provider.New("bedrock", transcript.Profile{}, table), bedrockRecordings)
}

// What a table gets wrong itself is an Error, and nothing is lost in silence.
func TestMistakesOfTables(t *testing.T) {
	answer := func(entry state.JSON, err error) error {
		table := bedrock
		table.ReadResponse = func(state.JSON) (provider.Response, error) { return provider.Response{Entry: entry}, err }
		_, err = provider.New("bedrock", transcript.Profile{}, table).DecodeResponse([]byte(`{}`))
		return err
	}
	encode := func(settings state.JSON) error {
		_, _, err := bedrockFormat.EncodeRequest(provider.Request{
			Messages: []state.Message{state.UserText("a")}, Tools: []provider.Tool{{Name: "f"}}, Settings: settings,
		})
		return err
	}
	for _, test := range []struct {
		name, problem string
		err           error
	}{
		{"an entry that is no object", `$.entry: want object`, answer(`7`, nil)},
		{"an entry that is no JSON", `$.entry: `, answer(`{`, nil)},
		{"its own error", "$: bad turn", answer("", errors.New("bad turn"))},
		{"an error with a path", "$.output: want an object", answer("", &provider.Error{Path: "$.output", Problem: "want an object"})},
		{"messages in the settings", "$.messages: is in the settings and is also made", encode(`{"messages":[{"role":"user"}]}`)},
		{"tools in the settings", "$.toolConfig.tools: is in the settings and is also made", encode(`{"toolConfig":{"tools":[{}]}}`)},
		{"another place for tools", "$.toolConfig: want object", encode(`{"toolConfig":7}`)},
	} {
		var wrong *provider.Error
		require.ErrorAs(t, test.err, &wrong, test.name)
		require.ErrorIs(t, test.err, state.ErrWrongType, test.name)
		require.Equal(t, "bedrock", wrong.Format, test.name)
		require.Contains(t, wrong.Path+": "+wrong.Problem, test.problem, test.name)
	}
	require.NoError(t, encode(`{"messages":[],"system":null,"toolConfig":{"toolChoice":{"auto":{}}}}`))
}

// A message of a format says what its entry said, and keeps the rest beside it.
func TestMessagesOfFormats(t *testing.T) {
	request := roundTrip(t, bedrockFormat, []byte(`{"messages":[{"role":"user","content":[{"text":"a"}],"mood":1.0},
		{"role":"assistant","content":[{"text":"b"},{"image":{"format":"png","source":{"bytes":"aGk="},"alt":"hi"}},{"toolUse":{"toolUseId":"k","name":"f","input":{},"why":"c"}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"k","content":[{"json":[1]}],"status":"error"}}]},{"role":"assistant"}]}`))
	want := []string{
		`{"type":"text","role":"user","content":"a","format:bedrock":{"more":{"mood":1.0}}}`,
		`{"type":"text","role":"assistant","content":[{"type":"text","text":"b"},{"type":"image","mimeType":"image/png","data":"aGk=","format:bedrock":{"in":{"image":{"more":{"alt":"hi"}}}}}],"format:bedrock":{}}`,
		`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"k","name":"f","input":{},"format:bedrock":{"in":{"toolUse":{"more":{"why":"c"}}}}}],"format:bedrock":{"joined":true}}`,
		`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"k","name":"f"},"content":[1],"is_error":true,"format:bedrock":{}}`,
		`{"type":"format:bedrock.message","role":"assistant","item":{"role":"assistant"}}`,
	}
	require.Len(t, request.Messages, len(want))
	for i, m := range request.Messages {
		require.JSONEq(t, want[i], string(m.Raw()))
	}

	// Another format does not send what is kept, and reports it.
	body, omitted, err := provider.OpenAIResponses.EncodeRequest(provider.Request{Messages: request.Messages[:3]})
	require.NoError(t, err)
	require.NotContains(t, string(body), "bedrock")
	require.Equal(t, []provider.Omission{
		{Message: 0, What: "member mood"}, {Message: 1, What: "part of type image"}, {Message: 2, What: "member why of call 0"},
	}, omitted)
}

// What was kept of a part or a tool is not sent when it says something else.
func TestChangedPartsOfFormats(t *testing.T) {
	request, err := bedrockFormat.DecodeRequest([]byte(`{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"aGk="},"name":null}},{"text":"a"}]}],
		"toolConfig":{"tools":[{"toolSpec":{"name":"f","strict":true,"inputSchema":{"json":{}}}}]}}`))
	require.NoError(t, err)
	require.Equal(t, state.JSON(`{}`), request.Settings)
	raw := strings.ReplaceAll(string(request.Messages[0].Raw()), "aGk=", "eW8=")
	m, err := state.DecodeMessage([]byte(raw))
	require.NoError(t, err)
	request.Messages[0], request.Tools[0].Name = m, "g"
	body, omitted, err := bedrockFormat.EncodeRequest(request)
	require.NoError(t, err)
	require.Empty(t, omitted)
	require.JSONEq(t, `{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"eW8="},"name":null}},{"text":"a"}]}],
		"toolConfig":{"tools":[{"toolSpec":{"name":"g","strict":true,"inputSchema":{"json":{}}}}]}}`, string(body))
}

// A part that is named like thinking is none to others, a part that a program has added in the
// words of the API stays, and the name of a file is sent.
func TestPartsOfTables(t *testing.T) {
	request := roundTrip(t, bedrockFormat, []byte(`{"messages":[{"role":"user","content":[{"thinking":{}},{"text":"a"}]}]}`))
	require.Contains(t, string(request.Messages[0].Raw()), `{"type":"other","format:bedrock":{"item":{"thinking":{}}}}`)

	raw := strings.Replace(string(request.Messages[0].Raw()), `"content":[`, `"content":[{"cachePoint":{}},`, 1)
	m, err := state.DecodeMessage([]byte(raw))
	require.NoError(t, err)
	requireEncoded(t, bedrockFormat, []state.Message{m}, `{"messages":[{"role":"user","content":[{"cachePoint":{}},{"thinking":{}},{"text":"a"}]}]}`, nil)

	named := messagesOf(t, `[{"type":"text","role":"user","content":[{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"aGk="}}],"anthropic":{}}]`)
	requireEncoded(t, bedrockFormat, named, `{"messages":[{"role":"user","content":[{"document":{"format":"pdf","name":"a.pdf","source":{"bytes":"aGk="}}}]}]}`, nil)
}

// A tool that says something else than what was kept of it is sent as it is.
func TestChangedToolsOfFormats(t *testing.T) {
	request, err := bedrockFormat.DecodeRequest([]byte(`{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":null,"inputSchema":{"json":{}}}}]}}`))
	require.NoError(t, err)
	request.Tools[0].Description = "d"
	body, _, err := bedrockFormat.EncodeRequest(request)
	require.NoError(t, err)
	require.JSONEq(t, `{"messages":[],"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"d","inputSchema":{"json":{}}}}]}}`, string(body))
}

// Calls that the provider runs, and parts that a role does not say, come back as
// they were, and nobody runs or answers them.
func TestCallsOfOthersAreKept(t *testing.T) {
	request := roundTrip(t, bedrockFormat, []byte(`{"messages":[{"role":"user","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]},
		{"role":"assistant","content":[{"toolUse":{"toolUseId":"b","name":"g","input":{},"type":"server_tool_use"}},{"toolResult":{"toolUseId":"b","content":[]}}]}]}`))
	for _, m := range request.Messages {
		require.IsType(t, state.Text("", ""), m)
	}
}

// What was kept of a result is not sent when the result says something else.
func TestChangedResults(t *testing.T) {
	for _, test := range []struct {
		format                 *provider.Format
		body, old, new, status string
	}{
		{bedrockFormat, `{"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[],"status":"success"}}]}]}`,
			`"role":"tool_result"`, `"role":"tool_result","is_error":true`, `"status":"error"`},
		{provider.Anthropic, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":null}]}]}`,
			`"role":"tool_result"`, `"role":"tool_result","is_error":true`, `"is_error":true`},
		{provider.Anthropic, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":{"a":1}}]}]}`,
			`"content":{"a":1}`, `"content":"b"`, `"content":"b"`},
		{provider.Anthropic, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"b"}]}]}`,
			`"input":"b"`, `"input":{"c":1}`, `"input":{"c":1}`},
	} {
		request, err := test.format.DecodeRequest([]byte(test.body))
		require.NoError(t, err)
		raw := strings.Replace(string(request.Messages[0].Raw()), test.old, test.new, 1)
		request.Messages[0], err = state.DecodeMessage([]byte(raw))
		require.NoError(t, err)
		body, _, err := test.format.EncodeRequest(request)
		require.NoError(t, err)
		require.Contains(t, string(body), test.status)
	}
}
