package workspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// conclude ends the run with one write, which also begins the next run if
// messages wait. It returns that, or nil. If reason is nil, the changes since the
// last commit are stored, and the message is done. Otherwise they are lost, and the
// message becomes a dead letter with the text of reason, in which secrets are
// masked; committed tool calls of the run are answered, unless they are suspended.
func (r *Run) conclude(ctx context.Context, reason error) (*Run, error) {
	if reason == nil {
		r.tellWaiting(ctx)
	}
	r.m.endErrors.Store(r.user, nil)
	defer r.m.endErrors.Delete(r.user)
	concluding, op := r.begin(ctx, work.OpCommit)
	r.life.to(phaseEnding, nil)
	var s successor
	var err error
	ending := work.EndingFinished
	if reason == nil {
		s, err = r.finish(concluding, &op)
	} else {
		ending = work.EndingFailed
		s, err = r.fail(concluding, reason, &op)
	}
	if err != nil && r.life.resume() {
		r.checkSoon() // the lease may be lost
	}
	r.noteResults(&op)
	op.endSoon(err)
	if err != nil {
		return nil, err
	}
	defer r.life.to(phaseOver, nil)
	r.endOperation(ending, s.head.Waiting(), reason)
	next := r.nextRun(s)
	if reason != nil && !r.ticket {
		r.m.noteDeadLetter(ctx, r.user, r.message.ID, r.runID, &maskedError{r.failureText(), reason})
	}
	r.m.runCompleted(ctx, r, reason)
	r.m.logDropped(ctx, r.user, s.dropped)
	r.m.tidy(ctx, r.ledger, s.head)
	if r.shared != nil {
		r.m.tidy(ctx, r.shared, r.shared.LastHead())
	}
	return next, nil
}

// successor is the head that the end of a run has written.
type successor struct {
	head    *ledger.Head
	leaseID string              // of the next run, if this Manager takes it
	began   time.Time           // when the write began
	dropped []ledger.DeadLetter // that had to go
}

// finish shortens the conversation and the history to Options.KeepMessages and
// Options.KeepResults. Concurrent writes to the State are not stored.
func (r *Run) finish(ctx context.Context, op *operation) (successor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkHeld(); err != nil {
		return successor{}, err
	}
	if keys := r.suspended.waitAgain(r.state); len(keys) > 0 {
		err := fmt.Errorf("workspace: Options.Run has not made %q", keys)
		r.m.raise(ctx, alarmNotMade, r.user, err)
	}
	d, err := r.delta()
	if err != nil {
		return successor{}, err
	}
	change := r.applyShared(r.m, r.shared, &d)
	if change != nil {
		change.RunID = r.runID
	}
	doc := r.doc.Clone()
	if err := doc.ApplySaved(d.Effects, r.origin(d), r.schema, d.state); err != nil {
		return successor{}, err
	}
	shorten, err := doc.Shorten(r.m.opts.KeepMessages, r.m.opts.KeepResults)
	if err != nil {
		return successor{}, err
	}
	d.Title = r.m.titleOf(ctx, &r.liveContent, d.state)
	all := d.Change
	all.Effects = document.Joined(d.Effects, shorten)
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	r.stop = r.stopOf(r.state)
	by := r.holder()
	by.Stop = r.stop
	began, next := time.Now(), r.nextLease()
	h, at, err := r.ledger.Finish(ctx, by, all, r.reply, next, change)
	if err != nil {
		r.dropNext(next, err)
		return successor{}, sharedError(r.endIfLost(err))
	}
	r.ledger.CacheContent(at, doc)
	op.Effects = len(all.Effects)
	r.noteEnd(op, h, at, next)
	return successor{head: h, leaseID: next.ID, began: began}, nil
}

func (r *Run) fail(ctx context.Context, reason error, op *operation) (successor, error) {
	text := r.Redact(reason.Error())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.checkHeld(); err != nil {
		return successor{}, err
	}
	text = fault.ClipTo(fault.Line(r.redactStored(text)), ledger.MaxReason)
	ctx, cancel := r.lease.whileHeld(ctx)
	defer cancel()
	began, next := time.Now(), r.nextLease()
	h, dropped, err := r.ledger.Fail(ctx, r.holder(), text, next)
	if err != nil {
		r.dropNext(next, err)
		return successor{}, r.endIfLost(err)
	}
	r.failure = text
	r.noteEnd(op, h, h.Position(), next)
	return successor{head: h, leaseID: next.ID, began: began, dropped: dropped}, nil
}

