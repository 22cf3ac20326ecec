package value

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value/walk"
)

// Limits bound a value.
type Limits = walk.Limits

// A Plan is what is known about a type. It is immutable and safe for
// concurrent use. Its methods take values of exactly that type.
//
// Every method may call code of the types themselves, such as MarshalJSON or
// Clone. If that code panics, the method treats it as an error.
type Plan struct {
	typ    reflect.Type
	codec  codec
	values dynamicValues // for parts and sources whose types are known late
	text   textConverter // codec, if it is one
	source sourceConverter

	name        string // for Describe
	scalar      bool   // a plain bool, number or string
	flat        bool   // assignment is a copy
	callsCode   bool   // it or a part of it has coding methods
	dynamic     bool   // it or a part of it is any
	treeDiffers bool   // normalising may change the size of a value, or refuse it
	fixedSize   int    // > 0: every value has this size and needs no check
}

// A codec does the work of a Plan for one kind of type. Its parts are Plans, so
// that codecs need not know each other.
type codec interface {
	// addSize counts the size of v and checks it.
	addSize(v reflect.Value, w *walk.Walk) error
	// copyInPlace replaces the memory that v, a settable shallow copy, shares
	// with the original. If normalize is set, parts of type any are normalised,
	// which is the only cause of errors. It is not called for flat types.
	copyInPlace(v reflect.Value, normalize bool) error
	// makeTree returns v, which has been checked, as a fresh tree.
	makeTree(v reflect.Value, w *walk.Walk) (any, error)
	// convert sets dst, a settable zero value, from src, a tree whose parts may
	// be anything. It copies what it takes from src.
	convert(dst reflect.Value, src any, w *walk.Walk) error
	// appendJSON appends the JSON of v.
	appendJSON(dst []byte, v reflect.Value) ([]byte, error)
	// isEqual reports whether no reader can tell a from b.
	isEqual(a, b reflect.Value) bool
}

// A textConverter is a codec that reads JSON text itself instead of its tree:
// types with coding methods must see numbers, escapes and the order of members
// as they were spelled. If it is not done, the tree of the text is converted.
type textConverter interface {
	convertText(dst reflect.Value, src jsonText, w *walk.Walk) (done bool, err error)
}

// A sourceConverter is a codec that looks at the source itself before its tree.
// If it is not done, the tree is converted.
type sourceConverter interface {
	convertSource(dst reflect.Value, src any, w *walk.Walk) (done bool, err error)
}

// dynamicValues handles values whose type is known at run time only. It finds
// their plans, which codecs cannot: plans are made of codecs.
type dynamicValues interface {
	// normalizeValue returns any measured value as a fresh tree.
	normalizeValue(x any, w *walk.Walk) (any, error)
	// decodeShape returns any measured value as a tree, the parts of which may
	// be other values or share memory with x.
	decodeShape(x any, w *walk.Walk) (any, error)
	// appendValue appends the JSON of any value as a type with coding methods
	// may read it: as encoding/json spells it, whole floats without a fraction.
	appendValue(dst []byte, x any) ([]byte, error)
}

// jsonText is checked JSON as a source of a conversion. It is taken apart only
// as far as the target has parts.
type jsonText []byte

// convertFrom sets dst, a settable zero value of the plan's type, from any
// measured value.
func (p *Plan) convertFrom(dst reflect.Value, src any, w *walk.Walk) error {
	if text, ok := src.(jsonText); ok {
		if p.text != nil {
			if done, err := p.text.convertText(dst, text, w); done || err != nil {
				return err
			}
		}
		var err error
		if src, err = jsontext.Decode(text, jsontext.Limits{}); err != nil {
			return err
		}
	}
	if p.source != nil {
		if done, err := p.source.convertSource(dst, src, w); done || err != nil {
			return err
		}
	}
	tree, err := p.values.decodeShape(src, w)
	if err != nil {
		return err
	}
	return p.codec.convert(dst, tree, w)
}

// convertObjectText converts the text of an object with the texts of its
// members as parts.
func convertObjectText(c codec, dst reflect.Value, src jsonText, w *walk.Walk) (bool, error) {
	if jsontext.Kind(src) != "object" {
		return false, nil
	}
	parts, err := jsontext.Members(src)
	if err != nil {
		return false, err
	}
	object := make(map[string]any, len(parts))
	for _, part := range parts {
		object[part.Name] = jsonText(part.Value)
	}
	return true, c.convert(dst, object, w)
}

// kindOf names the kind of a tree for errors, which must not show its content.
func kindOf(tree any) string {
	switch tree.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "number"
}

var (
	marshalerType       = reflect.TypeFor[json.Marshaler]()
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// hasCodingMethods reports whether encoding/json would call a method of t or
// *t.
func hasCodingMethods(t reflect.Type) bool {
	pt := reflect.PointerTo(t)
	return pt.Implements(marshalerType) || pt.Implements(unmarshalerType) ||
		pt.Implements(textMarshalerType) || pt.Implements(textUnmarshalerType)
}

// callGuarded calls code of a type. It turns a panic into an error without the
// panic's value, which may be a part of the stored value.
func callGuarded(call func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("panic in a method")
		}
	}()
	return call()
}

// decodeTree returns JSON that a type wrote as a tree.
func decodeTree(text []byte, values dynamicValues, w *walk.Walk) (any, error) {
	tree, err := jsontext.Decode(text, jsontext.Limits{Depth: walk.MaxDepth})
	if err != nil || w.Exact {
		return tree, err
	}
	return values.normalizeValue(tree, w)
}

// appendChecked appends JSON that a type wrote.
func appendChecked(dst, text []byte) ([]byte, error) {
	if err := jsontext.Check(text, jsontext.Limits{Depth: walk.MaxDepth}); err != nil {
		return dst, err
	}
	return jsontext.AppendCompact(dst, text), nil
}

// asFault returns err if it is a fault or a limit, and otherwise a fault
// without the text of err, which may quote a part of the value.
func asFault(err error) error {
	if fault.As(err) != nil || fault.AsLimit(err) != nil {
		return err
	}
	return &fault.Error{Path: "$", Want: "a value that can be coded", Got: "an error of its type"}
}
