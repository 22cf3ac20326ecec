package loop

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// A model that is stuck makes the same call again and again, although its result is
// the same each time: fifty refunds in one conversation were seen.

// defaultRepeats is how often a call is made with one result, unless the Loop says
// otherwise.
const defaultRepeats = 3

// repeatText is what a model reads of a call that is not made because it repeats
// others.
const repeatText = "The call was not made: the same call with the same arguments had the same result each of the last times. " +
	"Do something else, or say what is missing."

// answerRepeats answers the calls that are not to be made because they repeat others
// of this run, and returns those that are left. stuck reports whether the model has
// been told so before, and repeats the call all the same.
func (r *loopRun) answerRepeats(t *Turn, calls []state.ToolCall) (left []state.ToolCall, stuck bool, err error) {
	most := r.MaxRepeats
	if most == 0 {
		most = defaultRepeats
	}
	if most < 0 {
		return calls, false, nil
	}
	made := madeCalls(state.Messages.GetOr(r.st, nil))
	for _, c := range calls {
		n, told := repeats(made, c)
		if n < most && !told || t.mayRepeat(c.Name) {
			left = append(left, c)
			continue
		}
		stuck = stuck || told
		if err := t.st.History().Answer(state.ToolError(c, repeatText)); err != nil {
			return nil, false, err
		}
	}
	return left, stuck, nil
}

// mayRepeat reports whether calls of a tool may repeat: those that change nothing,
// and those that wait for something to happen.
func (t *Turn) mayRepeat(name string) bool {
	i := slices.IndexFunc(t.tools, func(t *tool.Tool) bool { return t != nil && t.Name() == name })
	return i >= 0 && (t.tools[i].Annotations().ReadOnly || t.tools[i].Polls())
}

// madeCall is a call with its result.
type madeCall struct {
	state.ToolCall
	result state.ToolResultMessage
}

// madeCalls returns the calls since the user has spoken that have results, in the
// order of the calls.
func madeCalls(msgs []state.Message) (made []madeCall) {
	said := sinceUser(msgs)
	for _, c := range inside.CallsOf(said...) {
		for _, m := range said {
			if result, ok := m.(state.ToolResultMessage); ok && sameCall(result.Call(), c) {
				made = append(made, madeCall{c, result})
				break
			}
		}
	}
	return made
}

// repeats returns how many of the latest calls are the same as c and have had the same
// result, and whether the last of them was not made because of that.
func repeats(made []madeCall, c state.ToolCall) (n int, told bool) {
	for i := len(made) - 1; i >= 0; i-- {
		m := made[i]
		if m.Name != c.Name || !m.Input.Equal(c.Input) || m.result.Text() != made[len(made)-1].result.Text() {
			break
		}
		n++
	}
	return n, n > 0 && made[len(made)-1].result.Text() == repeatText
}

// giveUp ends the run because the model is stuck.
func (r *loopRun) giveUp(agent string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.again = true, nil
	r.stop = &StopError{Agent: agent, Stop: state.StopRepeated}
	if r.run != nil {
		r.run.SetProgress(r.steps, true)
	}
}
