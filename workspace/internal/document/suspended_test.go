package document

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/work"
)

// said returns a document with a conversation: "c1" is the call with id 1, "c"
// one without an id, "r1" its result, and all else a text of the user. Each
// message with calls is in a result of the history too.
func said(t *testing.T, d *Document, words string) *Document {
	st := load(t, d)
	saved := st.Snapshot()
	for _, word := range strings.Fields(words) {
		call := state.ToolCall{ID: word[1:], Name: "f"}
		var err error
		switch word[0] {
		case 'c':
			err = st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}})
		case 'r':
			err = st.History().Answer(state.ToolResult(call, `"result"`))
		default:
			err = state.Messages.Set(st, []state.Message{state.UserText(word)})
		}
		require.NoError(t, err, word)
	}
	d = d.Clone()
	commit(t, d, saved, st.Snapshot())
	return d
}

// inShort returns the conversation as said reads it. An error is "e1".
func inShort(t *testing.T, d *Document) string {
	var words []string
	for _, m := range state.Messages.GetOr(load(t, d), nil) {
		switch m := m.(type) {
		case state.ToolCallMessage:
			words = append(words, "c"+m.Calls()[0].ID)
		case state.ToolResultMessage:
			words = append(words, map[bool]string{true: "e", false: "r"}[m.IsError()]+m.Call().ID)
		case state.TextMessage:
			words = append(words, m.Text())
		}
	}
	return strings.Join(words, " ")
}

// suspend suspends calls, each "RUN/ID": the first open call with the id that is
// not suspended yet.
func suspend(t *testing.T, d *Document, calls string) {
	to := map[string]Suspension{}
	for _, word := range strings.Fields(calls) {
		run, id, _ := strings.Cut(word, "/")
		open := transcript.Pending(state.Messages.GetOr(load(t, d), nil))
		i := slices.IndexFunc(open, func(c state.ToolCall) bool { return c.ID == id && to[c.Key].RunID == "" })
		require.GreaterOrEqual(t, i, 0, word)
		to[open[i].Key] = Suspension{RunID: run}
	}
	effects, err := SuspendedEffects(nil, to)
	require.NoError(t, err)
	require.NoError(t, d.Apply(effects))
}

// suspendedIDs returns the ids of the calls that are suspended, in their order.
func suspendedIDs(t *testing.T, d *Document) string {
	list, err := d.Suspended()
	require.NoError(t, err)
	var ids []string
	calls := FirstOpen(state.Messages.GetOr(load(t, d), nil), list)
	for _, c := range calls {
		ids = append(ids, c.ID+"/"+list[c.Key].RunID)
	}
	require.Len(t, list, len(calls), "all of them are open")
	return strings.Join(ids, " ")
}

// Only calls that the run has made, and has not suspended, are answered when it
// ends.
func TestEndedRunAnswersItsCalls(t *testing.T) {
	for _, row := range []struct{ name, before, run, suspended, cancelled, want, left string }{
		{"calls of the run", "", "u c1", "", "", "u c1 e1", ""},
		{"behind the call", "", "u c1 v w", "", "", "u c1 e1 v w", ""},
		{"not those of earlier runs", "u c1 v", "w c2", "", "", "u c1 v w c2 e2", ""},
		{"not those that are suspended", "", "u c1 c2 v", "a/1", "", "u c1 c2 e2 v", "1/a"},
		{"nothing is left to answer", "u c1", "v c2", "b/2", "", "u c1 v c2", "2/b"},
		{"earlier ones and suspended ones", "u c1 v", "w c2 c3 x", "a/1 b/3", "", "u c1 v w c2 c3 e2 x", "1/a 3/b"},
		{"an id that is used again", "u c1 r1 c1", "c1 v", "", "", "u c1 r1 c1 c1 e1 v", ""},
		{"an id that is used again and answered", "u c1", "c1 r1 c2", "a/1", "", "u c1 c1 r1 c2 e2", "1/a"},
		{"an answered one, and the same again", "u c", "r v c w", "", "", "u c r v c e w", ""},
		{"two of one tool", "", "u c c c v", "a/ a/", "", "u c c c e v", "/a /a"},
		{"those of a cancelled run", "u c1", "c2 c3 v", "a/1 b/2", "b", "u c1 c2 c3 e2 e3 v", "1/a"},
		{"that of an earlier run, too", "u c1", "v", "a/1", "a", "u c1 e1 v", ""},
		{"nothing was said", "", "", "", "", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			base := said(t, New(), row.before)
			d := said(t, base, row.run)
			suspend(t, d, row.suspended)
			before := string(d.Encode())
			effects, err := d.EndRun(func() (*Document, error) { return base, nil }, row.cancelled)
			require.NoError(t, err)
			require.NoError(t, d.Apply(effects))
			require.Equal(t, row.want, inShort(t, d))
			require.Equal(t, len(effects) == 0, before == string(d.Encode()))
			require.Equal(t, row.left, suspendedIDs(t, d))
			again, err := d.EndRun(func() (*Document, error) { return base, nil }, row.cancelled)
			require.NoError(t, err)
			require.Empty(t, again)
		})
	}
}

