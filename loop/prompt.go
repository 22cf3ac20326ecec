package loop

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/excerpt"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/transcript"
)

// Prompt returns a conversation as a model may be sent it, in which each call has
// a result. It makes the calls in msgs that are left to the agent. Those that
// are suspended wait, and others fail, in the prompt alone. If the model has
// spoken since it made calls whose results are new, because they were left or have
// waited, they and their results are at the end of the prompt, so that there is
// something to answer. If a call that was left waits now, and the user has said
// nothing since it was made, the error is ErrSuspended: the turn has ended.
func (t *Turn) Prompt(ctx context.Context, msgs []state.Message) ([]state.Message, error) {
	open := transcript.Pending(msgs)
	left := slices.DeleteFunc(t.Pending(), func(c state.ToolCall) bool {
		return !t.Has(c.Name) || !removeCall(&open, c)
	})
	results, err := t.Run(ctx, left...)
	for _, r := range results {
		if err == nil {
			msgs, err = transcript.Answer(msgs, r.Message)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("loop: the calls that were left: %w", err)
	}
	said := inside.CallsOf(sinceUser(msgs)...)
	for _, c := range t.waiting() {
		if len(results) < len(left) && hasCall(left, c.ToolCall) && hasCall(said, c.ToolCall) {
			return nil, errWaiting(c)
		}
	}
	for _, c := range t.lateCalls() {
		msgs = lateLast(msgs, c)
	}
	if len(transcript.Pending(msgs)) > 0 {
		policy := transcript.Policy{AnswerCalls: true, Suspended: t.Suspended()}
		msgs, _ = transcript.Repair(msgs, adjacent, policy)
	}
	return msgs, nil
}

// Shown returns messages that a framework carries along as the model is shown them:
// in place of each large result that is recorded, what [transcript.Shown] returns for
// it. A result that the framework itself has shortened stays as it is.
func (t *Turn) Shown(msgs []state.Message) []state.Message {
	all, large := t.st.History().Format(nil), map[string]int{}
	short, shown := transcript.Shown(all, false), transcript.Shown(all, t.Has(excerpt.Recall))
	for i, m := range all {
		if r, ok := m.(state.ToolResultMessage); ok && short[i] != m {
			large[r.Call().Key] = i
		}
	}
	if len(large) == 0 {
		return msgs
	}
	made := slices.Clone(msgs)
	for i, m := range inside.WithKeys(t.st, msgs) {
		own, _ := m.(state.ToolResultMessage)
		if at, ok := large[own.Call().Key]; ok && len(own.Text()) >= len(short[at].Text()) {
			made[i], _ = origin.WithMember(msgs[i], "content", []byte(shown[at].(state.ToolResultMessage).Content()))
		}
	}
	return made
}

// adjacent are the rules of the strictest provider for the places of results: a
// framework does not move them.
var adjacent, _ = transcript.NewProfile(transcript.Rules{Name: "adjacent", AdjacentResults: true})

// lateCalls returns the calls whose results the model was not shown yet.
func (t *Turn) lateCalls() []state.ToolCall {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.late)
}

// lateLast returns a conversation that ends with a text of the model with the
// calls of a message, and their results, at the end.
func lateLast(msgs []state.Message, c state.ToolCall) []state.Message {
	if len(msgs) == 0 {
		return msgs
	}
	last, ok := msgs[len(msgs)-1].(state.TextMessage)
	if !ok || last.Role() != "assistant" {
		return msgs
	}
	for first, m := range slices.Backward(msgs) {
		if !hasCall(inside.CallsOf(m), c) {
			continue
		}
		end := first + 1
		for _, isResult := msgs[end].(state.ToolResultMessage); isResult; _, isResult = msgs[end].(state.ToolResultMessage) {
			end++
		}
		return slices.Concat(msgs[:first], msgs[end:], msgs[first:end])
	}
	return msgs
}

// lateCalls returns the latest calls whose results the user has spoken behind, of
// a conversation that ends with what the model has said: the results have come
// since then.
func lateCalls(msgs []state.Message) (late []state.ToolCall) {
	for i := len(msgs) - 1; i > 0; i-- {
		if r, ok := msgs[i-1].(state.ToolResultMessage); ok && (late != nil || msgs[i].Role() == "user") {
			late = append(late, r.Call())
		} else if late != nil {
			break
		}
	}
	return late
}
