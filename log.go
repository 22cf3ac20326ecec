package state

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// RedactHandler returns a handler that masks secrets in log records before it
// passes them to next: the secrets of the given states, and of the State in the
// context of a record ([NewContext]), whatever rights that handle has. Without
// a context, as in slog.Info, only the secrets of the given states are masked:
// nothing is if no states are given. Wrap the handler of the program once:
//
//	slog.SetDefault(slog.New(state.RedactHandler(handler, st)))
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
func RedactHandler(next slog.Handler, states ...*State) slog.Handler {
	return &redactHandler{next: next, derived: next, states: slices.Clone(states), plain: true}
}

// A redactHandler keeps the groups and attributes that it was given, because
// they are masked when a record is handled.
type redactHandler struct {
	next   slog.Handler
	states []*State
	parts  []logPart

	derived slog.Handler             // next, with the groups and attributes as they are
	plain   bool                     // no attribute has methods, so that derived may be used
	clean   atomic.Pointer[Redactor] // the last one that finds nothing in the parts
}

// A logPart is a group that was opened, or attributes.
type logPart struct {
	group string
	attrs []slog.Attr
}

func (h *redactHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *redactHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(logPart{group: name}, h.derived.WithGroup(name))
}

func (h *redactHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	attrs = slices.Clone(attrs)
	return h.with(logPart{attrs: attrs}, h.derived.WithAttrs(attrs))
}

func (h *redactHandler) with(p logPart, derived slog.Handler) *redactHandler {
	plain := h.plain
	for _, a := range p.attrs {
		plain = plain && isPlain(a.Value)
	}
	return &redactHandler{
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

func (h *redactHandler) Handle(ctx context.Context, record slog.Record) error {
	var room [4]*Redactor
	redactors := h.redactors(ctx, room[:0])
	if len(redactors) == 0 || h.plain && h.finding(redactors, &record) == nothingFound {
		return h.derived.Handle(ctx, record)
	}
	m := logMasker(redactors)
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
func (h *redactHandler) redactors(ctx context.Context, all []*Redactor) []*Redactor {
	add := func(s *State) {
		if r := s.hostRedactor(); r != nil && !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, s := range h.states {
		add(s)
	}
	if ctx != nil {
		if s, ok := FromContext(ctx); ok {
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

// logBuffers are for the text of records.
var logBuffers = sync.Pool{New: func() any { return new(logBuffer) }}

type logBuffer struct{ text []byte }

// finding looks for secrets in all texts of a record at once.
func (h *redactHandler) finding(redactors []*Redactor, record *slog.Record) finding {
	b := logBuffers.Get().(*logBuffer)
	defer func() {
		if cap(b.text) <= 64<<10 {
			logBuffers.Put(b)
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
		if r.finds(b.text) {
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
func (b *logBuffer) addText(text string) {
	b.text = append(append(b.text, text...), 0)
}

// addAttr adds an attribute. It reports false for values that it does not know.
func (b *logBuffer) addAttr(a slog.Attr) bool {
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

// plainError returns the text of an error. It reports false if handlers may
// write something else.
func plainError(err error) (text string, ok bool) {
	switch err.(type) {
	case json.Marshaler, encoding.TextMarshaler, fmt.Formatter:
		return "", false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return err.Error(), true
}

// appendScalar appends a number or a time as logs show it.
func appendScalar(dst []byte, v slog.Value) []byte {
	switch v.Kind() {
	case slog.KindInt64:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(dst, v.Uint64(), 10)
	case slog.KindFloat64:
		f := v.Float64()
		dst = strconv.AppendFloat(dst, f, 'g', -1, 64)
		if abs := math.Abs(f); abs >= 1e-4 && abs < 1e6 {
			return dst // the other format has no exponent either
		}
		return strconv.AppendFloat(append(dst, 0), f, 'f', -1, 64)
	case slog.KindDuration:
		return strconv.AppendInt(dst, int64(v.Duration()), 10)
	case slog.KindTime:
		return v.Time().AppendFormat(dst, time.RFC3339Nano)
	}
	return dst
}

// A logMasker masks the parts of records.
type logMasker []*Redactor

func (m logMasker) text(text string) string {
	for _, r := range m {
		text = r.Redact(text)
	}
	return text
}

func (m logMasker) attr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: m.text(a.Key), Value: m.value(a.Value.Resolve())}
}

// value returns v itself if it has nothing to mask.
func (m logMasker) value(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(m.text(v.String()))
	case slog.KindGroup:
		var attrs []slog.Attr
		for _, a := range v.Group() {
			attrs = append(attrs, m.attr(a))
		}
		return slog.GroupValue(attrs...)
	case slog.KindAny:
		return m.any(v)
	}
	text := string(appendScalar(nil, v))
	if m.text(text) != text {
		return slog.StringValue(mask)
	}
	return v
}

// any masks a value by all that a handler may write for it.
func (m logMasker) any(v slog.Value) (masked slog.Value) {
	x := v.Any()
	defer func() {
		if recover() != nil {
			masked = slog.StringValue("!PANIC") // the message may have a secret
			if p := reflect.ValueOf(x); p.Kind() == reflect.Pointer && p.IsNil() {
				masked = slog.StringValue("<nil>")
			}
		}
	}()
	if x == nil {
		return v
	}
	if data, ok := x.([]byte); ok {
		if text := m.text(string(data)); text != string(data) {
			return slog.StringValue(text)
		}
		return v
	}
	if err, ok := x.(error); ok {
		if text, ok := plainError(err); ok {
			if masked := m.text(text); masked != text {
				return slog.StringValue(masked)
			}
			return v
		}
	}
	return m.written(v)
}

// written masks a value by its text and its JSON.
func (m logMasker) written(v slog.Value) slog.Value {
	x := v.Any()
	data, err := encodeJSON(x)
	if cycle := (*json.UnsupportedValueError)(nil); errors.As(err, &cycle) && !cycle.Value.CanFloat() {
		return slog.StringValue("!ERROR: " + m.text(err.Error())) // printing it would not end
	}
	text := fmt.Sprintf("%+v", x)
	if t, ok := x.(encoding.TextMarshaler); ok {
		if b, err := t.MarshalText(); err == nil {
			text += "\x00" + string(b)
		}
	}
	if m.text(text) == text && m.text(string(data)) == string(data) {
		return v
	}
	switch t := x.(type) {
	case encoding.TextMarshaler:
		b, err := t.MarshalText()
		if err != nil {
			return slog.StringValue("!ERROR: " + m.text(err.Error()))
		}
		return slog.StringValue(m.text(string(b)))
	case error, fmt.Stringer, fmt.Formatter:
		return slog.StringValue(m.text(text))
	}
	if hidden := m.text(string(data)); err == nil && json.Valid([]byte(hidden)) {
		return slog.AnyValue(json.RawMessage(hidden))
	}
	return slog.StringValue(m.text(text))
}

// encodeJSON returns the JSON of a value as slog's handler writes it.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
