package state

import (
	"fmt"
	"slices"
	"sync"

	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
)

// callPlace is a call and the message of an output that it is in.
type callPlace struct {
	*ToolCall
	message int
}

// callsIn returns the calls of an output.
func callsIn(output []Message) []callPlace {
	var calls []callPlace
	for i, m := range output {
		if m, ok := m.(ToolCallMessage); ok {
			list := m.toolCalls()
			for n := range list {
				calls = append(calls, callPlace{&list[n], i})
			}
		}
	}
	return calls
}

func isToolCall(m Message) bool {
	_, ok := m.(ToolCallMessage)
	return ok
}

// callMatcher finds the calls that results answer, each of which has at most
// one answer.
//
// A result that has the key of a call answers that call alone. One without a key
// knows the call by its id, or by its name if the provider gives no ids: it
// answers the first such call, of those with one id preferably one of the same
// name.
type callMatcher struct {
	calls   []callPlace
	taken   []bool // by call: it has an answer
	numbers []int  // of the calls that results answer, by the place of the result, or -1

	keys   map[string]int       // the calls by their keys
	labels map[string]*likeness // the calls that a result without a key may answer, by labelOf
}

// likeness is the calls with one id, or with one name if they have no ids.
type likeness struct {
	calls []int
	first int // the calls in front of it are taken
}

// newMatcher returns a matcher for calls that all are open.
func newMatcher(calls []callPlace) *callMatcher {
	m := &callMatcher{
		calls: calls, taken: make([]bool, len(calls)), keys: make(map[string]int, len(calls)),
		labels: make(map[string]*likeness, len(calls)),
	}
	for i, c := range calls {
		if c.Key != "" {
			m.keys[c.Key] = i
		}
		label := labelOf(*c.ToolCall)
		if m.labels[label] == nil {
			m.labels[label] = &likeness{}
		}
		m.labels[label].calls = append(m.labels[label].calls, i)
	}
	return m
}

// labelOf returns the id of a call, or its name if it has none, as a text.
func labelOf(c ToolCall) string {
	if c.ID == "" {
		return "name " + c.Name
	}
	return "id " + c.ID
}

// match returns the first open call that a result with this call may answer. It
// is -1 if there is none; known says whether one that is taken is such a call.
func (m *callMatcher) match(call ToolCall) (number int, known bool) {
	if i, ok := m.keys[call.Key]; ok && call.Key != "" {
		if m.taken[i] {
			return -1, true
		}
		return i, true
	}
	like := m.labels[labelOf(call)]
	if like == nil {
		return -1, false
	}
	for like.first < len(like.calls) && m.taken[like.calls[like.first]] {
		like.first++
	}
	from := like.first
	if call.Key != "" { // of a call that is not here: only those without keys are like it
		from = 0
	}
	number, known = -1, from > 0
	for _, i := range like.calls[from:] {
		c := m.calls[i]
		if call.Key != "" && c.Key != "" {
			continue // another call
		}
		known = true
		switch {
		case m.taken[i]:
		case c.Name == call.Name:
			return i, true
		case number < 0:
			number = i
		}
	}
	return number, known
}

// checkName returns an error if the call that a new answer would be matched with
// has another name than the answer says. Recorded results may have any name.
func (m *callMatcher) checkName(number int, answered ToolCall) error {
	if number < 0 || answered.Name == "" || m.calls[number].Name == answered.Name {
		return nil
	}
	by := "id"
	if answered.Key != "" && answered.Key == m.calls[number].Key {
		by = "key"
	} else if slices.ContainsFunc(m.calls, func(c callPlace) bool { return c.ID == answered.ID && c.Name == answered.Name }) {
		return ErrAnswered
	}
	return fmt.Errorf("%w: the call with this %s is of %s", ErrUnknownCall, by, fault.Quote(m.calls[number].Name))
}

// take takes the call that a message answers and returns its number, or -1 if
// it answers none.
func (m *callMatcher) take(msg Message) int {
	r, ok := msg.(ToolResultMessage)
	if !ok {
		return -1
	}
	call := r.Call()
	number, _ := m.match(call)
	if number < 0 && call.ID == "" && call.Key == "" { // Gemini takes it without the id of its call
		for i, c := range m.calls {
			if number < 0 && !m.taken[i] && c.Name == call.Name {
				number = i
			}
		}
	}
	if number >= 0 {
		m.taken[number] = true
	}
	return number
}

// complete gives each call in the output of a result that has no key a new one, and
// the results of these calls the keys of their calls and their sizes.
func (h *handle) complete(r *InferenceResult) {
	r.mapKeys(func(c ToolCall) string {
		if c.Key == "" {
			return callkey.New()
		}
		return c.Key
	})
	if len(r.ToolCalls) == 0 {
		return
	}
	r.ToolCalls = slices.Clone(r.ToolCalls)
	m := newMatcher(callsIn(r.Output))
	for i, result := range r.ToolCalls {
		r.ToolCalls[i] = h.sized(result).(ToolResultMessage)
		if number := m.take(result); number >= 0 {
			r.ToolCalls[i] = resultOf(r.ToolCalls[i], *m.calls[number].ToolCall)
		}
	}
}

