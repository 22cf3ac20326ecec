package state_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// spaced marshals with space, which the JSON of a value does not keep.
type spaced struct{ Text string }

func (s spaced) MarshalJSON() ([]byte, error) {
	return json.MarshalIndent(map[string]string{"text": s.Text}, "", "  ")
}

func (s *spaced) UnmarshalJSON(data []byte) error {
	var in struct{ Text string }
	err := json.Unmarshal(data, &in)
	s.Text = in.Text
	return err
}

func TestJSONByNameIsTheValueAsMarshalJSONShowsIt(t *testing.T) {
	const secret = "sk-live-99887766"
	schema := state.MustSchema(state.Team{"ann": {"ben"}}, state.AllowUndeclared,
		&state.Field[string]{Name: "key", Owner: "ann", Secret: true},
		&state.Field[[]string]{Name: "notes", Read: state.Public},
		&state.Field[spaced]{Name: "spaced", Read: state.Public},
		&state.Field[string]{Name: "unset", Read: state.Public},
		&state.Field[int64]{Name: "number", Read: state.Public},
		&state.Field[func()]{Name: "ref", Ephemeral: true, NoCopy: true})
	st := state.New(schema)
	for name, v := range map[string]any{
		"key": secret, "notes": []string{"<b>", "the key is " + secret}, "spaced": spaced{"a  b"}, "number": int64(1) << 60,
		"free": map[string]any{"n": 1.0}, "token": json.RawMessage(`{"` + secret + `": 1}`),
		"messages": []state.Message{state.UserText("hello " + secret)},
	} {
		require.NoError(t, st.KV().Set(name, v), name)
	}
	require.NoError(t, st.KV().Set("ref", func() {}))
	for _, handle := range []*state.State{st, st.As("ann"), st.As("ben"), st.As("eve"), st.Snapshot(), nil} {
		var shown struct{ Values map[string]json.RawMessage }
		data, err := json.Marshal(handle)
		if handle == nil {
			data, err = []byte(`{}`), nil
		}
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &shown))
		for _, name := range []string{"key", "notes", "spaced", "unset", "number", "ref", "free", "token", "messages", "unknown", "old"} {
			got, ok := handle.KV().JSON(name)
			want, shows := shown.Values[name]
			require.Equal(t, shows, ok, name)
			if ok {
				require.JSONEq(t, string(want), string(got), name)
				require.True(t, got.Valid(), name)
			} else {
				require.Empty(t, got)
			}
			if handle.Agent() != "ben" { // who may not know the secret, and so cannot mask it
				require.NotContains(t, got, secret, name)
			}
		}
	}
	got, ok := st.KV().JSON("spaced")
	require.True(t, ok)
	require.Equal(t, state.JSON(`{"text":"a  b"}`), got)
	got, _ = st.KV().JSON("notes")
	require.Equal(t, state.JSON(`["<b>","the key is [SECRET]"]`), got)
	got, _ = st.KV().JSON("number")
	require.Equal(t, state.JSON("1152921504606846976"), got)

	given, err := st.With(map[string]any{"unset": "given " + secret})
	require.NoError(t, err)
	got, _ = given.KV().JSON("unset")
	require.Equal(t, state.JSON(`"given [SECRET]"`), got)
}

// A transaction depends on what it reads as JSON.
func TestJSONByNameIsARead(t *testing.T) {
	a, b := &state.Field[string]{Name: "a"}, &state.Field[string]{Name: "b"}
	st := state.New(state.MustSchema(a, b))
	runs := 0
	require.NoError(t, st.Update(func(tx *state.State) error {
		seen, _ := tx.KV().JSON("a")
		if runs++; runs == 1 {
			if err := a.Set(st, "meanwhile"); err != nil {
				return err
			}
		}
		return b.Set(tx, seen.Text())
	}))
	require.Equal(t, 2, runs)
	require.Equal(t, "meanwhile", b.Or(st, ""))
}

func TestJSONByNameCopiesNoElements(t *testing.T) {
	list := &state.Field[[]string]{Name: "list"}
	st := state.New(state.MustSchema(list))
	require.NoError(t, list.Set(st, make([]string, 10_000)))
	allocs := testing.AllocsPerRun(10, func() { _, _ = st.KV().JSON("list") })
	require.Less(t, allocs, 100.0)
}
