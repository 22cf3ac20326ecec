package value_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/value"
)

// Types that contain themselves, in every way there is.
type (
	task struct {
		Name string         `json:"name"`
		Sub  []task         `json:"sub"`
		By   map[string]any `json:"by,omitempty"`
	}
	chain struct {
		N    int
		Next *chain `json:",omitempty"`
	}
	tree    []tree
	graph   map[string]graph
	husband struct {
		Name string
		Wife *wife
	}
	wife struct {
		Husbands map[string]husband
		Moods    [2]*mood `json:",omitempty"` // a part with methods, behind both
	}
	// part is inside the memory of whole, and whole is in a slice of part.
	part  struct{ Wholes []whole }
	whole struct {
		part
		Part part `json:"named"`
		N    int
	}
	// late is flat but for what is found last.
	late struct {
		Pair [2]inner
		Tail []late
	}
	inner struct{ S []string }
)

// recursiveValues are values of these types that all their parts are set in.
func recursiveValues() []any {
	m := mood(1)
	return []any{
		task{"a", []task{{"b", []task{}, map[string]any{"k": []any{"v"}}}, {"c", []task{{Name: "d", Sub: []task{}}}, nil}}, nil},
		chain{1, &chain{2, &chain{3, nil}}},
		tree{{}, {{}, {{}}}},
		graph{"a": {}, "b": {"c": {}}},
		husband{"h", &wife{map[string]husband{"x": {"y", &wife{Husbands: map[string]husband{}}}}, [2]*mood{&m, nil}}},
		whole{part{[]whole{{N: 1, part: part{[]whole{}}, Part: part{[]whole{}}}}}, part{[]whole{{N: 2, part: part{[]whole{}}, Part: part{[]whole{}}}}}, 3},
		late{[2]inner{{[]string{"a"}}, {[]string{"b"}}}, []late{{[2]inner{{[]string{"c"}}, {[]string{}}}, []late{}}}},
	}
}

func TestRecursiveTypesAreStored(t *testing.T) {
	for _, v := range recursiveValues() {
		t.Run(reflect.TypeOf(v).Name(), func(t *testing.T) {
			p, err := value.For(reflect.TypeOf(v))
			require.NoError(t, err)
			require.False(t, p.Immutable())
			text, err := p.AppendJSON(nil, reflect.ValueOf(v))
			require.NoError(t, err)
			want, err := json.Marshal(v)
			require.NoError(t, err)
			require.JSONEq(t, string(want), string(text))

			c, size, err := p.Copy(reflect.ValueOf(v), value.Limits{Depth: 64})
			require.NoError(t, err)
			require.Equal(t, v, c.Interface())
			require.True(t, p.Equal(reflect.ValueOf(v), c))
			require.InDelta(t, len(text), size, 64)
			decoded, _, err := p.Decode(text, value.Limits{Depth: 64})
			require.NoError(t, err)
			require.True(t, p.Equal(c, decoded))
			normal, _, err := value.Normalise(v, value.Limits{})
			require.NoError(t, err)
			converted, _, err := p.Convert(normal, value.Limits{})
			require.NoError(t, err)
			require.True(t, p.Equal(c, converted), "%v %v", c, converted)

			// No copy shares memory with another.
			wipe(c)
			require.True(t, p.Equal(reflect.ValueOf(v), decoded), "%v", v)
			again := p.Clone(decoded)
			wipe(again)
			require.True(t, p.Equal(reflect.ValueOf(v), decoded))
		})
	}
}

// wipe sets all strings and numbers that can be reached, and empties maps.
func wipe(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			wipe(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			wipe(v.Index(i))
			if v.Index(i).CanSet() {
				v.Index(i).SetZero()
			}
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			wipe(v.MapIndex(k))
			v.SetMapIndex(k, reflect.Value{})
		}
	case reflect.Struct:
		for i := range v.NumField() {
			wipe(v.Field(i))
		}
	}
}

func TestPlansOfRecursiveTypesKnowTheirParts(t *testing.T) {
	for _, tt := range []struct {
		typ             reflect.Type
		methods, static bool
	}{
		{reflect.TypeFor[task](), false, false},
		{reflect.TypeFor[chain](), false, true},
		{reflect.TypeFor[tree](), false, true},
		{reflect.TypeFor[graph](), false, true},
		{reflect.TypeFor[husband](), true, false},
		{reflect.TypeFor[wife](), true, false},
		{reflect.TypeFor[map[string]husband](), true, false},
		{reflect.TypeFor[part](), false, true},
		{reflect.TypeFor[whole](), false, true},
	} {
		p, err := value.For(tt.typ)
		require.NoError(t, err)
		require.Equal(t, tt.methods, p.Methods(), "%v", tt.typ)
		require.Equal(t, tt.static, p.Static(), "%v", tt.typ)
		require.False(t, p.Immutable(), "%v", tt.typ)
	}
}

func TestCyclicValuesAreRefused(t *testing.T) {
	loop := &chain{N: 1}
	loop.Next = loop
	circle := make(tree, 1)
	circle[0] = circle
	self := graph{}
	self["a"] = self
	twice := task{Name: "a", Sub: make([]task, 1)}
	twice.Sub[0] = twice
	for path, v := range map[string]any{"$.Next.Next": *loop, "$[0][0]": circle, "$.a.a": self, "$.sub[0].sub": twice} {
		p, err := value.For(reflect.TypeOf(v))
		require.NoError(t, err)
		for _, depth := range []int{0, 64} {
			_, _, err = p.Copy(reflect.ValueOf(v), value.Limits{Depth: depth})
			limit := fault.AsLimit(err)
			require.NotNil(t, limit, "%v", err)
			require.Equal(t, "Depth", limit.Name)
			require.True(t, strings.HasPrefix(limit.Path, path), limit.Path)
			require.Less(t, len(limit.Path), 500)
		}
	}
}

// A recursive type reads any text, or refuses it with a fault or a limit. What
// it read it writes, and reads again as the same value.
func FuzzDecodeRecursive(f *testing.F) {
	for _, v := range recursiveValues() {
		text, err := json.Marshal(v)
		require.NoError(f, err)
		f.Add(text)
	}
	for _, text := range []string{
		`{"name":"a","sub":{"name":"b"}}`, `{"name":"a","sub":[{"name":1}]}`, `[[],[[]]]`, `[[1]]`, `[]`, `{"a":{"a":{"a":null}}}`,
		`{"N":1,"Next":{"N":2,"Next":null}}`, `null`, `5`, strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat(`{"a":`, 70) + "{}" + strings.Repeat("}", 70),
	} {
		f.Add([]byte(text))
	}
	var types []reflect.Type
	for _, v := range recursiveValues() {
		types = append(types, reflect.TypeOf(v))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, typ := range types {
			p, err := value.For(typ)
			require.NoError(t, err)
			v, size, err := p.Decode(text, value.Limits{Depth: 64})
			if err != nil {
				continue
			}
			checked, err := p.Check(v, value.Limits{Depth: 64})
			require.NoError(t, err)
			require.Equal(t, checked, size)
			written, err := p.AppendJSON(nil, v)
			require.NoError(t, err)
			again, _, err := p.Decode(written, value.Limits{Depth: 64})
			require.NoError(t, err, "%s", written)
			require.True(t, p.Equal(v, again), "%s", written)
			require.True(t, p.Equal(v, p.Clone(v)))
		}
	})
}
