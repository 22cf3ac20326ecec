package value

import (
	"reflect"

	"github.com/agentstate/state/internal/jsontext"
)

// text is JSON that has been checked, as a source of a conversion. It is taken
// apart only as far as the target has parts, so that types which read JSON
// themselves get it as it was spelled.
type text []byte

func (t text) convert(p *Plan, dst reflect.Value, w *walk) error {
	kind := jsontext.Kind(t)
	switch codec := p.codec.(type) {
	case *pointerCodec:
		if kind == "null" {
			return codec.convert(dst, nil, w)
		}
		return codec.convert(dst, t, w)
	case *opaqueCodec:
		var x any
		if err := guarded(func() (err error) { x, err = codec.Decode(t); return err }); err != nil || !codec.take(dst, x) {
			return w.fail(nameOf(codec.typ), "another "+kind)
		}
		return nil
	case *ownCodec:
		if !codec.text {
			if codec.read(dst, t) != nil {
				return w.fail(nameOf(codec.typ), "another "+kind)
			}
			return nil
		}
	case *listCodec:
		if kind == "array" {
			parts, err := jsontext.Elements(t)
			if err != nil {
				return err
			}
			list := make([]any, len(parts))
			for i, part := range parts {
				list[i] = text(part)
			}
			return codec.from(dst, list, w)
		}
	case *recordCodec, *dictCodec:
		if kind == "object" {
			parts, err := jsontext.Members(t)
			if err != nil {
				return err
			}
			object := make(map[string]any, len(parts))
			for _, part := range parts {
				object[part.Name] = text(part.Value)
			}
			return p.codec.convert(dst, object, w)
		}
	}
	tree, err := jsontext.Decode(t, jsontext.Limits{})
	if err != nil {
		return err
	}
	return convert(p, dst, tree, w)
}
