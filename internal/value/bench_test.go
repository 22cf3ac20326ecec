package value_test

import (
	"reflect"
	"testing"

	"github.com/agentstate/state/internal/value"
)

func BenchmarkCopy(b *testing.B) {
	rows := make([]Base, 100)
	for i := range rows {
		rows[i] = Base{ID: "row", Tags: []string{"a", "b"}}
	}
	nested := map[string]any{"user": map[string]any{"name": "Ada", "age": int64(36)}, "tags": []any{"a", "b", 1.5}}
	for name, x := range map[string]any{
		"string": "a string of some length", "flat": struct {
			A, B int
			S    string
		}{1, 2, "three"},
		"flat100": make([]point, 100), "rows100": rows, "nested": nested,
	} {
		p, err := value.For(reflect.TypeOf(x))
		if err != nil {
			b.Fatal(err)
		}
		v := reflect.ValueOf(x)
		b.Run(name+"/copy", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := p.Copy(v, value.Limits{Bytes: 1 << 20, Depth: 64}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/clone", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Clone(v)
			}
		})
	}
}

func BenchmarkConvert(b *testing.B) {
	p := plan[document](b)
	src := map[string]any{"id": "a", "title": "b", "score": 0.5, "meta": map[string]any{"k": "v"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.Convert(src, value.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	p := plan[document](b)
	v := reflect.ValueOf(document{Title: "a", Meta: map[string]string{"k": "v", "l": "w"}})
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = p.AppendJSON(dst[:0], v)
	}
}
