package otelstate

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/store"
)

// Store returns a store with a span and a measurement of
// db.client.operation.duration for each call of s, but not for Watch,
// which lasts. It is a [store.Wrapper]: by [store.As], it has the
// optional interfaces of package store that s has. Keys and values are not
// exported. Do not use it with instrumentation of the database itself, such as
// otelsql: each call would have two spans.
func Store(s store.Store, t *Tracer) store.Store { return &tracedStore{s, t} }

// tracedStore is a Wrapper with the methods of all optional interfaces.
type tracedStore struct {
	store  store.Store
	tracer *Tracer
}

func (s *tracedStore) Unwrap() store.Store { return s.store }

// storeCalls are what the calls of the methods start with.
var storeCalls = newStoreCalls("get", "batch", "list", "transact")

type storeCall struct {
	spanStart
	measured metric.MeasurementOption // of a call without an error
}

func newStoreCalls(methods ...string) map[string]storeCall {
	calls := map[string]storeCall{}
	for _, name := range methods {
		start := spanStart{"store " + name, []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(dbAttributes(name)...),
		}}
		calls[name] = storeCall{start, metric.WithAttributes(dbAttributes(name)...)}
	}
	return calls
}

func dbAttributes(method string) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String(keyDBSystem, systemName), attribute.String(keyDBOperation, method)}
}

// begin starts the span of a call.
func (s *tracedStore) begin(ctx context.Context, name string) (context.Context, func(error)) {
	t, began, start := s.tracer, time.Now(), storeCalls[name]
	ctx, span := t.tracer.Start(ctx, start.name, start.opts...)
	return ctx, func(err error) {
		t.instruments.dbDuration.record(ctx, time.Since(began).Seconds(), func() metric.MeasurementOption {
			if err == nil {
				return start.measured
			}
			return metric.WithAttributes(append(dbAttributes(name), attribute.String(keyErrorType, errorType(err)))...)
		})
		if err != nil && span.IsRecording() {
			span.SetAttributes(attribute.String(keyErrorType, errorType(err)))
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

func (s *tracedStore) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	ctx, end := s.begin(ctx, "get")
	if len(keys) > 1 {
		setBatchSize(ctx, len(keys))
	}
	entries, err := s.store.Get(ctx, keys...)
	end(err)
	return entries, err
}

func (s *tracedStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	ctx, end := s.begin(ctx, "batch")
	if len(writes) > 1 {
		setBatchSize(ctx, len(writes))
	}
	revs, err := s.store.Batch(ctx, writes)
	end(err)
	return revs, err
}

// List makes a span that lasts until the iteration ends.
func (s *tracedStore) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		ctx, end := s.begin(ctx, "list")
		var failed error
		defer func() { end(failed) }()
		for e, err := range s.store.List(ctx, prefix, after, values) {
			if err != nil {
				failed = err
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

func (s *tracedStore) Durability() store.Durability { return s.store.Durability() }
func (s *tracedStore) Close() error                 { return s.store.Close() }

// unsupported is the error of a method of an optional interface that the store
// does not have.
func unsupported(op string) error {
	return &store.Error{Store: "traced", Op: op, Err: errors.ErrUnsupported}
}

// setBatchSize notes in the span of a call how many keys it has.
func setBatchSize(ctx context.Context, n int) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.Int(keyDBBatch, n))
	}
}

func (s *tracedStore) Transact(ctx context.Context, writes []store.Write, fn func(*sql.Tx) error) ([]store.Revision, error) {
	db, ok := store.As[store.Transactor](s.store)
	if !ok {
		return nil, unsupported("transact")
	}
	ctx, end := s.begin(ctx, "transact")
	revs, err := db.Transact(ctx, writes, fn)
	end(err)
	return revs, err
}

// In returns a store whose calls are not traced, or nil if the store is not a
// Transactor.
func (s *tracedStore) In(tx *sql.Tx) store.Store {
	db, ok := store.As[store.Transactor](s.store)
	if !ok {
		return nil
	}
	return db.In(tx)
}

func (s *tracedStore) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	db, ok := store.As[store.Watcher](s.store)
	if !ok {
		return func(yield func(store.Event, error) bool) { yield(store.Event{}, unsupported("watch")) }
	}
	return db.Watch(ctx, prefix)
}
