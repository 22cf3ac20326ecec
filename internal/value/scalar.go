package value

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/number"
	"github.com/agentstate/state/internal/value/walk"
)

// scalarCodec is what the codecs of scalars have in common: one size for every
// value, and no memory behind it.
type scalarCodec struct {
	name string // of the type, in errors
}

func (scalarCodec) addSize(_ reflect.Value, w *walk.Walk) error { return w.Add(walk.ScalarSize) }
func (scalarCodec) copyInPlace(reflect.Value, bool) error       { return nil }

// refuseKind reports a source of another kind.
func (c scalarCodec) refuseKind(src any, w *walk.Walk) error { return w.Fail(c.name, kindOf(src)) }

// refuseNumber reports a source of another kind, or a number that does not fit.
func (c scalarCodec) refuseNumber(src any, w *walk.Walk) error {
	got := kindOf(src)
	if got == "number" {
		got = "a number it cannot hold"
	}
	return w.Fail(c.name, got)
}

type boolCodec struct{ scalarCodec }

func (boolCodec) makeTree(v reflect.Value, _ *walk.Walk) (any, error) { return v.Bool(), nil }

func (c boolCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	b, ok := src.(bool)
	if !ok {
		return c.refuseKind(src, w)
	}
	dst.SetBool(b)
	return nil
}

func (boolCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendBool(dst, v.Bool()), nil
}

func (boolCodec) isEqual(a, b reflect.Value) bool { return a.Bool() == b.Bool() }

type intCodec struct{ scalarCodec }

func (intCodec) makeTree(v reflect.Value, _ *walk.Walk) (any, error) { return v.Int(), nil }

func (c intCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	n, ok := number.ToInt(src)
	if !ok || dst.OverflowInt(n) {
		return c.refuseNumber(src, w)
	}
	dst.SetInt(n)
	return nil
}

func (intCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendInt(dst, v.Int(), 10), nil
}

func (intCodec) isEqual(a, b reflect.Value) bool { return a.Int() == b.Int() }

type uintCodec struct{ scalarCodec }

func (uintCodec) makeTree(v reflect.Value, _ *walk.Walk) (any, error) {
	return number.NormalizeUint(v.Uint()), nil
}

func (c uintCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	n, ok := number.ToUint(src)
	if !ok || dst.OverflowUint(n) {
		return c.refuseNumber(src, w)
	}
	dst.SetUint(n)
	return nil
}

func (uintCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendUint(dst, v.Uint(), 10), nil
}

func (uintCodec) isEqual(a, b reflect.Value) bool { return a.Uint() == b.Uint() }

type floatCodec struct{ scalarCodec }

func (floatCodec) addSize(v reflect.Value, w *walk.Walk) error { return w.AddFloat(v.Float()) }

func (floatCodec) makeTree(v reflect.Value, _ *walk.Walk) (any, error) { return v.Float(), nil }

func (c floatCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	f, ok := number.ToFloat(src, dst.Type().Bits())
	if !ok || dst.OverflowFloat(f) {
		return c.refuseNumber(src, w)
	}
	dst.SetFloat(f)
	return nil
}

func (floatCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	f := v.Float()
	if !number.IsFinite(f) {
		return dst, &fault.Error{Path: "$", Want: "a finite number", Got: "NaN or infinity"}
	}
	return number.AppendFloat(dst, f, v.Type().Bits()), nil
}

func (floatCodec) isEqual(a, b reflect.Value) bool { return a.Float() == b.Float() }

type stringCodec struct{ scalarCodec }

func (stringCodec) addSize(v reflect.Value, w *walk.Walk) error { return w.AddString(v.String()) }

func (stringCodec) makeTree(v reflect.Value, _ *walk.Walk) (any, error) { return v.String(), nil }

func (c stringCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	s, ok := src.(string)
	if !ok {
		return c.refuseKind(src, w)
	}
	dst.SetString(s)
	return nil
}

func (stringCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return jsontext.AppendQuote(dst, v.String()), nil
}

func (stringCodec) isEqual(a, b reflect.Value) bool { return a.String() == b.String() }

// numberCodec is for json.Number, which keeps its text.
type numberCodec struct{ scalarCodec }

func (numberCodec) addSize(v reflect.Value, w *walk.Walk) error {
	return addNumber(json.Number(v.String()), w)
}

// addNumber counts and checks a json.Number that stays text.
func addNumber(n json.Number, w *walk.Walk) error {
	if err := w.Add(max(len(n), walk.ScalarSize)); err != nil {
		return err
	}
	if !number.IsValid(string(n)) {
		return w.Fail("a number", "other text")
	}
	return nil
}

