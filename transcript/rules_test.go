package transcript_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

func TestNewProfileRefuses(t *testing.T) {
	type label = transcript.Labels
	for want, rules := range map[string]transcript.Rules{
		"Name: is missing":     {},
		"Format: want UTF-8":   {Name: "x", Format: "\xff"},
		"Format: want UTF-8 o": {Name: "x", Format: strings.Repeat("a", 65)},
		`Roles: "assistant"`:   {Name: "x", Roles: []string{"user"}},
		`Roles: "user" is`:     {Name: "x", Roles: []string{}},
		"IDs.Chars: want visible ASCII characters and ranges of them": {Name: "x", IDs: label{Chars: "z-a"}},
		"IDs.Chars: want visible ASCII characters":                    {Name: "x", IDs: label{Chars: "ä"}},
		"IDs.First: want visible ASCII characters":                    {Name: "x", IDs: label{First: " "}},
		"IDs.Chars: want the digits":                                  {Name: "x", IDs: label{Chars: "a-z"}},
		"IDs.First: want characters of Chars":                         {Name: "x", IDs: label{Chars: "0-9a-z", First: "A"}},
		"IDs.MaxBytes: want 0, or at least 8":                         {Name: "x", IDs: label{MaxBytes: 7}},
		"Names.MaxBytes: want 0, or at least 16":                      {Name: "x", Names: label{MaxBytes: 15}},
		"Names.MaxBytes: want 0, or at least ":                        {Name: "x", Names: label{MaxBytes: -1}},
		"IDs.MinBytes: want at most 40 and MaxBytes":                  {Name: "x", IDs: label{MinBytes: 9, MaxBytes: 8}},
		"IDs.MinBytes: want at most 40 ":                              {Name: "x", IDs: label{MinBytes: 41}},
		"IDs.MinBytes: want at most":                                  {Name: "x", IDs: label{MinBytes: -1}},
		"UniqueIDs: want RequireIDs":                                  {Name: "x", UniqueIDs: true},
	} {
		profile, err := transcript.NewProfile(rules)
		require.ErrorIs(t, err, transcript.ErrInvalidRules, want)
		require.ErrorContains(t, err, "transcript: invalid rules: "+want)
		require.Equal(t, transcript.Profile{}, profile)
	}
}

// The built-in profiles are values of the same rules.
func TestRulesOfProfiles(t *testing.T) {
	for _, profile := range append(everyProfile, transcript.Profile{}, noPrefill(transcript.Anthropic)) {
		rules := profile.Rules()
		made, err := transcript.NewProfile(rules)
		require.NoError(t, err)
		require.Equal(t, rules, made.Rules())
		require.Equal(t, profile.String(), made.String())
		if rules.Roles != nil {
			rules.Roles[0] = "changed"
			require.Equal(t, "system", profile.Rules().Roles[0])
			require.Equal(t, "system", made.Rules().Roles[0])
		}
	}
}

// randomRules returns rules for a format, which may be one that is not built in.
func randomRules(rng *rand.Rand, format string) transcript.Rules {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	labels := func(room int) transcript.Labels {
		l := transcript.Labels{Chars: []string{"", "0-9", "a-z0-9", "a-zA-Z0-9_-", "!-~", "0-9:"}[rng.IntN(6)]}
		if l.Chars != "0-9" && l.Chars != "0-9:" && one(2) {
			l.First = "a-z"
		} else if l.Chars == "0-9:" && one(2) {
			l.First = ":"
		}
		if one(2) {
			l.MaxBytes = room + rng.IntN(60)
		}
		if one(3) {
			l.MinBytes = min(rng.IntN(12), max(l.MaxBytes, 8))
		}
		return l
	}
	rules := transcript.Rules{
		Name: "random", Format: format,
		IDs: labels(8), RequireIDs: one(2), Names: labels(16), ResultNames: one(2),
		AdjacentResults: one(2), MergedTurns: one(2),
		SystemFirst: one(2), UserFirst: one(2), UserLast: one(3), CallsAfterUser: one(2),
		AssistantAfterResults: one(3),
		ThinkingFirst:         one(2), NoEmptyTexts: one(2), NoBlankTexts: one(3),
	}
	rules.UniqueIDs = rules.RequireIDs && one(2)
	switch rng.IntN(3) {
	case 0:
		rules.Roles = []string{"user", "assistant"}
	case 1:
		rules.Roles = []string{"user", "assistant", "system", "tool"}
	}
	return rules
}

