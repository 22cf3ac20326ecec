package genkitstate

import (
	"errors"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// codec is the codec of Format.
type codec struct{}

// members are those of an object.
type members = map[string]state.JSON

// text returns a member that is a string, and "" for any other.
func text(in members, name string) string {
	if !strings.HasPrefix(string(in[name]), `"`) {
		return ""
	}
	return in[name].Text()
}

// encode returns the JSON of members and lists of JSON, which always marshal.
func encode(v any) state.JSON {
	encoded, _ := state.JSONOf(v)
	return encoded
}

var (
	roles    = map[string]string{"model": "assistant", "tool": provider.RoleTool}
	ownRoles = map[string]string{"assistant": "model", provider.RoleTool: "tool", "developer": "system"}
)

// take removes a list with elements from the settings. Any other value of the
// member stays there.
func take(settings members, name string) (list []state.JSON) {
	if settings[name].Decode(&list) == nil && len(list) > 0 {
		delete(settings, name)
	}
	return list
}

func (codec) DecodeRequest(body state.JSON) (b provider.Body, err error) {
	var settings members
	if err := body.Decode(&settings); err != nil {
		return b, err
	}
	for _, message := range take(settings, "messages") {
		e, err := decodeEntry(message)
		if err != nil {
			return b, err
		}
		b.Entries = append(b.Entries, e)
	}
	b.Tools = take(settings, "tools")
	b.Settings = encode(settings)
	return b, nil
}

func (codec) EncodeRequest(b provider.Body) (state.JSON, error) {
	body := members{}
	if err := b.Settings.Decode(&body); err != nil {
		return "", err
	}
	var messages []state.JSON
	for _, e := range b.Entries {
		messages = append(messages, e.JSON)
	}
	if messages != nil {
		body["messages"] = encode(messages)
	}
	if b.Tools != nil {
		body["tools"] = encode(b.Tools)
	}
	return encode(body), nil
}

func decodeEntry(message state.JSON) (provider.Entry, error) {
	e := provider.Entry{JSON: message}
	var in members
	if err := message.Decode(&in); err != nil || in == nil {
		return e, errors.New("messages: want objects")
	}
	e.Role = text(in, "role")
	if role, ok := roles[e.Role]; ok {
		e.Role = role
	}
	var content []state.JSON
	if in["content"].Decode(&content) == nil {
		e.Parts = decodeParts(e.Role, content)
	}
	return e, nil
}

// decodeParts returns no parts if one of the elements is not an object.
func decodeParts(role string, content []state.JSON) (parts []provider.Part) {
	for _, raw := range content {
		var in members
		if raw.Decode(&in) != nil || in == nil {
			return nil
		}
		p := decodePart(role, in)
		p.JSON = raw
		parts = append(parts, p)
	}
	return parts
}

func decodePart(role string, in members) provider.Part {
	var inner members
	switch {
	case in["media"].Decode(&inner) == nil && inner != nil:
		p := provider.Part{Kind: provider.PartFile, MIME: text(inner, "contentType"), URL: text(inner, "url")}
		if header, data, ok := strings.Cut(p.URL, ";base64,"); ok && strings.HasPrefix(header, "data:") {
			p.MIME, p.Data, p.URL = strings.TrimPrefix(header, "data:"), data, ""
		}
		switch kind, _, _ := strings.Cut(p.MIME, "/"); kind {
		case "image":
			p.Kind = provider.PartImage
		case "audio":
			p.Kind = provider.PartAudio
		}
		return p
	case role == "assistant" && in["toolRequest"].Decode(&inner) == nil && inner != nil:
		return provider.Part{
			Kind: provider.PartCall, ID: text(inner, "ref"), Name: text(inner, "name"), Input: inner["input"],
		}
	case role == provider.RoleTool && in["toolResponse"].Decode(&inner) == nil && inner != nil:
		p := provider.Part{
			Kind: provider.PartResult, ID: text(inner, "ref"), Name: text(inner, "name"), Content: inner["output"],
		}
		return decodeResult(p, inner)
	case text(in, "reasoning") != "":
		return provider.Part{Kind: provider.PartThinking, Text: text(in, "reasoning")}
	case text(in, "text") != "":
		return provider.Part{Kind: provider.PartText, Text: text(in, "text")}
	}
	return provider.Part{Kind: provider.PartOther}
}

// decodeResult sets what a response of a tool says: its output or, if it has
// content besides, the parts that EncodePart makes such a response of.
func decodeResult(p provider.Part, response members) provider.Part {
	var output members
	if p.Content.Decode(&output) == nil && len(output) == 1 && output["error"] != "" && output["error"] != "null" {
		p.Content, p.IsError = output["error"], true
	}
	var content []state.JSON
	if response["content"].Decode(&content) != nil {
		return p
	}
	if parts := decodeParts(provider.RoleTool, content); parts != nil {
		if p.Content != "" && p.Content != "null" {
			p.Parts = []provider.Part{{Kind: provider.PartText, Text: p.Content.Text()}}
		}
		p.Parts, p.Content = append(p.Parts, parts...), ""
	}
	return p
}

func (codec) EncodePart(_ string, p provider.Part) (state.JSON, bool) {
	switch p.Kind {
	case provider.PartText:
		return encode(members{"text": state.JSONText(p.Text)}), true
	case provider.PartThinking:
		return encode(members{"reasoning": state.JSONText(p.Text)}), true
	case provider.PartImage, provider.PartAudio, provider.PartFile:
		url := p.URL
		if p.Data != "" {
			url = "data:" + p.MIME + ";base64," + p.Data
		}
		return encode(members{"media": encode(members{
			"contentType": state.JSONText(p.MIME), "url": state.JSONText(url),
		})}), true
	case provider.PartCall:
		request := members{"name": state.JSONText(p.Name), "ref": state.JSONText(p.ID), "input": p.Input}
		return encode(members{"toolRequest": encode(request)}), true
	case provider.PartResult:
		return encode(members{"toolResponse": encodeResult(p)}), true
	}
	return "", false
}

// encodeResult returns a response of a tool. Models read its output; those of
// some plugins read the parts of its content, too.
func encodeResult(p provider.Part) state.JSON {
	output := p.Content
	var texts []string
	var content []state.JSON
	for _, part := range p.Parts {
		if part.Kind == provider.PartText {
			texts = append(texts, part.Text)
		} else {
			content = append(content, part.JSON)
		}
	}
	if texts != nil {
		output = state.JSONText(strings.Join(texts, "\n"))
	}
	if p.IsError {
		output = encode(members{"error": output})
	}
	response := members{"name": state.JSONText(p.Name), "ref": state.JSONText(p.ID), "output": output}
	if content != nil {
		response["content"] = encode(content)
	}
	return encode(response)
}

// EncodeEntry returns a message, or several for an entry in which another API
// has results together with other parts.
func (codec) EncodeEntry(e provider.Entry) (messages []state.JSON) {
	var content []state.JSON
	for i, p := range e.Parts {
		if p.JSON == "" { // a text of another API
			p.JSON = encode(members{"text": state.JSONText(p.Text)})
		}
		content = append(content, p.JSON)
		result := p.Kind == provider.PartResult
		if i+1 < len(e.Parts) && (e.Role == provider.RoleTool || result == (e.Parts[i+1].Kind == provider.PartResult)) {
			continue
		}
		role := e.Role
		if result {
			role = provider.RoleTool
		}
		if own, ok := ownRoles[role]; ok {
			role = own
		}
		messages = append(messages, encode(members{"role": state.JSONText(role), "content": encode(content)}))
		content = nil
	}
	return messages
}

func (codec) DecodeTool(element state.JSON) (t provider.Tool, ok bool) {
	var in members
	ok = element.Decode(&in) == nil && text(in, "name") != ""
	return provider.Tool{Name: text(in, "name"), Description: text(in, "description"), Schema: in["inputSchema"]}, ok
}

func (codec) EncodeTool(t provider.Tool) state.JSON {
	tool := members{"name": state.JSONText(t.Name), "description": state.JSONText(t.Description)}
	if t.Schema != "" {
		tool["inputSchema"] = t.Schema
	}
	return encode(tool)
}

func (codec) DecodeResponse(body state.JSON) (r provider.Response, err error) {
	var in members
	if err := body.Decode(&in); err != nil {
		return r, err
	}
	r.StopReason = text(in, "finishReason")
	if message := in["message"]; message != "" && message != "null" {
		e, err := decodeEntry(message)
		if err != nil {
			return r, err
		}
		r.Entries = []provider.Entry{e}
	}
	return r, nil
}

func (codec) EncodeResponse(r provider.Response) (state.JSON, error) {
	body := members{"finishReason": state.JSONText(r.StopReason)}
	for _, e := range r.Entries {
		body["message"] = e.JSON
	}
	usage := map[string]int{}
	for name, n := range map[string]int{
		"inputTokens": r.Usage.Input, "outputTokens": r.Usage.Output,
		"cachedContentTokens": r.Usage.CacheRead, "thoughtsTokens": r.Usage.Reasoning,
	} {
		if n >= 0 {
			usage[name] = n
		}
	}
	if len(usage) > 0 {
		body["usage"] = encode(usage)
	}
	return encode(body), nil
}

func (codec) ReadUsage(u *provider.Usage, body state.JSON) bool {
	var in struct {
		FinishReason string
		Message      *struct{}
		Usage        *struct{ InputTokens, OutputTokens, CachedContentTokens, ThoughtsTokens *int }
	}
	if err := body.Decode(&in); err != nil || in.Message == nil && in.FinishReason == "" && in.Usage == nil {
		return false
	}
	u.StopReason = in.FinishReason
	if in.Usage != nil {
		for to, n := range map[*int]*int{
			&u.Input: in.Usage.InputTokens, &u.Output: in.Usage.OutputTokens,
			&u.CacheRead: in.Usage.CachedContentTokens, &u.Reasoning: in.Usage.ThoughtsTokens,
		} {
			if n != nil {
				*to = *n
			}
		}
	}
	return true
}

func (codec) NewAssembler(emit func(provider.Delta)) provider.Assembler { return &stream{emit: emit} }

// stream reads chunks and the response at their end, which says everything.
type stream struct {
	emit     func(provider.Delta)
	response state.JSON
}

func (s *stream) Add(event state.JSON) error {
	var in members
	if err := event.Decode(&in); err != nil {
		return err
	}
	if in["message"] != "" {
		s.response = event
		return nil
	}
	var content []state.JSON
	_ = in["content"].Decode(&content) // parts of another form are in the response
	for _, p := range decodeParts("assistant", content) {
		switch p.Kind {
		case provider.PartText:
			s.emit(provider.Delta{Kind: provider.DeltaText, Text: p.Text})
		case provider.PartThinking:
			s.emit(provider.Delta{Kind: provider.DeltaThinking, Text: p.Text})
		}
	}
	return nil
}

func (s *stream) Ended() bool { return s.response != "" }

func (s *stream) Result() (state.JSON, bool) { return s.response, s.response != "" }
