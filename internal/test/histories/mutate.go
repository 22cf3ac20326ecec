package histories

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// Mutate returns a copy of the history with random faults.
func Mutate(rng *rand.Rand, msgs []state.Message) []state.Message {
	b := &breaker{rng, slices.Clone(msgs)}
	for range pick(rng, 1, 1, 2, 3, 5) {
		pick(rng, breaks...)(b)
	}
	return b.msgs
}

// breaker puts faults into a history.
type breaker struct {
	*rand.Rand
	msgs []state.Message
}

var breaks = []func(*breaker){
	(*breaker).drop, (*breaker).drop, (*breaker).repeat, (*breaker).swap, (*breaker).move, (*breaker).move,
	(*breaker).cut, (*breaker).cut, (*breaker).insert, (*breaker).insert, (*breaker).hollow,
	(*breaker).rename, (*breaker).rename, (*breaker).dropCall, (*breaker).recast, (*breaker).rejoin, (*breaker).nothing,
	(*breaker).append,
}

// at returns the index of a random message of the type, or of any type if typ
// is "". It returns false if there is none.
func (b *breaker) at(typ string) (int, bool) {
	var places []int
	for i, m := range b.msgs {
		if m != nil && m.Raw() != "" && (typ == "" || m.Type() == typ) {
			places = append(places, i)
		}
	}
	if places == nil {
		return 0, false
	}
	return pick(b.Rand, places...), true
}

// typ returns a type, or "" for any.
func (b *breaker) typ() string { return pick(b.Rand, "", "text", "tool_call", "tool_result") }

func (b *breaker) drop() {
	if i, ok := b.at(b.typ()); ok {
		b.msgs = slices.Delete(b.msgs, i, i+1)
	}
}

func (b *breaker) repeat() {
	if i, ok := b.at(b.typ()); ok {
		b.msgs = slices.Insert(b.msgs, b.IntN(len(b.msgs)+1), b.msgs[i])
	}
}

func (b *breaker) swap() {
	i, ok := b.at("")
	if j, also := b.at(b.typ()); ok && also {
		b.msgs[i], b.msgs[j] = b.msgs[j], b.msgs[i]
	}
}

func (b *breaker) move() {
	if i, ok := b.at(b.typ()); ok {
		m := b.msgs[i]
		b.msgs = slices.Delete(b.msgs, i, i+1)
		b.msgs = slices.Insert(b.msgs, b.IntN(len(b.msgs)+1), m)
	}
}

// cut removes the beginning, the end or the middle.
func (b *breaker) cut() {
	i, j := b.IntN(len(b.msgs)+1), b.IntN(len(b.msgs)+1)
	i, j = min(i, j), max(i, j)
	switch b.IntN(3) {
	case 0:
		b.msgs = b.msgs[i:]
	case 1:
		b.msgs = b.msgs[:j]
	default:
		b.msgs = slices.Delete(b.msgs, i, j)
	}
}

