package codec_test

import (
	"testing"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
	"github.com/stretchr/testify/require"
)

func TestGrowing(t *testing.T) {
	sent, err := jsontext.Members([]byte(`{"text":"a","list":[1],"object":{"x":1},"number":7}`))
	require.NoError(t, err)
	g := codec.NewGrowing(sent)
	g.Member("text").AppendText("b")
	g.Member("text").AppendText("\n")
	g.Member("list").Append([]byte("2"))
	g.Member("object").Member("y").Member("z").Set([]byte("true"))
	g.Member("new").AppendText("")
	g.Member("nothing")
	require.Equal(t, `{"text":"ab\n","list":[1,2],"object":{"x":1,"y":{"z":true}},"number":7,"new":""}`, string(g.JSON()))

	g.SetMembers(jsontext.Object{{Name: "number", Value: []byte("null")}, {Name: "text", Value: []byte("8")}, {Name: "new2", Value: []byte("null")}, {Name: "list", Value: []byte("9")}}, "list")
	require.Equal(t, `{"text":8,"list":[1,2],"object":{"x":1,"y":{"z":true}},"number":7,"new":"","new2":null}`, string(g.JSON()), "a value does not become null")
}

func TestGrowingChangesKind(t *testing.T) {
	var g codec.Growing
	require.True(t, g.IsEmpty())
	require.Equal(t, "null", string(g.JSON()))
	g.Set([]byte(`7`))
	require.True(t, g.IsWhole())
	g.AppendText("a")
	require.True(t, g.IsText() && !g.IsWhole())
	require.Equal(t, `"a"`, string(g.JSON()))
	require.True(t, g.AsList().IsList())
	require.Equal(t, `[]`, string(g.JSON()))
	require.True(t, g.AsObject().IsObject() && !g.IsList())
	require.Equal(t, `{}`, string(g.JSON()))
}

// Elements that were not requested are left out. An element that was requested
// but has not arrived is null.
func TestGrowingListWithGaps(t *testing.T) {
	var g codec.Growing
	g.Element(3).AppendText("d")
	g.Element(1)
	require.Equal(t, 4, g.Len())
	require.Equal(t, `[null,"d"]`, string(g.JSON()))
}
