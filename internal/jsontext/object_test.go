package jsontext_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

func TestObject(t *testing.T) {
	members, err := jsontext.Members([]byte(`{"a":1,"b":[2.0],"odd \"name\"":null}`))
	require.NoError(t, err)
	o := jsontext.Object(members)

	require.Equal(t, `[2.0]`, string(o.Get("b")))
	require.Nil(t, o.Get("c"))
	require.Equal(t, `{"b":[2.0]}`, string(o.Without("a", `odd "name"`, "none").JSON()))
	require.Equal(t, `{"a":1,"b":3,"odd \"name\"":null}`, string(o.With("b", []byte("3")).JSON()))
	require.Equal(t, `{"a":1,"b":[2.0],"odd \"name\"":null,"c":"x\n"}`, string(o.WithString("c", "x\n").JSON()))
	require.Equal(t, o, o.With("c", nil), "no value, no member")
	require.Equal(t, `{"a":1,"b":[2.0],"odd \"name\"":null}`, string(o.JSON()), "the object itself never changes")
	require.Equal(t, `{}`, string(jsontext.Object(nil).JSON()))
	require.Equal(t, `{"b":1}`, string(jsontext.Object{{Name: "a"}, {Name: "b", Value: []byte("1")}}.JSON()))
}

// Two objects made from one do not share what was added.
func TestObjectsMadeFromOneAreIndependent(t *testing.T) {
	base := append(make(jsontext.Object, 0, 8), jsontext.Member{Name: "a", Value: []byte("1")})
	b, c := base.With("b", []byte("2")), base.With("c", []byte("3"))
	require.Equal(t, `{"a":1,"b":2}`, string(b.JSON()))
	require.Equal(t, `{"a":1,"c":3}`, string(c.JSON()))
}

func TestArray(t *testing.T) {
	require.Equal(t, `[]`, string(jsontext.Array(nil)))
	require.Equal(t, `[1,"b",[]]`, string(jsontext.Array([][]byte{[]byte("1"), []byte(`"b"`), []byte("[]")})))
}

func TestReadingMembers(t *testing.T) {
	o, err := jsontext.Members([]byte(`{"text":"a\n","flag":true,"object":{"x":1},"array":[1,2],"none":null}`))
	require.NoError(t, err)
	require.Equal(t, []string{"a\n", "", ""}, []string{o.String("text"), o.String("flag"), o.String("missing")})
	require.Equal(t, []bool{true, false, false}, []bool{o.Bool("flag"), o.Bool("text"), o.Bool("missing")})
	require.Equal(t, "1", string(o.Object("object").Get("x")))
	require.Nil(t, o.Object("array"))
	require.Equal(t, []bool{true, true, false}, []bool{jsontext.IsNull(o.Get("none")), jsontext.IsNull(nil), jsontext.IsNull(o.Get("flag"))})

	elements, err := o.Elements("array")
	require.NoError(t, err)
	require.Len(t, elements, 2)
	_, err = o.Elements("object")
	require.EqualError(t, err, "$.object: want array, got object")
	members, err := o.Members("object")
	require.NoError(t, err)
	require.Len(t, members, 1)
	_, err = o.Members("missing")
	require.EqualError(t, err, "$.missing: want object, got nothing")
	require.NoError(t, o.Want("none", "array", "null"))
	require.EqualError(t, o.Want("text", "array", "null"), "$.text: want array or null, got string")
}

