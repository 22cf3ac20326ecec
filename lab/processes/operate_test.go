package processes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/worker"
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
	abandon context.CancelFunc // of a run of Begin, or nil
	result  chan error         // of a run of Options.Run, or nil: what its function returns
}

// operate is the job of an operator. Its fields are not shared: the model of the
// histories takes a run for held as soon as its head is written, and the user part
// is read after that.
func operate(t task) error {
	db, err := openAddress(t.Address)
	if err != nil {
		return err
	}
	o := &operator{handles: map[int]*held{}}
	o.m, err = workspace.Open(context.Background(), db, &workspace.Options{
		Schema: state.MustSchema(log), Queue: queueMax, TTL: t.TTL, Attempts: 1 << 20, Run: o.taken,
	})
	if err != nil {
		return err
	}
	return worker.Serve(o.do)
}

// taken keeps a run that was taken over, or has waited, for later operations.
func (o *operator) taken(ctx context.Context, r *workspace.Run) error {
	h := &held{run: r, result: make(chan error, 1)}
	say(reply{Event: began, User: r.UserID(), Run: r.ID(), Message: r.Message().ID, Attempt: r.Attempt(), Steps: r.Step(), Handle: o.keep(h)})
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-h.result:
		return err
	}
}

func (o *operator) keep(h *held) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(o.handles) + 1
	o.handles[n] = h
	return n
}

// end ends a run and returns the next, if the caller holds it.
func (h *held) end(ctx context.Context, failure error) (*workspace.Run, error) {
	switch {
	case h.result != nil && h.run.Context().Err() != nil:
		return nil, h.run.Commit(ctx) // tells why it has ended
	case h.result != nil:
		h.result <- failure
		<-h.run.Context().Done()
		err := h.run.Commit(ctx)
		if errors.Is(err, workspace.ErrRunEnded) {
			err = nil
		}
		return nil, err
	case failure != nil:
		return h.run.Fail(ctx, failure)
	}
	return h.run.Finish(ctx)
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
		var failure error
		if q.Op == "fail" {
			failure = errors.New("as it was told")
		}
		var next *workspace.Run
		if next, err = h.end(ctx, failure); next != nil {
			r.Run, r.Message, r.Handle = next.ID(), next.Message().ID, o.keep(&held{run: next})
		}
	case "abandon":
		h.abandon()
	case "update":
		err = o.m.Update(ctx, q.User, func(w *workspace.Workspace) error { return log.Set(w.State(), []string{"update"}) })
	case "view":
		var v *workspace.View
		if v, err = o.m.View(ctx, q.User); err == nil {
			r.Snapshot = snapshot(v)
			if v.Run != nil {
				r.Run, r.Message, r.Attempt = v.Run.ID, v.Run.Message.ID, v.Run.Attempt
			}
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
	r.Run, r.Handle = run.ID(), o.keep(&held{run: run, abandon: abandon})
	return r, err
}

// snapshot returns the run and the queue of a view.
func snapshot(v *workspace.View) string {
	s := lock{}
	if v.Run != nil {
		s.message, s.attempt = v.Run.Message.ID, v.Run.Attempt
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
	message string    // of the run
	attempt int       // number of takeovers from holders that have died
	lease   string    // of the holder, empty if it is not known or was given back
	vacant  bool      // the lease was given back
	steps   int       // commits of the run
	queue   string    // of messages
	known   [8]uint64 // the numbers of the messages that were accepted and have not failed, as a set
}

func (l lock) String() string { return fmt.Sprintf("%s/%d: %s", l.message, l.attempt, l.queue) }

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

// begin makes the message the current run. Its lease is not known yet.
func (l lock) begin(message string) lock {
	l.message, l.attempt, l.steps = message, 0, 0
	return l.hold("")
}

// hold gives the run to a holder.
func (l lock) hold(lease string) lock {
	l.lease, l.vacant = lease, false
	return l
}

func (l lock) accept(message string) lock {
	n := messageNumber(message)
	l.known[n/64] |= 1 << (n % 64)
	return l
}

// forget makes the message one that may be accepted again.
func (l lock) forget(message string) lock {
	n := messageNumber(message)
	l.known[n/64] &^= 1 << (n % 64)
	return l
}

// next ends the run and begins that of the message that has waited longest.
func (l lock) next() lock {
	first, rest, _ := strings.Cut(l.queue, " ")
	l.queue = rest
	return l.begin(first)
}
