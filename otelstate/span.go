package otelstate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/internal/fault"
)

// span is a context that carries a span of this package.
type span struct {
	context.Context // with the trace.Span
	trace.Span
	tracer       *Tracer
	began        time.Time
	conversation []attribute.KeyValue // what the spans of a user start with
	run          *span                // the one of the run that it is in; nil if there is none
}

// spanKey is the key of the innermost span of a Tracer.
type spanKey struct{ tracer *Tracer }

func (s *span) Value(key any) any {
	if k, ok := key.(spanKey); ok && k.tracer == s.tracer {
		return s
	}
	return s.Context.Value(key)
}

// spanOf returns the innermost span of the Tracer in ctx, or nil.
func (t *Tracer) spanOf(ctx context.Context) *span {
	s, _ := ctx.Value(spanKey{t}).(*span)
	return s
}

// start starts a span of a conversation. Its run is that of its parent.
func (t *Tracer) start(ctx context.Context, name string, conversation []attribute.KeyValue, opts ...trace.SpanStartOption) *span {
	s := &span{tracer: t, began: time.Now(), conversation: conversation}
	if parent := t.spanOf(ctx); parent != nil {
		s.run = parent.run
	}
	s.Context, s.Span = t.tracer.Start(ctx, name, append(opts, trace.WithAttributes(conversation...))...)
	return s
}

// startNamed starts a span of the conventions: an operation of something that
// has a name.
func (t *Tracer) startNamed(
	ctx context.Context, operation, name string, conversation, attrs []attribute.KeyValue, opts ...trace.SpanStartOption,
) *span {
	attrs = append(attrs, attribute.String(keyOperation, operation))
	title := strings.TrimSuffix(operation+" "+name, " ")
	return t.start(ctx, title, conversation, append(opts, trace.WithAttributes(attrs...))...)
}

// conversationOf returns what the spans of a user start with.
func (t *Tracer) conversationOf(userID string) []attribute.KeyValue {
	if userID == "" {
		return nil
	}
	return text(nil, keyConversation, t.opts.Conversation(userID))
}

// conversationIn returns the conversation of the span in ctx.
func (t *Tracer) conversationIn(ctx context.Context) []attribute.KeyValue {
	if s := t.spanOf(ctx); s != nil {
		return s.conversation
	}
	return nil
}

// pseudonym is the default of Options.Conversation.
func pseudonym(userID string) string {
	sum := sha256.Sum256([]byte(userID))
	return hex.EncodeToString(sum[:16])
}

// end ends the span. redact masks the text of the error; if it is nil, the
// span has no text.
func (s *span) end(err error, redact func(string) string) {
	if err != nil && s.IsRecording() {
		s.SetAttributes(attribute.String(keyErrorType, errorType(err)))
		description := ""
		if s.tracer.opts.Content && redact != nil {
			description = fault.ClipTo(redact(err.Error()), maxContent)
		}
		s.SetStatus(codes.Error, description)
	}
	s.Span.End()
}

// took returns the seconds since the span began.
func (s *span) took() float64 { return time.Since(s.began).Seconds() }