// distinguish changes the keys of calls in the output of a result that the
// conversation has, and marks those of calls whose ids it has. An agent that may
// not read the conversation must not learn from its keys what is there: its ids
// are compared with those of its results.
func (r *InferenceResult) distinguish(conversation *persist.List, known *knownCalls, st *resultStack) {
	own := callsIn(r.Output)
	if len(own) == 0 {
		return
	}
	_, isHidden := st.classes[r.Agent]
	ids, keys := known.among(own, conversation)
	if isHidden {
		clear(ids)
	}
	if results := st.own.Get(r.Agent); isHidden && results != nil {
		for _, place := range results.places.All() {
			for _, c := range callsIn(st.messages(st.at(int(place)).output)) {
				ids[c.ID] = true
			}
		}
	}
	renamed := map[string]string{} // keys by those before
	r.mapKeys(func(c ToolCall) string {
		key := c.Key
		if keys[key] {
			key = callkey.New()
		}
		if c.ID != "" && ids[c.ID] {
			key = callkey.Repeat(key)
		}
		ids[c.ID], keys[key] = true, true
		renamed[c.Key] = key
		return key
	})
	r.ToolCalls = slices.Clone(r.ToolCalls)
	for i, result := range r.ToolCalls {
		if key, ok := renamed[result.Call().Key]; ok {
			r.ToolCalls[i] = keyedResult(result, key)
		}
	}
}

// knownCalls remembers the ids and the keys of the calls of some conversations, so
// that a call is compared with those before without a look at each. What has left a
// conversation, or was edited, may still be there: its id counts as one that repeats.
type knownCalls struct {
	mu   sync.Mutex
	some []*conversationCalls // the newest first
}

// maxKnownCalls is how many conversations are remembered: those of some branches.
const maxKnownCalls = 4

// conversationCalls are the calls of a conversation.
type conversationCalls struct {
	of        *persist.List
	ids, keys map[string]bool
}

// begins returns how many of its first messages a conversation has from the one whose
// calls are known, or false if it does not begin with all of those that are left of it.
func (c *conversationCalls) begins(conversation *persist.List) (n int, ok bool) {
	from, n := conversation.Follows(c.of)
	left := c.of.Len() - from
	if n == 0 || left > conversation.Len() {
		return 0, false
	}
	for ; n < left; n++ { // a branch has copied the last chunk
		if persist.At[Message](conversation, n) != persist.At[Message](c.of, from+n) {
			return 0, false
		}
	}
	return left, true
}

// among returns which ids and keys of calls a conversation has.
func (k *knownCalls) among(calls []callPlace, conversation *persist.List) (ids, keys map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.of(conversation)
	ids, keys = map[string]bool{}, map[string]bool{}
	for _, c := range calls {
		if known.ids[c.ID] {
			ids[c.ID] = true
		}
		if known.keys[c.Key] {
			keys[c.Key] = true
		}
	}
	return ids, keys
}

// of returns the calls of a conversation. The caller holds mu.
func (k *knownCalls) of(conversation *persist.List) *conversationCalls {
	known := 0
	i := slices.IndexFunc(k.some, func(c *conversationCalls) (ok bool) {
		known, ok = c.begins(conversation)
		return ok
	})
	if i < 0 {
		k.some = slices.Insert(k.some, 0, &conversationCalls{ids: map[string]bool{}, keys: map[string]bool{}})
		k.some, i = k.some[:min(len(k.some), maxKnownCalls)], 0
	}
	c := k.some[i]
	for at := known; at < conversation.Len(); at++ {
		if m, ok := persist.At[Message](conversation, at).(ToolCallMessage); ok {
			for _, call := range m.toolCalls() {
				c.ids[call.ID], c.keys[call.Key] = true, true
			}
		}
	}
	c.of = conversation
	return c
}

// mapKeys sets the key of each call in the output of a result to what keyOf
// returns. It does not change the array of the output.
func (r *InferenceResult) mapKeys(keyOf func(c ToolCall) string) {
	copied := false
	for i, m := range r.Output {
		m, ok := m.(ToolCallMessage)
		if !ok || len(m.toolCalls()) == 0 {
			continue
		}
		calls, changed := m.Calls(), false
		for n, c := range calls {
			calls[n].Key = keyOf(c)
			changed = changed || calls[n].Key != c.Key
		}
		if !changed {
			continue
		}
		if !copied {
			r.Output, copied = slices.Clone(r.Output), true
		}
		r.Output[i] = keyedCalls(m, calls)
	}
}

// keyedMessages are the messages whose calls have got keys, by their JSON without.
type keyedMessages map[JSON][]Message

// note notes the messages of a result that have changed.
func (k keyedMessages) note(r, keyed *InferenceResult) {
	for i, m := range r.Output {
		if m != keyed.Output[i] {
			k[m.Raw()] = append(k[m.Raw()], keyed.Output[i])
		}
	}
	for i, m := range r.ToolCalls {
		if m != keyed.ToolCalls[i] {
			k[m.Raw()] = append(k[m.Raw()], keyed.ToolCalls[i])
		}
	}
}

