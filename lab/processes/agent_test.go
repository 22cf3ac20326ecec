package processes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/worker"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

var (
	// log has a token for each step of a message that was made.
	log = &state.Field[[]string]{Name: "log"}

	// What the threads of a user share. Each step of a message spends 1 and has a
	// topic. Its last step, or with task.Updates each of them, is a visit.
	sharedSpent  = &state.Field[int]{Name: "spent", Handler: state.Sum[int](), Shared: true}
	sharedTopics = &state.Field[[]string]{Name: "topics", Handler: state.Union[[]string](), Shared: true}
	sharedVisits = &state.Field[int]{Name: "visits", Shared: true}

	schema = state.MustSchema(log, sharedSpent, sharedTopics, sharedVisits)
)

// steps is the number of steps of a message: the call of a tool, its result, and the
// answer.
const steps = 3

// newToken returns a token of a step that is unique to this attempt to make it.
func newToken(message string, step int) string {
	return fmt.Sprintf("%s/%d/%s", message, step, rand.Text()[:10])
}

// stepOf returns the step of a token.
func stepOf(token string) string { return token[:strings.LastIndexByte(token, '/')] }

func stepName(message string, step int) string { return message + "/" + strconv.Itoa(step) }

// madeSteps returns the number of steps of a message in the log.
func madeSteps(st *state.State, message string) int {
	n := 0
	for _, token := range log.GetOr(st, nil) {
		if strings.HasPrefix(token, message+"/") {
			n++
		}
	}
	return n
}

// topicOf returns the topic of a step of a message.
func topicOf(thread, message string, step int) string { return thread + " " + stepName(message, step) }

// madeTopics returns the number of steps of a message in what is shared.
func madeTopics(st *state.State, thread, message string) int {
	topics := sharedTopics.GetOr(st, nil)
	n := 0
	for step := range steps {
		if slices.Contains(topics, topicOf(thread, message, step)) {
			n++
		}
	}
	return n
}

// acceptable returns an error if a provider would refuse the conversation.
func acceptable(msgs []state.Message) error {
	for _, profile := range []transcript.Profile{transcript.OpenAI, transcript.Anthropic} {
		if findings := transcript.Check(msgs, profile); len(findings) > 0 {
			return fmt.Errorf("%s would refuse the prompt: %v", profile, findings)
		}
	}
	return nil
}

// agent is a worker that handles messages.
type agent struct {
	task   task
	m      *workspace.Manager
	db     store.Store
	tokens sync.Map    // of the last step, by *workspace.Run
	enough atomic.Bool // tells a holder to finish its run
}

// newAgent opens the store and the Manager of a worker.
func newAgent(t task, run func(a *agent, ctx context.Context, r *workspace.Run) error) (*agent, error) {
	a, keep, whenBusy := &agent{task: t}, 20, workspace.BusyEnqueue
	if t.Joins {
		keep, whenBusy = -1, workspace.BusyJoin
	}
	var err error
	if a.db, err = openAddress(t.Address); err != nil {
		return nil, err
	}
	a.m, err = workspace.Open(context.Background(), a.db, &workspace.Options{
		Schema: schema, Queue: 8, TTL: t.TTL, StoreTimeout: time.Minute, // many fleets share the machine
		Takeover: t.Takeover, Name: t.Holder, Attempts: 1 << 20, KeepMessages: keep, KeepResults: 5, WhenBusy: whenBusy,
		Run: func(ctx context.Context, r *workspace.Run) error { return run(a, ctx, r) },
		Hooks: workspace.Hooks{
			OnRunStart: func(_ context.Context, r *workspace.Run) {
				say(reply{Event: began, User: r.UserID(), Message: r.Message().ID, Attempt: r.Attempt()})
			},
			OnRunComplete: func(_ context.Context, r *workspace.Run, err error) {
				if err != nil {
					a.complain(r, err)
					return
				}
				token, _ := a.tokens.LoadAndDelete(r)
				text, _ := token.(string) // empty if keep has committed it
				say(reply{Event: completed, User: r.UserID(), Message: r.Message().ID, Attempt: r.Attempt(), Token: text})
			},
		},
	})
	return a, err
}

func (a *agent) complain(r *workspace.Run, err error) {
	say(reply{Event: wrong, User: r.UserID(), Message: r.Message().ID, Attempt: r.Attempt(), Problem: err.Error()})
}

// serve is the job of a worker that handles messages and takes over runs.
func serve(t task) error {
	handle := (*agent).handle
	if t.Joins {
		handle = (*agent).converse
	}
	a, err := newAgent(t, handle)
	if err != nil {
		return err
	}
	return worker.Serve(a.answer)
}

