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
	cut      bool   // the stream with it broke off
	reported bool   // that a conversation has another one
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
func (s *script) again(number int, r Request) (a answer, ok bool) {
	if s.turn == nil {
		return answer{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := map[string]bool{} // by the id with which the model made it
	for _, c := range interrupted(r.Messages) {
		if made := s.madeAs(c); len(made) > 0 {
			open[made[len(made)-1].ID] = true
		}
	}
	i := len(s.answers) - 1
	for ; i >= 0; i-- {
		if a = s.answers[i].answer; slices.ContainsFunc(callList(a.output), func(c state.ToolCall) bool { return open[c.ID] }) {
			break
		}
	}
	if i < 0 {
		return answer{}, false
	}
	a.id = "resp_" + strconv.Itoa(number)
	all := true
	a.output = withCalls(a.output, func(c state.ToolCall) (state.ToolCall, bool) {
		if all = all && open[c.ID]; !open[c.ID] {
			return c, false
		}
		made := s.made[c.ID]
		c.ID = s.freeID()
		made.ID, made.reported = c.ID, false
		s.made[c.ID] = made
		return c, true
	})
	if !all {
		a.output = slices.DeleteFunc(a.output, func(m state.Message) bool { return !isA[state.ToolCallMessage](m) })
	}
	return a, true
}

// interrupted returns the calls of the last turn of the model that have no
// result, or the error with which a takeover answers open calls, if nothing but
// results, and what is no part of the conversation, follows the turn.
func interrupted(msgs []state.Message) (open []state.ToolCall) {
	end := len(msgs)
	if end > 0 && origin.IsContext(msgs[end-1]) {
		end--
		msgs = msgs[:end]
	}
	for end > 0 && isA[state.ToolResultMessage](msgs[end-1]) {
		end--
	}
	start := end
	for start > 0 && msgs[start-1].Role() == "assistant" {
		start--
	}
	results := slices.Clone(msgs[end:])
	for _, c := range callsOf(msgs[start:end]) {
		k := slices.IndexFunc(results, func(m state.Message) bool {
			of := m.(state.ToolResultMessage).Call()
			return of.ID == c.ID && (c.ID != "" || of.Name == c.Name)
		})
		if k < 0 || isNoResult(results[k].(state.ToolResultMessage)) {
			open = append(open, c)
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
func (s *script) changedCalls(r Request) []changedCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changed []changedCall
	for at, c := range callsOf(r.Messages) {
		made := s.madeAs(c)
		if c.ID == "" && at < s.begun[r.Agent] {
			continue // it was there before the model made any
		}
		if len(made) == 0 || slices.ContainsFunc(made, func(m madeCall) bool { return m.isSame(c) }) {
			continue
		}
		if last := made[len(made)-1]; !last.reported {
			last.reported = true
			s.made[last.ID] = last
			changed = append(changed, changedCall{last, c, at})
		}
	}
	return changed
}

func (m madeCall) isSame(c state.ToolCall) bool {
	return m.Name == c.Name && sameJSON(m.Input, c.Input)
}

// madeAs returns the calls of the model that a call may be: the one with its id.
// Frameworks for Gemini drop ids. A call without one may be each of its name,
// and is the last one with its input, if there is one. The caller holds mu.
func (s *script) madeAs(c state.ToolCall) (found []madeCall) {
	if c.ID != "" {
		if made, ok := s.made[c.ID]; ok {
			return []madeCall{made}
		}
		return nil
	}
	for _, same := range []bool{false, true} {
		for _, g := range s.answers {
			for _, made := range callsOf(g.answer.output) {
				if m := s.made[made.ID]; m.Name == c.Name && m.isSame(c) == same {
					found = append(found, m)
				}
			}
		}
	}
	return found
}