// noteEnd notes that the end of the run is stored, at a position. The caller holds
// mu.
func (r *Run) noteEnd(op *operation, h *ledger.Head, at ledger.Position, next ledger.Lease) {
	r.position = at
	op.wrote, op.Version, op.Queued = true, at.Version, h.Waiting()
	r.passSlot(next.ID, h)
	r.end(phaseStored, ErrRunEnded)
}

// passSlot gives the slot of the run to the lease of the next one, if that has
// begun at a head. Nobody has a vacant lease.
func (r *Run) passSlot(nextID string, h *ledger.Head) {
	if nextID == "" || h.Run == nil || h.Run.LeaseID != nextID {
		r.m.slots.Drop(nextID) // see nextLease
	} else {
		r.slot.Pass(nextID)
	}
}

// dropNext drops the lease of the next run, because of err.
func (r *Run) dropNext(next ledger.Lease, err error) {
	r.m.slots.Drop(next.ID)
	if errors.Is(err, store.ErrUnknownOutcome) { // it may have begun
		r.m.releaseInDoubt(r.ledger, r.lease.incarnation, next)
	}
}

// nextRun holds the run that has begun at the end of this one, or returns nil.
func (r *Run) nextRun(s successor) *Run {
	defer r.endLease()
	if h := s.head; h.Run != nil && h.Run.Vacant() {
		if h.Run.Message.Ticket {
			r.m.watchRun(r.user, r.ledger) // nobody may take it
		} else {
			r.m.takeVacantRun(r.ledger, h)
		}
	}
	if s.head.Run == nil || s.leaseID == "" || s.head.Run.LeaseID != s.leaseID {
		return nil
	}
	// The next run does not end with the call that has begun this one.
	next, err := r.m.newRun(r.m.ctx, r.ledger, s.head, s.began, nil)
	if err != nil {
		r.m.raise(r.m.ctx, alarmGivenUp.of("next run"), r.user, err)
		r.m.watchRun(r.user, r.ledger)
		return nil
	}
	return next
}

// operationOf returns an operation of the run.
func (r *Run) operationOf(kind work.OpKind) work.Operation {
	op := work.Operation{
		Kind: kind, UserID: r.ledger.User(), MessageID: r.lease.messageID, RunID: r.runID, LeaseID: r.lease.id,
		Attempt: r.attempt,
	}
	if r.ticket {
		op.MessageID = ""
	}
	return op
}

// beginOperation begins the OpRun of the run, whose context is made of ctx. The
// lease is renewed meanwhile.
func (r *Run) beginOperation(ctx context.Context, h *ledger.Head) context.Context {
	m, o := r.m, &r.op
	m.counters.count(func(s *stats) { s.Started, s.Held = s.Started+1, s.Held+1 })
	op := r.operationOf(work.OpRun)
	op.Root = r.parent == m.ctx
	if m.observes() {
		op.Waited = max(0, ledger.CurrentTime().Sub(h.Run.Message.At))
		op.Links = linksOf(ctx, h.Run)
	}
	ctx, o.operation = m.begin(ctx, op)
	if o.traced {
		o.trace.Store(&runTrace{context.WithoutCancel(ctx), m.injectTrace(ctx)})
	}
	if m.logger != nil {
		o.logEvent(slog.LevelDebug, "run began", nil)
	}
	o.mu.Lock()
	o.begun = true
	ended := o.ended
	o.mu.Unlock()
	if ended { // its lease was lost meanwhile
		r.tellEnded(r.lostEnding())
	}
	return ctx
}

// endOperation ends the OpRun of a run that was finished or failed here, unless
// it has ended.
func (r *Run) endOperation(ending work.Ending, queued int, err error) {
	if r.op.markEnded() {
		r.op.Queued = queued
		r.tellEnded(ending, err)
	}
}

