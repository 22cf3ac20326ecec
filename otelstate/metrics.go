package otelstate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/agentstate/state/workspace"
)

// instruments are the instruments of a Tracer. Their attributes have values
// of closed sets, except for the names of tools and Go types, which are those of
// the program, and of models, which are those of answers and limited in number.
type instruments struct {
	models                                                                           nameSet
	runDuration, toolDuration, inferenceDuration, commitDuration, compactionDuration seconds
	queueWait, heartbeatLeft                                                         metric.Float64Histogram
	queueDepth                                                                       metric.Int64Histogram
	tokens, commitSize, commitEffects                                                amounts
	messages, runs, takeovers, fenced, deadLetters, conflicts, unknownOutcomes       counter
}

// The boundaries of histograms: those of the conventions, and for others what
// a store or a run may take.
var (
	inferenceSeconds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	tokenCounts      = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	storeSeconds     = []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10}
	longSeconds      = []float64{0.01, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400}
	byteCounts       = []float64{256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216}
	smallCounts      = []float64{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512}
	tenths           = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
)

func (m *instruments) create(meter metric.Meter) error {
	var errs []error
	float := func(name, unit, description string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	whole := func(name, unit, description string, bounds []float64) metric.Int64Histogram {
		h, err := meter.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(description),
			metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	count := func(name, unit, description string) counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return counter{c}
	}
	m.runDuration = seconds{
		float("agentstate.run.duration", secondsUnit, "Time of an attempt to handle a message.", longSeconds),
	}
	m.toolDuration = seconds{float("agentstate.tool.duration", secondsUnit, "Time of a call of a tool.", longSeconds)}
	m.inferenceDuration = seconds{float(metricInference, secondsUnit, "Time of a call of a model.", inferenceSeconds)}
	m.tokens = amounts{whole(metricTokens, "{token}", "Tokens that a call of a model took.", tokenCounts)}
	m.messages = count("agentstate.messages", "{message}", "Messages that were handed over.")
	m.runs = count("agentstate.runs", "{run}", "Attempts to handle a message that have ended.")
	m.queueDepth = whole("agentstate.queue.depth", "{message}",
		"Waiting messages of a workspace, when one was added.", smallCounts)
	m.queueWait = float("agentstate.queue.wait", secondsUnit,
		"Time from the acceptance of a message to its first run.", longSeconds)
	m.takeovers = count("agentstate.takeovers", "{run}", "Runs that were taken over from a holder.")
	m.fenced = count("agentstate.fenced", "{run}", "Runs that have lost their lease.")
	m.deadLetters = count("agentstate.dead_letters", "{message}", "Messages that were given up.")
	m.commitDuration = seconds{
		float("agentstate.commit.duration", secondsUnit, "Time of a write of a workspace.", storeSeconds),
	}
	m.commitSize = amounts{whole("agentstate.commit.size", bytesUnit, "Bytes of a write of a workspace.", byteCounts)}
	m.commitEffects = amounts{
		whole("agentstate.commit.effects", "{effect}", "Effects of a write of a workspace.", smallCounts),
	}
	m.compactionDuration = seconds{
		float("agentstate.compaction.duration", secondsUnit, "Time of a compaction.", storeSeconds),
	}
	m.conflicts = count("agentstate.conflicts", "{conflict}", "Attempts to write that another writer has overtaken.")
	m.unknownOutcomes = count("agentstate.unknown_outcomes", "{operation}",
		"Operations of which it is not known whether they took effect.")
	m.heartbeatLeft = float("agentstate.heartbeat.left", fractionUnit,
		"Part of the lease that was left at its renewal.", tenths)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("otelstate: %w", err)
	}
	return nil
}

// maxModels is the number of models that metrics tell apart.
const maxModels = 100

// nameSet is the first names of a kind.
type nameSet struct {
	mu    sync.Mutex
	names map[string]bool
}

// limit returns a name that is one of the first max, and other for any further
// one.
func (s *nameSet) limit(name string, max int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.names[name] {
		return name
	}
	if len(s.names) >= max {
		return other
	}
	if s.names == nil {
		s.names = map[string]bool{}
	}
	s.names[name] = true
	return name
}

// seconds, amounts and counter make attributes only if they are enabled.

type seconds struct{ metric.Float64Histogram }

func (h seconds) record(ctx context.Context, value float64, attrs func() metric.MeasurementOption) {
	switch {
	case !h.Enabled(ctx):
	case attrs == nil:
		h.Record(ctx, value)
	default:
		h.Record(ctx, value, attrs())
	}
}

type amounts struct{ metric.Int64Histogram }

func (h amounts) record(ctx context.Context, value int64, attrs func() metric.MeasurementOption) {
	if h.Enabled(ctx) {
		h.Record(ctx, value, attrs())
	}
}

type counter struct{ metric.Int64Counter }

func (c counter) add(ctx context.Context, attrs func() metric.MeasurementOption) {
	c.addN(ctx, 1, attrs)
}

func (c counter) addN(ctx context.Context, n int64, attrs func() metric.MeasurementOption) {
	switch {
	case !c.Enabled(ctx):
	case attrs == nil:
		c.Add(ctx, n)
	default:
		c.Add(ctx, n, attrs())
	}
}

// Register adds a Manager to the metric agentstate.runs.active, the number of
// runs that are held. stop removes it again. Call it before the Manager is
// closed or not at all: a closed Manager holds none.
func (t *Tracer) Register(m *workspace.Manager) (stop func() error, err error) {
	active, err := t.meter().Int64ObservableUpDownCounter("agentstate.runs.active",
		metric.WithUnit("{run}"), metric.WithDescription("Runs that are held."))
	if err != nil {
		return nil, fmt.Errorf("otelstate: %w", err)
	}
	registration, err := t.meter().RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(active, int64(m.Stats().Held))
		return nil
	}, active)
	if err != nil {
		return nil, fmt.Errorf("otelstate: %w", err)
	}
	return registration.Unregister, nil
}
