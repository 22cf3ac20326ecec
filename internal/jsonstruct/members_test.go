//lint:file-ignore SA5008,ST1003,U1000 The types of this test are odd on purpose.

package jsonstruct_test

//lint:file-ignore SA5008,U1000 The tests are about odd tags and fields that nothing uses.

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/jsonstruct"
	"github.com/agentstate/state/internal/jsontext"
)

type (
	Inner struct {
		ID   string   `json:"id"`
		Tags []string `json:"tags,omitempty"`
	}
	Deep struct {
		Inner
		Level int
	}
	hidden  struct{ Seen, seen int }
	named   string
	plain   struct{ B, A int }
	options struct {
		Empty   int `json:"empty,omitempty"`
		Zero    int `json:"zero,omitzero"`
		Both    int `json:",omitempty,omitzero"`
		Neither int `json:"neither"`
	}
	cases struct {
		ID int
		Id int
		X  int `json:"iD"`
	}
	oddNames struct {
		Dash    int `json:"-,"`
		Space   int `json:"a b"`
		Quote   int `json:"it's"`
		Smiley  int `json:"😀"`
		Letters int `json:"größe"`
	}
	promoting struct {
		First int
		Inner
		*Deep
		Last int
	}
	renamed struct {
		Inner `json:"inner"`
		Other Inner
	}
	shadowing struct {
		Inner
		ID int `json:"id"`
	}
	tagWins struct {
		Name  int
		Other int `json:"Name"`
	}
	left      struct{ Same, Left int }
	right     struct{ Same, Right int }
	ambiguous struct {
		left
		right
	}
	dropped struct {
		Kept int
		Gone int `json:"-"`
		lost int
	}
	throughHidden struct{ hidden }
	hiddenPointer struct{ *hidden }
	embedsNamed   struct{ named }
	recursive     struct {
		Name string
		*recursive
	}
	asString struct {
		N int `json:"n,string"`
	}
)

// names returns the names of the members of t.
func names(t reflect.Type) (list []string) {
	members, _ := jsonstruct.Members(t)
	for _, m := range members {
		list = append(list, m.Name)
	}
	return list
}

func TestMembersAreThoseOfEncodingJSON(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  []string
		lost  string
	}{
		{plain{}, []string{"B", "A"}, ""},
		{options{1, 1, 1, 1}, []string{"empty", "zero", "Both", "neither"}, ""},
		{cases{}, []string{"ID", "Id", "iD"}, ""},
		{oddNames{}, []string{"-", "a b", "Quote", "Smiley", "größe"}, ""},
		{promoting{Inner: Inner{Tags: []string{"x"}}, Deep: &Deep{}}, []string{"First", "id", "tags", "Level", "Last"},
			`two fields of jsonstruct_test.promoting with the JSON name "id"`},
		{renamed{}, []string{"inner", "Other"}, ""},
		{shadowing{Inner: Inner{Tags: []string{"x"}}}, []string{"tags", "id"},
			`two fields of jsonstruct_test.shadowing with the JSON name "id"`},
		{tagWins{}, []string{"Name"}, `two fields of jsonstruct_test.tagWins with the JSON name "Name"`},
		{ambiguous{}, []string{"Left", "Right"}, `two fields of jsonstruct_test.ambiguous with the JSON name "Same"`},
		{dropped{lost: 1}, []string{"Kept"}, "the field Gone of jsonstruct_test.dropped, which has no JSON and would be lost"},
		{throughHidden{hidden{seen: 1}}, []string{"Seen"}, "the unexported field seen of jsonstruct_test.hidden, which has no JSON and would be lost"},
		{hiddenPointer{&hidden{}}, []string{"Seen"}, "an embedded pointer to the unexported jsonstruct_test.hidden"},
		{embedsNamed{}, nil, "the unexported field named of jsonstruct_test.embedsNamed, which has no JSON and would be lost"},
		{recursive{}, []string{"Name"}, "an embedded pointer to the unexported jsonstruct_test.recursive"},
		{asString{}, []string{"n"}, "the field N of jsonstruct_test.asString with the JSON option string"},
	} {
		typ := reflect.TypeOf(tt.value)
		_, lost := jsonstruct.Members(typ)
		require.Equal(t, tt.want, names(typ), typ)
		if tt.lost == "" {
			require.NoError(t, lost, typ)
		} else {
			require.EqualError(t, lost, tt.lost)
		}

		text, err := json.Marshal(tt.value)
		require.NoError(t, err)
		members, err := jsontext.Members(text)
		require.NoError(t, err)
		var written []string
		for _, m := range members {
			written = append(written, m.Name)
		}
		require.Equal(t, tt.want, written, "encoding/json writes %s", text)
	}
}

func TestMembersKnowTagsAndOptions(t *testing.T) {
	members, lost := jsonstruct.Members(reflect.TypeFor[options]())
	require.NoError(t, lost)
	var required []bool
	for _, m := range members {
		required = append(required, m.Required())
	}
	require.Equal(t, []bool{false, false, false, true}, required)
	require.True(t, members[0].OmitEmpty && !members[0].OmitZero)
	require.True(t, members[1].OmitZero && !members[1].OmitEmpty)
	require.Equal(t, reflect.TypeFor[int](), members[3].Type)
	require.Equal(t, "neither", members[3].Tag.Get("json"))
}

func TestFieldOfAndMakeFieldFollowEmbeddedPointers(t *testing.T) {
	type outer struct{ *Deep }
	members, _ := jsonstruct.Members(reflect.TypeFor[outer]())
	i := slices.IndexFunc(members, func(m jsonstruct.Member) bool { return m.Name == "id" })
	require.Equal(t, []int{0, 0, 0}, members[i].Index)

	var o outer
	_, ok := members[i].FieldOf(reflect.ValueOf(o))
	require.False(t, ok, "the embedded struct is nil")
	members[i].MakeField(reflect.ValueOf(&o).Elem()).SetString("made")
	require.Equal(t, "made", o.ID)
	f, ok := members[i].FieldOf(reflect.ValueOf(o))
	require.True(t, ok)
	require.Equal(t, "made", f.String())
}

func TestPromotes(t *testing.T) {
	for _, tt := range []struct {
		typ  reflect.Type
		want bool
	}{
		{reflect.TypeFor[struct{ Inner }](), true},
		{reflect.TypeFor[struct{ *Inner }](), true},
		{reflect.TypeFor[struct{ hidden }](), true},
		{reflect.TypeFor[struct{ Inner Inner }](), false},
		{reflect.TypeFor[renamed](), false},
		{reflect.TypeFor[embedsNamed](), false},
	} {
		require.Equal(t, tt.want, jsonstruct.Promotes(tt.typ.Field(0)), tt.typ)
	}
}
