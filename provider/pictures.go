package provider

import (
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// pictureMover moves the pictures in results behind the results of their turn.
type pictureMover struct {
	*codec.Encoder
	messages []state.Message
	of, from []int    // of which message of the conversation each is, before and then
	pictures [][]byte // of the results so far, as parts
}

// movePictures returns the messages with the pictures in results that do not come from
// the format in texts of the user, each behind the results of its turn, and of which
// message of the conversation each one is. In their place, a text says where they are.
// of says so of the messages (default: the same).
func (f *Format) movePictures(msgs []state.Message, of []int) ([]state.Message, []int) {
	p := &pictureMover{Encoder: &codec.Encoder{Mark: f.mark, PartReaders: partReaders}, of: of}
	for i, m := range msgs {
		result, ok := m.(state.ToolResultMessage)
		if !ok {
			p.end(i - 1)
			p.add(i, m)
			continue
		}
		p.add(i, p.take(result))
	}
	p.end(len(msgs) - 1)
	return p.messages, p.from
}

func (p *pictureMover) add(from int, m state.Message) {
	if p.of != nil {
		from = p.of[from]
	}
	p.messages, p.from = append(p.messages, m), append(p.from, from)
}

// take returns a result without its pictures.
func (p *pictureMover) take(m state.ToolResultMessage) state.Message {
	content := codec.ValueOrNil(m.Content())
	if _, own := p.Kept(m); own || jsontext.Kind(content) != "array" {
		return m
	}
	elements, _ := jsontext.Elements(content) // checked with the message
	elements = slices.Clone(elements)
	text := func(text string) []byte {
		return jsontext.Object{}.WithString("type", "text").WithString("text", text).JSON()
	}
	found := false
	for i, part := range p.ReadParts(m, origin.RoleTool, content) {
		if part.Kind != codec.PartImage {
			continue
		}
		if !found {
			p.pictures = append(p.pictures, text(strings.TrimSpace("Image in the result of "+m.Call().Name+" "+m.Call().ID)+":"))
		}
		url := jsontext.Object{}.WithString("url", part.DataURL())
		image := jsontext.Object{}.WithString("type", "image_url").With("image_url", url.JSON())
		p.pictures = append(p.pictures, image.JSON())
		elements[i], found = text("[the image stands behind the results]"), true
	}
	if !found {
		return m
	}
	moved, err := origin.WithMember(m, "content", jsontext.Array(elements))
	if err != nil { // none: it is valid JSON
		return m
	}
	return moved
}

// end adds the pictures of the results before it.
func (p *pictureMover) end(last int) {
	if len(p.pictures) == 0 {
		return
	}
	members := jsontext.Object{}.WithString("type", "text").WithString("role", "user").With("content", jsontext.Array(p.pictures))
	p.pictures = nil
	if m, err := inside.DecodeChecked(members.JSON()); err == nil {
		p.add(last, m)
	}
}
