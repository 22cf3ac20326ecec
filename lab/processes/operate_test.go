package processes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

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
	mu     sync.Mutex // a change and its commit are one step
	run    *workspace.Run
	call   *call      // that has begun it, or nil
	result chan error // what its function returns
}

// call is a call of Handle, which the worker may abandon.
type call struct {
	abandon context.CancelFunc
	begun   chan reply
}

type callKey struct{}

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
		Schema: state.MustSchema(log), Queue: queueMax, TTL: t.TTL, Attempts: 1 << 20, Run: o.hold,
	})
	if err != nil {
		return err
	}
	return worker.Serve(o.do)
}

// hold keeps a run for later operations, and tells of it: in the reply if a call of
// Handle has begun it, and else as an event.
func (o *operator) hold(ctx context.Context, r *workspace.Run) error {
	h := &held{run: r, result: make(chan error, 1)}
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		h.call = c
		c.begun <- reply{Status: workspace.StatusStarted, Run: r.ID(), Handle: o.keep(h)}
	} else {
		say(reply{Event: began, User: r.UserID(), Run: r.ID(), Message: r.Message().ID, Attempt: r.Attempt(), Steps: r.Step(), Handle: o.keep(h)})
	}
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

// end lets the function of a run return, unless its context has ended, and waits
// until the run has ended. The memory tells why: a commit would store the message.
func (h *held) end(failure error) error {
	returns := h.run.Context().Err() == nil
	if returns {
		h.result <- failure
	}
	<-h.run.Context().Done()
	for {
		switch err := h.run.Memory().Set("late", ""); {
		case err == nil: // it has been abandoned, and is being given back
			time.Sleep(time.Millisecond)
		case returns && errors.Is(err, workspace.ErrRunEnded):
			return nil
		default:
			return err
		}
	}
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
	case "send":
		r, err = o.send(q)
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
		err = h.end(failure)
	case "abandon":
		h.call.abandon()
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

// send sends a message. One that cannot wait is sent with Handle, so that its run
// can be abandoned.
func (o *operator) send(q request) (reply, error) {
	msg := workspace.Message{ID: q.Message, Content: state.UserText("Go on."), WhenBusy: q.Busy}
	if q.Busy == workspace.BusyEnqueue {
		out, err := o.m.Submit(context.Background(), q.User, msg)
		return reply{Status: out.Status, Run: out.RunID}, err
	}
	type result struct {
		out workspace.Outcome
		err error
	}
	ctx, abandon := context.WithCancel(context.Background())
	c, ended := &call{abandon, make(chan reply, 1)}, make(chan result, 1)
	go func() {
		out, err := o.m.Handle(context.WithValue(ctx, callKey{}, c), q.User, msg)
		ended <- result{out, err}
	}()
	select {
	case r := <-c.begun:
		return r, nil
	case r := <-ended:
		abandon()
		return reply{Status: r.out.Status}, r.err
	}
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
