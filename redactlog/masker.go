package redactlog

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/agentstate/state"
)

// mask is shown in place of a secret.
var mask = state.Masked{}.String()

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

// A masker masks the parts of records.
type masker []*state.Redactor

func (m masker) text(text string) string {
	for _, r := range m {
		text = r.Redact(text)
	}
	return text
}

func (m masker) attr(a slog.Attr) slog.Attr {
	return slog.Attr{Key: m.text(a.Key), Value: m.value(a.Value.Resolve())}
}

// value returns v itself if it has nothing to mask.
func (m masker) value(v slog.Value) slog.Value {
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
func (m masker) any(v slog.Value) (masked slog.Value) {
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
func (m masker) written(v slog.Value) slog.Value {
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
