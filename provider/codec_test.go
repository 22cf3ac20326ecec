package provider_test

import (
	"encoding/json"
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

// parleyRecordings are exchanges with the API of the example.
var parleyRecordings = fstest.MapFS{
	"calls/exchanges.json": {Data: []byte(`{"exchanges":[
		{"request":{"model":"p1","prompt":"Be brief.","turns":[{"by":"human","says":"What is 2+3?"}],"tools":[{"tool":"add","about":"Adds.","takes":{"type":"object"}},{"search":true}]},
		 "response":{"id":"r1","turn":{"by":"bot","says":"I add.","uses":[{"key":"u1","tool":"add","with":{"a":2,"b":3.0}},{"key":"u2","tool":"now"}]},"end":"tool","cost":{"in":9,"out":4}},"usage":{"input":9,"output":4}},
		{"request":{"turns":[{"by":"human","says":"What is 2+3?"},{"by":"bot","says":"I add.","uses":[{"key":"u1","tool":"add","with":{"a":2,"b":3.0}},{"key":"u2","tool":"now"}]},
			{"by":"tool","key":"u2","says":"noon"},{"by":"tool","key":"u1","says":"5"},{"by":"clerk","says":"Hm."},{"by":"bot"}]},
		 "response":{"id":"r2","turn":{"by":"bot","says":"5 <b>"},"end":"done","cost":{"in":20,"out":1}},
		 "stream":[{"data":{"id":"r2","cost":{"in":20,"out":0}}},{"data":{"say":"5 "}},{"data":{"say":"<b>"}},{"data":{"end":"done","cost":{"in":20,"out":1}}}]},
		{"status":400,"request":{"turns":[]},"response":{"refused":"no turns"}},
		{"broken":true,"stream":[{"data":{"id":"r3"}},{"data":{"say":"5"}}]}]}`)},
	"response.json": {Data: []byte(`{"id":"r4","turn":{"by":"bot","says":"Yes."},"end":"done"}`)},
	"stream.json":   {Data: []byte(`[{"id":"r5"},{"say":"Yes."},{"say":""},{"end":"done"}]`)},
}

func TestCodecOfExample(t *testing.T) {
	providertest.Run(t, provider.New("Parley", transcript.Profile{}, parley{}), parleyRecordings)
}

// Formats have any name: it is not confused with those of package provider.
func TestNamesOfFormats(t *testing.T) {
	for _, name := range []string{"", "openai", "a.b", "\xff"} {
		format := provider.New(name, transcript.Profile{}, parley{})
		if name == "openai" || name == "\xff" { // a law takes as long for every name
			providertest.Run(t, format, fstest.MapFS{})
		}
		require.Equal(t, name, format.String())
		request := roundTrip(t, format, []byte(`{"turns":[{"by":"human","says":"a","x":1},{"by":"clerk"}]}`))
		body, omitted, err := provider.OpenAI.EncodeRequest(request)
		require.NoError(t, err)
		require.NotContains(t, string(body), `"x"`)
		require.Len(t, omitted, 2)
	}
}

// fault is a fault of a codec and the law that it breaks.
type fault struct {
	law   string
	codec provider.Codec
}

// faulty is the codec of the example with one function replaced.
type faulty struct {
	parley
	decodeRequest  func(state.JSON) (provider.Body, error)
	encodeRequest  func(provider.Body) (state.JSON, error)
	encodeEntry    func(provider.Entry) []state.JSON
	encodePart     func(string, provider.Part) (state.JSON, bool)
	encodeTool     func(provider.Tool) state.JSON
	decodeResponse func(state.JSON) (provider.Response, error)
	summarize      func(*provider.Summary, state.JSON) bool
	assembler      func(*parleyStream) provider.Assembler
}

func (f faulty) DecodeRequest(body state.JSON) (provider.Body, error) {
	if f.decodeRequest != nil {
		return f.decodeRequest(body)
	}
	return f.parley.DecodeRequest(body)
}

func (f faulty) EncodeRequest(b provider.Body) (state.JSON, error) {
	if f.encodeRequest != nil {
		return f.encodeRequest(b)
	}
	return f.parley.EncodeRequest(b)
}

func (f faulty) EncodeEntry(e provider.Entry) []state.JSON {
	if f.encodeEntry != nil {
		return f.encodeEntry(e)
	}
	return f.parley.EncodeEntry(e)
}

func (f faulty) EncodePart(role string, p provider.Part) (state.JSON, bool) {
	if f.encodePart != nil {
		return f.encodePart(role, p)
	}
	return f.parley.EncodePart(role, p)
}

func (f faulty) EncodeTool(t provider.Tool) state.JSON {
	if f.encodeTool != nil {
		return f.encodeTool(t)
	}
	return f.parley.EncodeTool(t)
}

func (f faulty) DecodeResponse(body state.JSON) (provider.Response, error) {
	if f.decodeResponse != nil {
		return f.decodeResponse(body)
	}
	return f.parley.DecodeResponse(body)
}

func (f faulty) Summarize(s *provider.Summary, body state.JSON) bool {
	if f.summarize != nil {
		return f.summarize(s, body)
	}
	return f.parley.Summarize(s, body)
}

func (f faulty) NewAssembler(emit func(provider.Delta)) provider.Assembler {
	s := f.parley.NewAssembler(emit)
	if f.assembler != nil {
		return f.assembler(s.(*parleyStream))
	}
	return s
}

// streamFault is the assembler of the example with a function replaced.
type streamFault struct {
	*parleyStream
	add      func(event state.JSON) error
	complete bool
}

func (s streamFault) Add(event state.JSON) error {
	if s.add != nil {
		return s.add(event)
	}
	return s.parleyStream.Add(event)
}

func (s streamFault) Result() (state.JSON, bool) {
	body, complete := s.parleyStream.Result()
	return body, complete || s.complete
}

func faults() map[string]fault {
	good := parley{}
	return map[string]fault{
		"loses a setting": {"Requests", faulty{decodeRequest: func(body state.JSON) (provider.Body, error) {
			b, err := good.DecodeRequest(body)
			b.Settings = state.JSON(strings.Replace(string(b.Settings), `"model":"p1"`, `"model":"p2"`, 1))
			return b, err
		}}},
		"loses an entry": {"Requests", faulty{decodeRequest: func(body state.JSON) (provider.Body, error) {
			b, err := good.DecodeRequest(body)
			if n := len(b.Entries); n > 3 {
				b.Entries = b.Entries[:n-1]
			}
			return b, err
		}}},
		"does not give the JSON of an entry": {"Requests", faulty{decodeRequest: func(body state.JSON) (provider.Body, error) {
			b, err := good.DecodeRequest(body)
			for i, e := range b.Entries {
				if len(e.Parts) > 0 {
					b.Entries[i].JSON = ""
				}
			}
			return b, err
		}}},
		"refuses null": {"Null", faulty{decodeRequest: func(body state.JSON) (provider.Body, error) {
			if strings.Contains(string(body), `"about":null`) {
				return provider.Body{}, os.ErrInvalid
			}
			return good.DecodeRequest(body)
		}}},
		"takes null for a text": {"Null", faulty{decodeRequest: func(body state.JSON) (provider.Body, error) {
			b, err := good.DecodeRequest(body)
			for i, e := range b.Entries {
				if e.Role == "assistant" && strings.Contains(string(e.JSON), `"says":null`) {
					b.Entries[i].Parts = append([]provider.Part{{Kind: provider.PartText, Text: "null"}}, e.Parts...)
				}
			}
			return b, err
		}}},
		"encodes what was decoded": {"Changes", faulty{encodeEntry: func(e provider.Entry) []state.JSON {
			for i, p := range e.Parts {
				if p.Kind == provider.PartResult {
					e.Parts[i].ID = "u1"
				}
			}
			return good.EncodeEntry(e)
		}}},
		"loses the texts of results": {"Omissions", faulty{encodeEntry: func(e provider.Entry) []state.JSON {
			for i := range e.Parts {
				e.Parts[i].Parts = nil
			}
			return good.EncodeEntry(e)
		}}},
		"pretends to have images": {"Omissions", faulty{encodePart: func(role string, p provider.Part) (state.JSON, bool) {
			if p.Kind == provider.PartImage {
				return "null", true
			}
			return good.EncodePart(role, p)
		}}},
		"loses the turns of the user": {"Repair", faulty{encodeEntry: func(e provider.Entry) []state.JSON {
			if e.Role == "user" {
				return nil
			}
			return good.EncodeEntry(e)
		}}},
		"loses descriptions": {"Tools", faulty{encodeTool: func(t provider.Tool) state.JSON {
			t.Description = ""
			return good.EncodeTool(t)
		}}},
		"does not offer tools": {"Tools", faulty{encodeRequest: func(b provider.Body) (state.JSON, error) {
			b.Tools = nil
			return good.EncodeRequest(b)
		}}},
		"takes a failure for an answer": {"Responses", faulty{decodeResponse: func(body state.JSON) (provider.Response, error) {
			if strings.Contains(string(body), "refused") {
				return provider.Response{}, nil
			}
			return good.DecodeResponse(body)
		}}},
		"keeps no JSON of what is said": {"Responses", faulty{decodeResponse: func(body state.JSON) (provider.Response, error) {
			r, err := good.DecodeResponse(body)
			for i := range r.Entries {
				r.Entries[i].Role = "user"
			}
			return r, err
		}}},
		"counts the output twice": {"Usage", faulty{summarize: func(s *provider.Summary, body state.JSON) bool {
			ok := good.Summarize(s, body)
			s.Usage.Output *= 2
			return ok
		}}},
		"takes a request for a response": {"Usage", faulty{summarize: func(s *provider.Summary, body state.JSON) bool {
			return good.Summarize(s, body) || strings.Contains(string(body), "turns")
		}}},
		"is complete without the end": {"Streams", faulty{assembler: func(s *parleyStream) provider.Assembler {
			return streamFault{parleyStream: s, complete: true}
		}}},
		"loses a piece": {"Streams", faulty{assembler: func(s *parleyStream) provider.Assembler {
			return streamFault{parleyStream: s, add: func(event state.JSON) error {
				if event == `{"say":"<b>"}` {
					return nil
				}
				return s.Add(event)
			}}
		}}},
		"emits nothing": {"Streams", faulty{assembler: func(s *parleyStream) provider.Assembler {
			s.emit = func(provider.Delta) {}
			return s
		}}},
		"panics at a number": {"Hostile", faulty{decodeRequest: func(body state.JSON) (provider.Body, error) {
			b, err := good.DecodeRequest(body)
			for _, e := range b.Entries {
				if e.Role == "7" {
					panic("no such role")
				}
			}
			return b, err
		}}},
		"panics at an event": {"Hostile", faulty{assembler: func(s *parleyStream) provider.Assembler {
			return streamFault{parleyStream: s, add: func(event state.JSON) error {
				if strings.Contains(string(event), `"say":7`) {
					panic("no text")
				}
				return s.Add(event)
			}}
		}}},
	}
}

const faultVariable = "PROVIDERTEST_FAULT"

var failedLaw = regexp.MustCompile(`--- FAIL: TestFaulty/(\S+)`)

// Each law fails for a codec that breaks it. The test that must fail runs in a
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
	providertest.Run(t, provider.New("Parley", transcript.Profile{}, fault.codec), parleyRecordings)
}

