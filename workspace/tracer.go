package workspace

import (
	"context"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/work"
)

// Operations that no Tracer is told of.
const (
	opAccept     work.OpKind = "accept"
	opCompactAll work.OpKind = "compact all"
	opRelease    work.OpKind = "release"
	opAwait      work.OpKind = "await"
	opDo         work.OpKind = "do"
	opExport     work.OpKind = "export"
	opImport     work.OpKind = "import"
	opSummary    work.OpKind = "summary"
	opDeleteUser work.OpKind = "delete user"
	opFork       work.OpKind = "fork"
	opRename     work.OpKind = "rename"
	opNote       work.OpKind = "note"
	opAddFile    work.OpKind = "add file"
	opFile       work.OpKind = "file"
)

// isTraced reports whether a Tracer is told of operations of a kind.
func isTraced(kind work.OpKind) bool {
	switch kind {
	case opAccept, opCompactAll, opRelease, opAwait, opDo, opExport, opImport, opSummary, opDeleteUser, opFork, opRename, opNote, opAddFile, opFile:
		return false
	}
	return true
}

// startTrace calls Tracer.Start. It reports whether that has returned.
func (m *telemetry) startTrace(ctx context.Context, op work.Operation) (out context.Context, ok bool) {
	out = ctx
	m.callTracer(ctx, "Start", func(t work.Tracer) {
		if started := t.Start(ctx, op); started != nil {
			out = started
		}
		ok = true
	})
	return out, ok
}

// endTrace calls Tracer.End.
func (m *telemetry) endTrace(ctx context.Context, op work.Operation) {
	m.callTracer(ctx, "End", func(t work.Tracer) { t.End(ctx, op) })
}

// injectTrace calls Tracer.Inject.
func (m *telemetry) injectTrace(ctx context.Context) string {
	var trace string
	if m.tracer != nil {
		m.callTracer(ctx, "Inject", func(t work.Tracer) { trace = usableTrace(t.Inject(ctx)) })
	}
	return trace
}

// callTracer calls a method of the Tracer.
func (m *telemetry) callTracer(ctx context.Context, method string, call func(work.Tracer)) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			m.tracerPanicked.Do(func() {
				m.raise(ctx, alarmPanic.of("Tracer"), "", panicOf("Tracer."+method, p))
			})
		}
		if took := time.Since(began); took > m.ttl/10 {
			m.logSlow(ctx, "Tracer."+method, "", took)
		}
	}()
	call(m.tracer)
}

// reportedResults are the results of a history of which the Tracer was told.
type reportedResults struct {
	mu   sync.Mutex
	last *state.State // a snapshot
}

// since returns the results of a snapshot that were not reported, and notes that
// they are.
func (r *reportedResults) since(now *state.State) []state.InferenceResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, after := r.last.History(), now.History()
	r.last = now
	n := min(before.Len(), after.Len())
	for ; n > 0; n-- {
		was, _ := before.At(n - 1)
		is, _ := after.At(n - 1)
		if keyOfResult(was) == keyOfResult(is) {
			break
		}
	}
	known := map[resultKey]bool{} // they may have moved
	for i := n; i < before.Len(); i++ {
		was, _ := before.At(i)
		known[keyOfResult(was)] = true
	}
	var fresh []state.InferenceResult
	for i := n; i < after.Len(); i++ {
		if is, _ := after.At(i); !known[keyOfResult(is)] {
			fresh = append(fresh, is)
		}
	}
	return fresh
}

// resultKey tells results apart.
type resultKey struct {
	id, agent, raw string
	at             int64
}

func keyOfResult(r state.InferenceResult) resultKey {
	return resultKey{r.ID, r.Agent, r.Raw, r.CreatedAt.UnixNano()}
}
