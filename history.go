package state

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/value"
)

const (
	messagesName = "messages"
	historyName  = "history" // in errors; it is no field
)

// Messages is the conversation, a field that every schema has: a list that
// appends and that everybody may use, unless the schema declares it otherwise.
// The user's turn is added with Messages.Set, an agent's with [History.Append].
var Messages = &Field[[]Message]{
	Name:        messagesName,
	Description: "The conversation.",
	Read:        Public,
	Write:       Public,
}

// InferenceResult is one call of a model by an agent, with what came of it.
type InferenceResult struct {
	ID        string              `json:"id,omitempty"`
	Agent     string              `json:"agent"`
	Input     string              `json:"input"`
	Prompt    []Message           `json:"prompt"`     // the agent's own instructions
	History   []Message           `json:"history"`    // the conversation that was sent along
	Output    []Message           `json:"output"`     // what the model answered
	ToolCalls []ToolResultMessage `json:"tool_calls"` // the results of the calls in Output
	Raw       string              `json:"raw"`        // the provider's response, byte for byte
	CreatedAt time.Time           `json:"created_at"`
}

// History is the stack of the inference results of a [State]. Whoever may not
// read [Messages] sees only the results he appended himself. All methods are
// safe for concurrent use.
//
// A message is held once, however many results refer to it.
type History struct{ state *State }

// Append pushes a copy of r, and in the same version appends its Output and then
// its ToolCalls to Messages, so that stack and conversation agree; an agent that
// may not write Messages pushes the result only. On a bound handle an empty
// Agent becomes the handle's, and another name is [ErrDenied]. An empty
// CreatedAt becomes the present time.
func (hs *History) Append(r InferenceResult) error {
	h := hs.state.on()
	if reentered() {
		return errReentered
	}
	if err := h.branch.alive(); err != nil {
		return err
	}
	if h.rights != nil {
		if !h.member() || r.Agent != "" && r.Agent != h.agent {
			if r.Agent != "" && r.Agent != h.agent {
				return h.denied(fmt.Sprintf("append a result of %q to", fault.Clip(r.Agent)), historyName)
			}
			return h.denied(string(OpAppend), historyName)
		}
		r.Agent = h.agent
	}
	if r.CreatedAt.IsZero() {
		r.CreatedAt = time.Now()
	}
	r.CreatedAt = r.CreatedAt.UTC().Round(0)
	if err := r.check(h.schema.limits); err != nil {
		return err
	}
	push := op{kind: OpAppend, spec: historySpec, handler: pushing, value: r, size: r.size(), borrowed: true, by: h.signature}
	push.class = int16(h.schema.resultClass(r.Agent) + 1)
	turn, err := h.turn(&r)
	if err != nil {
		return err
	}
	user := turn != nil && turn.runsUserCode()
	return h.transact(user, func(t *tree) ([]edit, error) {
		cur := t.slot(historySlot)
		pushed, err := push.step(cur, value.Limits{})
		if err != nil {
			return nil, err
		}
		edits := []edit{{spec: historySpec, from: cur, to: &pushed, ops: []op{push}}}
		if turn == nil {
			return edits, nil
		}
		cur = t.slot(messagesSlot)
		said, err := turn.step(cur, h.schema.limits.value())
		if err == nil {
			err = turn.spec.check(said)
		}
		if err != nil {
			return nil, err
		}
		return append(edits, edit{spec: turn.spec, from: cur, to: &said, ops: []op{*turn}}), nil
	})
}

// turn returns the op that adds what a result says to the conversation, or nil
// if there is none.
func (h *handle) turn(r *InferenceResult) (*op, error) {
	if len(r.Output)+len(r.ToolCalls) == 0 || !h.mayWrite(messagesSlot) {
		return nil, nil
	}
	sp := h.schema.specs[messagesSlot]
	o := op{kind: OpSet, spec: sp, handler: sp.handler, by: h.signature}
	if o.handler.overwrites() {
		o.handler = appending
	}
	said := make([]Message, 0, len(r.Output)+len(r.ToolCalls))
	said = append(said, r.Output...)
	for _, m := range r.ToolCalls {
		said = append(said, m)
	}
	v, size, err := sp.take(said, h.schema.limits.value(), true)
	if err != nil {
		return nil, err
	}
	o.value, o.size = sp.hide(v), size
	return &o, nil
}

// Len returns how many results there are.
func (hs *History) Len() int {
	h := hs.state.on()
	return h.results().count(h)
}

