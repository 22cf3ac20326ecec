package state_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// describeSchema has one field of each kind that Describe distinguishes.
func describeSchema(t testing.TB) (*state.Schema, *state.Field[string], *state.Field[string]) {
	title := &state.Field[string]{Name: "title", Description: "The title.", UpdateRules: "Keep it short."}
	key := &state.Field[string]{Name: "key", Secret: true}
	schema, err := state.NewSchema(title, key)
	require.NoError(t, err)
	return schema, title, key
}

func TestDescribeInATransactionIsNotOvertakenByAMessage(t *testing.T) {
	schema, title, _ := describeSchema(t)
	for _, before := range []int{0, 1} {
		st := state.New(schema)
		for range before {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("hi")}))
		}
		runs := 0
		require.NoError(t, st.Update(func(tx *state.State) error {
			if runs++; runs == 1 {
				_ = tx.Describe()
				if err := state.Messages.Set(st, []state.Message{state.UserText("meanwhile")}); err != nil {
					return err
				}
			}
			return title.Set(tx, "mine")
		}))
		require.Equal(t, 1, runs, "%d messages before", before)
	}
}

func TestDescribeEscapesWhatDoesNotShow(t *testing.T) {
	const hidden = "a\u200bb\u202ec\u00add\u2800e\U000e0041f"
	title := &state.Field[string]{Name: "title", Description: "Do not\u200b trust\u202e this.", UpdateRules: "Never\u2066."}
	st := state.New(state.MustSchema(title, state.AllowUndeclared))
	require.NoError(t, title.Set(st, hidden))
	require.NoError(t, st.KV().Set("key", map[string]any{hidden: "é 注文 👍"}))
	text := st.Describe()
	require.Equal(t, `- title (string) = "a\u200bb\u202ec\u00add\u2800e\udb40\udc41f"
    Do not\u200b trust\u202e this.
    Update: Never\u2066.
- key (any) = {"a\u200bb\u202ec\u00add\u2800e\udb40\udc41f":"é 注文 👍"}
`, text)
	line, _, _ := strings.Cut(text, "\n")
	var back string
	require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(line, "- title (string) = ")), &back))
	require.Equal(t, hidden, back)
}

// What people and logs see has no secret, even where a message or a field
// repeats it.
func TestPrintedStateMasksSecretsInTexts(t *testing.T) {
	const card = "4242-4242-4242-4242"
	secret := &state.Field[string]{Name: "card", Secret: true}
	pin := &state.Field[int]{Name: "pin", Secret: true}
	note := &state.Field[string]{Name: "note"}
	plan := &state.Field[map[string]any]{Name: "plan"}
	st := state.New(state.MustSchema(secret, pin, note, plan))
	require.NoError(t, st.Patch(map[string]any{
		"card": card, "pin": 123456789, "note": "card " + card, "plan": map[string]any{card: []any{123456789, true}},
	}))
	result := state.ToolResult(state.ToolCall{ID: "1", Name: "pay"}, state.JSON(`{"card":"`+card+`","pin":123456789}`))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("my card is " + card)}))
	require.NoError(t, st.History().Append(state.InferenceResult{
		Output:    []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "pay", Input: state.JSON(`{"card":"` + card + `"}`)})},
		ToolCalls: []state.ToolResultMessage{result}, Raw: `{"said":"` + card + `"}`,
	}))
	for name, h := range map[string]*state.State{"host": st, "snapshot": st.Snapshot(), "fork": st.Fork(), "agent": st.As("ann")} {
		data, err := json.Marshal(h)
		require.NoError(t, err, name)
		require.NotContains(t, string(data), card, name)
		require.NotContains(t, string(data), "123456789", name)
		require.True(t, json.Valid(data), "%s: %s", name, data)
		require.Contains(t, string(data), `"my card is [SECRET]"`, name)
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			text := fmt.Sprintf(verb, h)
			require.NotContains(t, text, card, name)
			require.NotContains(t, text, "123456789", name)
		}
		require.NotContains(t, h.LogValue().String(), card, name)
	}
	require.Contains(t, st.Describe(), "card "+card, "a prompt has the fields as they are")
	exported, err := st.Export()
	require.NoError(t, err)
	require.Contains(t, string(exported), card)
}

