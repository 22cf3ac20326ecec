package genkitstate

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// Format is the format of Genkit's messages, for Messages and From.
var Format = provider.NewMessageFormat("genkit",
	provider.MessageCodec[*ai.Message]{Decode: decodeMessage, Encode: encodeMessage})

// Messages returns the messages of a conversation of Genkit. From gives them
// back, with all parts and metadata.
func Messages(msgs ...*ai.Message) ([]state.Message, error) { return Format.Decode(msgs...) }

// From returns messages of any origin as a conversation of Genkit. Numbers in
// inputs and outputs keep their spelling, as json.Number, and signatures of
// thoughts are the bytes that plugins look for. What Genkit cannot express is
// left out: Format.Encode reports it. Of large results, they have what
// [transcript.Shown] returns.
func From(msgs ...state.Message) ([]*ai.Message, error) {
	own, _, err := Format.Encode(inside.WithWireIDs(origin.WholeInputs(transcript.Shown(msgs, false)))...)
	return own, err
}

var (
	roles    = map[ai.Role]string{ai.RoleModel: "assistant", ai.RoleTool: provider.RoleTool}
	ownRoles = map[string]ai.Role{"assistant": ai.RoleModel, provider.RoleTool: ai.RoleTool, "developer": ai.RoleSystem}
)

// extra is what a message, or a part of one, says besides.
type extra struct {
	Metadata map[string]any `json:"metadata,omitempty"`
	Partial  bool           `json:"partial,omitempty"` // of a call
	Output   string         `json:"output,omitempty"`  // of a result with content: the kind of its first part
}

// The kinds of outputs of a result with content.
const (
	noOutput   = "none" // all parts are content
	textOutput = "text"
	jsonOutput = "json"
)

var errNoPart = errors.New("want parts with what they are of, got none")

func decodeMessage(m *ai.Message) (e provider.Entry, err error) {
	e = provider.Entry{Role: string(m.Role), Extra: provider.ExtraOf(&extra{Metadata: m.Metadata})}
	if role, ok := roles[m.Role]; ok {
		e.Role = role
	}
	e.Parts, err = decodeParts(m.Role, m.Content)
	return e, err
}

