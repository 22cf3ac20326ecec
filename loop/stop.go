package loop

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
)

// ErrStopped is returned by [Loop.Run] and [Turn.Next] if an answer has ended
// before the model had said all: it was too long, or refused, or filtered. Run also
// returns it if a model is not asked again: see MaxRepeats and Budget. The
// error is a [*StopError]. What was said is in the conversation.
var ErrStopped = errors.New("loop: the answer was not finished")

// StopError says how an answer of an agent has ended that is not a good one.
//
// It matches ErrStopped, unless the answer is not recorded: one without calls whose
// Stop is [state.StopFailed], or that says nothing. Then the model is asked again as
// after an error that may pass, and it is the error when that has not helped.
type StopError struct {
	Agent string
	Stop  state.Stop
	Word  string // the provider's own, or the limit of a Budget, or ""
	// Reply is the last text that the model has said in the run, or "".
	Reply string

	dropped bool // the answer is not recorded
}

// Error returns how the answer has ended, without what was said.
func (e *StopError) Error() string {
	how := string(e.Stop)
	if e.dropped && e.Reply == "" {
		how += ", with nothing said"
	}
	if e.Word != "" {
		how += " (" + fault.Quote(e.Word) + ")"
	}
	return fmt.Sprintf("loop: the answer of the agent %s has ended before its end: %s", fault.Quote(e.Agent), how)
}

// Unwrap returns ErrStopped, unless the answer is not recorded.
func (e *StopError) Unwrap() []error {
	if e.dropped {
		return nil
	}
	return []error{ErrStopped, &runctx.Unfinished{Said: e.Reply}}
}

// ending is what comes after an answer.
type ending struct {
	more bool       // the model is to be asked again, when its calls are made
	err  *StopError // how the answer has ended, if it ends the run and is not a good one
	cut  bool       // its calls are not to be made
}

// endingOf returns what comes after an answer that is about to be recorded. The
// error is a StopError of an answer that is not to be recorded.
func (t *Turn) endingOf(r state.InferenceResult) (ending, error) {
	calls := len(inside.CallsOf(r.Output...)) > 0
	stop := r.Stop
	if !calls && saysNothing(r.Output) &&
		(stop == "" || (stop == state.StopEnd || stop == state.StopCalls) && !t.hasSaidBefore(r)) {
		stop = state.StopFailed
	}
	bad := &StopError{Agent: t.st.Agent(), Stop: stop, Word: r.StopWord, Reply: textOf(r.Output...)}
	switch stop {
	case "", state.StopEnd, state.StopCalls:
		return ending{more: calls}, nil
	case state.StopPaused:
		return ending{more: true}, nil
	case state.StopLength, state.StopFailed:
		if calls && !t.wasCut() {
			return ending{more: true, cut: true}, nil
		}
		if bad.dropped = !calls && stop == state.StopFailed; bad.dropped {
			return ending{}, bad
		}
	}
	return ending{err: bad, cut: calls}, nil
}

// hasSaidBefore reports whether an answer follows the results of calls, or what the
// model has said before it was paused.
func (t *Turn) hasSaidBefore(r state.InferenceResult) bool {
	if last, ok := t.lastAnswer(); ok && last.Stop == state.StopPaused {
		return true
	}
	msgs := r.History
	if len(msgs) == 0 {
		msgs = state.Messages.GetOr(t.base, nil)
	}
	n := len(msgs)
	if n > 0 && origin.IsContext(msgs[n-1]) {
		n--
	}
	return n > 0 && msgs[n-1].Type() == "tool_result"
}

// wasCut reports whether the last answer of the agent was cut in its calls, and the
// user has said nothing since.
func (t *Turn) wasCut() bool {
	last, ok := t.lastAnswer()
	calls := inside.CallsOf(last.Output...)
	if !ok || len(calls) == 0 || last.Stop != state.StopLength && last.Stop != state.StopFailed {
		return false
	}
	return t.ended != nil || hasCall(inside.CallsOf(sinceUser(state.Messages.GetOr(t.base, nil))...), calls[0])
}

// lastAnswer returns the last answer of the agent.
func (t *Turn) lastAnswer() (state.InferenceResult, bool) {
	h := t.st.History()
	for i := h.Len() - 1; i >= 0; i-- {
		if r, ok := h.At(i); ok && r.Agent == t.st.Agent() {
			return r, true
		}
	}
	return state.InferenceResult{}, false
}

