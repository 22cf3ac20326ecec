// Package callkeys helps tests with the keys of calls, which are random. Only
// tests import it.
package callkeys

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/callkey"
)

var inside = state.Inside(internal.Key{})

// Without returns messages without the keys of their calls.
func Without(msgs ...state.Message) []state.Message {
	return each(msgs, inside.WithoutKeys)
}

// Results returns results without the keys of their calls.
func Results(results ...state.InferenceResult) []state.InferenceResult {
	return each(results, func(r state.InferenceResult) state.InferenceResult {
		r.Output, r.Prompt, r.History = Without(r.Output...), Without(r.Prompt...), Without(r.History...)
		r.ToolCalls = Answers(r.ToolCalls...)
		return r
	})
}

// Answers returns results of calls without the keys of these.
func Answers(results ...state.ToolResultMessage) []state.ToolResultMessage {
	return each(results, func(m state.ToolResultMessage) state.ToolResultMessage {
		return inside.WithoutKeys(m).(state.ToolResultMessage)
	})
}

// Calls returns calls without their keys.
func Calls(calls ...state.ToolCall) []state.ToolCall {
	return each(calls, func(c state.ToolCall) state.ToolCall { c.Key = ""; return c })
}

// Changes returns changes without the keys of calls.
func Changes(changes ...state.Change) []state.Change {
	return each(changes, func(c state.Change) state.Change {
		switch v := c.Value.(type) {
		case []state.Message:
			c.Value = Without(v...)
		case []state.ToolResultMessage:
			c.Value = Answers(v...)
		case []state.InferenceResult:
			c.Value = Results(v...)
		case state.InferenceResult:
			c.Value = Results(v)[0]
		}
		return c
	})
}

func each[T any](list []T, fn func(T) T) []T {
	list = slices.Clone(list)
	for i, v := range list {
		list[i] = fn(v)
	}
	return list
}

// Ignored compares messages and calls without keys.
var Ignored = cmp.Options{
	cmp.Transformer("WithoutKeys", func(m state.Message) state.JSON {
		if m == nil {
			return ""
		}
		return inside.WithoutKeys(m).Raw()
	}),
	cmpopts.IgnoreFields(state.ToolCall{}, "Key"),
}

// Of returns the key of the last call with an id in the conversation of a State,
// or in its history.
func Of(t testing.TB, st *state.State, id string) string {
	t.Helper()
	for _, msgs := range [][]state.Message{state.Messages.GetOr(st, nil), st.History().Format(nil)} {
		for _, m := range slices.Backward(msgs) {
			calls, ok := m.(state.ToolCallMessage)
			if !ok {
				continue
			}
			for _, c := range slices.Backward(calls.Calls()) {
				if c.ID == id && c.Key != "" {
					return c.Key
				}
			}
		}
	}
	t.Fatalf("no call has the id %q and a key", id)
	return ""
}

// Masked returns a text in which keys are numbered in the order in which they
// appear in messages.
func Masked(text string) string { return new(callkey.Masks).Mask(text) }
