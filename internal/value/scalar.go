package value

import (
	"reflect"
	"strconv"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// plain is what the codecs of scalars have in common.
type plain struct{}

func (plain) check(_ reflect.Value, w *walk) error { return w.add(scalarSize) }
func (plain) isolate(reflect.Value, bool) error    { return nil }

type boolCodec struct{ plain }

func (boolCodec) tree(v reflect.Value, _ *walk) (any, error) { return v.Bool(), nil }

func (boolCodec) convert(dst reflect.Value, src any, w *walk) error {
	b, ok := src.(bool)
	if !ok {
		return w.fail(nameOf(dst.Type()), kindOf(src))
	}
	dst.SetBool(b)
	return nil
}

func (boolCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendBool(dst, v.Bool()), nil
}

func (boolCodec) equal(a, b reflect.Value) bool { return a.Bool() == b.Bool() }

type intCodec struct{ plain }

func (intCodec) tree(v reflect.Value, _ *walk) (any, error) { return v.Int(), nil }

func (intCodec) convert(dst reflect.Value, src any, w *walk) error {
	n, ok := toInt(src)
	if !ok || dst.OverflowInt(n) {
		return w.fail(nameOf(dst.Type()), reasonOf(src))
	}
	dst.SetInt(n)
	return nil
}

func (intCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendInt(dst, v.Int(), 10), nil
}

func (intCodec) equal(a, b reflect.Value) bool { return a.Int() == b.Int() }

type uintCodec struct{ plain }

func (uintCodec) tree(v reflect.Value, _ *walk) (any, error) { return normalUint(v.Uint()), nil }

func (uintCodec) convert(dst reflect.Value, src any, w *walk) error {
	n, ok := toUint(src)
	if !ok || dst.OverflowUint(n) {
		return w.fail(nameOf(dst.Type()), reasonOf(src))
	}
	dst.SetUint(n)
	return nil
}

func (uintCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	return strconv.AppendUint(dst, v.Uint(), 10), nil
}

func (uintCodec) equal(a, b reflect.Value) bool { return a.Uint() == b.Uint() }

type floatCodec struct{ plain }

func (floatCodec) check(v reflect.Value, w *walk) error {
	if err := w.add(scalarSize); err != nil {
		return err
	}
	if !finite(v.Float()) {
		return w.fail("a finite number", "NaN or infinity")
	}
	return nil
}

func (floatCodec) tree(v reflect.Value, w *walk) (any, error) { return tree(v.Float(), w) }

func (floatCodec) convert(dst reflect.Value, src any, w *walk) error {
	f, ok := toFloat(src, dst.Type().Bits())
	if !ok || dst.OverflowFloat(f) {
		return w.fail(nameOf(dst.Type()), reasonOf(src))
	}
	dst.SetFloat(f)
	return nil
}

func (floatCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	f := v.Float()
	if !finite(f) {
		return dst, &fault.Error{Path: "$", Want: "a finite number", Got: "NaN or infinity"}
	}
	return appendFloat(dst, f, v.Type().Bits()), nil
}

func (floatCodec) equal(a, b reflect.Value) bool { return a.Float() == b.Float() }

type stringCodec struct{ plain }

func (stringCodec) check(v reflect.Value, w *walk) error { return w.addString(v.String(), 2) }

func (stringCodec) tree(v reflect.Value, _ *walk) (any, error) { return v.String(), nil }

func (stringCodec) convert(dst reflect.Value, src any, w *walk) error {
	s, ok := src.(string)
	if !ok {
		return w.fail(nameOf(dst.Type()), kindOf(src))
	}
	dst.SetString(s)
	return nil
}

func (stringCodec) append(dst []byte, v reflect.Value) ([]byte, error) {
	return jsontext.AppendQuote(dst, v.String()), nil
}

func (stringCodec) equal(a, b reflect.Value) bool { return a.String() == b.String() }
