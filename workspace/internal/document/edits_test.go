package document

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/test/cost"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/workspace/work"
)

// naive is a document without optimizations.
type naive map[string]map[string]json.RawMessage

func (n naive) apply(e state.Effect) bool {
	old, present := n[e.Part][e.Field]
	put := func(v any) bool {
		data, err := jsontext.Marshal(v)
		if err != nil {
			return false
		}
		if n[e.Part] == nil {
			n[e.Part] = map[string]json.RawMessage{}
		}
		n[e.Part][e.Field] = data
		return true
	}
	switch e.Kind {
	case "set":
		return e.Value != "" && put(e.Value)
	case "delete":
		delete(n[e.Part], e.Field)
		if len(n[e.Part]) == 0 {
			delete(n, e.Part)
		}
		return present
	}
	var list, more []json.RawMessage
	if !present || json.Unmarshal(old, &list) != nil || list == nil || e.N < 0 {
		return false
	}
	if (e.Kind == "append" || e.Kind == "insert") && (json.Unmarshal([]byte(e.Value), &more) != nil || more == nil) {
		return false
	}
	switch {
	case e.N > len(list):
		return false
	case e.Kind == "append":
		return put(append(list, more...))
	case e.Kind == "insert":
		return put(slices.Insert(list, e.N, more...))
	case e.Kind == "drop_first":
		return put(list[e.N:])
	case e.Kind == "truncate":
		return put(list[:e.N])
	case e.Kind == "remove_at" && e.N < len(list):
		return put(slices.Delete(list, e.N, e.N+1))
	}
	return false
}

func (n naive) text(t require.TestingT) string {
	data, err := jsontext.Marshal(n)
	require.NoError(t, err)
	return string(data)
}

var (
	someValues = rapid.SampledFrom([]state.JSON{
		"1", "null", `"a"`, `{"b":[1]}`, "[]", "[1]", `["a",null,[2],{"c":"]"}]`, "[1,1,2,1,1]", `"<&>"`,
	})
	someEffect = rapid.Custom(func(t *rapid.T) state.Effect {
		e := state.Effect{
			Part:  rapid.SampledFrom([]string{PartField, "other", PartConversation}).Draw(t, "part"),
			Field: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "field"),
			Kind: rapid.SampledFrom([]state.EffectKind{
				"set", "set", "set", "append", "append", "append", "insert", "drop_first", "truncate", "remove_at", "delete",
			}).Draw(t, "do"),
			N: rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3}).Draw(t, "n"),
		}
		if e.Kind == "set" || e.Kind == "append" || e.Kind == "insert" {
			e.Value = someValues.Draw(t, "value")
		}
		return e
	})
)

// A document does what the naive one does, and its clones do not change.
func TestEffectsDoWhatANaiveDocumentDoes(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d, model := New(), naive{}
		var clones []*Document
		var texts []string
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "clone") == 0 {
				clones, texts = append(clones, d), append(texts, string(d.Encode()))
				d = d.Clone()
			}
			e := someEffect.Draw(t, "effect")
			before := model.text(t)
			if err := d.Apply([]state.Effect{e}); model.apply(e) {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, work.ErrCorrupt)
				require.Equal(t, before, string(d.Encode()))
			}
			require.Equal(t, model.text(t), string(d.Encode()))
		}
		for i, c := range clones {
			require.Equal(t, texts[i], string(c.Encode()))
		}
	})
}

func TestEffectsThatDoNotFit(t *testing.T) {
	d, err := Decode([]byte(`{"field":{"list":[1,2],"text":"a","none":null}}`))
	require.NoError(t, err)
	before := string(d.Encode())
	for name, e := range map[string]state.Effect{
		"unknown":                {Field: "list", Kind: "sort"},
		"nothing to do":          {Field: "list"},
		"set nothing":            {Field: "list", Kind: "set"},
		"delete nothing":         {Field: "gone", Kind: "delete"},
		"append to nothing":      {Field: "gone", Kind: "append", Value: "[1]"},
		"append to a text":       {Field: "text", Kind: "append", Value: "[1]"},
		"append to null":         {Field: "none", Kind: "append", Value: "[1]"},
		"append nothing":         {Field: "list", Kind: "append"},
		"append an object":       {Field: "list", Kind: "append", Value: `{"secret":1}`},
		"insert behind the end":  {Field: "list", Kind: "insert", N: 3, Value: "[1]"},
		"insert before 0":        {Field: "list", Kind: "insert", N: -1, Value: "[1]"},
		"drop too many":          {Field: "list", Kind: "drop_first", N: 3},
		"drop less than none":    {Field: "list", Kind: "drop_first", N: -1},
		"keep too many":          {Field: "list", Kind: "truncate", N: 3},
		"remove behind the last": {Field: "list", Kind: "remove_at", N: 2},
	} {
		t.Run(name, func(t *testing.T) {
			e.Part = PartField
			err := d.Apply([]state.Effect{
				{Part: "field", Field: "list", Kind: "append", Value: "[3]"},
				{Part: "field", Field: "text", Kind: "delete"},
				{Part: "message", Field: "1", Kind: "set", Value: "{}"},
				{Part: "field", Field: "list", Kind: "drop_first", N: 1},
				e,
			})
			require.ErrorIs(t, err, work.ErrCorrupt)
			require.ErrorContains(t, err, `effect 4, `+strconv.Quote(string(e.Kind))+` of `+strconv.Quote(e.Field)+` in "field": `)
			require.NotContains(t, err.Error(), "secret")
			require.Equal(t, before, string(d.Encode()))
		})
	}
}

// Appending elements one by one costs no more at the end than at the beginning.
func TestAppendCostsWhatIsAdded(t *testing.T) {
	d := New()
	require.NoError(t, d.Apply([]state.Effect{{Part: PartField, Field: "list", Kind: state.EffectSet, Value: "[]"}}))
	grow := func(n int) uint64 {
		return cost.Allocated(func() {
			for range n {
				require.NoError(t, d.Apply([]state.Effect{{Part: PartField, Field: "list", Kind: state.EffectAppend, Value: "[12345]"}}))
			}
		})
	}
	first := grow(1_000)
	grow(8_000)
	require.Less(t, grow(1_000), 2*first)
}
