package otelstate

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime/debug"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace/work"
)

// scope is the name of the instrumentation scope.
const scope = "github.com/agentstate/state/otelstate"

// Options are the options of [New]. A nil *Options has the defaults.
type Options struct {
	// TracerProvider and MeterProvider make spans and instruments (default: the
	// global ones).
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	// Workflow is the name of what Options.Run of the workspaces does (default:
	// none). Provider is the provider of model calls whose raw response does not
	// tell, as in gen_ai.provider.name (default: none).
	Workflow, Provider string

	// Conversation returns the gen_ai.conversation.id of a user's spans, "" for
	// none (default: 128 bits of the SHA-256 of the id of the user, as hex: ids
	// are often addresses. It is a pseudonym: a guessed id can be verified).
	// The result may be kept. It is called concurrently.
	Conversation func(userID string) string

	// Content adds messages, arguments and results of tools, and the text of
	// errors. Secrets are masked and each attribute has at most about 8 KiB.
	Content bool

	// Reads adds spans for views, records and verifications.
	Reads bool
}

// Tracer makes spans and metrics. It is a [work.Tracer] for
// workspace.Options, and a [tool.Tracer] for [tool.WithTracer] where there is
// no workspace. It is safe for concurrent use, and may serve several Managers.
type Tracer struct {
	tracer      trace.Tracer
	opts        Options
	names       conversations
	nobody      *conversation // where no user is known
	instruments instruments
}

var (
	_ work.Tracer = (*Tracer)(nil)
	_ tool.Tracer = (*Tracer)(nil)
)

// New returns a Tracer. It returns an error if the MeterProvider cannot make an
// instrument.
func New(opts *Options) (*Tracer, error) {
	t := &Tracer{}
	if opts != nil {
		t.opts = *opts
	}
	o := &t.opts
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.Conversation == nil {
		o.Conversation = pseudonym
	}
	t.tracer = o.TracerProvider.Tracer(scope, trace.WithInstrumentationVersion(version()), trace.WithSchemaURL(schemaURL))
	t.nobody = t.newConversation("")
	return t, t.instruments.create(t.meter())
}

func (t *Tracer) meter() metric.Meter {
	return t.opts.MeterProvider.Meter(scope, metric.WithInstrumentationVersion(version()), metric.WithSchemaURL(schemaURL))
}

// pseudonym is the default of Options.Conversation.
func pseudonym(userID string) string {
	sum := sha256.Sum256([]byte(userID))
	return hex.EncodeToString(sum[:16])
}

// version returns the version of this module, "" if the program does not know.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	if info.Main.Path == scope {
		return info.Main.Version
	}
	for _, m := range info.Deps {
		if m.Path == scope {
			return m.Version
		}
	}
	return ""
}

// text returns an attribute, unless the value is empty.
func text(list []attribute.KeyValue, key, value string) []attribute.KeyValue {
	if value == "" {
		return list
	}
	return append(list, attribute.String(key, value))
}