func decodeParts(role ai.Role, content []*ai.Part) ([]provider.Part, error) {
	parts := make([]provider.Part, len(content))
	for i, p := range content {
		if p == nil || p.IsToolRequest() && p.ToolRequest == nil || p.IsToolResponse() && p.ToolResponse == nil {
			return nil, errNoPart
		}
		var err error
		if parts[i], err = decodePart(role, p); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func decodePart(role ai.Role, p *ai.Part) (part provider.Part, err error) {
	more := extra{Metadata: p.Metadata}
	switch {
	case p.IsText():
		part = provider.Part{Kind: provider.PartText, Text: p.Text}
	case p.IsReasoning():
		part = provider.Part{Kind: provider.PartThinking, Text: p.Text}
	case p.IsMedia() && p.Text != "":
		part = provider.Part{Kind: provider.PartFile, MIME: p.ContentType, URL: p.Text}
		switch {
		case p.IsImage():
			part.Kind = provider.PartImage
		case p.IsAudio():
			part.Kind = provider.PartAudio
		}
	case p.IsToolRequest() && role == ai.RoleModel:
		r := p.ToolRequest
		part = provider.Part{Kind: provider.PartCall, ID: r.Ref, Name: r.Name}
		part.Input, err = valueOf(r.Input)
		more.Partial = r.Partial
	case p.IsToolResponse() && role == ai.RoleTool:
		r := p.ToolResponse
		part = provider.Part{Kind: provider.PartResult, ID: r.Ref, Name: r.Name}
		if part.Content, err = valueOf(r.Output); err != nil {
			return part, err
		}
		var failed map[string]state.JSON
		if part.Content.Decode(&failed) == nil && len(failed) == 1 && failed["error"] != "" && failed["error"] != "null" {
			part.Content, part.IsError = failed["error"], true
		}
		if len(r.Content) > 0 {
			part.Parts, more.Output, err = decodeContent(part.Content, r.Content)
			part.Content = ""
		}
	default:
		part.JSON, err = state.JSONOf(p)
		return part, err
	}
	part.Extra = provider.ExtraOf(&more)
	return part, err
}

// valueOf returns a value as JSON, "" for none.
func valueOf(v any) (state.JSON, error) {
	if v == nil {
		return "", nil
	}
	return state.JSONOf(v)
}

// decodeContent returns the parts of a result that has content, which begin with
// its output.
func decodeContent(output state.JSON, content []*ai.Part) (parts []provider.Part, kind string, err error) {
	if parts, err = decodeParts(ai.RoleTool, content); err != nil || output == "" {
		return parts, noOutput, err
	}
	if kind = textOutput; !strings.HasPrefix(string(output), `"`) {
		kind = jsonOutput
	}
	return append([]provider.Part{{Kind: provider.PartText, Text: output.Text()}}, parts...), kind, nil
}

func encodeMessage(e provider.Entry) ([]*ai.Message, error) {
	var more extra
	if err := e.Extra.Decode(&more); err != nil {
		return nil, err
	}
	m := &ai.Message{Role: ai.Role(e.Role), Metadata: more.Metadata}
	if role, ok := ownRoles[e.Role]; ok {
		m.Role = role
	}
	var err error
	m.Content, err = encodeParts(e.Parts)
	return []*ai.Message{m}, err
}

func encodeParts(parts []provider.Part) ([]*ai.Part, error) {
	var content []*ai.Part
	for _, p := range parts {
		part, err := encodePart(p)
		if err != nil {
			return nil, err
		}
		content = append(content, part)
	}
	return content, nil
}

func encodePart(p provider.Part) (*ai.Part, error) {
	var more extra
	if err := p.Extra.Decode(&more); err != nil {
		return nil, err
	}
	part := &ai.Part{Metadata: more.Metadata}
	if text, ok := part.Metadata["signature"].(string); ok {
		if signature, err := base64.StdEncoding.DecodeString(text); err == nil {
			part.Metadata["signature"] = signature
		}
	}
	switch p.Kind {
	case provider.PartText:
		part.Kind, part.Text = ai.PartText, p.Text
	case provider.PartThinking:
		part.Kind, part.ContentType, part.Text = ai.PartReasoning, "plain/text", p.Text
	case provider.PartImage, provider.PartAudio, provider.PartFile:
		part.Kind, part.ContentType, part.Text = ai.PartMedia, p.MIME, p.DataURL()
	case provider.PartCall:
		part.Kind, part.ToolRequest = ai.PartToolRequest, &ai.ToolRequest{Name: p.Name, Ref: p.ID, Partial: more.Partial}
		return part, decodeValue(p.Input, &part.ToolRequest.Input)
	case provider.PartResult:
		part.Kind, part.ToolResponse = ai.PartToolResponse, &ai.ToolResponse{Name: p.Name, Ref: p.ID}
		return part, encodeResult(p, more.Output, part.ToolResponse)
	default:
		if err := json.Unmarshal([]byte(p.JSON), part); err != nil {
			return nil, err
		}
		if p.Name == "data" { // which may be empty
			part.Kind = ai.PartData
		}
	}
	return part, nil
}

func decodeValue(value state.JSON, to *any) error {
	if value == "" {
		return nil
	}
	return value.Decode(to)
}

// encodeResult sets what a result says. Models read its output; those of some
// plugins read the parts of its content, too.
func encodeResult(p provider.Part, kind string, r *ai.ToolResponse) (err error) {
	output, content := p.Content, p.Parts
	switch {
	case content == nil || kind == noOutput:
	case kind != "" && content[0].Kind == provider.PartText:
		if output = state.JSON(content[0].Text); kind == textOutput {
			output = state.JSONText(content[0].Text)
		}
		content = content[1:]
	default: // of another origin
		if text := p.ContentText(); text != "" {
			output = state.JSONText(text)
		}
		content = nil
		for _, part := range p.Parts {
			if part.Kind != provider.PartText {
				content = append(content, part)
			}
		}
	}
	if err := decodeValue(output, &r.Output); err != nil {
		return err
	}
	if p.IsError {
		r.Output = map[string]any{"error": r.Output}
	}
	r.Content, err = encodeParts(content)
	return err
}