// foreignCases are profiles of random rules, with the policies.
func foreignCases(t *testing.T) (cases []propertyCase) {
	seed := effort.Seed(1)
	policies := []transcript.Policy{
		transcript.Policy{}, transcript.Policy{AnswerCalls: true}, transcript.Policy{KeepResults: true}, {AnswerCalls: true, KeepResults: true},
	}
	for i := range effort.Runs(200) {
		format := append(slices.Clone(histories.Formats), "", "elsewhere")[i%6]
		profile, err := transcript.NewProfile(randomRules(rand.New(rand.NewPCG(seed, uint64(i))), format))
		require.NoError(t, err)
		cases = append(cases, propertyCase{format, profile, policies[i/6%4]})
	}
	return cases
}

// brokenForeign changes histories that a built-in provider accepts. Some of
// their messages come from the format of the profile.
func brokenForeign(rng *rand.Rand, c propertyCase) []state.Message {
	msgs := brokenFor(rng, propertyCase{format: histories.Formats[rng.IntN(len(histories.Formats))]})
	if c.format != "elsewhere" {
		return msgs
	}
	from := histories.Formats[rng.IntN(len(histories.Formats))]
	for i, m := range msgs {
		if m == nil || m.Raw() == "" {
			continue
		}
		raw := strings.ReplaceAll(string(m.Raw()), `"`+from+`":`, `"format:elsewhere":`)
		msgs[i] = decodeOne(strings.ReplaceAll(raw, `"type":"`+from+`.`, `"type":"format:elsewhere.`))
	}
	return msgs
}

func decodeOne(raw string) state.Message {
	m, err := state.DecodeMessage([]byte(raw))
	if err != nil {
		panic(err)
	}
	return m
}

func TestForeignRepair(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: foreignCases(t), History: brokenForeign, Parts: true,
		Obeys: func(c propertyCase, msgs []state.Message) error { return repairs(msgs, c.profile, c.policy) },
	}.Hold(t)
}

func TestForeignTrim(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: foreignCases(t), History: brokenForeign,
		Obeys: func(c propertyCase, msgs []state.Message) error {
			rules := c.profile.Rules()
			rules.AssistantAfterResults = false // which trims may break
			profile, err := transcript.NewProfile(rules)
			if err != nil {
				return err
			}
			repaired, _ := transcript.Repair(msgs, profile, c.policy)
			return trims(repaired, profile)
		},
	}.Hold(t)
}

// A format that is not built in has what the others have: its messages say
// whether they are in one entry, and its items and reasoning are sent to it only.
func TestForeignFormat(t *testing.T) {
	profile, err := transcript.NewProfile(transcript.Rules{
		Name: "Elsewhere", Format: "elsewhere", AdjacentResults: true, UserFirst: true, UserLast: true, NoEmptyTexts: true, NoBlankTexts: true,
	})
	require.NoError(t, err)
	const call, result = `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}]}`,
		`{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":""}`
	text := func(role, more string) string { return `{"type":"text","role":"` + role + `",` + more + `}` }
	for _, row := range []struct {
		name string
		msgs []string
		want string
	}{
		{"a text of the calls' entry", []string{user, call, text("assistant", `"content":"a","format:elsewhere":{"joined":true}`), result}, ""},
		{"a text of another entry", []string{user, call, text("assistant", `"content":"a","format:elsewhere":{"joined":false}`), result}, "3:not-adjacent"},
		{"its item", []string{user, `{"type":"format:elsewhere.search","role":"assistant","item":{"type":"search"}}`}, "1:prefill"},
		{"an item of another format", []string{user, `{"type":"format:other.search","role":"assistant","item":{"type":"search"}}`}, ""},
		{"its reasoning", []string{user, text("assistant", `"content":[{"type":"thinking"}],"format:elsewhere":{}`)}, "1:prefill"},
		{"reasoning of another format", []string{user, text("assistant", `"content":[{"type":"thinking"}],"format:other":{}`)}, ""},
		{"another role first", []string{text("Planner", `"content":"a"`), user}, "0:first"},
		{"blank texts", []string{text("user", `"content":" "`), user, text("user", `"content":null`)}, "0:empty 2:empty"},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := decodeAll(t, row.msgs...)
			require.Equal(t, row.want, refused(transcript.Check(msgs, profile)))
			repaired, _ := transcript.Repair(msgs, profile, transcript.Policy{})
			require.Empty(t, transcript.Check(repaired, profile))
			for _, built := range everyProfile { // a foreign mark is nothing to them
				require.NotContains(t, refused(transcript.Check(msgs, built)), "prefill")
			}
		})
	}
}

