// Package gemini is the format of generateContent and streamGenerateContent, of
// the Gemini API and of Vertex AI. Both take the names of members in camel case
// and in snake case, so the spelling is kept.
package gemini

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// Format is the format of generateContent.
type Format struct {
	*codec.Table
	codec.Reporting
}

// New returns the format.
func New() Format { return Format{Table: &table} }

var table = codec.Table{
	Prompts: []string{"systemInstruction", "system_instruction"}, Entries: "contents", Content: "parts",
	Lone: true, Strict: true, Untyped: true,
	Model: "model", User: "user", System: "user", NoRole: "user",
	Calls: []codec.Word{{
		In:    []string{"functionCall", "function_call"},
		KeyID: "id", MayLackID: true, KeyName: "name", KeyValue: "args", Form: codec.Form{Adopt: codec.InputObject},
	}},
	Results: []codec.Word{{
		In:    []string{"functionResponse", "function_response"},
		KeyID: "id", MayLackID: true, KeyName: "name", KeyValue: "response",
	}},
	ResultsApart: true,
	FirstCall:    jsontext.Member{Name: "thoughtSignature", Value: jsontext.AppendQuote(nil, origin.NoSignature)},
	OwnOfCall:    []string{"thoughtSignature"}, OwnOfTool: []string{"response", "responseJsonSchema", "behavior"},
	Part: part, Output: output, Store: store, Load: load,
	DecodeTool: decodeTool, EncodeTools: encodeTools,
}

// DecodeResponse adds the messages of the first candidate. There is none if the
// prompt was blocked.
func (f Format) DecodeResponse(d *codec.Decoder, body jsontext.Object) (codec.Response, error) {
	r := codec.Response{ID: body.String("responseId"), Stops: codec.GeminiStops}
	if at, err := time.Parse(time.RFC3339, body.String("createTime")); err == nil {
		r.Created = codec.UnixSeconds(float64(at.Unix()))
	}
	if err := body.Want("candidates", "array", "null", "nothing"); err != nil {
		return r, err
	}
	candidates, _ := body.Elements("candidates") // none if it is null or missing
	if len(candidates) == 0 {
		if jsontext.IsNull(body.Get("candidates")) && jsontext.IsNull(body.Get("promptFeedback")) {
			return r, &fault.Error{Path: "$", Want: "candidates or promptFeedback", Got: "neither"}
		}
		r.Stop, r.Stops = enumName(body.Object("promptFeedback").Get("blockReason"), blockReasons), codec.GeminiBlocks
		return r, nil
	}
	candidate, err := jsontext.Members(candidates[0])
	if err == nil {
		r.Stop = enumName(candidate.Get("finishReason"), finishReasons)
		err = f.decodeCandidate(d, candidate)
	}
	return r, fault.Under("$.candidates[0]", err)
}

// finishReasons are the names of the numbers that Google's REST clients get for
// finishReason if they ask for enums as numbers. Those after 5 differ between
// the Gemini API and Vertex AI.
var finishReasons = []string{"FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER"}

// enumName returns the name of an enum as a JSON string, or the value if it is a
// number without one. It returns nil for a value that says nothing: null, or the
// first one, whose name ends in _UNSPECIFIED (https://google.aip.dev/126). That of
// blockReason differs between the Gemini API and Vertex AI.
func enumName(value []byte, names []string) []byte {
	if number, err := strconv.Atoi(string(value)); err == nil && number >= 0 && number < len(names) {
		value = jsontext.AppendQuote(nil, names[number])
	}
	if name := state.JSON(value).Text(); jsontext.IsNull(value) || name == "" || strings.HasSuffix(name, "_UNSPECIFIED") {
		return nil
	}
	return value
}

// decodeCandidate adds the content of a candidate.
func (f Format) decodeCandidate(d *codec.Decoder, candidate jsontext.Object) error {
	if err := candidate.Want("content", "object", "null", "nothing"); err != nil {
		return err
	}
	content := candidate.Object("content")
	if content == nil {
		return nil
	}
	return fault.Under("$.content", f.DecodeReply(d, content))
}

