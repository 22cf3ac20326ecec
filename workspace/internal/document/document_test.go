package document

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/workspace/work"
)

func someDocument(t *rapid.T, label string) *Document {
	d := New()
	for _, e := range rapid.SliceOfN(someEffect, 0, 20).Draw(t, label) {
		_ = d.Apply([]state.Effect{e}) // some do not fit
	}
	return d
}

func TestDocumentIsWhatItEncodes(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d := someDocument(t, "effects")
		again, err := Decode(d.Encode())
		require.NoError(t, err)
		require.Equal(t, string(d.Encode()), string(again.Encode()))
		require.Empty(t, d.Revert(again))
	})
}

func TestDocumentIsEncodedInOneWay(t *testing.T) {
	d, err := Decode([]byte(` { "z":{"b": [1, 2.0 ,{"y":1,"x":"\u0041"}], "a" : "<&>"} ,"new":{"":null},"empty":{ } } `))
	require.NoError(t, err)
	require.Equal(t, `{"new":{"":null},"z":{"a":"<&>","b":[1,2.0,{"y":1,"x":"\u0041"}]}}`, string(d.Encode()))
	require.Equal(t, "{}", string(New().Encode()))
}

func TestCorruptDocuments(t *testing.T) {
	for text, path := range map[string]string{
		``:                                "$",
		`[]`:                              "$",
		`{"field":[]}`:                    "$.field",
		`{"a b":null}`:                    `$["a b"]`,
		`{"field":{"a":1}`:                "$",
		`{"field":{"a":1}}x`:              "$",
		`{"field":{"a":1,"a":2}}`:         "$.field.a",
		`{"field":{},"field":{}}`:         "$.field",
		`{"field":{"a":[1,{"b":01}]}}`:    "$.field.a[1].b",
		"{\"field\":{\"a\":\"\xff\"}}":    "$.field.a",
		`{"field":{"a":"\ud800 hidden"}}`: "$.field.a",
	} {
		d, err := Decode([]byte(text))
		require.ErrorIs(t, err, work.ErrCorrupt, text)
		require.ErrorContains(t, err, path, text)
		require.NotContains(t, err.Error(), "hidden")
		require.Nil(t, d)
	}
}

// withoutVersion returns the document's JSON without the version.
func withoutVersion(d *Document) string {
	c := d.Clone()
	c.put(PartConversation, fieldVersion, nil)
	return string(c.Encode())
}

func TestDiffTurnsOneDocumentIntoAnother(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		from := someDocument(t, "from")
		to := from.Clone()
		if rapid.Bool().Draw(t, "other") {
			to = someDocument(t, "to")
		}
		for _, e := range rapid.SliceOfN(someEffect, 0, 5).Draw(t, "more") {
			_ = from.Apply([]state.Effect{e}) // some do not fit
		}
		require.NoError(t, from.Apply([]state.Effect{{Part: PartConversation, Field: fieldVersion, Kind: state.EffectSet, Value: "7"}}))
		effects := from.Revert(to)
		if from := from.Clone(); len(effects) > 0 {
			require.NoError(t, from.Apply(effects))
			require.Equal(t, withoutVersion(to), withoutVersion(from))
			require.EqualValues(t, "8", from.get(PartConversation, fieldVersion).json())
		}
		require.NotEqual(t, withoutVersion(from) == withoutVersion(to), len(effects) > 0)
	})
}

func TestDiffOfListsIsSmall(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     []state.Effect
	}{
		{"[1,2,3]", "[1,2]", []state.Effect{{Kind: "truncate", N: 2}}},
		{"[1,2]", "[1,2,3,4]", []state.Effect{{Kind: "append", Value: "[3,4]"}}},
		{"[]", "[1]", []state.Effect{{Kind: "append", Value: "[1]"}}},
		{"[1]", "[]", []state.Effect{{Kind: "truncate"}}},
		{"[1,2,3]", "[3]", []state.Effect{{Kind: "drop_first", N: 2}}},
		{"[1,2,3]", "[1,4]", []state.Effect{{Kind: "truncate", N: 1}, {Kind: "append", Value: "[4]"}}},
		{"[1,2,1,2]", "[1,2]", []state.Effect{{Kind: "truncate", N: 2}}},
		{"[1,2]", "[3,2]", []state.Effect{{Kind: "drop_first", N: 1}, {Kind: "insert", Value: "[3]"}}},
		{"[1,2]", "[3,4]", []state.Effect{{Kind: "set", Value: "[3,4]"}}},
		{"[1]", "1", []state.Effect{{Kind: "set", Value: "1"}}},
		{"null", "[1]", []state.Effect{{Kind: "set", Value: "[1]"}}},
		{"[1]", "[1]", nil},
	} {
		from, to := &fieldValue{text: state.JSON(c.from)}, &fieldValue{text: state.JSON(c.to)}
		for i := range c.want {
			c.want[i].Part, c.want[i].Field = PartField, "list"
		}
		require.Equal(t, c.want, valueEffects(PartField, "list", from, to), "%s to %s", c.from, c.to)
	}
}

