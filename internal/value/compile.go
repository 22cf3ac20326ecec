package value

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/value/walk"
)

var (
	anyType    = reflect.TypeFor[any]()
	timeType   = reflect.TypeFor[time.Time]()
	numberType = reflect.TypeFor[json.Number]()
)

// compiled is a cached answer of the compiler.
type compiled struct {
	plan *Plan
	err  error
}

// A planCache holds the plans of types for one purpose.
type planCache struct {
	plans sync.Map // reflect.Type -> compiled
	// source is set for types that are only read: their interfaces may be any,
	// and their coding methods need no counterpart.
	source bool
	values *dynamicCodec
}

// newSourceCache returns the cache of types that are only read. Values of such
// types may be inside each other, so it finds the plans of parts itself.
func newSourceCache() *planCache {
	c := &planCache{source: true}
	c.values = &dynamicCodec{c.planOf}
	return c
}

// planOf returns the plan of a type.
func (c *planCache) planOf(t reflect.Type) (*Plan, error) {
	if known, ok := c.plans.Load(t); ok {
		return known.(compiled).plan, known.(compiled).err
	}
	if t == nil {
		return nil, &fault.Error{Path: "$", Want: "a type that can be stored", Got: "no type"}
	}
	run := compiler{source: c.source, values: c.values, plans: map[reflect.Type]*Plan{}}
	plan, err := run.compile(t)
	if err != nil {
		plan = nil
	} else {
		run.finish()
	}
	answer, _ := c.plans.LoadOrStore(t, compiled{plan, err})
	return answer.(compiled).plan, answer.(compiled).err
}

// A compiler makes the plan of one type and of its parts. It has its own plans
// until it is done: a part of a type that is refused may be a valid type, and
// other goroutines must not see a plan that is not complete.
//
// A type may contain itself, so a plan may have parts whose plans are not
// complete yet. What a plan has from its parts is therefore not known before
// the end: the compiler notes which plan is a part of which, and [finish]
// spreads their properties.
type compiler struct {
	source bool
	values *dynamicCodec
	plans  map[reflect.Type]*Plan
	parts  []planPart
	path   string // to the part that is compiled, for errors
}

// A planPart says that one plan is a part of another.
type planPart struct {
	whole, part *Plan
	inline      bool // the memory of the part is in that of the whole
}

// finish completes the plans: a whole calls code, is dynamic or has trees that
// differ if one of its parts does, and is flat only if all parts inside its
// memory are. In types that contain themselves, one round can change what an
// earlier part of it relied on. Every round but the last sets a property of
// some plan for good, which ends the rounds.
func (c *compiler) finish() {
	for changed := true; changed; {
		changed = false
		for _, link := range c.parts {
			before := link.whole.properties()
			link.whole.take(link.part, link.inline)
			changed = changed || link.whole.properties() != before
		}
	}
	for _, p := range c.plans {
		if r, ok := p.codec.(*recordCodec); ok {
			r.shared = slices.DeleteFunc(r.shared, func(f sharedField) bool { return f.plan.flat })
		}
	}
}

// take gives a plan the properties that it has from a part.
func (p *Plan) take(part *Plan, inline bool) {
	p.callsCode = p.callsCode || part.callsCode
	p.dynamic = p.dynamic || part.dynamic
	p.treeDiffers = p.treeDiffers || part.treeDiffers
	p.flat = p.flat && (part.flat || !inline)
}

// properties returns what take may change.
func (p *Plan) properties() [4]bool { return [...]bool{p.callsCode, p.dynamic, p.treeDiffers, p.flat} }

func (c *compiler) fail(format string, args ...any) error {
	return &fault.Error{Path: "$" + c.path, Want: "a type that can be stored", Got: fmt.Sprintf(format, args...)}
}

// compilePart compiles a part of a whole, which has the given place in it.
// inline says that the memory of the part is in that of the whole.
func (c *compiler) compilePart(whole *Plan, place string, t reflect.Type, inline bool) (*Plan, error) {
	outer := c.path
	c.path += place
	p, err := c.compile(t)
	c.path = outer
	if err != nil {
		return nil, err
	}
	c.parts = append(c.parts, planPart{whole, p, inline})
	return p, nil
}