// part returns the part of a text or a medium that does not come from the
// format.
func part(role string, p codec.Part) (jsontext.Object, []string) {
	switch {
	case p.Kind == codec.PartText, p.Kind == codec.PartRefusal:
		return jsontext.Object{{Name: "text", Value: p.Text}}, nil
	case p.IsMedia() && role != "system":
		return mediaPart(p), nil
	}
	return nil, nil
}

// output returns the response for a result that does not come from the format.
// Gemini takes an object: any other value goes where Google documents output and
// errors. Of texts and media, the texts are the value.
func output(e *codec.Encoder, i int, r codec.ForeignResult) (value []byte, added jsontext.Object) {
	switch value = r.Content; jsontext.Kind(value) {
	case "nothing":
		value = []byte("{}")
		fallthrough
	case "object":
		e.OmitIsError(i, r.ToolResultMessage)
		if !bytes.Contains(value, []byte(`"$ref"`)) {
			return value, nil
		}
		// Gemini 3 looks for a file of that name: "referenced name does not match a
		// display_name" (hermes-agent#93014, twenty#21712). It takes the text.
		r.Content, r.Parts = jsontext.AppendQuote(nil, string(value)), nil
		value = r.Content
	}
	if r.Parts != nil {
		value, added = textAndFiles(e, i, r.Parts)
	}
	name := "output"
	if r.IsError() {
		name = "error"
	}
	return jsontext.Object{{Name: name, Value: value}}.JSON(), added
}

// textAndFiles returns the texts of parts as one, and a member for the media.
func textAndFiles(e *codec.Encoder, i int, parts []codec.Part) (text []byte, files jsontext.Object) {
	var texts []string
	media, omitted := e.EncodeParts(i, origin.RoleTool, parts, func(_ string, p codec.Part) (jsontext.Object, []string) {
		if p.Kind == codec.PartText {
			texts = append(texts, jsontext.Unquote(p.Text))
			return jsontext.Object{}, nil
		}
		return mediaPart(p), nil
	})
	media = slices.DeleteFunc(media, func(part []byte) bool { return string(part) == "{}" }) // the texts
	if text := codec.Placeholder(omitted); text != nil && len(texts)+len(media) == 0 {
		return text, nil
	}
	if len(media) > 0 {
		files = jsontext.Object{{Name: "parts", Value: jsontext.Array(media)}}
	}
	return jsontext.AppendQuote(nil, strings.Join(texts, "\n")), files
}

// Summarize reads a response or a chunk. Google counts thoughts
// beside the candidates, and the results of its own tools beside the prompt.
func (Format) Summarize(u *codec.Summary, body jsontext.Object) {
	var stop []byte
	_ = body.EachObject("candidates", func(_ []byte, candidate jsontext.Object) error { // as far as it can be read
		if index := candidate.Get("index"); jsontext.IsNull(index) || string(index) == "0" {
			stop = enumName(candidate.Get("finishReason"), finishReasons)
		}
		return nil
	})
	u.Identify(body.String("modelVersion"), body.String("responseId"), stop)
	usage := body.Object("usageMetadata")
	if usage == nil {
		return
	}
	var r state.Usage
	tools, thoughts := 0, u.Reasoning
	codec.SetCount(&r.Input, usage, "promptTokenCount")
	codec.SetCount(&tools, usage, "toolUsePromptTokenCount")
	codec.SetCount(&r.Output, usage, "candidatesTokenCount")
	codec.SetCount(&r.CacheRead, usage, "cachedContentTokenCount")
	codec.SetCount(&r.Reasoning, usage, "thoughtsTokenCount")
	if r.Input > 0 {
		r.Input += tools
	}
	if r.Reasoning > 0 {
		thoughts = r.Reasoning
	}
	if r.Output+r.Reasoning > 0 {
		r.Output += thoughts
	}
	u.Report(r)
}

// HasForm reports whether a body is a response or an event of one.
func (Format) HasForm(body jsontext.Object) bool {
	return body.Get("candidates") != nil || body.Get("usageMetadata") != nil || body.Get("promptFeedback") != nil
}

// IsPiece reports whether the data begins as that of a chunk. Chunks have no name.
func (Format) IsPiece(_ string, data []byte) bool {
	return bytes.Contains(data, []byte(`"candidates"`))
}
