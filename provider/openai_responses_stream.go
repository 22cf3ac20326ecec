package provider

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// responsesStream puts the events of a Responses stream together. Its last event
// has the whole response; but some servers leave the items out of that, and a
// stream may break off. Then the items count as they came: whole when they are
// done, and until then in streamedItem.
type responsesStream struct {
	body  jsontext.Object // the response as the latest event has it
	items map[itemKey]*streamedItem
	round int // counts the responses before this one
	ended bool
}

// itemKey is the place of an item. Its identifier would not do: with some
// servers it differs from event to event.
type itemKey struct{ round, index int }

// streamedItem is an item, or a part of one, as far as it has come.
type streamedItem struct {
	members jsontext.Object
	texts   map[string]*strings.Builder      // of members that grow
	parts   map[string]map[int]*streamedItem // of members that are lists, by their place
	done    bool
}

// itemTexts says where the events of a text belong, by what comes before ".delta"
// and ".done": to a member of the item, or of a part in a list.
var itemTexts = map[string]struct{ list, typ, member string }{
	"response.output_text":                {"content", "output_text", "text"},
	"response.refusal":                    {"content", "refusal", "refusal"},
	"response.reasoning_text":             {"content", "reasoning_text", "text"},
	"response.reasoning_summary_text":     {"summary", "summary_text", "text"},
	"response.function_call_arguments":    {member: "arguments"},
	"response.mcp_call_arguments":         {member: "arguments"},
	"response.custom_tool_call_input":     {member: "input"},
	"response.code_interpreter_call_code": {member: "code"},
}

func (s *responsesStream) event(data []byte) error {
	members, err := jsontext.Members(data)
	if err != nil {
		return err
	}
	event := jsontext.Object(members)
	typ := stringOf(event.Get("type"))
	if typ == "error" {
		return OpenAIResponses.failure(jsontext.Object{}.With("error", event.Without("type", "sequence_number").JSON()))
	}
	if jsontext.Kind(event.Get("response")) == "object" {
		s.respond(typ, inside(event, "response"))
		return nil
	}
	dot := max(0, strings.LastIndexByte(typ, '.'))
	what, step := typ[:dot], typ[dot:]
	place, grows := itemTexts[what]
	if !grows && what != "response.output_item" && what != "response.content_part" && what != "response.reasoning_summary_part" {
		return nil
	}
	index, err := itemIndex(event, "output_index")
	if err != nil {
		return err
	}
	key := itemKey{s.round, index}
	if what == "response.output_item" {
		if err := want("$.item", event.Get("item"), "object"); err != nil {
			return err
		}
		s.items[key] = &streamedItem{members: inside(event, "item"), done: step == ".done"}
		return nil
	}
	item := s.items[key]
	if item == nil || item.done {
		return nil
	}
	if grows {
		return item.grow(event, place.list, place.typ, place.member, step)
	}
	list := "content"
	if what == "response.reasoning_summary_part" {
		list = "summary"
	}
	if index, err = itemIndex(event, list+"_index"); err != nil {
		return err
	}
	if err := want("$.part", event.Get("part"), "object"); err != nil {
		return err
	}
	*item.part(list, index) = streamedItem{members: inside(event, "part")}
	return nil
}

// respond takes an event that has the response.
func (s *responsesStream) respond(typ string, response jsontext.Object) {
	switch typ {
	case "response.created":
		if s.ended { // another response after the first
			s.round++
			s.ended = false
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		s.ended = true
	}
	s.body = response
}

// grow takes the next piece of a text, or at the end all of it.
func (p *streamedItem) grow(event jsontext.Object, list, typ, member, step string) error {
	name := "delta"
	if step == ".done" {
		name = member
	}
	piece := event.Get(name)
	if err := want(jsontext.Path("$", name), piece, "string"); err != nil {
		return err
	}
	if list != "" {
		index, err := itemIndex(event, list+"_index")
		if err != nil {
			return err
		}
		if p = p.part(list, index); p.members == nil {
			p.members = jsontext.Object{}.WithString("type", typ)
		}
	}
	grown := p.texts[member]
	if grown == nil {
		grown = &strings.Builder{}
		grown.WriteString(stringOf(p.members.Get(member)))
		if p.texts == nil {
			p.texts = map[string]*strings.Builder{}
		}
		p.texts[member] = grown
	}
	if step == ".done" {
		grown.Reset()
	}
	grown.WriteString(jsontext.Unquote(piece))
	return nil
}

// part returns the part at a place of a list, a new one if there is none yet.
func (p *streamedItem) part(list string, index int) *streamedItem {
	parts := p.parts[list]
	if parts == nil {
		parts = map[int]*streamedItem{}
		sent, _ := jsontext.Elements(p.members.Get(list)) // none if it is no list
		for i, element := range sent {
			members, _ := jsontext.Members(element)
			parts[i] = &streamedItem{members: members}
		}
		if p.parts == nil {
			p.parts = map[string]map[int]*streamedItem{}
		}
		p.parts[list] = parts
	}
	if parts[index] == nil {
		parts[index] = &streamedItem{}
	}
	return parts[index]
}

func (p *streamedItem) json() []byte {
	members := p.members
	for _, name := range slices.Sorted(maps.Keys(p.texts)) {
		members = members.WithString(name, p.texts[name].String())
	}
	for _, name := range slices.Sorted(maps.Keys(p.parts)) {
		parts := p.parts[name]
		elements := make([][]byte, 0, len(parts))
		for _, index := range slices.Sorted(maps.Keys(parts)) {
			elements = append(elements, parts[index].json())
		}
		members = members.With(name, jsontext.Array(elements))
	}
	return members.JSON()
}

func (s *responsesStream) result() (jsontext.Object, bool) {
	if s.body == nil && len(s.items) == 0 {
		return nil, s.ended
	}
	// What the last event has is what the provider keeps, with its identifiers.
	if sent, err := jsontext.Elements(s.body.Get("output")); err == nil && len(sent) >= len(s.items) {
		return s.body, s.ended
	}
	keys := slices.SortedFunc(maps.Keys(s.items), func(a, b itemKey) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.index, b.index))
	})
	items := make([][]byte, len(keys))
	for i, key := range keys {
		items[i] = s.items[key].json()
	}
	return s.body.With("output", jsontext.Array(items)), s.ended
}

// itemIndex returns a member that is a place in a list.
func itemIndex(event jsontext.Object, name string) (int, error) {
	index, err := strconv.Atoi(string(event.Get(name)))
	if err != nil || index < 0 {
		return 0, &fault.Error{Path: jsontext.Path("$", name), Got: "want the place of an item"}
	}
	return index, nil
}
