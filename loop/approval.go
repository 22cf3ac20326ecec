package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
)

// ErrNotSuspended is returned for a decision about a call that does not wait for
// one, because it was decided already or because there is no such call.
var ErrNotSuspended = errors.New("loop: the call is not suspended")

// Approve makes calls of the agent that wait, as Run does, although
// [tool.NeedsApproval] says that they need an approval. It returns their results. A
// call is named by its id, or by the name of its tool if the provider gives calls
// no ids. If one of the calls does not wait, the error is ErrNotSuspended, and
// none is made.
//
// In a run of a workspace, it is better to let a message approve: that is stored
// at once.
func (t *Turn) Approve(ctx context.Context, ids ...string) ([]tool.Result, error) {
	calls, err := t.waitingFor(ids)
	if err != nil {
		return nil, err
	}
	t.forget(calls)
	return t.Run(runctx.WithApproval(ctx, t.base.Agent(), ids), calls...)
}

// Refuse answers calls of the agent that wait as refused. The error is as that of
// Approve.
func (t *Turn) Refuse(ids ...string) error {
	calls, err := t.waitingFor(ids)
	if err != nil {
		return err
	}
	results := make([]state.ToolResultMessage, len(calls))
	for i, c := range calls {
		results[i] = runctx.Refusal(c)
	}
	return t.st.History().Answer(results...)
}

// waitingFor returns the open calls of the agent with these ids, one for each.
func (t *Turn) waitingFor(ids []string) (calls []state.ToolCall, err error) {
	open := t.st.History().Pending()
	for _, id := range ids {
		i := indexOfKey(open, id)
		if i < 0 {
			return nil, &kindError{ErrNotSuspended, fmt.Errorf("loop: the call %s is not suspended", fault.Quote(id))}
		}
		calls = append(calls, open[i])
		open = append(open[:i:i], open[i+1:]...)
	}
	return calls, nil
}

func indexOfKey(calls []state.ToolCall, key string) int {
	for i, c := range calls {
		if runctx.Key(c) == key {
			return i
		}
	}
	return -1
}