// What a codec gets wrong itself is an Error, and nothing is lost in silence.
func TestMistakesOfCodecs(t *testing.T) {
	good := parley{}
	body := []byte(`{"turns":[{"by":"human","says":"a"}]}`)
	message := []state.Message{state.UserText("a")}
	decode := func(c faulty) error {
		_, err := provider.New("Parley", transcript.Profile{}, c).DecodeRequest(body)
		return err
	}
	encode := func(c faulty, settings state.JSON) error {
		_, _, err := provider.New("Parley", transcript.Profile{}, c).EncodeRequest(provider.Request{Messages: message, Settings: settings})
		return err
	}
	returns := func(text state.JSON) faulty {
		return faulty{encodeRequest: func(provider.Body) (state.JSON, error) { return text, nil }}
	}
	decodes := func(b provider.Body, err error) faulty {
		return faulty{decodeRequest: func(state.JSON) (provider.Body, error) { return b, err }}
	}
	for _, test := range []struct {
		name, problem string
		err           error
	}{
		{"settings are no object", `$: want object`, decode(decodes(provider.Body{Settings: `7`}, nil))},
		{"settings are no JSON", `$: `, decode(decodes(provider.Body{Settings: `{`}, nil))},
		{"a tool is no object", `$.tools[1]: want object`, decode(decodes(provider.Body{Tools: []state.JSON{`{}`, `7`}}, nil))},
		{"an entry of nothing", `$.entries[0]: want an entry with parts or an object`, decode(decodes(provider.Body{Entries: []provider.Entry{{Role: "user"}}}, nil))},
		{"a part of nothing", `$.entries[0].parts[0]: want JSON`, decode(decodes(provider.Body{Entries: []provider.Entry{{Parts: []provider.Part{{}}}}}, nil))},
		{"its own error", "$: bad turn", decode(decodes(provider.Body{}, errors.New("bad turn")))},
		{"an error with a path", "$.turns: want an array", decode(decodes(provider.Body{}, &provider.Error{Path: "$.turns", Problem: "want an array"}))},
		{"an error of encoding/json", "$.turns: want a Go []string", decode(decodes(provider.Body{}, json.Unmarshal([]byte(`{"turns":5}`), &struct {
			Turns []string `json:"turns"`
		}{})))},
		{"a body that is no object", "$: want object", encode(returns(`[]`), "")},
		{"a body that is no JSON", "$.a: the member occurs twice", encode(returns(`{"a":1,"a":2}`), "")},
		{"a body without a setting", "$.model: is in the settings, but", encode(returns(`{}`), `{"model":"m"}`)},
		{"a body without a setting inside", "$.a.b: is in the settings, but", encode(returns(`{"a":{"c":1}}`), `{"a":{"b":1}}`)},
		{"turns in the settings", "$.turns: is in the settings and is also made", encode(faulty{parley: good}, `{"turns":[{"by":"human","says":"b"}]}`)},
	} {
		var wrong *provider.Error
		require.ErrorAs(t, test.err, &wrong, test.name)
		require.ErrorIs(t, test.err, state.ErrWrongType, test.name)
		require.Equal(t, "Parley", wrong.Format, test.name)
		require.Contains(t, wrong.Path+": "+wrong.Problem, test.problem, test.name)
	}
	require.NoError(t, encode(faulty{}, `{"turns":[],"model":"m","prompt":null}`))

	refuses := faulty{encodeEntry: func(provider.Entry) []state.JSON { return nil }}
	_, omitted, err := provider.New("Parley", transcript.Profile{}, refuses).EncodeRequest(provider.Request{Messages: message})
	require.NoError(t, err)
	require.Equal(t, []provider.Omission{{Message: 0, What: "message of role user"}}, omitted)
}

