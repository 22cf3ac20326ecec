// Package redactlog masks the secrets of States in logs of package log/slog.
package redactlog

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/agentstate/state"
)

// New returns a handler that masks secrets in log records before it passes them
// to next: the secrets of the given states, and of the State in the context of a
// record ([state.NewContext]), whatever rights that handle has. Without a
// context, as in slog.Info, only the secrets of the given states are masked:
// nothing is if no states are given. Wrap the handler of the program once:
//
//	slog.SetDefault(slog.New(redactlog.New(handler, st)))
//
// The message, keys, names of groups and all values are masked: strings, bytes,
// numbers, errors and what other values write as text or as JSON. LogValuers
// are resolved first. A value without secrets is passed on unchanged. One with
// secrets becomes a string, or JSON if it is a struct, a map or a list. The
// value of a method that panics is !PANIC.
//
// Secrets are looked up for each record, also for attributes that Logger.With
// was given before a secret was set. Values that are not set any more are not
// masked.
func New(next slog.Handler, states ...*state.State) slog.Handler {
	return &handler{next: next, derived: next, states: slices.Clone(states), plain: true}
}

// A handler keeps the groups and attributes that it was given, because they are
// masked when a record is handled.
type handler struct {
	next   slog.Handler
	states []*state.State
	parts  []part

	derived slog.Handler                   // next, with the groups and attributes as they are
	plain   bool                           // no attribute has methods, so that derived may be used
	clean   atomic.Pointer[state.Redactor] // the last one that finds nothing in the parts
}

// A part is a group that was opened, or attributes.
type part struct {
	group string
	attrs []slog.Attr
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(part{group: name}, h.derived.WithGroup(name))
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	attrs = slices.Clone(attrs)
	return h.with(part{attrs: attrs}, h.derived.WithAttrs(attrs))
}

func (h *handler) with(p part, derived slog.Handler) *handler {
	plain := h.plain
	for _, a := range p.attrs {
		plain = plain && isPlain(a.Value)
	}
	return &handler{
		next: h.next, states: h.states, parts: append(slices.Clip(h.parts), p),
		derived: derived, plain: plain,
	}
}

// isPlain reports whether a value has no methods of its own.
func isPlain(v slog.Value) bool {
	switch v.Kind() {
	case slog.KindAny, slog.KindLogValuer:
		return false
	case slog.KindGroup:
		return !slices.ContainsFunc(v.Group(), func(a slog.Attr) bool { return !isPlain(a.Value) })
	}
	return true
}

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	var room [4]*state.Redactor
	redactors := h.redactors(ctx, room[:0])
	if len(redactors) == 0 || h.plain && h.finding(redactors, &record) == nothingFound {
		return h.derived.Handle(ctx, record)
	}
	m := masker(redactors)
	masked := slog.NewRecord(record.Time, record.Level, m.text(record.Message), record.PC)
	var attrs []slog.Attr
	record.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, m.attr(a))
		return true
	})
	for _, p := range slices.Backward(h.parts) {
		if p.group != "" {
			attrs = []slog.Attr{{Key: m.text(p.group), Value: slog.GroupValue(attrs...)}}
			continue
		}
		outer := make([]slog.Attr, 0, len(p.attrs)+len(attrs))
		for _, a := range p.attrs {
			outer = append(outer, m.attr(a))
		}
		attrs = append(outer, attrs...)
	}
	masked.AddAttrs(attrs...)
	return h.next.Handle(ctx, masked)
}

// redactors appends the Redactors of a record, with the rights of the host.
func (h *handler) redactors(ctx context.Context, all []*state.Redactor) []*state.Redactor {
	add := func(s *state.State) {
		if r := inside.HostRedactor(s); r != nil && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, s := range h.states {
		add(s)
	}
	if ctx != nil {
		if s, ok := state.FromContext(ctx); ok {
			add(s)
		}
	}
	return all
}

// A finding says whether a record has something to mask.
type finding bool

const (
	nothingFound finding = false
	mayBeFound   finding = true // or it has values with methods
)

// buffers are for the text of records.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

type buffer struct{ text []byte }

// finding looks for secrets in all texts of a record at once.
func (h *handler) finding(redactors []*state.Redactor, record *slog.Record) finding {
	b := buffers.Get().(*buffer)
	defer func() {
		if cap(b.text) <= 64<<10 {
			buffers.Put(b)
		}
	}()
	b.text = b.text[:0]
	b.addText(record.Message)
	known := true
	record.Attrs(func(a slog.Attr) bool {
		known = b.addAttr(a)
		return known
	})
	if !known {
		return mayBeFound
	}
	checked := len(h.parts) == 0 || len(redactors) == 1 && h.clean.Load() == redactors[0]
	if !checked {
		for _, p := range h.parts {
			b.addText(p.group)
			for _, a := range p.attrs {
				b.addAttr(a)
			}
		}
	}
	for _, r := range redactors {
		if inside.Finds(r, b.text) {
			return mayBeFound
		}
	}
	if !checked {
		h.clean.Store(redactors[0])
	}
	return nothingFound
}

// addText adds a text. No secret goes on over the end of one: at worst, one
// that contains a NUL is seen where it is not.
func (b *buffer) addText(text string) {
	b.text = append(append(b.text, text...), 0)
}

// addAttr adds an attribute. It reports false for values that it does not know.
func (b *buffer) addAttr(a slog.Attr) bool {
	b.addText(a.Key)
	switch v := a.Value; v.Kind() {
	case slog.KindGroup:
		for _, a := range v.Group() {
			if !b.addAttr(a) {
				return false
			}
		}
	case slog.KindAny:
		switch x := v.Any().(type) {
		case nil:
		case []byte:
			return false
		case error:
			text, ok := plainError(x)
			b.addText(text)
			return ok
		default:
			return false
		}
	case slog.KindLogValuer:
		return false
	case slog.KindString:
		b.addText(v.String())
	default:
		b.text = append(appendScalar(b.text, v), 0)
	}
	return true
}
