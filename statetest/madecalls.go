package statetest

import (
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// madeCall is a call that the model has made.
type madeCall struct {
	state.ToolCall
	origin   string // the reply, a giving of it and a place in that: kept if the call is made again
	by       answer
	cut      bool // the stream with it broke off
	reported bool // that a conversation has another one
}

// noteCalls notes by which answer its calls were made. The caller holds mu.
func (s *script) noteCalls(a answer) {
	for _, c := range callsOf(a.output) {
		made := s.made[c.ID]
		made.by = a
		s.made[c.ID] = made
	}
}

// promptOf returns the number of messages of the system prompt.
func promptOf(msgs []state.Message) int {
	i := slices.IndexFunc(msgs, func(m state.Message) bool { return m == nil || !origin.IsSystem(m) })
	if i < 0 {
		return len(msgs)
	}
	return i
}

// again returns the answer that made the calls with which the conversation ends,
// if they were interrupted, with new ids. Of calls that have results in part,
// the others are made again.
func (s *script) again(g given, r Request) (a answer, ok bool) {
	if s.turn == nil {
		return answer{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[string]madeCall{} // by the id with which the model made it
	for _, at := range interrupted(r.Messages) {
		call := r.Messages[at.message].(state.ToolCallMessage).Calls()[at.call]
		if made := s.madeAs(g.plain, at, call); len(made) > 0 {
			last := made[len(made)-1]
			open[last.ID], a = last, last.by
		}
	}
	if len(open) == 0 {
		return answer{}, false
	}
	a.id = "resp_" + strconv.Itoa(g.number)
	all := true
	a.output = withCalls(a.output, func(c state.ToolCall) (state.ToolCall, bool) {
		made, ok := open[c.ID]
		if all = all && ok; !ok {
			return c, false
		}
		c.ID = s.freeID()
		made.ID, made.reported = c.ID, false
		s.made[c.ID] = made
		return c, true
	})
	if !all {
		a.output = slices.DeleteFunc(a.output, func(m state.Message) bool { return !isA[state.ToolCallMessage](m) })
	}
	s.noteCalls(a)
	return a, true
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
	start := turnStart(msgs, end)
	var open []callPlace
	for at, c := range callsOf(msgs[start:end]) {
		k := slices.IndexFunc(results, func(m state.Message) bool {
			of := m.(state.ToolResultMessage).Call()
			return of.ID == c.ID && (c.ID != "" || of.Name == c.Name)
		})
		if k < 0 || isNoResult(results[k].(state.ToolResultMessage)) {
			open = append(open, callPlace{start + at.message, at.call})
		}
		if k >= 0 {
			results = slices.Delete(results, k, k+1)
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

// changedCall is a call of the model that a conversation has otherwise.
type changedCall struct {
	madeCall
	got     state.ToolCall
	message int // its number in the conversation
}

// changedCalls returns the calls that are not as the model made them, each once.
func (s *script) changedCalls(plain plainRequest) []changedCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []changedCall
	for at, c := range callsOf(plain.Messages) {
		made := s.madeAs(plain, at, c)
		if len(made) == 0 || slices.ContainsFunc(made, func(m madeCall) bool { return m.Name == c.Name && sameJSON(m.Input, c.Input) }) {
			continue
		}
		if last := made[len(made)-1]; !last.reported {
			last.reported = true
			s.made[last.ID] = last
			changed = append(changed, changedCall{last, c, at.message})
		}
	}
	return changed
}

// madeAs returns the calls of the model that a call may be: the one with its id.
// Frameworks for Gemini drop ids. A call without one is the one of its name and
// place in the answers that the conversation before it has got. The caller holds
// mu.
func (s *script) madeAs(plain plainRequest, at callPlace, c state.ToolCall) (found []madeCall) {
	if c.ID != "" {
		if made, ok := s.made[c.ID]; ok {
			return []madeCall{made}
		}
		return nil
	}
	start := turnStart(plain.Messages, at.message)
	before := 0 // calls of its name in the turn that come earlier
	for place, other := range callsOf(plain.Messages[start : at.message+1]) {
		if other.Name == c.Name && (start+place.message < at.message || place.call < at.call) {
			before++
		}
	}
	for _, g := range s.answers {
		if g.plain.Agent != plain.Agent || !slices.Equal(g.plain.texts[g.plain.prompt:], plain.texts[min(plain.prompt, start):start]) {
			continue
		}
		n := before
		for _, made := range callsOf(g.answer.output) {
			if made.Name == c.Name {
				if n == 0 {
					found = append(found, s.made[made.ID])
				}
				n--
			}
		}
	}
	return found
}
