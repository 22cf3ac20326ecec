package workspace

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// telemetry is what a Manager tells of its operations: to the counters of Stats,
// to Options.Tracer and to Options.Logger. It does not know the Manager.
type telemetry struct {
	tracer     work.Tracer
	logger     *slog.Logger
	ttl        time.Duration
	takeover   Takeover
	background func(fn func()) bool // see Manager.runInBackground

	counters       counters
	logLimit       logLimiter
	tracerPanicked sync.Once
}

// operation is an operation that is under way. Stats, Tracer and Logger learn of
// operations only through begin and end. Without a Tracer and a Logger, an
// operation allocates nothing.
type operation struct {
	work.Operation
	m     *telemetry
	ctx   context.Context // in which it goes on
	began time.Time
	// effort is nil if there is neither a Tracer nor a Logger.
	effort *effort
	traced bool

	wrote  bool // it has changed the workspace
	vacant bool // OpTakeover: the run had no holder
}

// late reports whether a heartbeat came late.
func (o *operation) late() bool { return o.Left < o.m.ttl/3 }

// observes reports whether anything but Stats learns of operations.
func (m *telemetry) observes() bool { return m.tracer != nil || m.logger != nil }

// begin begins an operation. The caller must call end, outside of all locks.
func (m *telemetry) begin(ctx context.Context, op work.Operation) (context.Context, operation) {
	o := operation{Operation: op, m: m, ctx: ctx}
	if m.observes() {
		o.began, o.effort = time.Now(), &effort{}
		o.ctx = context.WithValue(ctx, effortKey{}, o.effort)
		if m.tracer != nil && isTraced(op.Kind) && op.Kind != work.OpHeartbeat {
			o.ctx, o.traced = m.startTrace(o.ctx, op)
		}
	}
	return o.ctx, o
}

// end ends the operation.
func (o *operation) end(err error) {
	if o.Kind == work.OpHeartbeat {
		o.endSoon(err)
		return
	}
	o.Err = err
	o.m.counters.count(func(s *stats) { s.addOperation(o) })
	if o.effort != nil {
		o.tell()
	}
}

// endSoon is end for a heartbeat, and where nothing renews the lease of the next
// run yet: it does not wait long for Tracer and Logger.
func (o *operation) endSoon(err error) {
	o.Err = err
	o.m.counters.count(func(s *stats) { s.addOperation(o) })
	if o.effort == nil {
		return
	}
	ended, told := *o, make(chan struct{})
	if !o.m.background(func() {
		defer close(told)
		ended.tell()
	}) {
		o.tell() // the Manager is closed
		return
	}
	timeout := time.NewTimer(o.m.ttl / 20)
	defer timeout.Stop()
	select {
	case <-told:
	case <-timeout.C:
	}
}

// tell tells Tracer and Logger that the operation has ended.
func (o *operation) tell() {
	cost, warnings := o.effort.take()
	o.Bytes, o.Tries, o.Conflicts = cost.Bytes, cost.Tries, cost.Conflicts
	if o.Kind == work.OpHeartbeat && o.m.tracer != nil {
		o.ctx, o.traced = o.m.startTrace(o.ctx, o.Operation)
	}
	if o.traced {
		o.m.endTrace(o.ctx, o.Operation)
	}
	if o.m.logger != nil {
		for _, w := range warnings {
			o.m.raise(o.ctx, w.alarm, o.UserID, w.err)
		}
		o.log()
	}
}

// noteHead notes the head that the operation has written; nil if none.
func (o *operation) noteHead(h *ledger.Head) {
	if h != nil {
		o.wrote, o.Version, o.Queued = true, h.Version, h.Waiting()
	}
}

// beginHandle begins an OpHandle. It gives the message an id and a trace, if it
// has none.
func (m *telemetry) beginHandle(ctx context.Context, user string, msg *Message) (context.Context, operation) {
	if msg.ID == "" {
		msg.ID = ledger.NewID()
	}
	ctx, op := m.begin(ctx, work.Operation{Kind: work.OpHandle, UserID: user, MessageID: msg.ID})
	if msg.Trace = usableTrace(msg.Trace); msg.Trace == "" && op.traced {
		msg.Trace = m.injectTrace(ctx)
		op.effort.injected = msg.Trace
	}
	return ctx, op
}

func (o *operation) endHandle(out Outcome, err error) {
	o.Status, o.RunID = out.Status, out.RunID
	o.end(err)
}

