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
var storeCalls = newStoreCalls("get", "put", "delete", "get_multi", "scan", "batch", "list", "transact")

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
		if errors.Is(err, store.ErrNotFound) {
			err = nil // an answer
		}
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

func (s *tracedStore) Get(ctx context.Context, key string) (store.Entry, error) {
	ctx, end := s.begin(ctx, "get")
	e, err := s.store.Get(ctx, key)
	end(err)
	return e, err
}

func (s *tracedStore) Put(ctx context.Context, key string, value []byte, cond store.Condition) (store.Revision, error) {
	ctx, end := s.begin(ctx, "put")
	rev, err := s.store.Put(ctx, key, value, cond)
	end(err)
	return rev, err
}

func (s *tracedStore) Delete(ctx context.Context, key string, cond store.Condition) error {
	ctx, end := s.begin(ctx, "delete")
	err := s.store.Delete(ctx, key, cond)
	end(err)
	return err
}

func (s *tracedStore) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	return traceAll(s, ctx, "scan", func(ctx context.Context) iter.Seq2[store.Entry, error] {
		return s.store.Scan(ctx, prefix, after)
	})
}

func (s *tracedStore) Durability() store.Durability { return s.store.Durability() }
func (s *tracedStore) Close() error                 { return s.store.Close() }

// traceAll makes a span that lasts until an iteration ends.
func traceAll[T any](
	s *tracedStore, ctx context.Context, name string, all func(ctx context.Context) iter.Seq2[T, error],
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		ctx, end := s.begin(ctx, name)
		var failed error
		defer func() { end(failed) }()
		for v, err := range all(ctx) {
			if err != nil {
				failed = err
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

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

func (s *tracedStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	ctx, end := s.begin(ctx, "batch")
	setBatchSize(ctx, len(writes))
	revs, err := s.store.Batch(ctx, writes)
	end(err)
	return revs, err
}

func (s *tracedStore) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	db, ok := store.As[store.MultiGetter](s.store)
	if !ok {
		return nil, unsupported("get multi")
	}
	ctx, end := s.begin(ctx, "get_multi")
	setBatchSize(ctx, len(keys))
	entries, err := db.GetMulti(ctx, keys...)
	end(err)
	return entries, err
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

func (s *tracedStore) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	db, ok := store.As[store.Lister](s.store)
	if !ok {
		return func(yield func(string, error) bool) { yield("", unsupported("list")) }
	}
	return traceAll(s, ctx, "list", func(ctx context.Context) iter.Seq2[string, error] {
		return db.List(ctx, prefix, after)
	})
}