// insert inserts a message at a random place, such as between a call and its
// result.
func (b *breaker) insert() {
	w := &writer{Rand: b.Rand, format: pick(b.Rand, append(Formats, Everyone)...), count: b.IntN(20)}
	switch b.IntN(9) {
	case 0:
		w.foreign()
	case 1:
		w.user()
	case 2:
		w.answer()
	case 3:
		w.calls(false)
	case 4:
		w.result(w.call(nil), w.mark(), "{}")
	case 5:
		w.items()
	case 6:
		w.thought()
	case 7:
		part := pick(b.Rand, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`,
			`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}`)
		w.add(w.said("assistant", origin.Anthropic, []byte("["+part+"]")))
	case 8:
		w.add(w.said(pick(b.Rand, "system", "developer", "Orchestrator (thought)", ""), w.mark(), w.quoted()))
	}
	b.msgs = slices.Insert(b.msgs, b.IntN(len(b.msgs)+1), w.msgs...)
}

// change sets a member of a message, or removes it if there is no value.
func (b *breaker) change(i int, name, value string) {
	members, _ := jsontext.Members([]byte(b.msgs[i].Raw()))
	o := members.Without(name)
	if value != "" {
		o = members.With(name, []byte(value))
	}
	w := &writer{}
	w.add(o)
	b.msgs[i] = w.msgs[0]
}

// hollow removes the content of a message or a part of it.
func (b *breaker) hollow() {
	i, ok := b.at(pick(b.Rand, "text", "text", "tool_result"))
	if !ok {
		return
	}
	empty := []string{"", `""`, `null`}
	if b.msgs[i].Type() == "text" {
		empty = append(empty, `[]`, `" \n"`, `[{"type":"text","text":""}]`,
			`[{"type":"text","text":""},{"type":"text","text":"x"}]`)
	} else if _, ok := origin.Of(b.msgs[i], origin.Gemini); ok {
		return // it must be an object
	}
	b.change(i, "content", pick(b.Rand, empty...))
}

// tool returns the call of a message and a function that replaces it.
func (b *breaker) tool() (call jsontext.Object, replace func(...jsontext.Object)) {
	i, ok := b.at(pick(b.Rand, "tool_call", "tool_result"))
	if !ok {
		return nil, nil
	}
	members, _ := jsontext.Members([]byte(b.msgs[i].Raw()))
	o := jsontext.Object(members)
	if held := o.Get("tool"); held != nil && b.msgs[i].Type() == "tool_result" {
		call, _ := jsontext.Members(held)
		return call, func(with ...jsontext.Object) {
			if len(with) > 0 {
				b.change(i, "tool", string(with[0].JSON()))
			}
		}
	}
	tools, _ := jsontext.Elements(o.Get("tools"))
	if len(tools) == 0 {
		return nil, nil
	}
	n := b.IntN(len(tools))
	call, _ = jsontext.Members(tools[n])
	return call, func(with ...jsontext.Object) {
		var replaced [][]byte
		for _, tool := range with {
			replaced = append(replaced, tool.JSON())
		}
		b.change(i, "tools", string(jsontext.Array(slices.Replace(slices.Clone(tools), n, n+1, replaced...))))
	}
}

// rename gives a call or a result another id or name.
func (b *breaker) rename() {
	call, replace := b.tool()
	if call == nil {
		return
	}
	if b.IntN(3) == 0 {
		replace(call.With("name", jsontext.AppendQuote(nil,
			pick(b.Rand, "", "other", "with space", "日本", "1st", "a.b", strings.Repeat("x", 200)))))
		return
	}
	id := pick(b.Rand, "", "other", "call_1", "call_2", "call:1", "c d", "日本",
		strings.Repeat("x", 41), strings.Repeat("x", 65))
	replace(call.With("id", jsontext.AppendQuote(nil, id)))
}

// dropCall removes a call from its message or duplicates it.
func (b *breaker) dropCall() {
	call, replace := b.tool()
	switch {
	case call == nil:
	case b.IntN(3) == 0:
		replace(call, call)
	default:
		replace()
	}
}

// recast changes the role of a message, unless its parts belong to one role
// only.
func (b *breaker) recast() {
	i, ok := b.at(pick(b.Rand, "text", "text", "tool_call"))
	if !ok || strings.Contains(string(b.msgs[i].Raw()), `"srvtoolu_`) ||
		strings.Contains(string(b.msgs[i].Raw()), `"thinking"`) {
		return
	}
	role := pick(b.Rand, "user", "assistant", "system", "developer", "tool", "model", "Orchestrator (-> WebSurfer)", "")
	b.change(i, "role", string(jsontext.AppendQuote(nil, role)))
}

// rejoin changes whether a message is joined to the one before it. The message
// keeps the format that it comes from, because its members are in the form of
// that format.
func (b *breaker) rejoin() {
	i, ok := b.at(b.typ())
	if !ok {
		return
	}
	m := b.msgs[i]
	var marks []string
	for _, format := range Formats {
		if _, ok := origin.Of(m, format); ok {
			marks = append(marks, format)
		}
	}
	if text, ok := m.(state.TextMessage); ok && marks == nil && strings.HasPrefix(string(text.Content()), `"`) {
		marks = Formats
	}
	if marks != nil {
		b.change(i, pick(b.Rand, marks...), pick(b.Rand, `{"joined":true}`, `{"joined":false}`, `{}`))
	}
}

func (b *breaker) nothing() {
	m := pick[state.Message](b.Rand, nil, state.TextMessage{}, state.ToolCallMessage{},
		state.ToolResultMessage{}, state.UnknownMessage{})
	b.msgs = slices.Insert(b.msgs, b.IntN(len(b.msgs)+1), m)
}

// append adds another history, whose ids are the same.
func (b *breaker) append() {
	b.msgs = append(b.msgs, Valid(b.Rand, pick(b.Rand, append(Formats, Everyone)...))...)
}
