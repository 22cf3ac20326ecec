package statemodel

import (
	"slices"

	"github.com/agentstate/state"
)

// callAnswer is the result of one call, as it is written to the history and to
// the conversation. The ids of calls are unique in a program, and the model has
// no keys of calls: they are random.
type callAnswer struct{ state.ToolResultMessage }

func callsIn(r state.InferenceResult) []state.ToolCall {
	var calls []state.ToolCall
	for _, m := range r.Output {
		if m, ok := m.(state.ToolCallMessage); ok {
			calls = append(calls, m.Calls()...)
		}
	}
	return calls
}

func answersIn(r state.InferenceResult) []state.Message {
	var msgs []state.Message
	for _, m := range r.ToolCalls {
		msgs = append(msgs, m)
	}
	return msgs
}

// numberIn returns the place of a call of this id among calls, or -1.
func numberIn(calls []state.ToolCall, id string) int {
	return slices.IndexFunc(calls, func(c state.ToolCall) bool { return c.ID == id })
}

// keyIn returns the key of the call of an id in the history of a State, or "".
func keyIn(st *state.State, id string) string {
	for _, r := range st.History().All() {
		if calls := callsIn(r); numberIn(calls, id) >= 0 {
			return calls[numberIn(calls, id)].Key
		}
	}
	return ""
}

// checkKeys checks that the calls in the history of a State have different keys,
// and that their results and the conversation have the same ones.
func (m *programRun) checkKeys(st *state.State) {
	ids, keys := map[string]string{}, map[string]string{} // by each other
	said := append(st.History().Format(nil), state.Messages.GetOr(st, nil)...)
	for _, msg := range said {
		var calls []state.ToolCall
		switch msg := msg.(type) {
		case state.ToolCallMessage:
			calls = msg.Calls()
		case state.ToolResultMessage:
			calls = []state.ToolCall{msg.Call()}
		}
		for _, c := range calls {
			id, known := ids[c.Key]
			if c.Key == "" || known && id != c.ID || keys[c.ID] != "" && keys[c.ID] != c.Key {
				m.t.Fatalf("call %q has the key %q, which is that of %q, and had %q", c.ID, c.Key, id, keys[c.ID])
			}
			ids[c.Key], keys[c.ID] = c.ID, c.Key
		}
	}
	for id, key := range keys {
		if was := m.keys[id]; was != "" && was != key {
			m.t.Fatalf("call %q has the key %q, and had %q", id, key, was)
		}
		m.keys[id] = key
	}
}

// on returns the results, or the conversation, with the answer.
func (a callAnswer) on(cur any) (any, error) {
	switch cur := cur.(type) {
	case []state.InferenceResult:
		for i, r := range cur {
			calls := callsIn(r)
			number := numberIn(calls, a.Call().ID)
			if number < 0 {
				continue
			}
			at := 0
			for ; at < len(r.ToolCalls); at++ {
				switch before := numberIn(calls, r.ToolCalls[at].Call().ID); {
				case before == number:
					return nil, state.ErrConflict
				case before > number:
					r.ToolCalls = slices.Insert(slices.Clone(r.ToolCalls), at, a.ToolResultMessage)
					return slices.Concat(cur[:i], []state.InferenceResult{r}, cur[i+1:]), nil
				}
			}
			r.ToolCalls = append(slices.Clone(r.ToolCalls), a.ToolResultMessage)
			return slices.Concat(cur[:i], []state.InferenceResult{r}, cur[i+1:]), nil
		}
	case []state.Message:
		if at, ok := a.placedIn(cur); ok {
			return slices.Insert(slices.Clone(cur), at, state.Message(a.ToolResultMessage)), nil
		}
		return cur, nil
	}
	return nil, state.ErrConflict
}

// placedIn returns where in a conversation the answer belongs. It reports false
// if the call is not there, or has an answer.
func (a callAnswer) placedIn(conversation any) (at int, ok bool) {
	msgs, _ := conversation.([]state.Message)
	for i, m := range msgs {
		m, isCall := m.(state.ToolCallMessage)
		if !isCall {
			continue
		}
		calls := m.Calls()
		number := numberIn(calls, a.Call().ID)
		if number < 0 {
			continue
		}
		for at = i + 1; at < len(msgs); at++ {
			result, isResult := msgs[at].(state.ToolResultMessage)
			before := -1
			if isResult {
				before = numberIn(calls, result.Call().ID)
			}
			if before == number {
				return 0, false
			}
			if before < 0 || before > number {
				break
			}
		}
		return at, true
	}
	return 0, false
}
