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
func (Format) NewAssembler(emit func(codec.Delta)) codec.Assembler {
	return &assembler{items: map[itemKey]*streamedItem{}, emit: emit}
}

// assembler puts the events of a stream together. The last event has the whole
// response. Some servers leave the items out of it, and a stream may break off:
// then the items count as they came, whole when they are done, and until then
// as far as they have come.
type assembler struct {
	body  jsontext.Object // the response in the latest event
	items map[itemKey]*streamedItem
	round int // counts the responses before this one
	ended bool
	calls int // that have begun
	emit  func(codec.Delta)
}

// Ended reports whether the latest response has ended.
func (a *assembler) Ended() bool { return a.ended }

// itemKey is the place of an item. The id of an item would not do: some servers
// change it from event to event.
type itemKey struct{ round, index int }

// streamedItem is an item as far as it has come.
type streamedItem struct {
	codec.Growing
	done bool
	call codec.Delta // a piece of its input, if it is a call
	said bool        // a piece of it has been emitted
}

// maxGap is the number of parts that may be missing before one that comes.
const maxGap = 100

// textPlace says where a text belongs: to a member of the item, or to a member
// of a part, whose type is typ, in a list of the item.
type textPlace struct {
	list, typ, member string
	kind              codec.DeltaKind // 0 for a text that is not emitted
}

// textPlaces has the place of each text by the type of its events, without
// ".delta" and ".done".
var textPlaces = map[string]textPlace{
	"response.output_text":                {"content", "output_text", "text", codec.DeltaText},
	"response.refusal":                    {"content", "refusal", "refusal", codec.DeltaText},
	"response.reasoning_text":             {"content", "reasoning_text", "text", codec.DeltaThinking},
	"response.reasoning_summary_text":     {"summary", "summary_text", "text", codec.DeltaThinking},
	"response.function_call_arguments":    {member: "arguments", kind: codec.DeltaInput},
	"response.mcp_call_arguments":         {member: "arguments"},
	"response.custom_tool_call_input":     {member: "input", kind: codec.DeltaInput},
	"response.code_interpreter_call_code": {member: "code"},
}

// Add takes an event. Events of other types say nothing about the items.
func (a *assembler) Add(event jsontext.Object) error {
	typ := event.String("type")
	if typ == "error" {
		details := event.Without("type", "sequence_number").JSON()
		return codec.ReportedFailure(jsontext.Object{}.With("error", details))
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
	case "response.output_text.annotation":
		return a.addAnnotation(event)
	}
	place, ok := textPlaces[what]
	if !ok {
		return nil
	}
	item, err := a.item(event)
	if item == nil || err != nil {
		return err
	}
	if !done {
		a.emitText(item, place, event.String("delta"))
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
		if len(a.items) == 0 { // all of them come with the response
			items, _ := response.Elements("output") // none if it has none
			for _, item := range items {
				members, _ := jsontext.Members(item) // none if it is not an object
				a.emitWhole(a.begin(members), members)
			}
		}
	}
	a.body = response
}

// setItem takes an item as it begins or as it is when it is done.
func (a *assembler) setItem(event jsontext.Object, done bool) error {
	index, err := indexMember(event, "output_index")
	if err != nil {
		return err
	}
	if err := event.Want("item", "object"); err != nil {
		return err
	}
	key, members := itemKey{a.round, index}, event.Object("item")
	item := a.items[key]
	if item == nil {
		item = a.begin(members)
		a.items[key] = item
	}
	if item.done = done; done && !item.said {
		a.emitWhole(item, members)
	}
	item.Set(event.Get("item"))
	return nil
}

// begin returns a new item. It emits the begin of a call.
func (a *assembler) begin(members jsontext.Object) *streamedItem {
	item := &streamedItem{}
	if typ := members.String("type"); typ == functionCall || typ == customCall {
		a.beginCall(item, members.String("call_id"), members.String("name"))
	}
	return item
}

func (a *assembler) beginCall(item *streamedItem, id, name string) {
	item.call = codec.Delta{Kind: codec.DeltaInput, Call: a.calls, ID: id, Name: name}
	a.calls++
	a.emit(item.call)
}

// emitWhole emits an item that has come whole. The calls of the provider's own
// tools always do.
func (a *assembler) emitWhole(item *streamedItem, members jsontext.Object) {
	typ := members.String("type")
	if call, ok := callOf(typ, members); ok && item.call.Kind == 0 && !isHosted(typ, members) {
		a.beginCall(item, call.ID, call.Name)
		item.call.Text = string(call.Input)
		a.emit(item.call)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(textPlaces)) {
		place := textPlaces[name]
		if place.list == "" {
			a.emitText(item, place, members.String(place.member))
			continue
		}
		parts, _ := members.Elements(place.list) // none if it has none
		for _, raw := range parts {
			if part, err := jsontext.Members(raw); err == nil && part.String("type") == place.typ {
				a.emitText(item, place, part.String(place.member))
			}
		}
	}
}

// emitText emits a piece of a text of an item.
func (a *assembler) emitText(item *streamedItem, place textPlace, text string) {
	delta := codec.Delta{Kind: place.kind}
	if place.kind == codec.DeltaInput {
		delta = item.call // of no kind, if the client must not run it
	}
	if delta.Kind != 0 && text != "" {
		item.said, delta.Text = true, text
		a.emit(delta)
	}
}

// setPart takes a part of a list of an item.
func (a *assembler) setPart(event jsontext.Object, list string) error {
	item, err := a.item(event)
	if item == nil || err != nil {
		return err
	}
	if err := event.Want("part", "object"); err != nil {
		return err
	}
	part, err := item.part(event, list)
	if err != nil {
		return err
	}
	part.Set(event.Get("part"))
	return nil
}

// addAnnotation takes an annotation of a text.
func (a *assembler) addAnnotation(event jsontext.Object) error {
	item, err := a.item(event)
	if item == nil || err != nil {
		return err
	}
	if err := event.Want("annotation", "object"); err != nil {
		return err
	}
	part, err := item.part(event, "content")
	if err != nil {
		return err
	}
	part.Member("annotations").Append(event.Get("annotation"))
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
	target := &p.Growing
	if place.list != "" {
		part, err := p.part(event, place.list)
		if err != nil {
			return err
		}
		if target = part; target.IsEmpty() {
			target.Member("type").Set(jsontext.AppendQuote(nil, place.typ))
		}
	}
	if text := target.Member(place.member); done {
		text.Set(event.Get(name))
	} else {
		text.AppendText(event.String(name))
	}
	return nil
}

// part returns the part of a list that an event is about, a new one if there is
// none.
func (p *streamedItem) part(event jsontext.Object, list string) (*codec.Growing, error) {
	index, err := indexMember(event, list+"_index")
	if err != nil {
		return nil, err
	}
	parts := p.Member(list).AsList()
	if index > parts.Len()+maxGap {
		path := jsontext.Path("$", list+"_index")
		return nil, &fault.Error{Path: path, Got: "is too far behind the other parts"}
	}
	return parts.Element(index), nil
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
		items[i] = a.items[key].JSON()
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
