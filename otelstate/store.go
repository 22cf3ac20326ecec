package otelstate

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/store"
)

// Store returns a store with a span and a measurement of
// db.client.operation.duration for each call of s, but not for Watch and
// Announce, which last. It has the optional interfaces of package store that s
// has. Keys and values are not exported. Do not use it with instrumentation of
// the database itself, such as otelsql: each call would have two spans.
func Store(s store.Store, t *Tracer) store.Store {
	traced := &tracedStore{s, t}
	shape := 0
	for i, has := range []bool{is[store.Batcher](s), is[store.Watcher](s), is[store.Lister](s), is[store.Presence](s), is[store.Purger](s)} {
		if has {
			shape |= 1 << i
		}
	}
	if is[store.Transactor](s) {
		shape |= hasTransactor
	}
	return traced.shaped(shape)
}

func is[T any](s store.Store) bool {
	_, ok := s.(T)
	return ok
}

// tracedStore has the methods that all stores have.
type tracedStore struct {
	store  store.Store
	tracer *Tracer
}

// storeSpans are what the spans of the methods start with.
var storeSpans = newStoreSpans("get", "put", "delete", "scan", "batch", "list", "is_present", "purge", "transact")

func newStoreSpans(methods ...string) map[string]spanStart {
	spans := map[string]spanStart{}
	for _, name := range methods {
		spans[name] = spanStart{"store " + name, []trace.SpanStartOption{
			trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(attribute.String(keyDBSystem, systemName), attribute.String(keyDBOperation, name)),
		}}
	}
	return spans
}

// begin starts the span of a call.
func (s *tracedStore) begin(ctx context.Context, name string) (context.Context, func(error)) {
	t, began, start := s.tracer, time.Now(), storeSpans[name]
	ctx, span := t.tracer.Start(ctx, start.name, start.opts...)
	return ctx, func(err error) {
		if errors.Is(err, store.ErrNotFound) {
			err = nil // an answer
		}
		t.instruments.dbDuration.record(ctx, time.Since(began).Seconds(), func() metricAttributes {
			return text(metricAttributes{attribute.String(keyDBSystem, systemName), attribute.String(keyDBOperation, name)},
				keyErrorType, errorType(err))
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

// The types below have the methods of one optional interface each.

type batches struct{ of *tracedStore }

func (b batches) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	ctx, end := b.of.begin(ctx, "batch")
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.Int(keyDBBatch, len(writes)))
	}
	revs, err := b.of.store.(store.Batcher).Batch(ctx, writes)
	end(err)
	return revs, err
}

type transacts struct{ of *tracedStore }

func (t transacts) Transact(ctx context.Context, writes []store.Write, fn func(*sql.Tx) error) ([]store.Revision, error) {
	ctx, end := t.of.begin(ctx, "transact")
	revs, err := t.of.store.(store.Transactor).Transact(ctx, writes, fn)
	end(err)
	return revs, err
}

func (t transacts) In(tx *sql.Tx) store.Batcher { return t.of.store.(store.Transactor).In(tx) }

type watches struct{ of *tracedStore }

func (w watches) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	return w.of.store.(store.Watcher).Watch(ctx, prefix)
}

type lists struct{ of *tracedStore }

func (l lists) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	return traceAll(l.of, ctx, "list", func(ctx context.Context) iter.Seq2[string, error] {
		return l.of.store.(store.Lister).List(ctx, prefix, after)
	})
}

type announces struct{ of *tracedStore }

func (a announces) Announce(ctx context.Context, name string) (lost <-chan struct{}, withdraw func() error, err error) {
	return a.of.store.(store.Presence).Announce(ctx, name)
}

func (a announces) IsPresent(ctx context.Context, name string) (bool, error) {
	ctx, end := a.of.begin(ctx, "is_present")
	present, err := a.of.store.(store.Presence).IsPresent(ctx, name)
	end(err)
	return present, err
}

type purges struct{ of *tracedStore }

func (p purges) Purge(ctx context.Context, keys ...string) error {
	ctx, end := p.of.begin(ctx, "purge")
	err := p.of.store.(store.Purger).Purge(ctx, keys...)
	end(err)
	return err
}
