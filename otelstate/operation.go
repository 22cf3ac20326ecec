package otelstate

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// hasSpan reports whether an operation has a span. A heartbeat has none: there
// are too many of them.
func (t *Tracer) hasSpan(kind work.OpKind) bool {
	switch kind {
	case work.OpHeartbeat:
		return false
	case work.OpView, work.OpRecords, work.OpVerify:
		return t.opts.Reads
	}
	return true
}

// spanNames are the names of the spans that most messages have.
var spanNames = map[work.OpKind]string{
	work.OpHandle: "agentstate.handle",
	work.OpCommit: "agentstate.commit",
	work.OpUpdate: "agentstate.update",
}

// spanName returns the name of the span of an operation.
func spanName(kind work.OpKind) string {
	if name, ok := spanNames[kind]; ok {
		return name
	}
	return spanPrefix + string(kind)
}

// Start implements [work.Tracer].
func (t *Tracer) Start(ctx context.Context, op work.Operation) context.Context {
	if !t.hasSpan(op.Kind) {
		return ctx
	}
	c := t.conversationOf(op.UserID)
	name, opts := spanName(op.Kind), c.plain
	if op.Kind == work.OpRun {
		name, opts = c.run.name, c.run.opts
	}
	if links := links(op.Links); len(links) > 0 {
		opts = append(slices.Clip(opts), trace.WithLinks(links...))
	}
	if op.Root {
		opts = append(slices.Clip(opts), trace.WithNewRoot())
	}
	s := t.start(ctx, name, c, opts)
	switch {
	case op.Kind == work.OpRun:
		s.run = s
		t.startRun(s, op)
	case op.Root:
		s.run = nil
	}
	return s
}

func (t *Tracer) startRun(s *span, op work.Operation) {
	if op.MessageID != "" && op.Attempt == 0 && t.instruments.queueWait.Enabled(s) {
		t.instruments.queueWait.Record(s, op.Waited.Seconds())
	}
	if s.IsRecording() {
		s.SetAttributes(
			attribute.String(keyRun, op.RunID), attribute.Int(keyAttempt, op.Attempt),
			attribute.Float64(keyWaited, op.Waited.Seconds()),
		)
	}
}

// End implements [work.Tracer].
func (t *Tracer) End(ctx context.Context, op work.Operation) {
	if op.Kind == work.OpHeartbeat {
		t.endHeartbeat(ctx, op)
		return
	}
	s := t.spanOf(ctx)
	if s == nil || !t.hasSpan(op.Kind) {
		return
	}
	for i := range op.Results {
		t.endInference(s, &op.Results[i], op.Redact)
	}
	t.measure(s, op)
	if s.IsRecording() {
		s.SetAttributes(operationAttributes(op)...)
	}
	s.end(op.Err, op.Redact)
}

// operationAttributes returns what is known at the end of an operation.
func operationAttributes(op work.Operation) []attribute.KeyValue {
	var attrs []attribute.KeyValue
	count := func(key string, n int) {
		if n != 0 {
			attrs = append(attrs, attribute.Int(key, n))
		}
	}
	switch op.Kind {
	case work.OpHandle:
		attrs = text(text(attrs, keyStatus, string(op.Status)), keyRun, op.RunID)
	case work.OpRun:
		attrs = append(attrs, attribute.String(keyEnding, ending(op)))
		count(keyVersion, int(op.Version))
	default:
		count(keyVersion, int(op.Version))
		count(keyEffects, op.Effects)
		count(keyBytes, op.Bytes)
		count(keyTries, op.Tries)
	}
	return attrs
}

// ending says how a run has ended.
func ending(op work.Operation) string {
	if op.Ended == "" {
		return endingRetry
	}
	return string(op.Ended)
}

// isLate reports whether a heartbeat came late.
func isLate(op work.Operation) bool { return op.Left < op.TTL/3 }

// left returns which part of a lease was left at a heartbeat.
func left(op work.Operation) float64 {
	if op.TTL <= 0 {
		return 0
	}
	return max(0, op.Left.Seconds()/op.TTL.Seconds())
}

func (t *Tracer) endHeartbeat(ctx context.Context, op work.Operation) {
	if m := t.instruments.heartbeatLeft; m.Enabled(ctx) {
		m.Record(ctx, left(op))
	}
	if op.Root || !isLate(op) {
		return
	}
	if s := t.spanOf(ctx); s != nil && s.run != nil && s.run.IsRecording() {
		s.run.AddEvent(eventLate, trace.WithAttributes(attribute.Float64(keyLeft, left(op))))
	}
}

// measure records the metrics of an operation that has ended.
func (t *Tracer) measure(s *span, op work.Operation) {
	m := &t.instruments
	name := func() metric.MeasurementOption {
		return metric.WithAttributes(attribute.String(keyOpName, string(op.Kind)))
	}
	switch op.Kind {
	case work.OpHandle:
		m.messages.add(s, func() metric.MeasurementOption {
			if op.Status == "" { // it was not accepted
				return metric.WithAttributes(attribute.String(keyErrorType, errorType(op.Err)))
			}
			return metric.WithAttributes(attribute.String(keyStatus, string(op.Status)))
		})
		if op.Status == workspace.StatusQueued && m.queueDepth.Enabled(s) {
			m.queueDepth.Record(s, int64(op.Queued))
		}
	case work.OpRun:
		t.measureRun(s, op)
	case work.OpTakeover:
		if op.Taken {
			m.takeovers.add(s, func() metric.MeasurementOption {
				return metric.WithAttributes(attribute.String(keyHow, how(op.Takeover)))
			})
		}
		if op.Ended == work.EndingFailed {
			m.deadLetters.add(s, nil)
		}
	case work.OpCommit, work.OpUpdate:
		m.commitDuration.record(s, s.took(), name)
		if op.Bytes > 0 {
			m.commitSize.record(s, int64(op.Bytes), name)
			m.commitEffects.record(s, int64(op.Effects), name)
		}
	case work.OpCompact:
		m.compactionDuration.record(s, s.took(), nil)
	}
	if op.Conflicts > 0 {
		m.conflicts.addN(s, int64(op.Conflicts), name)
	}
	if writes(op) && errors.Is(op.Err, store.ErrUnknownOutcome) {
		m.unknownOutcomes.add(s, name)
	}
}

// writes reports whether an error of an operation is one of its own: those of
// runs are the errors of their commits.
func writes(op work.Operation) bool {
	return op.Kind != work.OpRun && (op.Kind != work.OpHandle || op.RunID == "")
}

func (t *Tracer) measureRun(s *span, op work.Operation) {
	m := &t.instruments
	m.runDuration.record(s, s.took(), func() metric.MeasurementOption {
		return metric.WithAttributes(text(text(nil, keyWorkflow, t.opts.Workflow), keyErrorType, errorType(op.Err))...)
	})
	m.runs.add(s, func() metric.MeasurementOption {
		return metric.WithAttributes(attribute.String(keyEnding, ending(op)), attribute.Bool(keyResumed, op.Attempt > 0))
	})
	switch {
	case op.Ended == work.EndingFenced:
		m.fenced.add(s, nil)
	case op.Ended == work.EndingFailed && op.MessageID != "":
		m.deadLetters.add(s, nil)
	}
}

func how(t workspace.Takeover) string {
	if t == workspace.TakeoverRestart {
		return howRestart
	}
	return howResume
}
