package workspace

import (
	"context"
	"errors"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// operationOf returns an operation of the run.
func (r *Run) operationOf(kind OpKind) Operation {
	op := Operation{
		Kind: kind, UserID: r.ledger.User(), MessageID: r.lease.messageID, RunID: r.runID, LeaseID: r.lease.id, Attempt: r.attempt,
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
	m.counters.started.Add(1)
	m.counters.held.Add(1)
	op := r.operationOf(OpRun)
	op.Root = r.parent == m.ctx
	if m.observes() {
		op.Waited = max(0, ledger.CurrentTime().Sub(h.Run.Message.At))
		op.Links = linksOf(ctx, h.Run)
	}
	ctx, o.operation = m.begin(ctx, op)
	if o.traced {
		o.trace.Store(&runTrace{context.WithoutCancel(ctx), m.injectTrace(ctx)})
	}
	if m.opts.Logger != nil {
		o.logBegan()
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
func (r *Run) endOperation(ending Ending, queued int, err error) {
	if r.op.markEnded() {
		r.op.Queued = queued
		r.tellEnded(ending, err)
	}
}

// endLost is endOperation for a run that was neither finished nor failed here.
func (r *Run) endLost() {
	r.mu.Lock()
	stored := r.isEndStored
	r.mu.Unlock()
	if !stored && r.op.markEnded() {
		r.tellEnded(r.lostEnding())
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

func (r *Run) tellEnded(ending Ending, err error) {
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
func (r *Run) lostEnding() (Ending, error) {
	cause := r.lease.lost()
	switch ending := ledger.EndingOf(cause); {
	case errors.Is(cause, errGivenBack), errors.Is(cause, errEndNotStored):
		return EndingAbandoned, cause
	case ending != "":
		return Ending(ending), cause
	case errors.Is(cause, ErrRunEnded): // another attempt follows
		return "", r.retried
	}
	return EndingFenced, cause
}

// begin begins an operation in the run. Its parent is the run, also if ctx is
// not that of the run. It ends with ctx.
func (r *Run) begin(ctx context.Context, kind OpKind) (context.Context, operation) {
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
	left := r.lease.ttl - r.lease.age()
	ctx, op := r.m.beginAside(r.within(ctx), r.operationOf(OpHeartbeat))
	op.Left, op.TTL = left, r.lease.ttl
	return ctx, op
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

// beginEnd begins the OpCommit with which the run ends.
func (r *Run) beginEnd(ctx context.Context) (context.Context, operation) {
	ctx, op := r.begin(ctx, OpCommit)
	r.ending.Store(true)
	return ctx, op
}

// endCommit ends an OpCommit, with the results that were appended since the one
// before.
func (r *Run) endCommit(o *operation, err error) {
	ending := r.ending.Load()
	if err != nil && r.ending.Swap(false) {
		wake(r.lease.check) // the lease may be lost
	}
	if o.effort != nil {
		o.Redact = r.redactAll
	}
	if o.traced {
		o.Results = r.results.since(r.state.Snapshot())
	}
	if ending {
		o.endSoon(err)
		return
	}
	o.end(err) // the lease is renewed meanwhile
}

// redactAll is Redact for the stored secrets too.
func (r *Run) redactAll(text string) string {
	text = r.Redact(text)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.redactStored(text)
}