func TestEachObject(t *testing.T) {
	o, err := jsontext.Members([]byte(`{"objects":[{"a":1},{"a":2},{"a":3}],"mixed":[{"a":1},7],"empty":null,"object":{}}`))
	require.NoError(t, err)
	var seen []string
	read := func(raw []byte, element jsontext.Object) error {
		seen = append(seen, string(raw)+string(element.Get("a")))
		return element.Want("a", "number")
	}
	require.NoError(t, o.EachObject("objects", read))
	require.Equal(t, []string{`{"a":1}1`, `{"a":2}2`, `{"a":3}3`}, seen)
	require.NoError(t, o.EachObject("empty", read))
	require.NoError(t, o.EachObject("missing", read))
	require.EqualError(t, o.EachObject("mixed", read), "$.mixed[1]: want object, got number")
	require.EqualError(t, o.EachObject("object", read), "$.object: want array, got object")
	err = o.EachObject("objects", func(_ []byte, element jsontext.Object) error { return element.Want("b", "string") })
	require.EqualError(t, err, "$.objects[0].b: want string, got nothing")
}

func TestReaderReadsMembersByNameAndKind(t *testing.T) {
	r := jsontext.ReadObject("$", []byte(`{"name":"a\n","n":12,"on":true,"list":["x","y"],"none":[],"o":{"p":1},"null":null}`))
	require.True(t, r.Has("name"))
	require.False(t, r.Has("Name"), "names are compared in their exact case")
	require.Equal(t, "a\n", r.String("name"))
	require.Equal(t, 12, r.Int("n"))
	require.True(t, r.Bool("on"))
	require.Equal(t, []string{"x", "y"}, r.Strings("list"))
	require.NotNil(t, r.Elements("none"))
	require.Nil(t, r.Elements("missing"))
	o := r.Object("o")
	require.Equal(t, 1, o.Int("p"))
	require.NoError(t, o.End())
	require.Nil(t, r.Object("null"))
	require.Empty(t, r.String("null"))
	require.Equal(t, "null", string(r.Value("null")))
	require.NoError(t, r.End())
}

func TestReaderCollectsWhatDoesNotFit(t *testing.T) {
	for _, tt := range []struct {
		text string
		read func(r *jsontext.Reader)
		want []string
	}{
		{`[]`, func(r *jsontext.Reader) { r.String("a"); r.Require("a") }, []string{`$.x: want object, got array`}},
		{`{"a":1}`, func(r *jsontext.Reader) { r.String("a") }, []string{`$.x.a: want string, got number`}},
		{`{"a":"1"}`, func(r *jsontext.Reader) { r.Int("a") }, []string{`$.x.a: want number, got string`}},
		{`{"a":1.5}`, func(r *jsontext.Reader) { r.Int("a") }, []string{`$.x.a: want an integer, got another number`}},
		{`{"a":{}}`, func(r *jsontext.Reader) { r.Elements("a") }, []string{`$.x.a: want array, got object`}},
		{`{"a":["b",1]}`, func(r *jsontext.Reader) { r.Strings("a") }, []string{`$.x.a[1]: want string, got number`}},
		{`{}`, func(r *jsontext.Reader) { r.Require("a", "b") }, []string{`$.x.a: want a value, got nothing`, `$.x.b: want a value, got nothing`}},
		{`{"a":null}`, func(r *jsontext.Reader) { r.Require("a"); r.Int("a") }, []string{`$.x.a: want a value, got null`}},
		{`{"a":1,"odd name":2}`, func(r *jsontext.Reader) { r.Int("a"); r.Int("b") }, []string{`$.x["odd name"]: unknown member: want a, b`}},
	} {
		r := jsontext.ReadObject("$.x", []byte(tt.text))
		tt.read(r)
		err := r.End()
		require.ErrorAs(t, err, new(*fault.Error))
		var texts []string
		for _, f := range r.Faults() {
			texts = append(texts, f.Error())
		}
		require.Equal(t, tt.want, texts, tt.text)
	}
}

func TestMarshalDoesNotEscapeForHTML(t *testing.T) {
	text, err := jsontext.Marshal(map[string]string{"<a>": "x & y\n"})
	require.NoError(t, err)
	require.Equal(t, `{"<a>":"x & y\n"}`, string(text))
	_, err = jsontext.Marshal(math.NaN())
	require.Error(t, err)
}
