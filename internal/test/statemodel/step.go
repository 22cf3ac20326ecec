package statemodel

import (
	"fmt"

	"pgregory.net/rapid"
)

// programStep is one step of a program, as data, so that a step can be
// repeated.
type programStep struct {
	kind  string
	on    int // which state
	field *accessors
	key   string // an undeclared key, in place of field
	value any
	by    string // for setwith
	loose bool   // by name, with a value of no exact type
	named bool   // by name
	fail  bool
	text  string
	at    int
	with  []int
	patch []programStep
	inner []programStep
}

// GoString is what rapid prints for a program that fails.
func (o programStep) GoString() string { return o.String() }

func (o programStep) String() string {
	name := o.key
	if o.field != nil {
		name = o.field.name
	}
	s := fmt.Sprintf("%s[%d]", o.kind, o.on)
	switch o.kind {
	case "fork", "snapshot", "reload", "endrun":
	case "append", "push", "answer", "pop", "reset", "load", "at", "revert":
		s += fmt.Sprintf(" %q at=%d with=%v", o.text, o.at, o.with)
	case "join":
		s += fmt.Sprint(o.with)
	case "patch":
		s += fmt.Sprint(o.patch)
	case "tx":
		s += fmt.Sprintf(" fail=%v%v", o.fail, o.inner)
	case "race":
		s += fmt.Sprintf(" %d branches%v%v", o.at, o.inner, o.with)
	default:
		s += fmt.Sprintf(" %s=%#v by=%q named=%v loose=%v fail=%v", name, o.value, o.by, o.named, o.loose, o.fail)
	}
	return s
}

var stepKinds = []string{
	"set", "set", "set", "set", "setwith", "setwith", "replace", "replace", "update", "update", "delete", "bad",
	"patch", "endrun", "append", "append", "push", "answer", "answer", "pop", "reset", "load",
	"fork", "fork", "join", "join", "race", "race", "race", "tx", "tx", "snapshot", "at", "revert", "reload",
}

// writeKinds write one field.
var writeKinds = []string{"set", "setwith", "replace", "update", "delete"}

// drawStep draws steps; depth is how deep transactions may still nest.
func drawStep(depth int) *rapid.Generator[programStep] {
	return rapid.Custom(func(t *rapid.T) programStep {
		o := programStep{
			kind: rapid.SampledFrom(stepKinds).Draw(t, "kind"),
			on:   rapid.IntRange(0, 7).Draw(t, "on"),
		}
		switch o.kind {
		case "set", "setwith", "replace", "update", "delete", "bad":
			o.assign(t, rapid.IntRange(0, nameCount-1).Draw(t, "field"))
			o.fail = rapid.IntRange(0, 5).Draw(t, "fail") == 0
		case "patch":
			for range rapid.IntRange(0, 3).Draw(t, "patched") {
				p := programStep{kind: "=", fail: rapid.IntRange(0, 5).Draw(t, "gone") == 0}
				p.assign(t, rapid.IntRange(0, nameCount-1).Draw(t, "field"))
				o.patch = append(o.patch, p)
			}
			if rapid.IntRange(0, 4).Draw(t, "bad") == 0 {
				o.patch = append(o.patch, programStep{kind: "!"})
			}
		case "append", "push", "reset", "load":
			o.text = rapid.SampledFrom([]string{"", "hi", "tool", "open", "open"}).Draw(t, "text")
			o.at = rapid.IntRange(0, 3).Draw(t, "keep")
		case "answer":
			o.with = rapid.SliceOfN(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3, 4, 5}), 1, 2).Draw(t, "calls")
			o.named = rapid.Bool().Draw(t, "keyed")
		case "at":
			o.at = rapid.IntRange(0, 12).Draw(t, "back")
		case "join":
			o.with = rapid.SliceOfN(rapid.IntRange(0, 4), 1, 3).Draw(t, "with")
			o.fail = rapid.IntRange(0, 5).Draw(t, "stranger") == 0
		case "revert":
			o.at = rapid.IntRange(0, 7).Draw(t, "to")
		case "race":
			field := rapid.IntRange(0, nameCount-1).Draw(t, "field")
			o.at = rapid.IntRange(1, 3).Draw(t, "branches")
			for range rapid.IntRange(1, 6).Draw(t, "writes") {
				w := programStep{kind: rapid.SampledFrom(writeKinds).Draw(t, "kind"), on: rapid.IntRange(0, o.at).Draw(t, "on")}
				w.assign(t, field)
				if rapid.IntRange(0, 5).Draw(t, "tx") == 0 {
					w = programStep{kind: "tx", on: w.on, inner: []programStep{w}}
				}
				o.inner = append(o.inner, w)
			}
			o.with = rapid.Permutation([]int{0, 1, 2}[:o.at]).Draw(t, "order")
		case "tx":
			if depth > 0 {
				o.inner = rapid.SliceOfN(drawStep(depth-1), 0, 5).Draw(t, "inner")
			}
			o.fail = rapid.IntRange(0, 4).Draw(t, "fail") == 0
		}
		return o
	})
}

var nameCount = len(allFields) + len(undeclaredKeys)

// assign draws what is written to one of the nameCount.
func (o *programStep) assign(t *rapid.T, at int) {
	if at >= len(allFields) {
		o.key = undeclaredKeys[at-len(allFields)]
		o.value = anyValues.Draw(t, "value")
		o.named, o.loose = true, rapid.Bool().Draw(t, "loose")
		if o.kind == "setwith" {
			o.by, o.value = "sum", int64(2)
		}
		return
	}
	o.field = allFields[at]
	o.value = o.field.values.Draw(t, "value")
	o.named = rapid.Bool().Draw(t, "named")
	o.loose = o.named && rapid.Bool().Draw(t, "loose")
	if o.kind == "setwith" && len(o.field.with) > 0 {
		o.by = rapid.SampledFrom(o.field.with).Draw(t, "by")
	}
}

func (o programStep) name() string {
	if o.field == nil {
		return o.key
	}
	return o.field.name
}

func (o programStep) given() any {
	if o.loose {
		return looseValue(o.value)
	}
	return o.value
}