func (numberCodec) makeTree(v reflect.Value, w *walk.Walk) (any, error) {
	return normalizeNumber(json.Number(v.String()), w)
}

// normalizeNumber returns n as it is in a tree.
func normalizeNumber(n json.Number, w *walk.Walk) (any, error) {
	if w.Exact {
		return n, nil
	}
	normal, ok := number.Normalize(n)
	if !ok {
		return nil, w.Fail("a number that int64, uint64 or float64 holds", "another number")
	}
	return normal, nil
}

func (c numberCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	switch n := src.(type) {
	case int64, uint64:
		dst.SetString(string(number.Append(nil, n)))
	case float64:
		dst.SetString(string(number.AppendFloat(nil, n, 64)))
	case json.Number:
		dst.SetString(string(n))
	default:
		return c.refuseKind(src, w)
	}
	return nil
}

func (numberCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	return number.Append(dst, json.Number(v.String())), nil
}

// isEqual compares the texts: to a reader of json.Number 1 is not 1.0. Only the
// zero value and its JSON are the same.
func (numberCodec) isEqual(a, b reflect.Value) bool {
	x, y := a.String(), b.String()
	return x == y || x == "" && y == "0" || x == "0" && y == ""
}

// timeCodec is for time.Time, which has no memory behind it that can change.
type timeCodec struct{ scalarCodec }

// timeSize is about the length of RFC 3339.
const timeSize = 32

// encodableTime returns the time in a zone that RFC 3339 can spell: its offsets
// are whole minutes of less than a day.
func encodableTime(v reflect.Value) time.Time {
	t := v.Interface().(time.Time)
	if _, offset := t.Zone(); offset%60 != 0 || offset <= -24*3600 || offset >= 24*3600 {
		return t.UTC()
	}
	return t
}

func (timeCodec) addSize(v reflect.Value, w *walk.Walk) error {
	if err := w.Add(timeSize); err != nil {
		return err
	}
	if year := encodableTime(v).Year(); year < 0 || year > 9999 {
		return w.Fail("a year from 0 to 9999", "another")
	}
	return nil
}

func (timeCodec) makeTree(v reflect.Value, _ *walk.Walk) (any, error) {
	return encodableTime(v).Format(time.RFC3339Nano), nil
}

func (c timeCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	s, ok := src.(string)
	if !ok {
		return c.refuseKind(src, w)
	}
	var t time.Time
	if t.UnmarshalText([]byte(s)) != nil { // stricter than time.Parse
		return w.Fail("a date as in RFC 3339", "other text")
	}
	dst.Set(reflect.ValueOf(t))
	return nil
}

func (timeCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	dst = encodableTime(v).AppendFormat(append(dst, '"'), time.RFC3339Nano)
	return append(dst, '"'), nil
}

func (timeCodec) isEqual(a, b reflect.Value) bool {
	return a.Interface().(time.Time).Equal(b.Interface().(time.Time))
}

// bytesCodec is for []byte, which is a string in base64 to JSON.
type bytesCodec struct{ scalarCodec }

func (bytesCodec) addSize(v reflect.Value, w *walk.Walk) error {
	return w.Add(base64.StdEncoding.EncodedLen(v.Len()) + 2)
}

func (bytesCodec) copyInPlace(v reflect.Value, _ bool) error {
	if !v.IsNil() {
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(c, v)
		v.Set(c)
	}
	return nil
}

func (bytesCodec) makeTree(v reflect.Value, _ *walk.Walk) (any, error) {
	return base64.StdEncoding.EncodeToString(v.Bytes()), nil
}

func (c bytesCodec) convert(dst reflect.Value, src any, w *walk.Walk) error {
	switch s := src.(type) {
	case nil:
		dst.SetBytes([]byte{})
		return nil
	case string:
		b, err := base64.StdEncoding.Strict().DecodeString(s)
		if err != nil {
			return w.Fail("base64", "other text")
		}
		dst.SetBytes(b)
		return nil
	}
	return c.refuseKind(src, w)
}

func (bytesCodec) appendJSON(dst []byte, v reflect.Value) ([]byte, error) {
	dst = base64.StdEncoding.AppendEncode(append(dst, '"'), v.Bytes())
	return append(dst, '"'), nil
}

func (bytesCodec) isEqual(a, b reflect.Value) bool { return bytes.Equal(a.Bytes(), b.Bytes()) }