// All yields the results with their places, oldest first, as they are at one
// moment.
func (hs *History) All() iter.Seq2[int, InferenceResult] {
	return func(yield func(int, InferenceResult) bool) {
		h := hs.state.on()
		st := h.results()
		n := 0
		for r := range st.seen(h) {
			if !yield(n, st.result(r)) {
				return
			}
			n++
		}
	}
}

// By yields the results of one agent, oldest first.
func (hs *History) By(agent string) iter.Seq[InferenceResult] {
	return func(yield func(InferenceResult) bool) {
		h := hs.state.on()
		st := h.results()
		for r := range st.seen(h) {
			if r.agent == agent && !yield(st.result(r)) {
				return
			}
		}
	}
}

// Results returns a copy of the stack, oldest first.
func (hs *History) Results() []InferenceResult { return hs.From(0) }

// Since returns the results from place i on; a negative i counts from the end.
func (hs *History) From(i int) []InferenceResult {
	h := hs.state.on()
	st := h.results()
	if i < 0 {
		i = max(0, st.count(h)+i)
	}
	results := []InferenceResult{}
	n := 0
	for r := range st.seen(h) {
		if n >= i {
			results = append(results, st.result(r))
		}
		n++
	}
	return results
}

// At returns the result at place i, if there is one.
func (hs *History) At(i int) (InferenceResult, bool) {
	h := hs.state.on()
	st := h.results()
	if i < 0 {
		return InferenceResult{}, false
	}
	if h.mayRead(messagesSlot) {
		if i >= st.results.Len() {
			return InferenceResult{}, false
		}
		return st.result(st.at(i)), true
	}
	for r := range st.seen(h) {
		if i == 0 {
			return st.result(r), true
		}
		i--
	}
	return InferenceResult{}, false
}

// Last returns the latest result, if there is one.
func (hs *History) Last() (InferenceResult, bool) {
	h := hs.state.on()
	st := h.results()
	for i := st.results.Len() - 1; i >= 0; i-- {
		if r := st.at(i); h.seesResult(r) {
			return st.result(r), true
		}
	}
	return InferenceResult{}, false
}

// Pop removes the latest result and returns it. Messages stay as they are. It
// needs the right to write Messages.
func (hs *History) Pop() (InferenceResult, bool, error) {
	h := hs.state.on()
	if !h.mayWrite(messagesSlot) {
		return InferenceResult{}, false, h.denied(string(OpPop), historyName)
	}
	if reentered() {
		return InferenceResult{}, false, errReentered
	}
	var popped InferenceResult
	found := false
	err := h.transact(true, func(t *tree) ([]edit, error) {
		h.branch.load(historySlot) // what is popped depends on what is there
		cur := t.slot(historySlot)
		st := stackOf(cur)
		if found = st.results.Len() > 0; !found {
			return nil, nil
		}
		last := st.at(st.results.Len() - 1)
		popped = st.result(last)
		rest := st.without()
		o := op{kind: OpPop, spec: historySpec, value: resultRef{st, last}, class: messagesClass(h.schema), computed: true, by: h.signature}
		return []edit{{spec: historySpec, from: cur, to: &result{rest, 0}, ops: []op{o}, effect: effect{over: true, computed: true}}}, nil
	})
	return popped, found && err == nil, err
}

// Reset replaces the stack by copies of results. Messages stay as they are. It
// needs the right to write Messages; results that bear another agent's name must
// then be on the stack already, unless it is the host who resets it.
func (hs *History) Reset(results []InferenceResult) error {
	h := hs.state.on()
	if reentered() {
		return errReentered
	}
	if !h.mayWrite(messagesSlot) {
		return h.denied(string(OpReset), historyName)
	}
	var known map[string][]InferenceResult
	if h.rights != nil {
		known = map[string][]InferenceResult{}
		for _, r := range hs.All() {
			known[r.Agent+"\x00"+r.ID] = append(known[r.Agent+"\x00"+r.ID], r)
		}
	}
	st := newStack()
	for i := range results {
		r := results[i]
		if h.rights != nil && r.Agent != h.agent && !slices.ContainsFunc(known[r.Agent+"\x00"+r.ID], r.equal) {
			return h.denied(fmt.Sprintf("reset to a result of %q in", fault.Clip(r.Agent)), historyName)
		}
		r.CreatedAt = r.CreatedAt.UTC().Round(0)
		if err := r.check(h.schema.limits); err != nil {
			return within(fmt.Sprintf("results[%d]", i), err)
		}
		st = st.push(&r)
	}
	return h.transact(false, func(t *tree) ([]edit, error) {
		cur := t.slot(historySlot)
		o := op{kind: OpReset, spec: historySpec, value: st, class: messagesClass(h.schema), by: h.signature}
		return []edit{{spec: historySpec, from: cur, to: &result{st, 0}, ops: []op{o}, effect: effect{over: true}}}, nil
	})
}

