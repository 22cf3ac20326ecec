package document

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/work"
)

// empty is the base of a run that has said everything.
func empty() (*Document, error) { return New(), nil }

func init() { SweepAfter = 0 }

// shorten applies Shorten and checks its laws.
func shorten(t require.TestingT, d *Document, n, m int) {
	before, other := load(t, d), d.Clone()
	effects, err := d.Shorten(n, m)
	require.NoError(t, err)
	require.NoError(t, other.Apply(stored(t, effects)))
	require.Equal(t, string(other.Encode()), string(d.Encode()))
	after := load(t, d)

	a, b := plainOf(t, before), plainOf(t, after)
	msgs := state.Messages.GetOr(before, nil)
	kept := state.Messages.GetOr(after, nil)
	want := msgs
	if n >= 0 {
		want = transcript.KeepLast(n)(msgs)
	}
	require.Equal(t, raws(want), raws(kept))
	if len(transcript.Check(msgs, transcript.Profile{})) == 0 {
		require.Empty(t, transcript.Check(kept, transcript.Profile{}))
	}
	if m >= 0 {
		a.Results = a.Results[max(len(a.Results)-m, 0):]
	}
	require.Equal(t, len(a.Results), len(b.Results))
	for i := range a.Results {
		require.Equal(t, a.Results[i], b.Results[i])
	}
	require.Equal(t, a.Fields, b.Fields)
	require.Equal(t, a.Keys, b.Keys)
	require.Equal(t, a.Conversation == nil, b.Conversation == nil)

	used := map[string]bool{}
	for _, n := range d.entries() {
		used[strconv.Itoa(n)] = true
	}
	for _, stored := range d.results() {
		var r form.Result
		require.NoError(t, stored.text.Decode(&r))
		for _, run := range slices.Concat(r.Prompt, r.History, r.Output, r.ToolCalls) {
			for n := run.From; n < run.To; n++ {
				used[strconv.Itoa(n)] = true
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(used)), d.Names(PartMessage))

	again, err := d.Shorten(n, m)
	require.NoError(t, err)
	require.Empty(t, again)
}

func TestWindowKeepsGroups(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed")))
		msgs := histories.Valid(rng, histories.Everyone)
		if rapid.Bool().Draw(t, "broken") {
			msgs = histories.Mutate(rng, msgs)
		}
		msgs = slices.DeleteFunc(msgs, func(m state.Message) bool { return m == nil || m.Raw() == "" })
		d := New()
		st := load(t, d)
		saved := st.Snapshot()
		require.NoError(t, state.Messages.Set(st, msgs))
		for i := range rapid.IntRange(0, 3).Draw(t, "results") {
			require.NoError(t, st.History().Append(state.InferenceResult{History: msgs[:len(msgs)*i/3]}))
		}
		commit(t, d, saved, st.Snapshot())
		for range 2 {
			shorten(t, d, rapid.IntRange(0, len(msgs)+1).Draw(t, "n"), rapid.IntRange(0, 3).Draw(t, "m"))
		}
	})
}

// From run to run, neither the document nor the effects grow.
func TestWindowHoldsWhatIsHeld(t *testing.T) {
	d := New()
	var sizes, written []int
	for i := range 60 {
		st := load(t, d)
		saved := st.Snapshot()
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("order " + strconv.Itoa(i))}))
		for j := range 4 {
			call := state.ToolCalls(state.ToolCall{ID: strconv.Itoa(j), Name: "f", Input: "{}"})
			require.NoError(t, st.History().Append(state.InferenceResult{
				Prompt: []state.Message{state.SystemText("You help.")}, History: state.Messages.GetOr(st, nil),
				Output: []state.Message{call}, ToolCalls: []state.ToolResultMessage{state.ToolResult(call.Calls()[0], state.JSON(strconv.Itoa(i)))},
			}))
		}
		n, _ := commit(t, d, saved, st.Snapshot())
		effects, err := d.Shorten(20, 10)
		require.NoError(t, err)
		data, err := jsontext.Marshal(effects)
		require.NoError(t, err)
		sizes, written = append(sizes, len(d.Encode())), append(written, n+len(data))
	}
	require.Less(t, sizes[59], sizes[20]*5/4)
	require.Less(t, written[59], written[20]*5/4)
}

