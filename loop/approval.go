package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// ErrNotSuspended is returned for a decision about a call that does not wait for
// one, because it was decided already or because there is no such call.
var ErrNotSuspended = errors.New("loop: the call is not suspended")

// Decide does what is decided about calls of the agent that wait. It answers
// those that are refused or answered, makes those that are approved as Run does,
// although [tool.NeedsApproval] says that they need an approval, and returns the
// results of the latter. If one of the calls does not wait, the error is
// ErrNotSuspended with the keys of those that do, and nothing is done.
//
// In a run of a workspace, it is better to let a message decide: that is stored
// at once.
func (t *Turn) Decide(ctx context.Context, decisions ...tool.Decision) ([]tool.Result, error) {
	open, by := t.st.History().Pending(), t.base.Agent()
	approvals := map[string]runctx.Approval{}
	var made []state.ToolCall
	var answers []state.ToolResultMessage
	for _, d := range decisions {
		if err := d.Check(); err != nil {
			return nil, err
		}
		i := indexOfKey(open, d.Key)
		if i < 0 {
			return nil, errNotSuspended(d.Key, open)
		}
		c := open[i]
		open = append(open[:i:i], open[i+1:]...)
		switch d.Kind {
		case tool.DecisionRefuse:
			answers = append(answers, runctx.Refusal(c, by, d.Reason))
		case tool.DecisionAnswer:
			answers = append(answers, runctx.Answer(c, by, d.Result, d.Failed))
		default:
			made = append(made, c)
			approvals[c.Key] = runctx.Approval{
				By: by, Input: d.Input, Digest: t.digestOf(c.Key), Again: d.Kind == tool.DecisionAgain,
			}
		}
	}
	if err := t.st.History().Answer(answers...); err != nil {
		return nil, err
	}
	t.forget(made)
	return t.Run(runctx.WithApprovals(ctx, approvals), made...)
}

// errNotSuspended returns ErrNotSuspended for a key, with the calls that wait.
func errNotSuspended(key string, waiting []state.ToolCall) error {
	texts := make([]string, len(waiting))
	for i, c := range waiting {
		texts[i] = fmt.Sprintf("%s (%s)", c.Key, fault.Quote(c.Name))
	}
	known := "none does"
	if len(texts) > 0 {
		known = "waiting are " + strings.Join(texts, ", ")
	}
	return &kindError{ErrNotSuspended, fmt.Errorf("loop: the call %s is not suspended: %s", fault.Quote(key), known)}
}

func indexOfKey(calls []state.ToolCall, key string) int {
	for i, c := range calls {
		if key != "" && c.Key == key {
			return i
		}
	}
	return -1
}

// answerOrphans answers approved calls of agents that the Loop has no longer,
// which nobody would make: their agents have left the program since.
func (r *loopRun) answerOrphans() error {
	if r.run == nil {
		return nil
	}
	st := r.run.State()
	var orphans []state.ToolResultMessage
	for _, c := range transcript.Pending(state.Messages.GetOr(st, nil)) {
		if _, ok := r.run.Approval(c.Key); !ok {
			continue
		}
		agent, said := "", false
		for _, result := range st.History().All() {
			if calls := inside.CallsOf(result.Output...); removeCall(&calls, c) {
				agent, said = result.Agent, true
			}
		}
		known := func(name string) bool { return r.turns[name].st.Agent() == agent }
		if said && !slices.ContainsFunc(r.names, known) {
			orphans = append(orphans, state.ToolError(c,
				"The call was approved and not made: there is no agent "+agent+" any more."))
		}
	}
	if orphans == nil {
		return nil
	}
	r.expectAnswer()
	return st.History().Answer(orphans...)
}
