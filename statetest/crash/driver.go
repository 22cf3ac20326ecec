package crash

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/agentstate/state/workspace"
)

// user is the user whose messages the processes handle.
const user = "ann"

const (
	maxSends   = 16              // of one message
	maxTime    = 24 * time.Hour  // of the bubble, for one step of the case
	defaultTTL = 4 * time.Second // of workspace.Options
)

// process returns the process that handles messages, a new one if the last does
// not go on.
func (k *testCase) process() (*Process, error) {
	if n := len(k.processes); n > 0 && !k.processes[n-1].isHalted() {
		return k.processes[n-1], nil
	}
	if len(k.processes) == 26 {
		return nil, fmt.Errorf("%d processes have ended", len(k.processes))
	}
	p := &Process{w: k.w, name: string(rune('A' + len(k.processes))), halted: make(chan struct{})}
	p.ctx, p.end = context.WithCancelCause(context.Background())
	k.processes = append(k.processes, p)
	opts := k.c.Open(p)
	if opts == nil {
		return nil, fmt.Errorf("the function Open returns no Options")
	}
	o := *opts
	o.Name = "" // a name would let B end what A, which only stands still, holds
	if k.observer == nil {
		if err := k.observe(o); err != nil {
			return nil, err
		}
	}
	db := &port{p: p, db: k.openStore()}
	if k.saving {
		db.wrote = k.save
	}
	var err error
	if p.manager, err = workspace.Open(p.ctx, db, &o); err == nil {
		context.AfterFunc(p.ctx, func() { _ = p.manager.Close() })
	}
	return p, err
}

// observe opens the observer.
func (k *testCase) observe(o workspace.Options) (err error) {
	k.opts = o
	k.w.ttl = cmp.Or(o.TTL, defaultTTL)
	k.observer, err = workspace.Open(context.Background(), k.w.db, &workspace.Options{
		Schema: o.Schema, Keys: o.Keys, TTL: o.TTL,
	})
	return err
}

// call lets a process do something. It returns when that has ended, or earlier
// if the process dies or stands still.
func (k *testCase) call(p *Process, fn func()) (ended bool, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn()
	}()
	k.waits = append(k.waits, done)
	timeout := time.NewTimer(maxTime)
	defer timeout.Stop()
	select {
	case <-done:
		return !p.isHalted(), nil
	case <-p.halted:
		synctest.Wait() // a dead process unwinds as far as it gets
		return false, nil
	case <-timeout.C:
		return false, fmt.Errorf("%s has not ended after %v of the bubble's time", p.name, maxTime)
	}
}

// deliver sends a message until it is handled.
func (k *testCase) deliver(msg workspace.Message) error {
	var rewinds []func()
	for _, s := range k.w.scripts {
		rewinds = append(rewinds, s.Mark())
	}
	var last error
	for range maxSends {
		p, err := k.process()
		if err != nil {
			return err
		}
		sent, err := k.resolved(msg)
		if err != nil {
			return err
		}
		var out workspace.Outcome
		var failed error // of a process that goes on: the others write it later
		ended, err := k.call(p, func() { out, failed = p.manager.Handle(p.ctx, user, sent) })
		if ended {
			last = failed
		}
		switch {
		case err != nil:
			return err
		case ended && failed == nil && (out.Status == workspace.StatusDone || out.First == workspace.StatusDone):
			k.awaitStalled()
			return nil
		case ended:
			if err := k.settle(p); err != nil {
				return err
			}
		}
		v, err := k.observer.View(context.Background(), user)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(v.DeadLetters, func(dead workspace.DeadLetter) bool { return dead.Message.ID == msg.ID })
		if i < 0 {
			continue
		}
		if !k.excuse(v.DeadLetters[i]) {
			return fmt.Errorf("message %q has failed: %s", msg.ID, v.Redact(v.DeadLetters[i].Reason))
		}
		for _, rewind := range rewinds {
			rewind()
		}
	}
	return fmt.Errorf("message %q is not handled, although it was sent %d times: %v", msg.ID, maxSends, last)
}

// settle waits until a process has taken over what others have left, or would have
// if it could.
func (k *testCase) settle(p *Process) error {
	_, err := k.call(p, func() {
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
func (k *testCase) excuse(dead workspace.DeadLetter) bool {
	k.w.mu.Lock()
	defer k.w.mu.Unlock()
	if k.w.excuses == 0 {
		return false
	}
	if slices.ContainsFunc(k.w.effects, func(e effect) bool { return e.Run == dead.RunID || e.Run == "" }) {
		return false
	}
	k.w.excuses--
	k.excused = true
	return true
}

// resolved returns the message with its decisions about the calls that are
// suspended: a person decides about the call that is shown, and a call that was
// made again has another id.
func (k *testCase) resolved(msg workspace.Message) (workspace.Message, error) {
	if len(msg.Decisions) == 0 {
		return msg, nil
	}
	v, err := k.observer.View(context.Background(), user)
	if err != nil {
		return msg, err
	}
	open, decisions := v.Suspended(), slices.Clone(msg.Decisions)
	for i, d := range decisions {
		place := slices.IndexFunc(open, func(c workspace.Suspended) bool { return c.ID == d.Key })
		if place < 0 {
			place = i
		}
		if place >= len(open) {
			return msg, nil // it was accepted before
		}
		decisions[i].Key = open[place].Key
	}
	msg.Decisions = decisions
	return msg, nil
}

// awaitStalled waits until processes that stand still go on, and until they have
// returned what they were asked for.
func (k *testCase) awaitStalled() {
	for _, p := range k.processes {
		k.w.mu.Lock()
		standing := p.standing
		k.w.mu.Unlock()
		if standing != nil {
			<-standing
		}
	}
	for _, done := range k.waits {
		<-done
	}
	k.waits = nil
	synctest.Wait()
}

// repeat sends each message once more, which must change nothing. It returns
// their replies.
func (k *testCase) repeat(messages []workspace.Message) (replies []string, err error) {
	k.w.count(false)
	p, err := k.process()
	if err != nil {
		return nil, err
	}
	if _, err := k.call(p, func() { _ = p.manager.Wait(p.ctx) }); err != nil {
		return nil, err
	}
	before, err := k.observer.Summary(p.ctx, user)
	if err != nil {
		return nil, err
	}
	made := len(k.w.effects)
	for _, msg := range messages {
		var out workspace.Outcome
		var failed error
		if _, err := k.call(p, func() { out, failed = p.manager.Handle(p.ctx, user, msg) }); err != nil {
			return nil, err
		}
		replies = append(replies, out.Reply)
		if out.Status != workspace.StatusDuplicate {
			return nil, fmt.Errorf("message %q, sent again in the end, is %s, want duplicate: %v", msg.ID, out.Status, failed)
		}
	}
	after, err := k.observer.Summary(p.ctx, user)
	if err == nil && (after.Version != before.Version || len(k.w.effects) != made) {
		err = fmt.Errorf("a message that is sent again in the end changes something")
	}
	return replies, err
}

// leave is how long goroutines have, in the time of the bubble, to end after
// their process.
const leave = time.Hour

// close ends all processes, and waits for what they have begun.
func (k *testCase) close() {
	for _, p := range k.processes {
		p.kill()
		if p.manager != nil {
			go p.manager.Close() // it waits for what the process has begun
		}
	}
	if k.observer != nil {
		_ = k.observer.Close()
	}
	time.Sleep(leave)
}
