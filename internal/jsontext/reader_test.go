package jsontext_test

import (
	"testing"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/stretchr/testify/require"
)

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
