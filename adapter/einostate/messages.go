package einostate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// Format is the format of messages of eino. It converts them, as Messages and
// FromMessages do, trims them, and has their shapes for package transcript.
var Format = provider.NewMessageFormat("eino", provider.MessageCodec[*schema.Message]{
	Decode: decodeMessage, Encode: encodeMessage, OneResult: true, Names: true, Reasons: true, FileNames: true,
})

// Messages returns what messages of eino say as messages of a state. Nothing but the
// random ids of package adk is lost: FromMessages gives them back, with reasoning,
// metadata and extras. Images, sounds and files are parts that every provider's
// format reads. An error names the message, and wraps [state.ErrWrongType].
func Messages(msgs ...*schema.Message) ([]state.Message, error) { return Format.Decode(msgs...) }

// FromMessages returns messages of a state as messages of eino. A text and the
// calls behind it are one message, and results have the names of their tools.
// Thinking of other origins is left out, and a short text stands for parts that
// eino does not have. Of large results, they have what [transcript.Shown] returns.
func FromMessages(msgs ...state.Message) ([]*schema.Message, error) {
	own, _, err := Format.Encode(inside.WithWireIDs(origin.WholeInputs(transcript.Shown(msgs, false)))...)
	return own, err
}

// messageID is the member of Extra in which adk of eino v0.9.13 has a random id of an
// answer or a result. eino gives a message without one another; with it, two runs in
// which the same is said would not have equal messages.
const messageID = "_eino_msg_id"

func decodeMessage(m *schema.Message) (e provider.Entry, err error) {
	rest := rest{Message: *m}
	own := maps.Clone(m.Extra)
	delete(own, messageID)
	if rest.Extra, err = extraOf(own); err != nil {
		return e, err
	}
	rest.Message.Extra = nil
	e = provider.Entry{Role: string(m.Role), Name: m.Name, Reasoning: m.ReasoningContent, Extra: provider.ExtraOf(&rest)}
	rest.Message.Role, rest.Name, rest.ReasoningContent = "", "", ""
	switch users, models := len(m.UserInputMultiContent), len(m.AssistantGenMultiContent); {
	case m.Content != "" || users > 0 && models > 0: // the parts are extra
	case users > 0 && m.Role != schema.Assistant:
		e.Parts, err = decodeParts(m.UserInputMultiContent)
		rest.UserInputMultiContent = nil
	case models > 0 && m.Role == schema.Assistant:
		e.Parts, err = decodeParts(m.AssistantGenMultiContent)
		rest.AssistantGenMultiContent = nil
	}
	rest.Message.Content = ""
	if m.Role == schema.Tool {
		rest.ToolCallID, rest.ToolName = "", ""
		result := provider.Part{Kind: provider.PartResult, ID: m.ToolCallID, Name: m.ToolName, Parts: e.Parts}
		if e.Parts == nil {
			result.Content = state.JSONText(m.Content)
		}
		e.Parts = []provider.Part{result}
		return e, err
	}
	e.Parts = slices.Grow(e.Parts, 1+len(m.ToolCalls))
	if m.Content != "" || len(e.Parts)+len(m.ToolCalls) == 0 {
		e.Parts = append(e.Parts, provider.Part{Kind: provider.PartText, Text: m.Content})
	}
	for _, c := range m.ToolCalls {
		p := provider.Part{
			Kind: provider.PartCall, ID: c.ID, Name: c.Function.Name, Input: provider.Arguments(c.Function.Arguments),
		}
		if c.Type != "function" || c.Index != nil || c.Extra != nil {
			own, err := extraOf(c.Extra)
			if err != nil {
				return e, err
			}
			p.Extra = provider.ExtraOf(callExtra{&c.Type, c.Index, own})
		}
		e.Parts = append(e.Parts, p)
	}
	rest.ToolCalls = nil
	return e, err
}

// rest is what an entry does not say of a message.
type rest struct {
	schema.Message
	Role    string `json:"role,omitempty"`
	Content string `json:"content,omitempty"`
	Extra   *extra `json:"extra,omitempty"`
}

// callExtra is what a call says besides, if it is not just a function.
type callExtra struct {
	Type  *string `json:"type"`
	Index *int    `json:"index,omitempty"`
	Extra *extra  `json:"extra,omitempty"`
}