// compile returns the plan of a type, which may not be complete: it may be that
// of a type around this one.
func (c *compiler) compile(t reflect.Type) (*Plan, error) {
	if p, ok := c.plans[t]; ok {
		return p, nil
	}
	p := &Plan{typ: t, values: c.values}
	p.setName("object")
	c.plans[t] = p
	if err := c.chooseCodec(p, t); err != nil {
		return nil, err
	}
	p.text, _ = p.codec.(textConverter)
	p.source, _ = p.codec.(sourceConverter)
	return p, nil
}

// setName sets the name of the type, unless it has one already.
func (p *Plan) setName(name string) {
	p.name = name
	if own, ok := internal.TypeNames[p.typ]; ok {
		p.name = own
	}
}

// chooseCodec fills the plan. What a type says about itself goes before what
// its kind says.
func (c *compiler) chooseCodec(p *Plan, t reflect.Type) error {
	if internal.RefusedTypes[t] {
		return c.fail("a %s", t)
	}
	if o := opaqueTypeOf(t); o != nil {
		p.codec = &opaqueCodec{OpaqueType: o, typ: t, name: p.name, values: c.values}
		p.flat, p.treeDiffers = true, c.source
		return nil
	}
	switch t {
	case timeType:
		p.setName("date")
		p.codec, p.flat, p.treeDiffers = timeCodec{scalarCodec{"time.Time"}}, true, c.source
		return nil
	case numberType:
		p.setName("number")
		p.codec, p.flat, p.treeDiffers = numberCodec{scalarCodec{p.name}}, true, c.source
		return nil
	case anyType:
		c.setDynamic(p)
		return nil
	}
	if t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		if done, err := c.setMethods(p, t); done || err != nil {
			return err
		}
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return c.setList(p, t)
	case reflect.Map:
		return c.setMap(p, t)
	case reflect.Struct:
		return c.setRecord(p, t)
	case reflect.Pointer:
		return c.setPointer(p, t)
	case reflect.Interface:
		if !c.source {
			return c.fail("the interface %s", t)
		}
		c.setDynamic(p)
		return nil
	}
	if !p.setScalar(t.Kind()) {
		return c.fail("%s", t)
	}
	return nil
}

func (p *Plan) setScalar(kind reflect.Kind) bool {
	p.scalar, p.flat = true, true
	switch {
	case kind == reflect.Bool:
		p.setName("boolean")
		p.codec, p.fixedSize = boolCodec{scalarCodec{p.name}}, walk.ScalarSize
	case reflect.Int <= kind && kind <= reflect.Int64:
		p.setName("integer")
		p.codec, p.fixedSize = intCodec{scalarCodec{p.name}}, walk.ScalarSize
	case reflect.Uint <= kind && kind <= reflect.Uint64:
		p.setName("integer")
		p.codec, p.fixedSize = uintCodec{scalarCodec{p.name}}, walk.ScalarSize
	case kind == reflect.Float32 || kind == reflect.Float64:
		p.setName("number")
		p.codec = floatCodec{scalarCodec{p.name}}
	case kind == reflect.String:
		p.setName("string")
		p.codec = stringCodec{scalarCodec{p.name}}
	default:
		return false
	}
	return true
}

func (c *compiler) setDynamic(p *Plan) {
	p.setName("any")
	p.codec, p.treeDiffers, p.dynamic = c.values, true, true
}

func (c *compiler) setPointer(p *Plan, t reflect.Type) error {
	seen := map[reflect.Type]bool{}
	for end := t; end.Kind() == reflect.Pointer; end = end.Elem() {
		if seen[end] && !c.source {
			return c.fail("%s, which points to nothing but itself", t)
		}
		if seen[end] {
			break
		}
		seen[end] = true
	}
	elem, err := c.compilePart(p, "", t.Elem(), false)
	if err != nil {
		return err
	}
	p.setName(elem.name)
	p.codec = &pointerCodec{elem}
	return nil
}

func (c *compiler) setList(p *Plan, t reflect.Type) error {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && !hasCodingMethods(t.Elem()) {
		p.setName("string")
		p.codec = bytesCodec{scalarCodec{p.name}}
		return nil
	}
	array := t.Kind() == reflect.Array
	p.flat = array // unless its elements are not
	elem, err := c.compilePart(p, "[]", t.Elem(), array && t.Len() > 0)
	if err != nil {
		return err
	}
	p.setName("list of " + elem.name)
	p.codec = &listCodec{t, p.name, elem}
	return nil
}