// A run ends whatever its conversation is: the calls that it has made get an
// answer, nothing else changes, and nothing is left to answer then.
func TestRunsEndWithBrokenConversations(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		msgs := histories.Valid(rng, histories.Everyone)
		for range rapid.IntRange(0, 3).Draw(t, "mutations") {
			msgs = histories.Mutate(rng, msgs)
		}
		if rapid.Bool().Draw(t, "no results") {
			msgs = slices.DeleteFunc(msgs, func(m state.Message) bool {
				_, ok := m.(state.ToolResultMessage)
				return ok && rng.IntN(2) == 0
			})
		}
		msgs = slices.DeleteFunc(msgs, func(m state.Message) bool { return m == nil || m.Raw() == "" })
		for i, m := range msgs { // most calls are recorded, and have keys
			scratch := state.New(nil)
			if rng.IntN(4) > 0 && scratch.History().Append(state.InferenceResult{Output: []state.Message{m}}) == nil {
				recorded, _ := scratch.History().Last()
				msgs[i] = recorded.Output[0]
			}
		}
		d, earlier := New(), rapid.IntRange(0, len(msgs)).Draw(t, "earlier")
		var base *Document
		for _, part := range [][]state.Message{msgs[:earlier], msgs[earlier:]} {
			base = d.Clone()
			st := load(t, d)
			saved := st.Snapshot()
			require.NoError(t, state.Messages.Set(st, part))
			commit(t, d, saved, st.Snapshot())
		}
		// What has no key, a result or a call, is told from others by its id or its name
		// alone: a call that has the same may be taken for answered.
		mayBeAnswered := func(call state.ToolCall) bool {
			return slices.ContainsFunc(msgs, func(m state.Message) bool {
				var others []state.ToolCall
				switch m := m.(type) {
				case state.ToolCallMessage:
					others = m.Calls()
				case state.ToolResultMessage:
					others = []state.ToolCall{m.Call()}
				}
				return slices.ContainsFunc(others, func(c state.ToolCall) bool {
					return c.Key == "" && (c.ID == call.ID && c.ID != "" || c.ID == "" && c.Name == call.Name)
				})
			})
		}
		waiting := map[string]Suspension{}
		for _, call := range transcript.Pending(msgs) {
			if call.Key != "" && !mayBeAnswered(call) && rng.IntN(2) == 0 {
				waiting[call.Key] = Suspension{RunID: "a"}
			}
		}
		effects, err := SuspendedEffects(nil, waiting)
		require.NoError(t, err)
		require.NoError(t, d.Apply(effects))
		effects, err = d.EndRun(func() (*Document, error) { return base, nil }, "")
		require.NoError(t, err)
		require.NoError(t, d.Apply(effects))
		said := state.Messages.GetOr(load(t, d), nil)
		require.Len(t, FirstOpen(said, waiting), len(waiting))
		if earlier == 0 && len(waiting) == 0 {
			require.Empty(t, transcript.Pending(said))
		}
		left := raws(said)
		for _, text := range raws(msgs) {
			at := slices.Index(left, text)
			require.GreaterOrEqual(t, at, 0)
			left = slices.Delete(left, at, at+1)
		}
		for _, text := range left {
			require.Contains(t, text, origin.NoResult)
		}
	})
}