// FuzzDocument applies arbitrary effects to arbitrary content. Refused effects
// change nothing, and others do what the naive document does. For arbitrary
// content, the rest of the package returns an error or works.
// A message with a number that cannot be read would make the workspace corrupt.
func TestDocumentRunsOutOfNumbers(t *testing.T) {
	d, err := Decode([]byte(`{"message":{"2147483647":{"type":"text","role":"user","content":"a"}}}`))
	require.NoError(t, err)
	from, _, err := d.Load(nil)
	require.NoError(t, err)
	to := from.Fork()
	require.NoError(t, state.Messages.Set(to, []state.Message{state.UserText("b")}))
	_, err = d.Save(from.Snapshot(), to, nil)
	require.ErrorIs(t, err, state.ErrLimitExceeded)
	require.EqualError(t, err, "state: limit message numbers: 2147483648 is more than 2147483647")
}

func FuzzDocument(f *testing.F) {
	content := `{"message":{"1":{"type":"text","role":"user","content":"a"},"2":{"type":"text","role":"user","content":"a"}},` +
		`"conversation":{"entries":[1,2],"results":[{"history":[[1,2]],"output":[[2,3]],"raw_base64":"/w==","started_at":"2026-01-02T03:04:04.5Z","created_at":"2026-01-02T03:04:05Z"}],"version":3},` +
		`"field":{"list":[1]},"key":{"a":{}}}`
	f.Add([]byte(content), []byte(`[{"part":"field","field":"list","kind":"append","value":[2,{"a":1}]}]`))
	f.Add([]byte(content), []byte(`[{"part":"message","field":"3","kind":"set","value":{}},{"part":"message","field":"1","kind":"delete"},{"part":"conversation","field":"entries","kind":"truncate","n":1}]`))
	f.Add([]byte(`{"a":{"b":[]}}`), []byte(`[{"part":"a","field":"b","kind":"insert","value":[1,2]},{"part":"a","field":"b","kind":"remove_at","n":1},{"part":"a","field":"b","kind":"drop_first","n":1}]`))
	f.Fuzz(func(t *testing.T, content, edits []byte) {
		d, err := Decode(content)
		if err != nil {
			require.ErrorIs(t, err, work.ErrCorrupt)
			return
		}
		before := string(d.Encode())
		model := naive{}
		require.NoError(t, json.Unmarshal([]byte(before), &model))
		var effects []state.Effect
		if json.Unmarshal(edits, &effects) != nil {
			effects = nil
		}
		fit, want := true, before
		for _, e := range effects {
			fit = fit && model.apply(e)
			after, err := Decode([]byte(model.text(t)))
			if fit = fit && err == nil; fit {
				want = string(after.Encode())
			}
		}
		base := d.Clone()
		if err := d.Apply(effects); fit {
			require.NoError(t, err)
			require.Equal(t, want, string(d.Encode()))
		} else {
			require.ErrorIs(t, err, work.ErrCorrupt)
			require.Equal(t, before, string(d.Encode()))
		}
		back := d.Clone()
		require.NoError(t, back.Apply(d.Revert(base)))
		require.Equal(t, withoutVersion(base), withoutVersion(back))

		s, _, err := d.Load(nil)
		if err != nil {
			return
		}
		from := s.Snapshot()
		_, _ = s.KV().Delete("a")
		require.NoError(t, s.History().Append(state.InferenceResult{History: state.Messages.GetOr(s, nil), Output: []state.Message{state.UserText("b")}}))
		for _, change := range []func() ([]state.Effect, error){
			func() ([]state.Effect, error) { return d.EndRun(empty, "") },
			func() ([]state.Effect, error) { return d.Clone().Shorten(1, 1) },
			func() ([]state.Effect, error) { return d.Save(from, s, nil) },
		} {
			if effects, err := change(); err == nil {
				c := d.Clone()
				require.NoError(t, c.Apply(effects))
				_, _, err := c.Load(nil)
				require.NoError(t, err)
			}
		}
	})
}
