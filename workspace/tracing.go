package workspace

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// startTrace calls Tracer.Start. It reports whether that has returned.
func (m *telemetry) startTrace(ctx context.Context, op Operation) (out context.Context, ok bool) {
	out = ctx
	m.callTracer(ctx, "Start", func(t Tracer) {
		if started := t.Start(ctx, op); started != nil {
			out = started
		}
		ok = true
	})
	return out, ok
}

// endTrace calls Tracer.End.
func (m *telemetry) endTrace(ctx context.Context, op Operation) {
	m.callTracer(ctx, "End", func(t Tracer) { t.End(ctx, op) })
}

// injectTrace calls Tracer.Inject.
func (m *telemetry) injectTrace(ctx context.Context) string {
	var trace string
	if m.tracer != nil {
		m.callTracer(ctx, "Inject", func(t Tracer) { trace = usableTrace(t.Inject(ctx)) })
	}
	return trace
}

// callTracer calls a method of the Tracer.
func (m *telemetry) callTracer(ctx context.Context, method string, call func(Tracer)) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil {
			m.tracerPanicked.Do(func() {
				text := masked // the Tracer knows the results of runs
				if err, ok := p.(runtime.Error); ok {
					text = err.Error()
				}
				m.logBroken(ctx, "Tracer", "", fmt.Errorf("%w: Tracer.%s: %s", errPanic, method, text))
			})
		}
		if took := time.Since(began); took > m.ttl/10 {
			m.logSlow(ctx, "Tracer."+method, "", took)
		}
	}()
	call(m.tracer)
}