// Each call gets its result, also if a provider has used one id for two tools, or
// has left a name out.
func TestEndedRunAnswersCallsWithOneID(t *testing.T) {
	for _, names := range [][]string{{"", "f"}, {"f", ""}, {"f", "g"}, {"", ""}} {
		base := New()
		st := load(t, base)
		saved := st.Snapshot()
		for _, name := range names {
			call, err := state.DecodeMessage([]byte(fmt.Sprintf(
				`{"type":"tool_call","role":"assistant","tools":[{"type":"tool","id":"1","name":%q}],"stop_reason":"tool"}`, name)))
			require.NoError(t, err)
			require.NoError(t, state.Messages.Set(st, []state.Message{call, state.UserText("v")}))
		}
		d := base.Clone()
		commit(t, d, saved, st.Snapshot())
		effects, err := d.EndRun(func() (*Document, error) { return base, nil }, "")
		require.NoError(t, err, "%q", names)
		require.NoError(t, d.Apply(effects))
		require.Equal(t, "c1 e1 v c1 e1 v", inShort(t, d), "%q", names)
	}
}

// A call that waited and whose message was removed does not count among those that
// stay open.
func TestEndedRunAnswersItsCallsNextToOneThatWasRemoved(t *testing.T) {
	base := said(t, New(), "u c1 v")
	suspend(t, base, "a/1")
	st := load(t, base)
	saved := st.Snapshot()
	require.NoError(t, state.Messages.Replace(st, []state.Message{state.UserText("u")}))
	d := base.Clone()
	commit(t, d, saved, st.Snapshot())
	d = said(t, d, "c2")
	effects, err := d.EndRun(func() (*Document, error) { return base, nil }, "")
	require.NoError(t, err)
	require.NoError(t, d.Apply(effects))
	require.Equal(t, "u c2 e2", inShort(t, d))
}

// A broken conversation is not mended when there is nothing to answer.
func TestEndedRunLeavesTheRest(t *testing.T) {
	base := said(t, New(), "u c1 v")
	d := said(t, base, "w x")
	effects, err := d.EndRun(func() (*Document, error) { return base, nil }, "")
	require.NoError(t, err)
	require.Empty(t, effects)
}

// The window keeps suspended calls, in the conversation and in the history,
// while everything around them goes.
func TestWindowKeepsSuspendedCalls(t *testing.T) {
	d := said(t, New(), "u c1 v")
	suspend(t, d, "a/1")
	for i := range 20 {
		d = said(t, d, fmt.Sprintf("w%d cx%d rx%[2]d", i, i))
		effects, err := d.Shorten(6, 2)
		require.NoError(t, err)
		require.LessOrEqual(t, len(effects), 12)
	}
	require.Equal(t, "u c1 w19 cx19 rx19", inShort(t, d))
	st := load(t, d)
	require.Equal(t, 3, st.History().Len())
	require.NoError(t, st.History().Answer(state.ToolResult(state.ToolCall{ID: "1", Name: "f"}, "1")))
	require.Empty(t, transcript.Check(state.Messages.GetOr(st, nil), transcript.Profile{}))

	d = said(t, d, "r1 x")
	_, err := d.Shorten(6, 2)
	require.NoError(t, err)
	require.Equal(t, 2, load(t, d).History().Len(), "an answered call goes")
}

func TestSuspendedIsChecked(t *testing.T) {
	for _, text := range []string{`1`, `{}`, `{"run_id":7}`, `{"run_id":"a","approval":1}`} {
		d, err := Decode([]byte(`{"suspended":{"c":` + text + `},"conversation":{"entries":[],"results":[{}]}}`))
		require.NoError(t, err)
		_, err = d.Suspended()
		require.ErrorIs(t, err, work.ErrCorrupt)
		_, err = d.Shorten(0, 0)
		require.ErrorIs(t, err, work.ErrCorrupt)
	}
	a, b := map[string]Suspension{"1": {RunID: "r"}, "2": {RunID: "r"}, "3": {RunID: "r"}},
		map[string]Suspension{"1": {RunID: "r"}, "2": {RunID: "r", Approval: &Approval{By: "eve"}}, "4": {RunID: "s"}}
	effects, err := SuspendedEffects(a, b)
	require.NoError(t, err)
	require.Equal(t, []state.Effect{
		{Part: "suspended", Field: "2", Kind: "set", Value: `{"run_id":"r","approval":{"by":"eve"}}`},
		{Part: "suspended", Field: "3", Kind: "delete"},
		{Part: "suspended", Field: "4", Kind: "set", Value: `{"run_id":"s"}`},
	}, effects)
}
