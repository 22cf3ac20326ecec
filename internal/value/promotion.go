package value

import (
	"bytes"
	"reflect"
)

// sampleLevels is the nesting up to which a sample is filled. It ends the
// recursion in types that contain themselves.
const sampleLevels = 8

// writesOnlyEmbedded reports whether the coding method of a struct type writes
// nothing but an embedded field. That is the case if the method is promoted
// from the field, and then all other fields of the struct would be lost.
//
// Reflection does not tell a promoted method from one that the struct declares:
// the method sets are the same. Only if an embedded type has the method as
// well, the two are compared by what they write of a struct whose other fields
// are set. If neither can write it, the answer is true: losing fields is worse
// than refusing a type.
func (m *methodCodec) writesOnlyEmbedded() bool {
	for i := range m.typ.NumField() {
		inner := methodCodec{typ: m.typ.Field(i).Type, text: m.text}
		if inner.typ.Kind() == reflect.Pointer {
			inner.typ = inner.typ.Elem()
		}
		if !m.typ.Field(i).Anonymous || !inner.canEncode() {
			continue
		}
		sample := reflect.New(m.typ).Elem()
		for j := range m.typ.NumField() {
			if j != i {
				fillSample(sample.Field(j), sampleLevels)
			}
		}
		embedded := reflect.New(inner.typ)
		if f := sample.Field(i); f.Kind() == reflect.Pointer && f.CanSet() {
			f.Set(embedded)
		} else if f.Kind() == reflect.Pointer {
			embedded = reflect.Zero(f.Type()) // it stays nil in the sample
		}
		whole, wholeErr := m.encode(sample)
		part, partErr := inner.encodePointer(embedded)
		if (wholeErr == nil) == (partErr == nil) && bytes.Equal(whole, part) {
			return true
		}
	}
	return false
}

func (m *methodCodec) canEncode() bool {
	method := marshalerType
	if m.text {
		method = textMarshalerType
	}
	return m.typ.Implements(method) || reflect.PointerTo(m.typ).Implements(method)
}

// fillSample sets v, as far as it can be set, to a value other than zero, with
// at most so many levels.
func fillSample(v reflect.Value, levels int) {
	if !v.CanSet() || levels == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(1)
	case reflect.String:
		v.SetString("x")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillSample(v.Index(0), levels-1)
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillSample(key, levels-1)
		fillSample(elem, levels-1)
		v.Set(reflect.MakeMapWithSize(v.Type(), 1))
		if key.Comparable() {
			v.SetMapIndex(key, elem)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillSample(v.Elem(), levels-1)
	case reflect.Struct:
		for i := range v.NumField() {
			fillSample(v.Field(i), levels-1)
		}
	}
}