// A secret that is a piece of JSON itself cannot break the JSON of a view.
func TestJSONOfAStateIsJSONWhateverTheSecretIs(t *testing.T) {
	for _, text := range []string{`","`, `{"a":`, `"b":["`, `"]}`, `null`, `true`, `e": "c`, `\"`, `a":"`} {
		secret := &state.Field[string]{Name: "secret", Secret: true}
		plan := &state.Field[map[string]any]{Name: "plan"}
		st := state.New(state.MustSchema(secret, plan))
		require.NoError(t, secret.Set(st, text))
		require.NoError(t, plan.Set(st, map[string]any{"a": []any{"b", "c", nil, true}, "b": []any{"x"}, "aaa": `","`}))
		data, err := st.MarshalJSON()
		require.NoError(t, err, text)
		require.True(t, json.Valid(data), "%q: %s", text, data)
	}
}

func TestFieldsGivesSizesButNotThoseOfSecrets(t *testing.T) {
	list := &state.Field[[]string]{Name: "list"}
	secret := &state.Field[string]{Name: "secret", Secret: true}
	ref := &state.Field[func()]{Name: "ref", Ephemeral: true, NoCopy: true}
	limited := &state.Field[string]{Name: "limited", MaxBytes: 12}
	schema := state.MustSchema(list, secret, ref, limited, state.AllowUndeclared)
	st := state.New(schema)
	sizes := func(st *state.State) map[string]int {
		got := map[string]int{}
		for _, f := range st.Fields() {
			if f.Bytes > 0 {
				got[f.Name] = f.Bytes
			}
		}
		return got
	}
	require.Empty(t, sizes(st))
	require.NoError(t, list.Set(st, []string{"one"}))
	require.NoError(t, secret.Set(st, "sk-live-99887766"))
	require.NoError(t, ref.Set(st, func() {}))
	require.NoError(t, limited.Set(st, "0123456789"))
	require.NoError(t, st.KV().Set("key", "value"))
	one := sizes(st)["list"]
	require.Positive(t, one)
	require.Equal(t, map[string]int{"list": one, "limited": 12, "key": 7}, sizes(st))
	require.NoError(t, list.Set(st, []string{"two"}))
	require.Greater(t, sizes(st)["list"], one)
	given, err := st.With(map[string]any{"limited": "0"})
	require.NoError(t, err)
	require.Equal(t, 3, sizes(given)["limited"])

	data, err := st.Export()
	require.NoError(t, err)
	back, err := state.Import(schema, data)
	require.NoError(t, err)
	require.Equal(t, sizes(st), sizes(back))
}

// The size of a value is a part of it. A transaction that asks which fields
// there are must not depend on all of them.
func TestFieldsInATransactionIsNotOvertakenByAValue(t *testing.T) {
	a, b := &state.Field[string]{Name: "a"}, &state.Field[string]{Name: "b"}
	st := state.New(state.MustSchema(a, b))
	require.NoError(t, a.Set(st, "first"))
	runs := 0
	require.NoError(t, st.Update(func(tx *state.State) error {
		runs++
		for _, f := range tx.Fields() {
			require.Zero(t, f.Bytes, f.Name)
			require.Equal(t, f.Name == "a", f.Set)
		}
		if err := a.Set(st, "a longer one"); err != nil {
			return err
		}
		return b.Set(tx, "mine")
	}))
	require.Equal(t, 1, runs)
}

func TestSchemaOfAState(t *testing.T) {
	team := state.Team{"lead": {"ann", "ben"}, "ann": nil}
	field := &state.Field[string]{Name: "f", Owner: "ann", Read: state.Only("ben"), Was: []string{"old"}}
	schema := state.MustSchema(team, field)
	st := state.New(schema)
	for _, handle := range []*state.State{st, st.As("eve"), st.Snapshot()} {
		require.Same(t, schema, handle.Schema())
	}
	got := schema.Team()
	require.Equal(t, team, got)
	got["lead"][0] = "eve"
	got["eve"] = nil
	require.Equal(t, team, schema.Team(), "a copy")
	infos := schema.Fields()
	require.Equal(t, "f", infos[1].Name)
	require.Equal(t, state.Only("ben"), infos[1].Read)
	require.Equal(t, state.Private, infos[1].Write)
	infos[1].Was[0] = "other"
	require.Equal(t, []string{"old"}, schema.Fields()[1].Was, "a copy")

	var none *state.State
	var open *state.Schema
	for _, s := range []*state.Schema{state.New(nil).Schema(), none.Schema(), open} {
		require.Len(t, s.Fields(), 1)
		require.Equal(t, "messages", s.Fields()[0].Name)
		require.Nil(t, s.Team())
	}
}
