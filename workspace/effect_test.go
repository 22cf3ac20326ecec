package workspace

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/effort/property"
)

// naive is what a document is, without anything that makes it fast.
type naive map[string]map[string]json.RawMessage

func (n naive) apply(e Effect) bool {
	old, present := n[e.Part][e.Field]
	put := func(v any) bool {
		data, err := encode(v)
		if err != nil {
			return false
		}
		if n[e.Part] == nil {
			n[e.Part] = map[string]json.RawMessage{}
		}
		n[e.Part][e.Field] = data
		return true
	}
	switch e.Do {
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
	if (e.Do == "append" || e.Do == "insert") && (json.Unmarshal([]byte(e.Value), &more) != nil || more == nil) {
		return false
	}
	switch {
	case e.N > len(list):
		return false
	case e.Do == "append":
		return put(append(list, more...))
	case e.Do == "insert":
		return put(slices.Insert(list, e.N, more...))
	case e.Do == "drop_first":
		return put(list[e.N:])
	case e.Do == "truncate":
		return put(list[:e.N])
	case e.Do == "remove_at" && e.N < len(list):
		return put(slices.Delete(list, e.N, e.N+1))
	}
	return false
}

func (n naive) text(t require.TestingT) string {
	data, err := encode(n)
	require.NoError(t, err)
	return string(data)
}

var (
	someValues = rapid.SampledFrom([]state.JSON{
		"1", "null", `"a"`, `{"b":[1]}`, "[]", "[1]", `["a",null,[2],{"c":"]"}]`, "[1,1,2,1,1]", `"<&>"`,
	})
	someEffect = rapid.Custom(func(t *rapid.T) Effect {
		e := Effect{
			Part:  rapid.SampledFrom([]string{partField, "other", partTalk}).Draw(t, "part"),
			Field: rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "field"),
			Do: rapid.SampledFrom([]string{
				"set", "set", "set", "append", "append", "append", "insert", "drop_first", "truncate", "remove_at", "delete",
			}).Draw(t, "do"),
			N: rapid.SampledFrom([]int{0, 0, 1, 1, 2, 3}).Draw(t, "n"),
		}
		if e.Do == "set" || e.Do == "append" || e.Do == "insert" {
			e.Value = someValues.Draw(t, "value")
		}
		return e
	})
)

// A document does what the naive one does, and a clone has no part in it.
func TestEffectsDoWhatANaiveDocumentDoes(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d, model := newDocument(), naive{}
		var clones []*document
		var texts []string
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "clone") == 0 {
				clones, texts = append(clones, d), append(texts, string(d.encode()))
				d = d.clone()
			}
			e := someEffect.Draw(t, "effect")
			before := model.text(t)
			if err := d.apply([]Effect{e}); model.apply(e) {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, ErrCorrupt)
				require.Equal(t, before, string(d.encode()))
			}
			require.Equal(t, model.text(t), string(d.encode()))
		}
		for i, c := range clones {
			require.Equal(t, texts[i], string(c.encode()))
		}
	})
}

func TestEffectsThatDoNotFit(t *testing.T) {
	d, err := decodeDocument([]byte(`{"field":{"list":[1,2],"text":"a","none":null}}`))
	require.NoError(t, err)
	before := string(d.encode())
	for name, e := range map[string]Effect{
		"unknown":                {Field: "list", Do: "sort"},
		"nothing to do":          {Field: "list"},
		"set nothing":            {Field: "list", Do: "set"},
		"delete nothing":         {Field: "gone", Do: "delete"},
		"append to nothing":      {Field: "gone", Do: "append", Value: "[1]"},
		"append to a text":       {Field: "text", Do: "append", Value: "[1]"},
		"append to null":         {Field: "none", Do: "append", Value: "[1]"},
		"append nothing":         {Field: "list", Do: "append"},
		"append what is no list": {Field: "list", Do: "append", Value: `{"secret":1}`},
		"insert behind the end":  {Field: "list", Do: "insert", N: 3, Value: "[1]"},
		"insert before 0":        {Field: "list", Do: "insert", N: -1, Value: "[1]"},
		"drop too many":          {Field: "list", Do: "drop_first", N: 3},
		"drop less than none":    {Field: "list", Do: "drop_first", N: -1},
		"keep too many":          {Field: "list", Do: "truncate", N: 3},
		"remove behind the last": {Field: "list", Do: "remove_at", N: 2},
	} {
		t.Run(name, func(t *testing.T) {
			e.Part = partField
			err := d.apply([]Effect{
				{Part: "field", Field: "list", Do: "append", Value: "[3]"},
				{Part: "field", Field: "text", Do: "delete"},
				{Part: "message", Field: "1", Do: "set", Value: "{}"},
				{Part: "field", Field: "list", Do: "drop_first", N: 1},
				e,
			})
			require.ErrorIs(t, err, ErrCorrupt)
			require.ErrorContains(t, err, `effect 4, `+strconv.Quote(e.Do)+` of `+strconv.Quote(e.Field)+` in "field": `)
			require.NotContains(t, err.Error(), "secret")
			require.Equal(t, before, string(d.encode()))
		})
	}
}

// What was appended one by one costs no more at the end than at the beginning.
func TestAppendCostsWhatIsAdded(t *testing.T) {
	d := newDocument()
	require.NoError(t, d.apply([]Effect{{Part: partField, Field: "list", Do: doSet, Value: "[]"}}))
	grow := func(n int) uint64 {
		return allocated(func() {
			for range n {
				require.NoError(t, d.apply([]Effect{{Part: partField, Field: "list", Do: doAppend, Value: "[12345]"}}))
			}
		})
	}
	first := grow(1_000)
	grow(8_000)
	require.Less(t, grow(1_000), 2*first)
}
