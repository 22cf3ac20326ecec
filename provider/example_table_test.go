package provider_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// bedrock is the Converse API of Amazon Bedrock. The events of ConverseStream
// are passed to Stream.Event, each as {"messageStart":{…}} and so on: their
// framing is binary. See
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
var bedrock = provider.Table{
	Prompt: "system", Entries: "messages", Content: "content", ToolsIn: "toolConfig",
	Model: "assistant",
	Call:  provider.Word{In: "toolUse", ID: "toolUseId", Name: "name", Value: "input", Hosted: "server_tool_use"},
	Result: provider.Word{
		In: "toolResult", ID: "toolUseId", Value: "content", Parts: true, JSON: "json",
		Failed: "status", FailedIs: "error",
	},
	ReadPart: readBlock, WritePart: writeBlock,
	ReadTool: readSpec, WriteTool: writeSpec,
	ReadResponse: readConverse, Stops: converseStops, Summarize: summarizeConverse,
	NewAssembler: func(emit func(provider.Delta)) provider.Assembler {
		return &converseStream{emit: emit, byIndex: map[state.JSON]*streamedBlock{}}
	},
}

// members are those of an object. A struct would take text and TEXT for the same.
type members = map[string]state.JSON

// in returns the members of a value at a path of objects, none if it is not an
// object.
func in(value state.JSON, path ...string) members {
	var object members
	if !strings.HasPrefix(string(value), "{") || value.Decode(&object) != nil {
		return nil
	}
	if len(path) == 0 {
		return object
	}
	return in(object[path[0]], path[1:]...)
}

// text returns a member that is a string.
func text(of members, name string) string {
	if !strings.HasPrefix(string(of[name]), `"`) {
		return ""
	}
	return of[name].Text()
}

// object returns the JSON of an object.
func object(of members) state.JSON {
	encoded, _ := state.JSONOf(of) // JSON marshals
	return encoded
}