// A system message in the middle, where a provider accepts one, is no turn: calls
// behind it follow the user, and those behind a text of the assistant do not.
func TestCallsAfterASystemMessage(t *testing.T) {
	profile, err := transcript.NewProfile(transcript.Rules{Name: "Elsewhere", Format: "elsewhere", CallsAfterUser: true})
	require.NoError(t, err)
	const call, result = `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f"}]}`,
		`{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":""}`
	const system, said = `{"type":"text","role":"system","content":"a"}`, `{"type":"text","role":"assistant","content":"a"}`
	for want, msgs := range map[string][]string{
		"":            {user, system, system, call, result},
		"1:call-turn": {system, call, result},
		"2:call-turn": {said, system, call, result},
	} {
		require.Equal(t, want, refused(transcript.Check(decodeAll(t, msgs...), profile)))
	}
}

func TestAssistantAfterResults(t *testing.T) {
	rules := transcript.OpenAI.Rules()
	rules.AssistantAfterResults = true
	profile, err := transcript.NewProfile(rules)
	require.NoError(t, err)
	for _, row := range []struct{ script, want, repaired string }{
		{"u c1 r1 a u", "", "u c1 r1 a u"},
		{"u c1,2 r1 r2", "", "u c1,2 r1 r2"},
		{"u c1,2 r1 r2 u u", "4:after-results", "u c1,2 r1 r2 a u u"},
		{"u c1 r1 c2 r2 u", "5:after-results", "u c1 r1 c2 r2 a u"},
	} {
		t.Run(row.script, func(t *testing.T) {
			msgs := script(t, row.script)
			require.Empty(t, transcript.Check(msgs, transcript.OpenAI))
			require.Equal(t, row.want, refused(transcript.Check(msgs, profile)))
			repaired, _ := transcript.Repair(msgs, profile, transcript.Policy{})
			var types []string
			for _, m := range repaired {
				types = append(types, m.Type()+m.Role())
			}
			var want []string
			for _, m := range script(t, row.repaired) {
				want = append(want, m.Type()+m.Role())
			}
			require.Equal(t, want, types)
		})
	}
}

// New ids and names are accepted, however tight the rules are, and differ.
func TestNewLabels(t *testing.T) {
	rules := transcript.Rules{Name: "tight", RequireIDs: true, UniqueIDs: true,
		IDs:   transcript.Labels{Chars: "0-9", MinBytes: 8, MaxBytes: 8},
		Names: transcript.Labels{Chars: "0-9A", First: "A", MinBytes: 16, MaxBytes: 16}}
	profile, err := transcript.NewProfile(rules)
	require.NoError(t, err)
	var msgs []state.Message
	for i := range 3000 {
		call := state.ToolCall{ID: strings.Repeat("x", i%7), Name: strings.Repeat("y", i)}
		msgs = append(msgs, state.ToolCalls(call), state.ToolResult(call, `""`))
	}
	repaired, _ := transcript.Repair(msgs, profile, transcript.Policy{})
	require.Empty(t, transcript.Check(repaired, profile))
	names := map[string]bool{}
	for _, m := range repaired {
		if m, ok := m.(state.ToolCallMessage); ok {
			names[m.Calls()[0].Name] = true
		}
	}
	require.Len(t, names, 3000)
}
