package provider

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Extra is what a message of a framework, or a part of one, says besides what an
// [Entry] or a [Part] has fields for: metadata, indexes, a signature. The zero
// Extra says nothing.
type Extra struct {
	value any        // to marshal when it is needed
	json  state.JSON // an object
}

// ExtraOf returns an Extra that holds v, which encoding/json must write as an
// object: usually a copy of a message without what its entry says. A v that is
// zero, a pointer to a zero value, or an object without members says nothing. v
// must not change until the messages are made.
func ExtraOf(v any) Extra { return Extra{value: v} }

// Decode sets dst as json.Unmarshal does. It leaves dst as it is if x says
// nothing.
func (x Extra) Decode(dst any) error {
	x, err := x.settle(new(jsontext.Checker))
	if err != nil || x.json == "" {
		return err
	}
	return json.Unmarshal([]byte(x.json), dst)
}

// IsEmpty reports whether x says nothing.
func (x Extra) IsEmpty() bool {
	x, err := x.settle(new(jsontext.Checker))
	return err == nil && x.json == ""
}

// settle returns x as checked JSON, which is empty if it says nothing.
func (x Extra) settle(c *jsontext.Checker) (Extra, error) {
	if x.value == nil {
		return x, nil
	}
	v := reflect.ValueOf(x.value)
	if v.IsZero() || v.Kind() == reflect.Pointer && v.Elem().IsZero() {
		return Extra{}, nil
	}
	text, err := jsontext.Marshal(x.value)
	if err != nil {
		return Extra{}, err
	}
	if err := c.Check(text, jsontext.Limits{Depth: codec.BodyDepth}); err != nil {
		return Extra{}, err
	}
	switch {
	case string(text) == "{}":
		return Extra{}, nil
	case jsontext.Kind(text) != "object":
		return Extra{}, &fault.Error{Path: "$", Want: "an Extra that is an object", Got: jsontext.Kind(text)}
	}
	return Extra{json: state.JSON(text)}, nil
}

// withoutExtra returns a copy of parts in which no Extra says anything.
func withoutExtra(parts []Part) []Part {
	parts = slices.Clone(parts)
	for i := range parts {
		parts[i].Extra, parts[i].Parts = Extra{}, withoutExtra(parts[i].Parts)
	}
	return parts
}