// answer handles a message. It seldom waits for the end, so that queues get long.
func (a *agent) answer(q request) reply {
	msg := workspace.Message{ID: q.Message, Content: state.UserText("Do " + q.Message + ", please.")}
	send := a.m.Submit
	if mathrand.IntN(4) == 0 {
		send = a.m.Handle
	}
	out, err := send(context.Background(), q.User, msg)
	r := reply{Status: out.Status, Fate: fateOf(err)}
	if r.Fate == failed {
		r.Problem = err.Error()
	}
	return r
}

// handle makes the remaining steps of a message.
func (a *agent) handle(ctx context.Context, r *workspace.Run) error {
	st, id := r.State(), r.Message().ID
	call := state.ToolCall{ID: "call_" + id, Name: "work", Input: state.JSON(`{"on":"` + id + `"}`)}
	msgs := state.Messages.GetOr(st, nil)
	for _, left := range transcript.Pending(msgs) { // by a process that has died: the next step answers it
		if left.ID == call.ID {
			var err error
			if msgs, err = transcript.Answer(msgs, state.ToolResult(left, `"done"`)); err != nil {
				return err
			}
		}
	}
	if err := acceptable(msgs); err != nil {
		return err
	}
	made := madeSteps(st, id)
	if n := madeTopics(st, r.UserID(), id); n != made {
		return fmt.Errorf("the run begins with %d steps, and with %d in what is shared: an attempt before has applied something", made, n)
	}
	for step := made; step < steps; step++ {
		if err := nap(ctx, 30*time.Millisecond); err != nil {
			return err
		}
		if err := a.perform(ctx, r, step, call); err != nil {
			return err
		}
		token := newToken(id, step)
		if err := errors.Join(log.Set(st, []string{token}), a.share(r, step)); err != nil {
			return err
		}
		if step == steps-1 {
			a.tokens.Store(r, token)
			return nil
		}
		if err := r.Commit(ctx); err != nil {
			if errors.Is(err, workspace.ErrFenced) {
				say(reply{Event: lost, User: r.UserID(), Message: id, Attempt: r.Attempt()})
			}
			return err
		}
		say(reply{Event: committed, User: r.UserID(), Message: id, Attempt: r.Attempt(), Token: token})
	}
	return errors.New("the message was handled before")
}

// perform applies a step to the conversation. The result of a call is an effect
// outside.
func (a *agent) perform(ctx context.Context, r *workspace.Run, step int, call state.ToolCall) error {
	st := r.State()
	msgs := state.Messages.GetOr(st, nil)
	result := state.InferenceResult{Agent: "worker", History: msgs}
	switch step {
	case 0:
		result.Output = []state.Message{state.ToolCalls(call)}
	case 1:
		open := transcript.Pending(msgs)
		if len(open) == 0 {
			return nil // the end of another attempt has answered it
		}
		if err := a.pay(ctx, r.UserID(), open[0].Key); err != nil {
			return err
		}
		return st.History().Answer(state.ToolResult(open[0], `"done"`))
	default:
		result.Output = []state.Message{state.AssistantText("It is done.")}
		if err := r.Memory().Set(r.UserID(), r.Message().ID); err != nil {
			return err
		}
	}
	return st.History().Append(result)
}

// bank is where the services outside keep what they have done for a user, each
// effect under the key of its call.
func bank(user string) string { return "bank:" + user + ":" }

// pay has an effect outside of the workspace, unless its key comes again.
func (a *agent) pay(ctx context.Context, user, key string) error {
	for {
		_, err := a.db.Batch(ctx, []store.Write{{Key: bank(user) + key, Cond: store.IfAbsent}})
		if err == nil || errors.Is(err, store.ErrConflict) {
			return nil
		}
		if err := nap(ctx, 30*time.Millisecond); err != nil {
			return err
		}
	}
}

// share writes what a step does to what is shared.
func (a *agent) share(r *workspace.Run, step int) error {
	st := r.State()
	err := errors.Join(sharedSpent.Set(st, 1), sharedTopics.Set(st, []string{topicOf(r.UserID(), r.Message().ID, step)}))
	if err == nil && (step == steps-1 || a.task.Updates) {
		err = sharedVisits.Update(st, func(n int) (int, error) { return n + 1, nil })
	}
	return err
}

// nap waits for a random time.
func nap(ctx context.Context, most time.Duration) error {
	t := time.NewTimer(mathrand.N(most))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
