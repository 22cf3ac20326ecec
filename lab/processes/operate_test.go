package processes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/worker"
	"github.com/agentstate/state/workspace"
)

// queueMax is the maximum number of waiting messages.
const queueMax = 4

// operator is a worker that executes single operations of package workspace.
type operator struct {
	m *workspace.Manager

	mu      sync.Mutex
	handles map[int]*held
}

// held is a run that a worker holds, or has held.
type held struct {
	mu      sync.Mutex // a change and its commit are one step
	run     *workspace.Run
	abandon context.CancelFunc
}

// operate is the job of an operator.
func operate(t task) error {
	db, err := openAddress(t.Address)
	if err != nil {
		return err
	}
	o := &operator{handles: map[int]*held{}}
	o.m, err = workspace.Open(context.Background(), db, &workspace.Options{
		Schema: schema, Queue: queueMax, TTL: t.TTL, Attempts: 1 << 20, Run: o.taken,
	})
	if err != nil {
		return err
	}
	go recovering(o.m, t.TTL)
	return worker.Serve(o.do)
}

// taken keeps a run that was taken over, for later operations.
func (o *operator) taken(ctx context.Context, r *workspace.Run) error {
	say(reply{Event: began, User: r.UserID(), Message: r.Message().ID, Attempt: r.Attempt(), Steps: r.Step(), Handle: o.keep(r, nil)})
	<-ctx.Done() // an operation ends it
	return context.Cause(ctx)
}

func (o *operator) keep(r *workspace.Run, abandon context.CancelFunc) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.handles) + 1
	o.handles[n] = &held{run: r, abandon: abandon}
	return n
}

func (o *operator) do(q request) reply {
	o.mu.Lock()
	h := o.handles[q.Handle]
	o.mu.Unlock()
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
	}
	var r reply
	var err error
	ctx := context.Background()
	switch q.Op {
	case "begin":
		r, err = o.begin(q)
	case "commit":
		if err = log.Set(h.run.State(), []string{q.Message}); err == nil {
			err = h.run.Commit(ctx)
		}
		r.Steps = h.run.Step()
	case "finish", "fail":
		var next *workspace.Run
		if q.Op == "finish" {
			next, err = h.run.Finish(ctx)
		} else {
			next, err = h.run.Fail(ctx, errors.New("as it was told"))
		}
		if next != nil {
			r.Message, r.Handle = next.Message().ID, o.keep(next, nil)
		}
	case "abandon":
		if h.abandon != nil {
			h.abandon()
		}
	case "update":
		err = o.m.Update(ctx, q.User, func(w *workspace.Workspace) error { return log.Set(w.State(), []string{"update"}) })
	case "view":
		var v *workspace.View
		if v, err = o.m.View(ctx, q.User); err == nil {
			r.Snapshot = snapshot(v)
		}
	}
	r.Fate = fateOf(err)
	if r.Fate == failed {
		r.Problem = err.Error()
	}
	return r
}

func (o *operator) begin(q request) (reply, error) {
	ctx, abandon := context.WithCancel(context.Background())
	run, out, err := o.m.Begin(ctx, q.User, workspace.Message{ID: q.Message, Content: state.UserText("Go on."), Busy: q.Busy})
	r := reply{Status: out.Status}
	if run == nil {
		abandon()
		return r, err
	}
	r.Handle = o.keep(run, abandon)
	return r, err
}

// snapshot returns the run and the queue of a view.
func snapshot(v *workspace.View) string {
	s := lock{}
	if v.Run != nil {
		s.holder, s.attempt = v.Run.Message.ID, v.Run.Attempt
	}
	var queue []string
	for _, msg := range v.Queue {
		queue = append(queue, msg.ID)
	}
	s.queue = strings.Join(queue, " ")
	return s.String()
}

// lock is the model of a workspace: its holder and the messages that wait.
type lock struct {
	holder  string    // the message of the run; a message has one run only
	attempt int       // number of takeovers; with the message, it identifies the lease
	steps   int       // its commits
	queue   string    // of messages
	known   [8]uint64 // the numbers of the messages that were accepted, as a set
}

func (l lock) String() string { return fmt.Sprintf("%s/%d: %s", l.holder, l.attempt, l.queue) }

func (l lock) knows(message string) bool {
	n := messageNumber(message)
	return l.known[n/64]&(1<<(n%64)) != 0
}

func messageNumber(message string) int {
	n, err := strconv.Atoi(message[1:])
	if err != nil || n >= 512 {
		panic("more messages than the model has room for")
	}
	return n
}

// begin makes the message the current run.
func (l lock) begin(message string) lock {
	l.holder, l.attempt, l.steps = message, 0, 0
	return l
}

func (l lock) accept(message string) lock {
	n := messageNumber(message)
	l.known[n/64] |= 1 << (n % 64)
	return l
}

// next ends the run and begins that of the message that has waited longest.
func (l lock) next() lock {
	first, rest, _ := strings.Cut(l.queue, " ")
	l.queue = rest
	return l.begin(first)
}
