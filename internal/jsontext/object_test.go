package jsontext_test

import (
	"testing"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/stretchr/testify/require"
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