// The types of Bedrock's formats.
var (
	images    = map[string]string{"png": "image/png", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
	documents = map[string]string{
		"pdf": "application/pdf", "csv": "text/csv", "html": "text/html", "txt": "text/plain", "md": "text/markdown",
		"doc": "application/msword", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"xls": "application/vnd.ms-excel", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	}
)

// readBlock reads reasoning, and an image or a document with data. One in S3 is
// for AWS only.
func readBlock(block state.JSON) (provider.Part, bool) {
	if thought := in(block, "reasoningContent", "reasoningText"); thought != nil {
		return provider.Part{Kind: provider.PartThinking, Text: text(thought, "text")}, true
	}
	p := provider.Part{Kind: provider.PartImage}
	media := in(block, "image")
	if p.MIME = images[text(media, "format")]; media == nil {
		media = in(block, "document")
		p.Kind, p.MIME, p.Name = provider.PartFile, documents[text(media, "format")], text(media, "name")
	}
	p.Data = text(in(media["source"]), "bytes")
	return p, p.MIME != "" && p.Data != ""
}

// writeBlock writes what readBlock reads. The model sends no media.
func writeBlock(role string, p provider.Part) (state.JSON, bool) {
	if p.Kind == provider.PartThinking {
		thought := object(members{"text": state.JSONText(p.Text)})
		return object(members{"reasoningContent": object(members{"reasoningText": thought})}), role == ""
	}
	mime, _, _ := strings.Cut(strings.ToLower(p.MIME), ";")
	kind, media := "image", members{"source": object(members{"bytes": state.JSONText(p.Data)})}
	formats := images
	if p.Kind == provider.PartFile || !slices.Contains(slices.Collect(maps.Values(images)), mime) {
		kind, formats = "document", documents
		media["name"] = state.JSONText(p.Name)
		if p.Name == "" {
			media["name"] = `"document"` // it is required
		}
	}
	for format, known := range formats {
		if mime == known {
			media["format"] = state.JSONText(format)
		}
	}
	canSay := role == "" || role == "user" || role == provider.RoleTool
	return object(members{kind: object(media)}), canSay && p.Data != "" && media["format"] != ""
}

func readSpec(element state.JSON) (provider.Tool, bool) {
	if hosted := in(element, "systemTool"); hosted != nil {
		return provider.Tool{Name: text(hosted, "name")}, false
	}
	spec := in(element, "toolSpec")
	schema := in(spec["inputSchema"])["json"]
	return provider.Tool{Name: text(spec, "name"), Description: text(spec, "description"), Schema: schema}, schema != "" && schema != "null"
}

func writeSpec(t provider.Tool) state.JSON {
	if t.Schema == "" {
		t.Schema = `{"type":"object"}` // it is required
	}
	spec := members{"name": state.JSONText(t.Name), "inputSchema": object(members{"json": t.Schema})}
	if t.Description != "" {
		spec["description"] = state.JSONText(t.Description)
	}
	return object(members{"toolSpec": object(spec)})
}

// converseStops are the words that other APIs do not have, of StopReason in
// github.com/aws/aws-sdk-go-v2/service/bedrockruntime v1.63.13 of 2026-11-10.
var converseStops = map[string]state.Stop{
	"guardrail_intervened":   state.StopFiltered,
	"content_filtered":       state.StopFiltered,
	"malformed_model_output": state.StopFailed,
	"malformed_tool_use":     state.StopFailed,
}

// readConverse reads a response. It has no id and no time.
func readConverse(body state.JSON) (provider.Response, error) {
	message := in(body, "output", "message")
	if message == nil {
		if problem := in(body); text(problem, "message") != "" {
			return provider.Response{}, &provider.ResponseError{Code: text(problem, "__type"), Message: text(problem, "message")}
		}
		return provider.Response{}, &provider.Error{Path: "$.output.message", Problem: "want an object"}
	}
	return provider.Response{StopReason: text(in(body), "stopReason"), Entry: in(body, "output")["message"]}, nil
}

// summarizeConverse reads a response, or the last events of a stream. Tokens of
// the cache are not among the input tokens.
func summarizeConverse(s *provider.Summary, body state.JSON) bool {
	of := in(body)
	isEvent := false
	for _, name := range []string{"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"} {
		isEvent = isEvent || in(of[name]) != nil
	}
	if !isEvent && in(of["output"]) == nil {
		return false
	}
	for _, stop := range []members{of, in(of["messageStop"])} {
		if reason := text(stop, "stopReason"); reason != "" {
			s.StopReason = reason
		}
	}
	usage := in(of["usage"])
	if isEvent {
		usage = in(body, "metadata", "usage")
	}
	if usage != nil {
		read, write := count(usage["cacheReadInputTokens"]), count(usage["cacheWriteInputTokens"])
		s.Usage = state.Usage{
			Input: count(usage["inputTokens"]) + read + write, Output: count(usage["outputTokens"]),
			CacheRead: read, CacheWrite: write,
		}
	}
	return true
}

// count returns a count, 0 for any other value.
func count(value state.JSON) int {
	n, _ := strconv.Atoi(string(value))
	return max(0, n)
}

// converseStream puts the events of ConverseStream together.
type converseStream struct {
	emit    func(provider.Delta)
	role    state.JSON // empty before the message
	blocks  []*streamedBlock
	byIndex map[state.JSON]*streamedBlock
	calls   int
	stop    state.JSON // empty before the end
	rest    members    // the metadata
}

// streamedBlock is a block as far as it has come.
type streamedBlock struct {
	use       members // of a call
	call      int
	text      strings.Builder // or the input of a call
	thought   members         // of reasoning
	thinking  strings.Builder
	signature strings.Builder
}

func (s *converseStream) Add(event state.JSON) error {
	of := in(event)
	for name, value := range of {
		if strings.HasSuffix(name, "Exception") {
			return &provider.ResponseError{Code: name, Message: text(in(value), "message")}
		}
	}
	start, delta := in(of["contentBlockStart"]), in(of["contentBlockDelta"])
	switch {
	case in(of["messageStart"]) != nil:
		s.role = state.JSONText(text(in(of["messageStart"]), "role"))
	case start != nil:
		b := s.block(start["contentBlockIndex"])
		if use := in(start["start"], "toolUse"); use != nil && b.use == nil {
			b.use, b.call = use, s.calls
			s.calls++
			s.say(b, provider.DeltaInput, "")
		}
	case delta != nil:
		s.add(s.block(delta["contentBlockIndex"]), in(delta["delta"]))
	case in(of["messageStop"]) != nil:
		s.stop = state.JSONText(text(in(of["messageStop"]), "stopReason"))
	case in(of["metadata"]) != nil:
		s.rest = in(of["metadata"])
	}
	return nil
}

// block returns the block of an index, a new one if there is none: blocks of text
// have no start.
func (s *converseStream) block(index state.JSON) *streamedBlock {
	b := s.byIndex[index]
	if b == nil {
		b = &streamedBlock{}
		s.byIndex[index], s.blocks = b, append(s.blocks, b)
	}
	return b
}

func (s *converseStream) add(b *streamedBlock, delta members) {
	use, thought := in(delta["toolUse"]), in(delta["reasoningContent"])
	switch {
	case use != nil && b.use != nil:
		b.text.WriteString(text(use, "input"))
		s.say(b, provider.DeltaInput, text(use, "input"))
	case thought != nil:
		b.thought = thought
		b.thinking.WriteString(text(thought, "text"))
		b.signature.WriteString(text(thought, "signature"))
		s.say(b, provider.DeltaThinking, text(thought, "text"))
	case use == nil:
		b.text.WriteString(text(delta, "text"))
		s.say(b, provider.DeltaText, text(delta, "text"))
	}
}

func (s *converseStream) say(b *streamedBlock, kind provider.DeltaKind, piece string) {
	d := provider.Delta{Kind: kind, Text: piece}
	if kind == provider.DeltaInput {
		d.Call, d.CallID, d.Name = b.call, text(b.use, "toolUseId"), text(b.use, "name")
	}
	s.emit(d)
}

// json returns the block as it would have come whole. An input that broke off is
// a text.
func (b *streamedBlock) json() state.JSON {
	switch {
	case b.use != nil:
		use := maps.Clone(b.use)
		switch input := state.JSON(b.text.String()); {
		case input == "":
			use["input"] = "{}"
		case input.Valid():
			use["input"] = input
		default:
			use["input"] = state.JSONText(string(input))
		}
		return object(members{"toolUse": object(use)})
	case b.thought["redactedContent"] != "":
		return object(members{"reasoningContent": object(b.thought)})
	case b.thought != nil:
		thought := members{"text": state.JSONText(b.thinking.String())}
		if b.signature.Len() > 0 {
			thought["signature"] = state.JSONText(b.signature.String())
		}
		return object(members{"reasoningContent": object(members{"reasoningText": object(thought)})})
	}
	return object(members{"text": state.JSONText(b.text.String())})
}

// Ended reports whether the metadata has come, which follows the message.
func (s *converseStream) Ended() bool { return s.stop != "" && s.rest != nil }

func (s *converseStream) Result() (state.JSON, bool) {
	if s.role == "" {
		return "", false
	}
	content := make([]state.JSON, len(s.blocks))
	for i, b := range s.blocks {
		content[i] = b.json()
	}
	said, _ := state.JSONOf(content) // JSON marshals
	body := members{"output": object(members{"message": object(members{"role": s.role, "content": said})})}
	if s.stop != "" {
		body["stopReason"] = s.stop
	}
	maps.Copy(body, s.rest)
	return object(body), s.stop != ""
}

// A format for another API is a table of its words. It reads the requests of the
// API, and is a target and a source for conversations with the built-in ones.
func ExampleNew() {
	format := provider.New("bedrock", transcript.Profile{}, bedrock)
	request, err := format.DecodeRequest([]byte(`{"system":[{"text":"Be brief."}],"messages":[
		{"role":"user","content":[{"text":"What is 2+3?"},{"cachePoint":{"type":"default"}}]},
		{"role":"assistant","content":[{"toolUse":{"toolUseId":"u1","name":"add","input":{"a":2,"b":3}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"u1","content":[{"text":"5"}]}}]}]}`))
	if err != nil {
		panic(err)
	}
	for _, m := range request.Messages {
		fmt.Println(m)
	}
	again, _, _ := format.EncodeRequest(request)
	fmt.Println(strings.Contains(string(again), `{"cachePoint":{"type":"default"}}`))

	body, omitted, _ := provider.OpenAI.EncodeRequest(provider.Request{Messages: request.Messages})
	fmt.Println(len(body) > 0, omitted)
	// Output:
	// text "system": "Be brief."
	// text "user": "What is 2+3?"
	// tool_call "assistant": "add" id "u1"
	// tool_result "add" id "u1": "5"
	// true
	// true [message 1: part of type cachePoint]
}