// endLost is endOperation for a run that was neither finished nor failed here.
func (r *Run) endLost() {
	if r.life.is(phaseStored, phaseOver) {
		return
	}
	if r.m.ctx.Err() != nil && errors.Is(r.lease.lost(), ErrClosed) {
		r.noteCutOff()
	}
	if r.op.markEnded() {
		r.tellEnded(r.lostEnding())
	}
}

// noteCutOff counts the run as one that Close has cut off, once.
func (r *Run) noteCutOff() {
	if !r.isCutOff.Swap(true) {
		r.m.cutOff.Add(1)
	}
}

// linksOf returns the links of an OpRun: to the sender, unless that is the
// parent, and to the attempt before.
func linksOf(ctx context.Context, run *ledger.Run) []string {
	var links []string
	if trace := usableTrace(run.Message.Trace); trace != "" {
		if parent := effortOf(ctx); parent == nil || parent.injected != trace {
			links = append(links, trace)
		}
	}
	if trace := usableTrace(run.Trace); trace != "" {
		links = append(links, trace)
	}
	return links
}

func (r *Run) tellEnded(ending work.Ending, err error) {
	o := &r.op
	if o.effort != nil {
		r.mu.Lock()
		o.Version = r.position.Version
		loaded := r.state != nil
		r.mu.Unlock()
		if loaded {
			o.Redact = r.redactAll
		}
		if o.traced && loaded {
			o.Results = r.results.since(r.state.Snapshot())
		}
	}
	o.Ended = ending
	o.endSoon(err)
}

// lostEnding returns how a run has ended that was neither finished nor failed
// here.
func (r *Run) lostEnding() (work.Ending, error) {
	cause := r.lease.lost()
	switch ending := ledger.EndingOf(cause); {
	case errors.Is(cause, errGivenBack), errors.Is(cause, errEndNotStored):
		return work.EndingAbandoned, cause
	case ending != "":
		return ending, cause
	case errors.Is(cause, ErrRunEnded): // another attempt follows
		return "", r.retried
	}
	return work.EndingFenced, cause
}

// begin begins an operation in the run. Its parent is the run, also if ctx is
// not that of the run. It ends with ctx.
func (r *Run) begin(ctx context.Context, kind work.OpKind) (context.Context, operation) {
	return r.m.begin(r.within(ctx), r.operationOf(kind))
}

// within returns a context that ends with ctx and has the values of the run's.
func (r *Run) within(ctx context.Context) context.Context {
	trace := r.op.trace.Load()
	if trace == nil {
		return ctx
	}
	if run, ok := FromContext(ctx); ok && run == r {
		return ctx
	}
	return valuesContext{ctx, trace.ctx}
}

// beginRenewal begins the OpHeartbeat of one run.
func (r *Run) beginRenewal(ctx context.Context) (context.Context, operation) {
	op := r.operationOf(work.OpHeartbeat)
	op.Left, op.TTL = r.lease.ttl-r.lease.age(), r.lease.ttl
	return r.m.begin(r.within(ctx), op)
}

// heartbeat returns the holder for a renewal of the lease.
func (r *Run) heartbeat() ledger.Holder {
	h := r.lease.holder()
	h.Trace = r.trace()
	return h
}

// trace returns what the next holder links to.
func (r *Run) trace() string {
	if t := r.op.trace.Load(); t != nil {
		return t.text
	}
	return ""
}

// valuesContext is a context with the values of another one, which never ends.
type valuesContext struct {
	context.Context
	values context.Context
}

func (c valuesContext) Value(key any) any {
	if v := c.values.Value(key); v != nil {
		return v
	}
	return c.Context.Value(key)
}

// noteResults notes the results that were appended since the OpCommit before.
func (r *Run) noteResults(o *operation) {
	if o.effort != nil {
		o.Redact = r.redactAll
	}
	if o.traced {
		o.Results = r.results.since(r.state.Snapshot())
	}
}

// redactAll is Redact for the stored secrets too.
func (r *Run) redactAll(text string) string {
	text = r.Redact(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.redactStored(text)
}