// saysNothing reports whether an output has neither calls nor anything that a
// person could be shown. Reasoning is not an answer.
func saysNothing(output []state.Message) bool {
	for _, m := range output {
		switch m := m.(type) {
		case state.TextMessage:
			if !isEmpty(m) {
				return false
			}
		default:
			if _, typ := origin.ItemType(m); typ != "reasoning" {
				return false
			}
		}
	}
	return true
}

func isEmpty(m state.TextMessage) bool {
	for _, name := range []string{"refusal", "audio"} {
		if value, ok := m.Extra(name); ok && value != "null" && value != `""` {
			return false
		}
	}
	if kept, ok := origin.Of(m, origin.OpenAI); ok && kept.Get("images") != nil {
		return false
	}
	parts, _ := jsontext.Elements([]byte(m.Content())) // none if it is a text
	for _, raw := range parts {
		part, _ := jsontext.Members(raw)
		if isText := part.String("type") == "text" || part.Get("type") == nil; !origin.IsReasoning(part) && (!isText || strings.TrimSpace(part.String("text")) != "") {
			return false
		}
	}
	return strings.TrimSpace(m.Text()) == "" || len(parts) > 0
}

// answerCut gives calls that are not made, because of how their answer has ended, a
// result that says so.
func (t *Turn) answerCut(calls []state.ToolCall, stop state.Stop) error {
	text := "The call was not made: the answer that it is in was not finished."
	if stop == state.StopLength {
		text = "The call was not made: the answer was cut off in the middle, because it was too long. Make it again in a shorter answer, or in parts."
	}
	for i, c := range calls {
		t.cut = append(t.cut, tool.Result{Index: i, Message: state.ToolError(c, text), Err: errors.New(text)})
	}
	results := make([]state.ToolResultMessage, len(calls))
	for i := range calls {
		results[i] = t.cut[i].Message
	}
	return t.st.History().Answer(results...)
}

// cutResult returns the result of a call of the last answer that was not made,
// because of how the answer has ended.
func (t *Turn) cutResult(c state.ToolCall) (tool.Result, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.cut {
		if sameCall(r.Message.Call(), c) {
			return r, true
		}
	}
	return tool.Result{}, false
}

// Next says what comes after the last answer that Said has recorded, when its calls
// are made: the model is to be asked again, if more is true, because it has called
// tools, was paused, or was cut in the middle of its calls. Otherwise it has said
// all, or the error is a [*StopError] that matches ErrStopped. [Loop] does so by
// itself.
func (t *Turn) Next() (more bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended == nil:
		return true, nil
	case t.ended.err != nil:
		return false, t.ended.err
	}
	return t.ended.more, nil
}

// resume notes how the last answer has ended, for a Loop that goes on behind it.
func (r *loopRun) resume(msgs []state.Message) {
	if len(msgs) > 0 && msgs[len(msgs)-1].Role() == "user" {
		return
	}
	last, _ := r.st.History().Last()
	if n := len(msgs); r.ended && n > 0 && msgs[n-1].Text() == repeatText {
		r.stop = &StopError{Agent: last.Agent, Stop: state.StopRepeated}
		return
	}
	if last.Stop == "" || last.Stop == state.StopEnd || last.Stop == state.StopCalls {
		return
	}
	if r.ended && last.Stop != state.StopPaused {
		r.stop = &StopError{Agent: last.Agent, Stop: last.Stop, Word: last.StopWord}
		return
	}
	for name, turn := range r.turns {
		if turn.st.Agent() == last.Agent && (last.Stop == state.StopPaused || len(inside.CallsOf(last.Output...)) > 0) {
			r.again = &name
		}
	}
}

// goesOn returns the agent that is to be asked again, whatever Route says: its last
// answer was paused, or cut in its calls.
func (r *loopRun) goesOn() (name string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.again == nil {
		return "", false
	}
	return *r.again, true
}

// stopped returns the error of the last answer if that has ended the run, or nil.
func (r *loopRun) stopped() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop == nil {
		return nil
	}
	stop := *r.stop
	stop.Reply = r.reply
	return &stop
}
