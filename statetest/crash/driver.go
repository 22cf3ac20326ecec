package crash

import (
	"context"
	"fmt"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// user is the user whose messages the processes handle.
const user = "ann"

// driver opens the processes of a case and sends the messages, as the platform
// would from which they come.
type driver struct {
	open      func(p *Process) *workspace.Options
	w         *world
	onWrite   func(after point)
	processes []*Process
	waits     []<-chan struct{}  // closed when what a process was asked for has ended
	observer  *workspace.Manager // of what is stored; no fault reaches it
	opts      workspace.Options  // of the first process
	excused   bool               // a run has failed, as it may
}

const (
	maxSends = 16             // of one message
	maxTime  = 24 * time.Hour // of the bubble, for one step of the driver
)

// process returns the process that handles messages, a new one if the last does
// not go on.
func (d *driver) process() (*Process, error) {
	if n := len(d.processes); n > 0 && !d.isHalted(d.processes[n-1]) {
		return d.processes[n-1], nil
	}
	if len(d.processes) == 26 {
		return nil, fmt.Errorf("%d processes have ended", len(d.processes))
	}
	p := &Process{w: d.w, name: string(rune('A' + len(d.processes))), halted: make(chan struct{})}
	p.ctx, p.end = context.WithCancelCause(context.Background())
	d.processes = append(d.processes, p)
	opts := d.open(p)
	if opts == nil {
		return nil, fmt.Errorf("the function Open returns no Options")
	}
	o := *opts
	o.Holder = "" // a name would let B end what A, which only stands still, holds
	if len(d.processes) == 1 {
		if err := d.observe(o); err != nil {
			return nil, err
		}
	}
	var err error
	p.manager, err = workspace.Open(p.ctx, &port{p, d.w.db.Open(), d.onWrite}, &o)
	return p, err
}

// observe opens the observer.
func (d *driver) observe(o workspace.Options) error {
	d.opts = o
	d.w.ttl = o.TTL
	if d.w.ttl == 0 {
		d.w.ttl = 4 * time.Second
	}
	var err error
	d.observer, err = workspace.Open(context.Background(), d.w.db.Open(), &workspace.Options{
		Schema: o.Schema, Keys: o.Keys, TTL: o.TTL,
	})
	return err
}

func (d *driver) isHalted(p *Process) bool {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return p.isHalted
}

// call lets a process do something. It returns when that has ended, or earlier
// if the process dies or stands still.
func (d *driver) call(p *Process, fn func()) (ended bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	d.waits = append(d.waits, done)
	timeout := time.NewTimer(maxTime)
	defer timeout.Stop()
	select {
	case <-done:
		return !d.isHalted(p), nil
	case <-p.halted:
		synctest.Wait() // a dead process unwinds as far as it gets
		return false, nil
	case <-timeout.C:
		return false, fmt.Errorf("%s has not ended after %v of the bubble's time", p.name, maxTime)
	}
}

// deliverAll sends the messages, and then each once more.
func (d *driver) deliverAll(messages []workspace.Message) error {
	for _, msg := range messages {
		if err := d.deliver(msg); err != nil {
			return err
		}
	}
	return d.repeat(messages)
}

// deliver sends a message until it is handled.
func (d *driver) deliver(msg workspace.Message) error {
	var rewinds []func()
	for _, s := range d.w.scripts {
		rewinds = append(rewinds, s.Mark())
	}
	var last error
	for range maxSends {
		p, err := d.process()
		if err != nil {
			return err
		}
		if msg, err = d.resolved(msg); err != nil {
			return err
		}
		var out workspace.Outcome
		var failed error // of a process that goes on: the others write it later
		sent := msg
		ended, err := d.call(p, func() { out, failed = p.manager.Handle(p.ctx, user, sent) })
		if ended {
			last = failed
		}
		switch {
		case err != nil:
			return err
		case ended && failed == nil && (out.Status == workspace.StatusDone || out.First == workspace.StatusDone):
			return d.awaitStalled()
		case ended:
			if err := d.settle(p); err != nil {
				return err
			}
		}
		v, err := d.observer.View(context.Background(), user)
		if err != nil {
			return err
		}
		for _, dead := range v.DeadLetters {
			if dead.Message.ID != msg.ID {
				continue
			}
			if !d.excuse(dead) {
				return fmt.Errorf("message %q has failed: %s", msg.ID, v.Redact(dead.Reason))
			}
			for _, rewind := range rewinds {
				rewind()
			}
		}
	}
	return fmt.Errorf("message %q is not handled, although it was sent %d times: %v", msg.ID, maxSends, last)
}

// settle waits until a process has taken over what others have left, or would have
// if it could.
func (d *driver) settle(p *Process) error {
	_, err := d.call(p, func() {
		p.settles.Store(true)
		defer p.settles.Store(false)
		for began := time.Now(); p.ctx.Err() == nil && time.Since(began) < 4*p.manager.Info().TTL; {
			v, err := p.manager.Summary(p.ctx, user)
			if err != nil || v.Run == nil {
				return
			}
			select {
			case <-time.After(time.Second / 4):
			case <-p.ctx.Done():
			}
		}
	})
	return err
}

// excuse reports whether a message may have failed: because of a fault in a
// process that lived, before its run made an effect. Each fault excuses one
// failure.
func (d *driver) excuse(dead workspace.DeadLetter) bool {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if d.w.excuses == 0 {
		return false
	}
	for _, e := range d.w.effects {
		if e.run == dead.RunID || e.run == "" {
			return false
		}
	}
	d.w.excuses--
	d.excused = true
	return true
}

// resolved returns the message with the answers of the calls that are suspended:
// a person answers the call that is shown, and a call that was made again has
// another id.
func (d *driver) resolved(msg workspace.Message) (workspace.Message, error) {
	if len(msg.Answers) == 0 {
		return msg, nil
	}
	v, err := d.observer.View(context.Background(), user)
	if err != nil {
		return msg, err
	}
	open := v.Suspended()
	answers := make([]state.ToolResultMessage, 0, len(msg.Answers))
	for i, a := range msg.Answers {
		call := a.Call()
		place := i
		for j, c := range open {
			if c.ID == call.ID {
				place = j
			}
		}
		if place >= len(open) {
			return msg, nil // it was accepted before
		}
		call.ID = open[place].ID
		if a.IsError() {
			a = state.ToolError(call, a.Text())
		} else {
			a = state.ToolResult(call, a.Content())
		}
		answers = append(answers, a)
	}
	msg.Answers = answers
	return msg, nil
}

// awaitStalled waits until processes that stand still go on, and until they have
// returned what they were asked for.
func (d *driver) awaitStalled() error {
	timeout := time.NewTimer(maxTime)
	defer timeout.Stop()
	for _, p := range d.processes {
		d.w.mu.Lock()
		standing := p.standing
		d.w.mu.Unlock()
		if standing != nil {
			<-standing
		}
	}
	for _, done := range d.waits {
		select {
		case <-done:
		case <-timeout.C:
			return fmt.Errorf("a process has not returned after %v of the bubble's time", maxTime)
		}
	}
	d.waits = nil
	synctest.Wait()
	return nil
}

// repeat sends each message once more, which must change nothing.
func (d *driver) repeat(messages []workspace.Message) error {
	d.w.count(false)
	p, err := d.process()
	if err != nil {
		return err
	}
	if _, err := d.call(p, func() { _ = p.manager.Wait(p.ctx) }); err != nil {
		return err
	}
	before, err := d.observer.Summary(p.ctx, user)
	if err != nil {
		return err
	}
	made := d.w.numberOfEffects()
	for _, msg := range messages {
		var out workspace.Outcome
		var failed error
		if _, err := d.call(p, func() { out, failed = p.manager.Handle(p.ctx, user, msg) }); err != nil {
			return err
		}
		if out.Status != workspace.StatusDuplicate {
			return fmt.Errorf("message %q, sent again in the end, is %s, want duplicate: %v", msg.ID, out.Status, failed)
		}
	}
	after, err := d.observer.Summary(p.ctx, user)
	if err == nil && (after.Version != before.Version || d.w.numberOfEffects() != made) {
		err = fmt.Errorf("a message that is sent again in the end changes something")
	}
	return err
}

func (w *world) numberOfEffects() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.effects)
}

// leave is how long goroutines have, in the time of the bubble, to end after
// their process.
const leave = time.Hour

// close ends all processes, and waits for what they have begun.
func (d *driver) close() {
	for _, p := range d.processes {
		p.kill()
		if p.manager != nil {
			go p.manager.Close() // it waits for what the process has begun
		}
	}
	if d.observer != nil {
		_ = d.observer.Close()
	}
	time.Sleep(leave)
}