func encodeMessage(e provider.Entry) ([]*schema.Message, error) {
	var rest rest
	if err := e.Extra.Decode(&rest); err != nil {
		return nil, err
	}
	m := &rest.Message
	var err error
	if m.Extra, err = rest.Extra.values(); err != nil {
		return nil, err
	}
	m.Role, m.Name, m.ReasoningContent = schema.RoleType(e.Role), e.Name, e.Reasoning
	if e.Role == "developer" {
		m.Role = schema.System
	}
	var parts []provider.Part
	for _, p := range e.Parts {
		switch p.Kind {
		case provider.PartCall:
			var extra callExtra
			if err := p.Extra.Decode(&extra); err != nil {
				return nil, err
			}
			own, err := extra.Extra.values()
			if err != nil {
				return nil, err
			}
			call := schema.ToolCall{
				Index: extra.Index, ID: p.ID, Type: "function", Extra: own,
				Function: schema.FunctionCall{Name: p.Name, Arguments: p.Input.Text()},
			}
			if extra.Type != nil {
				call.Type = *extra.Type
			}
			m.ToolCalls = append(m.ToolCalls, call)
		case provider.PartResult:
			m.ToolCallID, m.ToolName, m.Content, parts = p.ID, p.Name, p.Content.Text(), p.Parts
		default:
			parts = append(parts, p)
		}
	}
	if len(parts) == 1 && parts[0].Kind == provider.PartText && parts[0].Extra.IsEmpty() {
		m.Content, parts = parts[0].Text, nil
	}
	if m.Role == schema.Assistant {
		err = encodeParts(parts, &m.AssistantGenMultiContent)
	} else {
		err = encodeParts(parts, &m.UserInputMultiContent)
	}
	return []*schema.Message{m}, err
}

// members are those of a part of eino as JSON, or of the medium in it. Parts of
// users and of models have different types and the same JSON.
type members map[string]state.JSON

// take removes a text.
func (in members) take(name string) string {
	value := in[name]
	if value == `""` || !strings.HasPrefix(string(value), `"`) {
		return ""
	}
	delete(in, name)
	return value.Text()
}

func (in members) set(name, text string) {
	if text != "" {
		in[name] = state.JSONText(text)
	}
}

// inner are the members of the object in which a part of a kind has what it says.
var inner = map[provider.PartKind]string{
	provider.PartThinking: "reasoning", provider.PartImage: "image", provider.PartAudio: "audio",
	provider.PartFile: "file",
}

func decodeParts[T any](own []T) (parts []provider.Part, err error) {
	var list []members
	if err := convert(own, &list); err != nil {
		return nil, err
	}
	for _, in := range list {
		p, err := decodePart(in)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

func decodePart(in members) (p provider.Part, err error) {
	if p.JSON, err = state.JSONOf(in); err != nil {
		return p, err
	}
	if in["type"] == `"text"` {
		return provider.Part{Kind: provider.PartText, Text: in.take("text"), Extra: provider.ExtraOf(in)}, nil
	}
	for kind, name := range inner {
		var m members
		if in[name] == "" || in[name].Decode(&m) != nil {
			continue
		}
		said := provider.Part{
			Kind: kind, Text: m.take("text"), MIME: m.take("mime_type"), Data: m.take("base64data"), URL: m.take("url"),
			Name: m.take("name"),
		}
		if said.Text+said.Data+said.URL != "" && len(in) <= 3 {
			in[name], err = state.JSONOf(m)
			said.Extra = provider.ExtraOf(in)
			return said, err
		}
	}
	return p, nil // what no provider has, such as a video
}

func encodeParts[T any](parts []provider.Part, own *[]T) error {
	if parts == nil {
		return nil
	}
	list := make([]members, len(parts))
	for i, p := range parts {
		list[i] = members{}
		if p.Kind == provider.PartOther {
			if err := p.JSON.Decode(&list[i]); err != nil {
				return err
			}
			continue
		}
		if err := encodePart(list[i], p); err != nil {
			return err
		}
	}
	return convert(list, own)
}

func encodePart(in members, p provider.Part) (err error) {
	name, ok := inner[p.Kind]
	if in["type"] = state.JSONText(name + "_url"); p.Kind == provider.PartThinking {
		in["type"] = `"reasoning"`
	}
	if !ok {
		in["type"] = `"text"`
	}
	if err := p.Extra.Decode(&in); err != nil {
		return err
	}
	if !ok {
		in.set("text", p.Text)
		return nil
	}
	m := members{}
	if in[name] != "" {
		err = in[name].Decode(&m)
	}
	m.set("text", p.Text)
	m.set("mime_type", p.MIME)
	m.set("base64data", p.Data)
	m.set("url", p.URL)
	m.set("name", p.Name)
	if err == nil {
		in[name], err = state.JSONOf(m)
	}
	return err
}

// convert sets to to what has the JSON of from.
func convert(from, to any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, to)
}