// Format returns what fn makes of each result, one after the other, as the
// conversation for a prompt. A nil fn stands for Output and then ToolCalls.
func (hs *History) Format(fn func(InferenceResult) []Message) []Message {
	if fn == nil {
		fn = func(r InferenceResult) []Message {
			for _, m := range r.ToolCalls {
				r.Output = append(r.Output, m)
			}
			return r.Output
		}
	}
	msgs := []Message{}
	for _, r := range hs.All() {
		msgs = append(msgs, fn(r)...)
	}
	return msgs
}

// MarshalJSON encodes the result; absent messages are empty lists.
func (r InferenceResult) MarshalJSON() ([]byte, error) {
	type plain InferenceResult
	r.Prompt, r.History = append([]Message{}, r.Prompt...), append([]Message{}, r.History...)
	r.Output, r.ToolCalls = append([]Message{}, r.Output...), append([]ToolResultMessage{}, r.ToolCalls...)
	return json.Marshal(plain(r))
}

// UnmarshalJSON decodes a result as MarshalJSON has written it.
func (r *InferenceResult) UnmarshalJSON(data []byte) error {
	type plain InferenceResult
	var in struct {
		*plain
		Prompt    json.RawMessage `json:"prompt"`
		History   json.RawMessage `json:"history"`
		Output    json.RawMessage `json:"output"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	out := plain{}
	in.plain = &out
	if err := json.Unmarshal(data, &in); err != nil {
		return within("result", err)
	}
	var called []Message
	for _, part := range []struct {
		name string
		data json.RawMessage
		dst  *[]Message
	}{{"prompt", in.Prompt, &out.Prompt}, {"history", in.History, &out.History}, {"output", in.Output, &out.Output}, {"tool_calls", in.ToolCalls, &called}} {
		if part.data == nil {
			continue
		}
		msgs, err := DecodeMessages(part.data)
		if err != nil {
			return within("result: "+part.name, err)
		}
		*part.dst = msgs
	}
	for i, m := range called {
		called, ok := m.(ToolResultMessage)
		if !ok {
			return fmt.Errorf("state: result: tool_calls[%d]: %s is no tool result", i, m.Type())
		}
		out.ToolCalls = append(out.ToolCalls, called)
	}
	*r = InferenceResult(out)
	return nil
}

// check returns what is wrong with a result.
func (r *InferenceResult) check(lim Limits) error {
	for _, text := range []struct{ name, text string }{{"id", r.ID}, {"agent", r.Agent}, {"input", r.Input}} {
		if !utf8.ValidString(text.text) {
			return &TypeError{Field: historyName, Path: "$." + text.name, Want: "valid UTF-8", Got: "other bytes"}
		}
	}
	if size := r.size(); lim.ValueBytes > 0 && size > lim.ValueBytes {
		return &LimitError{Name: "ValueBytes", Field: historyName, Limit: lim.ValueBytes, Got: size}
	}
	for _, part := range []struct {
		name string
		msgs []Message
	}{{"prompt", r.Prompt}, {"history", r.History}, {"output", r.Output}} {
		for i, m := range part.msgs {
			if !isMessage(m) {
				return &TypeError{Field: historyName, Path: fmt.Sprintf("$.%s[%d]", part.name, i), Want: "a message", Got: fmt.Sprintf("%T", m)}
			}
		}
	}
	for i, m := range r.ToolCalls {
		if m.messageBody == nil {
			return &TypeError{Field: historyName, Path: fmt.Sprintf("$.tool_calls[%d]", i), Want: "a message", Got: "the zero message"}
		}
	}
	if y := r.CreatedAt.Year(); y < 0 || y > 9999 {
		return &TypeError{Field: historyName, Path: "$.created_at", Want: "a year from 0 to 9999", Got: strconv.Itoa(y)}
	}
	return nil
}

// size is what a result counts for beside its messages, which are held once.
func (r *InferenceResult) size() int {
	n := len(r.ID) + len(r.Agent) + len(r.Input) + len(r.Raw)
	for _, m := range r.Output {
		n += m.size()
	}
	for _, m := range r.ToolCalls {
		n += m.size()
	}
	return n
}
