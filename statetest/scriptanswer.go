package statetest

import (
	"context"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// answer returns the answer to the request of a number, false if there is no
// reply.
func (s *script) answer(ctx context.Context, number int, r, plain Request) (a answer, ok bool) {
	for {
		g, isNew := s.begin(number, plain)
		if isNew {
			return s.complete(g, r)
		}
		select {
		case <-g.done:
			if !g.failed {
				return g.answer, true
			}
		case <-ctx.Done():
			return answer{err: ctx.Err()}, true
		}
	}
}

// begin returns the answer that an equal request has got or is getting, with
// resumed, or else a new one.
func (s *script) begin(number int, plain Request) (g *given, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.earlier(plain); g != nil {
		return g, false
	}
	g = &given{number: number, plain: plain, done: make(chan struct{})}
	s.answers = append(s.answers, g)
	return g, true
}

// earlier returns the answer that an equal request has got or is getting, with
// resumed, or nil. The caller holds mu.
func (s *script) earlier(plain Request) *given {
	if !s.resumed {
		return nil
	}
	for _, g := range s.answers {
		if g.plain.equal(plain) {
			return g
		}
	}
	return nil
}

// complete makes a new answer. Functions of the user may end the goroutine.
func (s *script) complete(g *given, r Request) (a answer, ok bool) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		g.answer, g.failed = a, !ok || a.err != nil
		if g.failed { // an equal request may get another reply
			s.answers = slices.DeleteFunc(s.answers, func(other *given) bool { return other == g })
		}
		close(g.done)
	}()
	if a, ok = s.again(g.number, r); ok {
		return a, true
	}
	for {
		e := s.pick(r)
		if e == nil {
			return answer{}, false
		}
		if giving, ok := s.take(e); ok {
			return s.answerOf(e, giving, g.number, r), true
		}
	}
}

// next returns the reply that the request is about to get, nil if there is none
// or calls are made again.
func (s *script) next(r, plain Request) *scripted {
	s.mu.Lock()
	g := s.earlier(plain)
	var from *scripted
	if g != nil {
		from = g.answer.from
	}
	s.mu.Unlock()
	if g != nil || s.resumed && len(interrupted(r.Messages)) > 0 {
		return from
	}
	return s.pick(r)
}

// again returns the answer that made the calls with which the conversation ends,
// if they were interrupted, with new ids. Of calls that have results in part,
// the others are made again.
func (s *script) again(number int, r Request) (answer, bool) {
	if !s.resumed {
		return answer{}, false
	}
	open := map[string]madeCall{} // by the id with which the model made it
	s.mu.Lock()
	defer s.mu.Unlock()
	var by answer
	for _, at := range interrupted(r.Messages) {
		if made := s.madeAs(s.plainLocked(r), at, callAt(r.Messages, at)); len(made) > 0 {
			call := made[len(made)-1]
			open[call.ID], by = call, call.by
		}
	}
	if len(open) == 0 {
		return answer{}, false
	}
	a := by
	a.id, a.output = "resp_"+strconv.Itoa(number), nil
	calls, all := 0, 0
	for c := range callsOf(by.output) {
		all++
		if _, ok := open[c.ID]; ok {
			calls++
		}
	}
	for _, m := range by.output {
		_, isCalls := m.(state.ToolCallMessage)
		if isCalls {
			m = withCalls(m, func(c state.ToolCall) bool { _, ok := open[c.ID]; return ok })
		} else if calls < all {
			continue
		}
		if m == nil {
			continue
		}
		a.output = append(a.output, withIDs(m, func(id string) string {
			call := open[id]
			call.ID = s.freeID()
			s.made[call.ID] = call
			open[id] = call
			return call.ID
		}))
	}
	for _, call := range open {
		call.by, call.reported = a, false
		s.made[call.ID] = call
	}
	return a, true
}

// callPlace is where a call is: the number of its message, and its number there.
type callPlace struct{ message, call int }

func callAt(msgs []state.Message, at callPlace) state.ToolCall {
	return msgs[at.message].(state.ToolCallMessage).Calls()[at.call]
}

// interrupted returns the calls of the last turn of the model that have no
// result, or the error with which a takeover answers open calls, if nothing but
// results follows the turn.
func interrupted(msgs []state.Message) []callPlace {
	end := len(msgs)
	for end > 0 && isA[state.ToolResultMessage](msgs[end-1]) {
		end--
	}
	results := slices.Clone(msgs[end:])
	var open []callPlace
	for i := turnStart(msgs, end); i < end; i++ {
		calls, ok := msgs[i].(state.ToolCallMessage)
		if !ok {
			continue
		}
		for j, c := range calls.Calls() {
			k := slices.IndexFunc(results, func(m state.Message) bool {
				of := m.(state.ToolResultMessage).Call()
				return of.ID == c.ID && (c.ID != "" || of.Name == c.Name)
			})
			if k < 0 || isNoResult(results[k].(state.ToolResultMessage)) {
				open = append(open, callPlace{i, j})
			}
			if k >= 0 {
				results = slices.Delete(results, k, k+1)
			}
		}
	}
	return open
}