// A result keeps messages that have left the conversation.
func TestWindowKeepsWhatResultsReferTo(t *testing.T) {
	d, err := Decode([]byte(`{"message":{` +
		`"1":{"type":"text","role":"user","content":"a"},"2":{"type":"text","role":"user","content":"b"},` +
		`"5":{"type":"text","role":"user","content":"c"},"9":{"type":"text","role":"user","content":"d"}},` +
		`"conversation":{"entries":[1,5,9],"results":[{"history":[[2,3]]},{"history":[[1,2]]},{"history":[[1,2]],"output":[[5,6]]}],"version":7}}`))
	require.NoError(t, err)
	before := d.Clone()
	effects, err := d.Shorten(1, 2)
	require.NoError(t, err)
	require.Equal(t, []state.Effect{
		{Part: "conversation", Field: "entries", Kind: "drop_first", N: 2},
		{Part: "conversation", Field: "results", Kind: "drop_first", N: 1},
		{Part: "conversation", Field: "version", Kind: "set", Value: "8"},
		{Part: "message", Field: "2", Kind: "delete"},
	}, effects)
	effects, err = d.Shorten(-1, -1)
	require.NoError(t, err)
	require.Empty(t, effects)

	d = before
	require.NoError(t, d.Apply([]state.Effect{{Part: "message", Field: "5", Kind: "set", Value: "{}"}}))
	_, err = d.Shorten(1, 2)
	require.ErrorIs(t, err, work.ErrCorrupt)
	_, err = d.EndRun(empty, "")
	require.ErrorIs(t, err, work.ErrCorrupt)
}

// Messages to which nothing refers go with the next window also if they came with
// an import, or back with a rollback.
func TestUnusedMessagesThatAreAdded(t *testing.T) {
	from, err := Decode([]byte(`{"conversation":{"version":3},"message":{"1":{"type":"text","role":"user","content":"a"}}}`))
	require.NoError(t, err)
	imported := New()
	require.NoError(t, imported.Apply(from.Effects()))
	back := from.Clone()
	shorten(t, back, 5, 5)
	require.NoError(t, back.Apply(back.Revert(from)))
	for _, d := range []*Document{imported, back} {
		require.Equal(t, 1, d.count(PartMessage))
		require.NoError(t, d.Check())
		shorten(t, d, 5, 5)
		require.Zero(t, d.count(PartMessage))
	}
}

// They are known also if the rollback appends to the conversation or the
// results what refers to other messages.
func TestUnusedMessagesThatComeBackWithOthers(t *testing.T) {
	for name, used := range map[string]string{
		"conversation": `"entries":[1],"results":[]`,
		"results":      `"entries":[],"results":[{"id":"a","output":[[1,2]]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			const messages = `"message":{"1":{"type":"text","role":"user","content":"a"},"2":{"type":"text","role":"user","content":"b"}}`
			from, err := Decode([]byte(`{"conversation":{` + used + `,"version":3},` + messages + `}`))
			require.NoError(t, err)
			d, err := Decode([]byte(`{"conversation":{"entries":[],"results":[],"version":3},` + messages + `}`))
			require.NoError(t, err)
			shorten(t, d, 5, 5)
			require.Zero(t, d.count(PartMessage))

			require.NoError(t, d.Apply(d.Revert(from)))
			require.Equal(t, 2, d.count(PartMessage))
			require.NoError(t, d.Check())
			shorten(t, d, 5, 5)
			require.Equal(t, []string{"1"}, d.Names(PartMessage))
		})
	}
}

// Messages that were dropped because they are old stay for a while, and others do
// not.
func TestOldMessagesAreSweptTogether(t *testing.T) {
	SweepAfter = 10
	defer func() { SweepAfter = 0 }()
	d := New()
	st := load(t, d)
	left := func(edit func(msgs []state.Message) []state.Message) int {
		t.Helper()
		saved := st.Snapshot()
		require.NoError(t, state.Messages.Update(st, func(msgs []state.Message) ([]state.Message, error) { return edit(msgs), nil }))
		commit(t, d, saved, st.Snapshot())
		_, err := d.Shorten(5, 5)
		require.NoError(t, err)
		st = load(t, d)
		return d.count(PartMessage)
	}
	say := func(msgs []state.Message) []state.Message {
		return append(msgs, state.UserText("a"), state.UserText("b"))
	}
	var counts []int
	for range 14 {
		counts = append(counts, left(say))
	}
	require.Equal(t, []int{2, 4, 6, 8, 10, 5, 7, 9, 11, 13, 5, 7, 9, 11}, counts)
	require.Equal(t, 4, left(func(msgs []state.Message) []state.Message { return slices.Delete(msgs, 1, 2) }))
}
