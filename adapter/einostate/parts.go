package einostate

import (
	"encoding/json"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

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
	provider.PartThinking: "reasoning", provider.PartImage: "image", provider.PartAudio: "audio", provider.PartFile: "file",
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
			Kind: kind, Text: m.take("text"), MIME: m.take("mime_type"), Data: m.take("base64data"), URL: m.take("url"), Name: m.take("name"),
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