func (c *compiler) setMap(p *Plan, t reflect.Type) error {
	key := t.Key()
	m := &mapCodec{typ: t, name: p.name, keyName: "string"}
	switch kind := key.Kind(); {
	case kind == reflect.String: // goes before methods, as in encoding/json
	case kind == reflect.Pointer || kind == reflect.Interface:
		return c.fail("a map with keys of type %s", key)
	case key.Implements(textMarshalerType) && (c.source || reflect.PointerTo(key).Implements(textUnmarshalerType)):
		m.textKeys = true
	case reflect.Int <= kind && kind <= reflect.Uint64:
		m.keyName = "integer"
	default:
		return c.fail("a map with keys of type %s", key)
	}
	var err error
	if m.elem, err = c.compilePart(p, "[]", t.Elem(), false); err != nil {
		return err
	}
	p.codec, p.callsCode = m, m.textKeys
	return nil
}

func (c *compiler) setRecord(p *Plan, t reflect.Type) error {
	members, lost := jsonstruct.Members(t)
	if lost != nil {
		return c.fail("%s", lost)
	}
	r := &recordCodec{name: p.name, members: make([]structMember, len(members))}
	p.codec, p.flat = r, true
	// A type that embeds itself is found before its members are compiled.
	for i := range t.NumField() {
		if f := t.Field(i); jsonstruct.Promotes(f) {
			if err := c.checkEmbedded(f.Type); err != nil {
				return err
			}
		}
	}
	for i, m := range members {
		plan, err := c.compilePart(p, jsontext.Path("", m.Name), m.Type, false)
		if err != nil {
			return err
		}
		p.callsCode = p.callsCode || m.OmitZero // which may call IsZero
		r.members[i] = structMember{Member: m, label: append(jsontext.AppendQuote(nil, m.Name), ':'), plan: plan}
	}
	for i := range t.NumField() { // an embedded struct is copied as one field
		plan, err := c.compilePart(p, "", t.Field(i).Type, true)
		if err != nil {
			return err
		}
		r.shared = append(r.shared, sharedField{i, plan}) // finish removes flat ones
	}
	return nil
}

// checkEmbedded checks the type of a field whose members are promoted. It must
// not code itself: Go promotes its methods as well, so that the other fields of
// the outer struct would be lost.
func (c *compiler) checkEmbedded(t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if opaqueTypeOf(t) != nil || hasCodingMethods(t) {
		return c.fail("%s embedded without a JSON name, which codes itself", t)
	}
	_, err := c.compile(t)
	return err
}

// setMethods fills the plan of a type with coding methods and reports whether
// it has any. The rules are those of encoding/json: MarshalJSON goes before
// MarshalText.
func (c *compiler) setMethods(p *Plan, t reflect.Type) (bool, error) {
	pt := reflect.PointerTo(t)
	writes, reads := pt.Implements(marshalerType), pt.Implements(unmarshalerType)
	textWrites, textReads := pt.Implements(textMarshalerType), pt.Implements(textUnmarshalerType)
	m := &methodCodec{typ: t, values: c.values, clone: cloneMethod(t), reads: reads}
	method := "MarshalJSON"
	switch {
	case writes && (reads || c.source):
		p.setName("any")
	case !writes && textWrites && (c.source || !reads && textReads):
		m.text, m.reads, method = true, textReads, "MarshalText"
		p.setName("string")
	case c.source && !writes:
		return false, nil // encoding/json writes it like any other
	case writes || reads:
		return true, c.fail("%s, which has only one of MarshalJSON and UnmarshalJSON", t)
	case textWrites || textReads:
		return true, c.fail("%s, which has only one of MarshalText and UnmarshalText", t)
	default:
		return false, nil
	}
	if t.Kind() == reflect.Struct && t.NumField() > 1 && m.writesOnlyEmbedded() {
		return true, c.fail("%s, whose %s is that of an embedded field: the other fields would be lost", t, method)
	}
	m.name = p.name
	p.codec, p.callsCode, p.treeDiffers = m, true, c.source
	p.flat = !m.clone.IsValid() && hasFlatMemory(t)
	return true, nil
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

// hasFlatMemory reports whether two values of t never share memory after an
// assignment, unexported fields included. A time.Time points to its zone, which
// never changes.
func hasFlatMemory(t reflect.Type) bool {
	switch kind := t.Kind(); {
	case t == timeType || kind == reflect.String:
		return true
	case reflect.Bool <= kind && kind <= reflect.Complex128:
		return true
	case kind == reflect.Array:
		return hasFlatMemory(t.Elem())
	case kind == reflect.Struct:
		for i := range t.NumField() {
			if !hasFlatMemory(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}