func isA[T state.Message](m state.Message) bool {
	_, ok := m.(T)
	return ok
}

// turnStart returns where the turn of the model begins that ends before a
// message.
func turnStart(msgs []state.Message, end int) int {
	for end > 0 && msgs[end-1].Role() == "assistant" {
		end--
	}
	return end
}

// isNoResult reports whether a result is the error with which open calls are
// answered. Gemini has it in an object.
func isNoResult(m state.ToolResultMessage) bool {
	if m.Text() == origin.NoResult {
		return true
	}
	members, err := jsontext.Members([]byte(m.Content()))
	return err == nil && members.String("error") == origin.NoResult
}

// callOrigin is where a call comes from: a reply of the script, a giving of it
// and a place in that. A call that is made again keeps it, under another id.
type callOrigin struct{ reply, giving, place int }

// plain returns a request with the origins of calls in place of their ids.
// Requests that differ in nothing else are equal.
func (s *script) plain(r Request) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.plainLocked(r)
}

func (s *script) plainLocked(r Request) Request {
	r.Messages = slices.Clone(r.Messages)
	for i, m := range r.Messages {
		r.Messages[i] = withIDs(m, func(id string) string {
			made, ok := s.made[id]
			if !ok {
				return id
			}
			o := made.origin
			return "reply " + strconv.Itoa(o.reply) + "/" + strconv.Itoa(o.giving) + "/" + strconv.Itoa(o.place)
		})
	}
	return r
}

// changedCall is a call of the model that a conversation has otherwise.
type changedCall struct {
	madeCall
	got     state.ToolCall
	message int // its number in the conversation
}

// changedCalls returns the calls that are not as the model made them, each once.
func (s *script) changedCalls(r, plain Request) []changedCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []changedCall
	for i, m := range r.Messages {
		calls, ok := m.(state.ToolCallMessage)
		if !ok {
			continue
		}
		for j, c := range calls.Calls() {
			made := s.madeAs(plain, callPlace{i, j}, c)
			if len(made) == 0 || slices.ContainsFunc(made, func(m madeCall) bool { return m.is(c) }) {
				continue
			}
			last := made[len(made)-1]
			if !last.reported {
				last.reported = true
				s.made[last.ID] = last
				changed = append(changed, changedCall{last, c, i})
			}
		}
	}
	return changed
}

// is reports whether a call is as it was made, but for its id.
func (m madeCall) is(c state.ToolCall) bool { return m.Name == c.Name && sameJSON(m.Input, c.Input) }

// madeAs returns the calls of the model that a call may be: the one with its id.
// Frameworks for Gemini drop ids. A call without one is the one of its name and
// place in the answers that the conversation before it has got. The caller holds
// mu.
func (s *script) madeAs(plain Request, at callPlace, c state.ToolCall) []madeCall {
	if c.ID != "" {
		if made, ok := s.made[c.ID]; ok {
			return []madeCall{made}
		}
		return nil
	}
	start := turnStart(plain.Messages, at.message)
	before := 0 // calls of its name in the turn that come earlier
	for i := start; i <= at.message; i++ {
		calls, ok := plain.Messages[i].(state.ToolCallMessage)
		if !ok {
			continue
		}
		for j, other := range calls.Calls() {
			if other.Name == c.Name && (i < at.message || j < at.call) {
				before++
			}
		}
	}
	var found []madeCall
	for _, g := range s.answers {
		if g.plain.Agent != plain.Agent || !sameTalk(g.plain.Messages, plain.Messages[:start]) {
			continue
		}
		n := 0
		for made := range callsOf(g.answer.output) {
			if made.Name != c.Name {
				continue
			}
			if n == before {
				found = append(found, s.made[made.ID])
			}
			n++
		}
	}
	return found
}

// sameTalk reports whether two conversations are the same, whatever their
// system prompts.
func sameTalk(a, b []state.Message) bool {
	return slices.EqualFunc(withoutPrompt(a), withoutPrompt(b), func(a, b state.Message) bool { return a.Equal(b) })
}

func withoutPrompt(msgs []state.Message) []state.Message {
	for len(msgs) > 0 && msgs[0] != nil && origin.IsSystem(msgs[0]) {
		msgs = msgs[1:]
	}
	return msgs
}