// A result without a name has that of its call, which a codec may write. What the
// entry said is restored all the same.
func TestResultsAreNamedAfterTheirCalls(t *testing.T) {
	format := provider.New("Parley", transcript.Profile{}, faulty{encodeEntry: func(e provider.Entry) []state.JSON {
		turns := parley{}.EncodeEntry(e)
		for i, p := range e.Parts {
			if p.Kind == provider.PartResult {
				turns[i] = turns[i][:len(turns[i])-1] + `,"tool":` + state.JSONText(p.Name) + `}`
			}
		}
		return turns
	}})
	request := roundTrip(t, format, []byte(`{"turns":[{"by":"bot","uses":[{"key":"k","tool":"f","with":{}}]},{"by":"tool","key":"k","says":"a"}]}`))
	require.Equal(t, "f", request.Messages[1].(state.ToolResultMessage).Call().Name)
}

// A message of a format says what its entry said, and keeps the rest beside it.
func TestMessagesOfFormats(t *testing.T) {
	format := provider.New("Parley", transcript.Profile{}, parley{})
	request := roundTrip(t, format, []byte(`{"turns":[{"by":"human","says":"a","mood":1.0},
		{"by":"bot","says":"b","uses":[{"key":"k","tool":"f","with":{},"why":"c"}]},{"by":"tool","key":"k","says":[1]},{"by":"bot"}]}`))
	want := []string{
		`{"type":"text","role":"user","content":"a","format:Parley":{"entry":{"more":{"mood":1.0}}}}`,
		`{"type":"text","role":"assistant","content":"b"}`,
		`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"k","name":"f","input":{},"format:Parley":{"more":{"why":"c"}}}],"format:Parley":{"joined":true}}`,
		`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"k","name":"f"},"content":[1],"format:Parley":{"data":true}}`,
		`{"type":"format:Parley.entry","role":"assistant","item":{"by":"bot"}}`,
	}
	require.Len(t, request.Messages, len(want))
	for i, m := range request.Messages {
		require.JSONEq(t, want[i], string(m.Raw()))
	}

	// Another format does not send what is kept, and reports it.
	for _, to := range targets {
		body, omitted, err := to.format.EncodeRequest(provider.Request{Messages: request.Messages})
		require.NoError(t, err)
		require.NotContains(t, string(body), "Parley")
		require.Equal(t, []provider.Omission{
			{Message: 0, What: "member mood"}, {Message: 2, What: "member why of call 0"}, {Message: 4, What: "message of type format:Parley.entry"},
		}, omitted, to.format)
	}
}
