package value

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
)

var (
	anyType    = reflect.TypeFor[any]()
	timeType   = reflect.TypeFor[time.Time]()
	numberType = reflect.TypeFor[json.Number]()

	marshaler       = reflect.TypeFor[json.Marshaler]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// A compiler makes the plan of one type and of its parts.
type compiler struct {
	// A source is only read: its interfaces may be any, its types may contain
	// themselves, and its coding methods need not have a counterpart.
	source bool
	busy   map[reflect.Type]bool // a type found here contains itself
	plans  map[reflect.Type]*Plan
	path   string
}

func (c *compiler) fail(got string) error {
	return &fault.Error{Path: "$" + c.path, Want: "a type that can be stored", Got: got}
}

// at compiles a part of a type, which has the given place in it.
func (c *compiler) at(place string, t reflect.Type) (*Plan, error) {
	outer := c.path
	c.path += place
	p, err := c.compile(t)
	c.path = outer
	return p, err
}

func (c *compiler) compile(t reflect.Type) (*Plan, error) {
	if c.busy[t] && !c.source {
		return nil, c.fail(fmt.Sprintf("%s, which contains itself", t))
	}
	if p, ok := c.plans[t]; ok {
		return p, nil
	}
	p := &Plan{typ: t, name: "object"}
	c.busy[t] = true
	defer delete(c.busy, t)
	if c.source {
		c.plans[t] = p // for the type itself
	}
	if err := c.fill(p, t); err != nil {
		return nil, err
	}
	if name, ok := internal.TypeNames[t]; ok {
		p.name = name
	}
	c.plans[t] = p
	return p, nil
}

func (c *compiler) fill(p *Plan, t reflect.Type) error {
	if internal.RefusedTypes[t] {
		return c.fail("a " + t.String())
	}
	if o := opaqueOf(t); o != nil {
		p.codec, p.flat, p.dynamic = &opaqueCodec{t, o}, true, c.source
		return nil
	}
	switch t {
	case timeType:
		p.codec, p.flat, p.dynamic, p.name = timeCodec{}, true, c.source, "date"
		return nil
	case numberType:
		p.codec, p.flat, p.dynamic, p.name = numberCodec{}, true, c.source, "number"
		return nil
	case anyType:
		p.codec, p.dynamic, p.name = anyCodec{}, true, "any"
		return nil
	}
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		own, err := c.own(p, t)
		if own || err != nil {
			return err
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		p.codec, p.scalar, p.flat, p.fixed, p.name = boolCodec{}, true, true, scalarSize, "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.codec, p.scalar, p.flat, p.fixed, p.name = intCodec{}, true, true, scalarSize, "integer"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.codec, p.scalar, p.flat, p.fixed, p.name = uintCodec{}, true, true, scalarSize, "integer"
	case reflect.Float32, reflect.Float64:
		p.codec, p.scalar, p.flat, p.name = floatCodec{}, true, true, "number"
	case reflect.String:
		p.codec, p.scalar, p.flat, p.name = stringCodec{}, true, true, "string"
	case reflect.Slice, reflect.Array:
		return c.list(p, t)
	case reflect.Map:
		return c.dict(p, t)
	case reflect.Struct:
		return c.record(p, t)
	case reflect.Pointer:
		elem, err := c.compile(t.Elem())
		if err != nil {
			return err
		}
		p.codec, p.dynamic, p.methods, p.name = &pointerCodec{elem}, elem.dynamic, elem.methods, elem.name
	case reflect.Interface:
		if !c.source {
			return c.fail(fmt.Sprintf("the interface %s", t))
		}
		p.codec, p.dynamic, p.name = anyCodec{}, true, "any"
	default:
		return c.fail(t.String())
	}
	return nil
}

func (c *compiler) list(p *Plan, t reflect.Type) error {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !hasMethods(t.Elem()) {
		p.codec, p.name = bytesCodec{}, "string"
		return nil
	}
	elem, err := c.at("[]", t.Elem())
	if err != nil {
		return err
	}
	p.codec, p.dynamic, p.methods, p.name = &listCodec{t, elem}, elem.dynamic, elem.methods, "list of "+elem.name
	p.flat = t.Kind() == reflect.Array && (elem.flat || t.Len() == 0)
	return nil
}

func (c *compiler) dict(p *Plan, t reflect.Type) error {
	key := t.Key()
	d := &dictCodec{typ: t}
	switch kind := key.Kind(); {
	case kind == reflect.String:
	case kind == reflect.Pointer || kind == reflect.Interface:
		return c.fail(fmt.Sprintf("a map with keys of type %s", key))
	case key.Implements(textMarshaler) && (c.source || reflect.PointerTo(key).Implements(textUnmarshaler)):
		d.text = true
	case reflect.Int <= kind && kind <= reflect.Uint64:
	default:
		return c.fail(fmt.Sprintf("a map with keys of type %s", key))
	}
	elem, err := c.at("[]", t.Elem())
	if err != nil {
		return err
	}
	d.elem = elem
	p.codec, p.dynamic, p.methods = d, elem.dynamic, d.text || elem.methods
	return nil
}

func (c *compiler) record(p *Plan, t reflect.Type) error {
	members, lost := jsonstruct.Members(t)
	if lost != nil {
		return c.fail(lost.Error())
	}
	r := &recordCodec{typ: t, members: make([]member, len(members))}
	p.codec, p.flat = r, true
	for i := range t.NumField() {
		if f := t.Field(i); jsonstruct.Promotes(f) {
			if err := c.promoted(f.Type); err != nil {
				return err
			}
		}
	}
	for i, m := range members {
		plan, err := c.at(jsontext.Path("$", m.Name)[1:], m.Type)
		if err != nil {
			return err
		}
		r.members[i] = member{Member: m, label: append(jsontext.AppendQuote(nil, m.Name), ':'), plan: plan}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		plan, err := c.compile(f.Type) // embedded structs too: they are copied as one part
		if err != nil {
			return err
		}
		p.dynamic = p.dynamic || plan.dynamic
		p.methods = p.methods || plan.methods || strings.Contains(f.Tag.Get("json"), "omitzero")
		if !plan.flat {
			p.flat = false
			r.shared = append(r.shared, part{i, plan})
		}
	}
	return nil
}

// promoted checks the type of an embedded field whose members are promoted. It
// must be a struct for its JSON, because its own coding methods would be those
// of the outer struct as well.
func (c *compiler) promoted(t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if opaqueOf(t) != nil || hasMethods(t) {
		return c.fail(fmt.Sprintf("%s embedded without a JSON name, which codes itself", t))
	}
	_, err := c.compile(t)
	return err
}

func hasMethods(t reflect.Type) bool {
	pt := reflect.PointerTo(t)
	return pt.Implements(marshaler) || pt.Implements(unmarshaler) ||
		pt.Implements(textMarshaler) || pt.Implements(textUnmarshaler)
}

// own fills the plan of a type with coding methods of its own.
func (c *compiler) own(p *Plan, t reflect.Type) (bool, error) {
	pt := reflect.PointerTo(t)
	writes, reads := pt.Implements(marshaler), pt.Implements(unmarshaler)
	textWrites, textReads := pt.Implements(textMarshaler), pt.Implements(textUnmarshaler)
	o := &ownCodec{typ: t, clone: cloneMethod(t), flat: flatMemory(t), reads: reads}
	method := "MarshalJSON"
	switch {
	case writes && (reads || c.source):
		p.name = "any"
	case !writes && textWrites && (c.source || !reads && textReads):
		o.text, o.reads, p.name, method = true, textReads, "string", "MarshalText"
	case c.source && !writes:
		return false, nil // encoding/json writes it like any other
	case writes || reads:
		return true, c.fail(fmt.Sprintf("%s, which has only one of MarshalJSON and UnmarshalJSON", t))
	case textWrites || textReads:
		return true, c.fail(fmt.Sprintf("%s, which has only one of MarshalText and UnmarshalText", t))
	default:
		return false, nil
	}
	if t.Kind() == reflect.Struct && t.NumField() > 1 && methodPromoted(t, method) {
		return true, c.fail(fmt.Sprintf("%s, whose %s is that of an embedded field: the other fields would be lost", t, method))
	}
	p.codec, p.flat, p.dynamic, p.methods = o, o.flat && !o.clone.IsValid(), c.source, true
	return true, nil
}

// methodPromoted reports whether a method comes from an embedded field: its code is
// a wrapper that the compiler made.
func methodPromoted(t reflect.Type, method string) bool {
	m, ok := t.MethodByName(method)
	if !ok {
		m, _ = reflect.PointerTo(t).MethodByName(method)
	}
	file := ""
	if f := runtime.FuncForPC(m.Func.Pointer()); f != nil {
		file, _ = f.FileLine(f.Entry())
	}
	return file == "<autogenerated>"
}

// cloneMethod returns the function Clone of *t that returns a t or a *t, or
// the zero Value.
func cloneMethod(t reflect.Type) reflect.Value {
	m, ok := reflect.PointerTo(t).MethodByName("Clone")
	if !ok || m.Type.NumIn() != 1 || m.Type.NumOut() != 1 {
		return reflect.Value{}
	}
	if out := m.Type.Out(0); out != t && out != reflect.PointerTo(t) {
		return reflect.Value{}
	}
	return m.Func
}

// flatMemory reports whether no memory of a t can be shared after assignment,
// unexported fields included.
func flatMemory(t reflect.Type) bool {
	switch kind := t.Kind(); {
	case t == timeType || kind == reflect.String:
		return true
	case reflect.Bool <= kind && kind <= reflect.Complex128:
		return true
	case kind == reflect.Array:
		return flatMemory(t.Elem())
	case kind == reflect.Struct:
		for i := range t.NumField() {
			if !flatMemory(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}
