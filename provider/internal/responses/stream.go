package responses

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// NewAssembler returns an assembler for a streamed response.
func (Format) NewAssembler() codec.Assembler { return &assembler{items: map[itemKey]*streamedItem{}} }

// assembler puts the events of a stream together. The last event has the whole
// response. Some servers leave the items out of it, and a stream may break off:
// then the items count as they came, whole when they are done, and until then as
// far as they have come.
type assembler struct {
	body  jsontext.Object // the response as the latest event has it
	items map[itemKey]*streamedItem
	round int // counts the responses before this one
	ended bool
}

// itemKey is the place of an item. The id of an item would not do: some servers
// change it from event to event.
type itemKey struct{ round, index int }

// streamedItem is an item, or a part of one, as far as it has come.
type streamedItem struct {
	members jsontext.Object
	texts   map[string]*strings.Builder      // of members that grow
	parts   map[string]map[int]*streamedItem // of members that are lists, by their place
	done    bool
}

// textPlace says where a text belongs: to a member of the item, or to a member of
// a part, whose type is typ, in a list of the item.
type textPlace struct{ list, typ, member string }

// textPlaces has the place of each text by the type of its events, without
// ".delta" and ".done".
var textPlaces = map[string]textPlace{
	"response.output_text":                {"content", "output_text", "text"},
	"response.refusal":                    {"content", "refusal", "refusal"},
	"response.reasoning_text":             {"content", "reasoning_text", "text"},
	"response.reasoning_summary_text":     {"summary", "summary_text", "text"},
	"response.function_call_arguments":    {member: "arguments"},
	"response.mcp_call_arguments":         {member: "arguments"},
	"response.custom_tool_call_input":     {member: "input"},
	"response.code_interpreter_call_code": {member: "code"},
}

// Add takes an event. Events of other types say nothing about the items.
func (a *assembler) Add(event jsontext.Object) error {
	typ := event.String("type")
	if typ == "error" {
		return codec.ReportedFailure(jsontext.Object{}.With("error", event.Without("type", "sequence_number").JSON()))
	}
	if jsontext.Kind(event.Get("response")) == "object" {
		a.setResponse(typ, event.Object("response"))
		return nil
	}
	dot := max(0, strings.LastIndexByte(typ, '.'))
	what, done := typ[:dot], typ[dot:] == ".done"
	switch what {
	case "response.output_item":
		return a.setItem(event, done)
	case "response.content_part":
		return a.setPart(event, "content")
	case "response.reasoning_summary_part":
		return a.setPart(event, "summary")
	}
	place, ok := textPlaces[what]
	if !ok {
		return nil
	}
	item, err := a.item(event)
	if item == nil || err != nil {
		return err
	}
	return item.grow(event, place, done)
}

// setResponse takes an event that has the response.
func (a *assembler) setResponse(typ string, response jsontext.Object) {
	switch typ {
	case "response.created":
		if a.ended { // another response after the first
			a.round++
			a.ended = false
		}
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		a.ended = true
	}
	a.body = response
}

// setItem takes an item as it begins or as it is when it is done.
func (a *assembler) setItem(event jsontext.Object, done bool) error {
	index, err := indexMember(event, "output_index")
	if err != nil {
		return err
	}
	members, err := event.Members("item")
	if err != nil {
		return err
	}
	a.items[itemKey{a.round, index}] = &streamedItem{members: members, done: done}
	return nil
}

// setPart takes a part of a list of an item.
func (a *assembler) setPart(event jsontext.Object, list string) error {
	item, err := a.item(event)
	if item == nil || err != nil {
		return err
	}
	index, err := indexMember(event, list+"_index")
	if err != nil {
		return err
	}
	members, err := event.Members("part")
	if err != nil {
		return err
	}
	*item.part(list, index) = streamedItem{members: members}
	return nil
}

// item returns the item of an event, nil if it has not begun or is done.
func (a *assembler) item(event jsontext.Object) (*streamedItem, error) {
	index, err := indexMember(event, "output_index")
	if err != nil {
		return nil, err
	}
	item := a.items[itemKey{a.round, index}]
	if item == nil || item.done {
		return nil, nil
	}
	return item, nil
}

// grow takes the next piece of a text, or all of it when it is done.
func (p *streamedItem) grow(event jsontext.Object, place textPlace, done bool) error {
	name := "delta"
	if done {
		name = place.member
	}
	if err := event.Want(name, "string"); err != nil {
		return err
	}
	if place.list != "" {
		index, err := indexMember(event, place.list+"_index")
		if err != nil {
			return err
		}
		if p = p.part(place.list, index); p.members == nil {
			p.members = jsontext.Object{}.WithString("type", place.typ)
		}
	}
	text := p.texts[place.member]
	if text == nil {
		text = &strings.Builder{}
		text.WriteString(p.members.String(place.member))
		if p.texts == nil {
			p.texts = map[string]*strings.Builder{}
		}
		p.texts[place.member] = text
	}
	if done {
		text.Reset()
	}
	text.WriteString(event.String(name))
	return nil
}

// part returns the part at a place of a list, a new one if there is none.
func (p *streamedItem) part(list string, index int) *streamedItem {
	parts := p.parts[list]
	if parts == nil {
		parts = map[int]*streamedItem{}
		sent, _ := p.members.Elements(list) // none if it is not a list
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

// Result returns the response.
func (a *assembler) Result() (jsontext.Object, bool) {
	if a.body == nil && len(a.items) == 0 {
		return nil, a.ended
	}
	// The provider stores the items, and their ids, as the last event has them.
	if sent, err := jsontext.Elements(a.body.Get("output")); err == nil && len(sent) >= len(a.items) {
		return a.body, a.ended
	}
	keys := slices.SortedFunc(maps.Keys(a.items), func(a, b itemKey) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.index, b.index))
	})
	items := make([][]byte, len(keys))
	for i, key := range keys {
		items[i] = a.items[key].json()
	}
	return a.body.With("output", jsontext.Array(items)), a.ended
}

// indexMember returns a member that is a place in a list.
func indexMember(event jsontext.Object, name string) (int, error) {
	index, err := strconv.Atoi(string(event.Get(name)))
	if err != nil || index < 0 {
		return 0, &fault.Error{Path: jsontext.Path("$", name), Got: "want the place of an item"}
	}
	return index, nil
}