// endTakeover ends an OpTakeover, after which the lease may be next.
func (o *operation) endTakeover(h *ledger.Head, taken ledger.Taken, next ledger.Lease, err error) {
	if errors.Is(err, ledger.ErrLeaseRenewed) { // somebody was faster
		o.endSoon(nil)
		return
	}
	if err == nil {
		o.noteHead(h)
		if h.Run != nil && h.Run.LeaseID == next.ID && (o.RunID == "" || o.RunID == h.Run.RunID) {
			o.LeaseID, o.RunID, o.MessageID, o.Attempt = next.ID, h.Run.RunID, h.Run.Message.ID, h.Run.Attempt
		}
		if d := taken.Dead; d != nil {
			o.Ended, o.RunID, o.MessageID, o.Attempt = work.EndingFailed, d.RunID, d.Message.ID, d.Attempts
			o.LeaseID = ""
		}
		o.Taken, o.Takeover = o.wrote && !o.vacant, o.m.takeover
	}
	o.endSoon(err)
}

// noteSubmitted notes that a message was handed over.
func (m *telemetry) noteSubmitted(ctx context.Context, user, messageID string, status Status, err error) {
	m.counters.count(func(s *stats) { s.addStatus(status) })
	if m.logger != nil {
		m.logSubmitted(ctx, user, messageID, status, err)
	}
}

// noteDeadLetter notes that a message was given up.
func (m *telemetry) noteDeadLetter(ctx context.Context, user, messageID, runID string, reason error) {
	m.counters.count(func(s *stats) { s.DeadLetters++ })
	m.raise(ctx, alarmDeadLetter, user, reason, slog.String("message", messageID), slog.String("run", runID))
}

// noteEffort notes what an operation of a ledger has cost.
func (m *telemetry) noteEffort(ctx context.Context, cost ledger.Effort) {
	m.counters.count(func(s *stats) { s.addEffort(cost) })
	if m.observes() {
		if e := effortOf(ctx); e != nil {
			e.add(cost)
		}
	}
}

// noteStoreError notes an error of the store after which an operation is tried
// again. The caller may hold locks. A call that was cancelled, for example a read
// whose answer has come another way, says nothing about the store.
func (m *telemetry) noteStoreError(ctx context.Context, user string, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	m.counters.count(func(s *stats) { s.StoreErrors++ })
	if m.logs(ctx, slog.LevelWarn) {
		m.background(func() { m.raise(ctx, alarmStore, user, err) })
	}
}

// warnLater reports an error in the operation of ctx, when that has ended: the
// caller may hold locks.
func (m *telemetry) warnLater(ctx context.Context, user string, a alarm, err error) {
	if !m.logs(ctx, a.level) {
		return
	}
	if e := effortOf(ctx); e != nil {
		e.warn(warning{a, err})
		return
	}
	m.background(func() { m.raise(ctx, a, user, err) })
}

// beginHeartbeat begins the OpHeartbeat of the Manager.
func (m *telemetry) beginHeartbeat(ctx context.Context, left time.Duration) (context.Context, operation) {
	return m.begin(ctx, work.Operation{Kind: work.OpHeartbeat, Root: true, Left: left, TTL: m.ttl})
}

// runOperation is the OpRun of a run.
type runOperation struct {
	operation
	// trace is set when it has begun, if there is a Tracer. isStored says that the
	// lease has its text.
	trace    atomic.Pointer[runTrace]
	isStored atomic.Bool

	mu    sync.Mutex
	begun bool
	ended bool // also if the run has ended before begun is set
}

// runTrace is how operations in a run, and runs in other processes, refer to it.
type runTrace struct {
	ctx  context.Context // does not end with the run
	text string
}

// markEnded reports whether the caller has to tell that the OpRun has ended.
func (o *runOperation) markEnded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := o.begun && !o.ended
	o.ended = true
	return first
}

// effort is what the ledger tells of an operation.
type effort struct {
	injected string // the trace that OpHandle has given to its message

	mu       sync.Mutex
	cost     ledger.Effort
	warnings []warning
}

// warning is an error that no caller gets.
type warning struct {
	alarm alarm
	err   error
}

type effortKey struct{}

func effortOf(ctx context.Context) *effort {
	e, _ := ctx.Value(effortKey{}).(*effort)
	return e
}

func (e *effort) add(cost ledger.Effort) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cost.Bytes += cost.Bytes
	e.cost.Tries += cost.Tries
	e.cost.Conflicts += cost.Conflicts
}

func (e *effort) warn(w warning) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.warnings = append(e.warnings, w)
}

func (e *effort) take() (cost ledger.Effort, warnings []warning) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cost, e.warnings
}