// replace returns a conversation in which the messages of results have the keys
// that they have there.
func (k keyedMessages) replace(msgs []Message) []Message {
	if len(k) == 0 {
		return msgs
	}
	msgs = slices.Clone(msgs)
	for i, m := range msgs {
		if !isMessage(m) {
			continue // it is refused
		}
		if list := k[m.Raw()]; len(list) > 0 {
			msgs[i], k[m.Raw()] = list[0], list[1:]
		}
	}
	return msgs
}

// withoutKeys returns a message without the keys of its calls.
func withoutKeys(m Message) Message {
	switch m := m.(type) {
	case ToolCallMessage:
		calls := m.Calls()
		if !slices.ContainsFunc(calls, func(c ToolCall) bool { return c.Key != "" }) {
			return m
		}
		for i := range calls {
			calls[i].Key = ""
		}
		return keyedCalls(m, calls)
	case ToolResultMessage:
		if m.Call().Key == "" {
			return m
		}
		return callOf(m, "")
	}
	return m
}

// keyedCalls returns a message with the keys of calls, which are its own
// otherwise.
func keyedCalls(m ToolCallMessage, calls []ToolCall) ToolCallMessage {
	members, _ := jsontext.Members([]byte(m.raw)) // checked when the message was made
	texts, _ := jsontext.Elements(members.Get("tools"))
	for i := range texts {
		texts[i] = keyedText(texts[i], calls[i].Key)
	}
	body, _ := newBody(members.With("tools", jsontext.Array(texts)).JSON())
	return ToolCallMessage{body}
}

// resultOf returns a message as the result of a call: with its key, and with its id
// and name if the message knows it by its key.
func resultOf(m ToolResultMessage, c ToolCall) ToolResultMessage {
	if named := m.Call(); named.Key == "" || named.Key != c.Key || named.ID == c.ID && named.Name == c.Name {
		return keyedResult(m, c.Key)
	}
	members, _ := jsontext.Members([]byte(m.raw)) // checked when the message was made
	tool, _ := jsontext.Members(members.Get("tool"))
	tool = tool.With("id", jsontext.AppendQuote(nil, c.ID)).With("name", jsontext.AppendQuote(nil, c.Name))
	body, _ := newBody(members.With("tool", keyedText(tool.JSON(), c.Key)).JSON())
	return ToolResultMessage{body}
}

// keyedResult returns a result whose call has a key.
func keyedResult(m ToolResultMessage, key string) ToolResultMessage {
	if m.Call().Key == key || key == "" {
		return m
	}
	return callOf(m, key)
}

// callOf returns a result with the key of its call, or without one.
func callOf(m ToolResultMessage, key string) ToolResultMessage {
	members, _ := jsontext.Members([]byte(m.raw)) // checked when the message was made
	body, _ := newBody(members.With("tool", keyedText(members.Get("tool"), key)).JSON())
	return ToolResultMessage{body}
}

// keyedText returns the JSON of a call with a key at its end.
func keyedText(call []byte, key string) []byte {
	members, _ := jsontext.Members(call)
	text := members.Without("key").AppendJSON(make([]byte, 0, len(call)+len(key)+len(`,"key":""`)))
	return append(appendKey(text[:len(text)-1], key), '}')
}

// appendKey appends the key to the members of a call.
func appendKey(b []byte, key string) []byte {
	if key == "" {
		return b
	}
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, `"key":"`...)
	b = append(b, key...)
	return append(b, '"')
}

// withWireIDs returns a message whose calls have the ids by which requests name
// them, where their own are missing or repeat.
func withWireIDs(m Message) Message {
	switch m := m.(type) {
	case ToolCallMessage:
		calls, changed := m.Calls(), false
		for i, c := range calls {
			calls[i].ID = callkey.IDOf(c.ID, c.Key)
			changed = changed || calls[i].ID != c.ID
		}
		if changed {
			members, _ := jsontext.Members([]byte(m.raw)) // checked when the message was made
			texts, _ := jsontext.Elements(members.Get("tools"))
			for i := range texts {
				texts[i] = identifiedText(texts[i], calls[i])
			}
			body, _ := newBody(members.With("tools", jsontext.Array(texts)).JSON())
			return ToolCallMessage{body}
		}
	case ToolResultMessage:
		c := m.Call()
		if id := callkey.IDOf(c.ID, c.Key); id != c.ID {
			c.ID = id
			members, _ := jsontext.Members([]byte(m.raw))
			body, _ := newBody(members.With("tool", identifiedText(members.Get("tool"), c)).JSON())
			return ToolResultMessage{body}
		}
	}
	return m
}

// identifiedText returns the JSON of a call with the id of another.
func identifiedText(text []byte, c ToolCall) []byte {
	members, _ := jsontext.Members(text)
	return members.WithString("id", c.ID).JSON()
}
