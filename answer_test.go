package state_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/transcript"
)

// The tests of this file prove the rules of a result in pieces: Push, Answer and
// Load.

// partCalls returns calls with these ids, each of a tool of its name.
func partCalls(ids ...string) []state.ToolCall {
	calls := make([]state.ToolCall, len(ids))
	for i, id := range ids {
		calls[i] = state.ToolCall{ID: id, Name: "tool_" + id, Input: "{}"}
	}
	return calls
}

func partDone(call state.ToolCall) state.ToolResultMessage {
	return state.ToolResult(call, state.JSONText("done "+call.ID))
}

// partOpen appends a result whose calls are open.
func partOpen(t require.TestingT, st *state.State, id string, calls ...state.ToolCall) {
	require.NoError(t, st.History().Append(state.InferenceResult{ID: id, Output: []state.Message{state.ToolCalls(calls...)}}))
}

// partShow returns a conversation in short: texts as they are, calls in brackets
// and results after an equals sign.
func partShow(msgs []state.Message) string {
	var words []string
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			words = append(words, m.Text())
		case state.ToolCallMessage:
			var ids []string
			for _, c := range m.Calls() {
				ids = append(ids, c.ID)
			}
			words = append(words, "["+strings.Join(ids, " ")+"]")
		case state.ToolResultMessage:
			words = append(words, "="+m.Call().ID)
		}
	}
	return strings.Join(words, " ")
}

func partSaid(st *state.State) string { return partShow(state.Messages.Or(st, nil)) }

func partAnswered(r state.InferenceResult) string {
	var msgs []state.Message
	for _, m := range r.ToolCalls {
		msgs = append(msgs, m)
	}
	return partShow(msgs)
}

func partLast(st *state.State) string {
	r, _ := st.History().Last()
	return partAnswered(r)
}

func TestPushLeavesMessagesAlone(t *testing.T) {
	st := state.New(state.MustSchema(state.Team{"a": {"b"}}))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("hello")}))
	r := ruleResult("1", "a")
	require.NoError(t, st.As("a").History().Push(r))
	require.Equal(t, uint64(2), st.Version())
	require.Equal(t, "hello", partSaid(st))
	last, _ := st.History().Last()
	require.Empty(t, cmp.Diff(r, last))
	changes := ruleChanges(t, st, 1)
	require.Len(t, changes, 1)
	require.Equal(t, state.OpAppend, changes[0].Op)
	require.ErrorIs(t, st.As("b").History().Push(r), state.ErrDenied)

	require.NoError(t, st.History().Push(state.InferenceResult{Output: []state.Message{state.ToolCalls(partCalls("c")...)}}))
	require.NoError(t, st.History().Answer(partDone(partCalls("c")[0])))
	require.Equal(t, "hello", partSaid(st), "its calls are not in the conversation, and neither are their answers")
	require.Equal(t, "=c", partLast(st))
}

// Append of a whole result leaves the same content as Append of its output and
// Answer.
func TestAppendInPiecesIsAppend(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var trim state.Handler[[]state.Message]
		if rapid.Bool().Draw(t, "trims") {
			trim = transcript.KeepLast(rapid.IntRange(1, 6).Draw(t, "window")).Handler()
		}
		schema := state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: trim})
		whole, pieces := state.New(schema), state.New(schema)
		n := 0
		for range rapid.IntRange(1, 5).Draw(t, "results") {
			var r state.InferenceResult
			for range rapid.IntRange(0, 3).Draw(t, "output") {
				if rapid.Bool().Draw(t, "says") {
					r.Output = append(r.Output, state.AssistantText("I look"))
					continue
				}
				var ids []string
				for range rapid.IntRange(1, 3).Draw(t, "calls") {
					n++
					ids = append(ids, fmt.Sprint(n))
				}
				calls := partCalls(ids...)
				r.Output = append(r.Output, state.ToolCalls(calls...))
				for _, c := range calls {
					r.ToolCalls = append(r.ToolCalls, partDone(c))
				}
			}
			r.CreatedAt = ruleResult("", "").CreatedAt
			require.NoError(t, whole.History().Append(r))

			results := r.ToolCalls
			r.ToolCalls = nil
			require.NoError(t, pieces.History().Append(r))
			if trim.Name() != "" {
				require.NoError(t, pieces.History().Answer(results...))
			} else {
				order := rapid.Permutation(results).Draw(t, "order")
				for len(order) > 0 {
					k := rapid.IntRange(1, len(order)).Draw(t, "together")
					require.NoError(t, pieces.History().Answer(order[:k]...))
					order = order[k:]
				}
			}
			if rapid.Bool().Draw(t, "interrupted") {
				for _, st := range []*state.State{whole, pieces} {
					require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and?")}))
				}
			}
		}
		require.Equal(t, partSaid(whole), partSaid(pieces))
		require.Empty(t, cmp.Diff(whole.History().Results(), pieces.History().Results()))
	})
}

func TestAnswersOfBranchesJoinInCallOrder(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	a, b := st.Fork(), st.Fork()
	require.NoError(t, b.History().Answer(partDone(calls[1])))
	require.NoError(t, a.History().Answer(partDone(calls[0])))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and?")}))
	require.NoError(t, st.Join(b, a))
	require.Equal(t, "[a b] =a =b and?", partSaid(st))
	require.Equal(t, "=a =b", partLast(st))

	// Each branch has a result of its own, and the same id is used again.
	a, b = st.Fork(), st.Fork()
	for _, branch := range []*state.State{a, b} {
		partOpen(t, branch, "2", calls...)
		require.NoError(t, branch.History().Answer(partDone(calls[1])))
		require.NoError(t, branch.History().Answer(partDone(calls[0])))
	}
	require.NoError(t, st.Join(a, b))
	require.Equal(t, "[a b] =a =b and? [a b] =a =b [a b] =a =b", partSaid(st))
	for _, r := range st.History().Results() {
		require.Equal(t, "=a =b", partAnswered(r))
	}

	// A branch that answered the latest result keeps to it, although a later one
	// has a call of the same id.
	partOpen(t, st, "4", calls...)
	a = st.Fork()
	require.NoError(t, a.History().Answer(partDone(calls[0])))
	partOpen(t, st, "5", calls...)
	require.NoError(t, st.Join(a))
	results := st.History().Results()
	require.Equal(t, "=a", partAnswered(results[len(results)-2]))
	require.Empty(t, partAnswered(results[len(results)-1]))
}

func TestBranchesThatAnswerOneCallAreAConflict(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	a, b := st.Fork(), st.Fork()
	for _, branch := range []*state.State{a, b} {
		require.NoError(t, branch.History().Answer(partDone(calls[0])))
	}
	ruleUnchanged(t, st, func() {
		var conflict *state.ConflictError
		require.ErrorAs(t, st.Join(a, b), &conflict)
		require.Equal(t, []string{"history"}, conflict.Fields)
	})
	require.NoError(t, st.Join(a))
	ruleUnchanged(t, st, func() { require.ErrorIs(t, st.Join(b), state.ErrConflict) })

	popped := st.Fork()
	require.NoError(t, popped.History().Answer(partDone(calls[1])))
	_, _, err := st.History().Pop()
	require.NoError(t, err)
	require.ErrorIs(t, st.Join(popped), state.ErrConflict, "the result is gone")
}

func TestAnswerInATransaction(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	runs := 0
	require.NoError(t, st.Update(func(tx *state.State) error {
		if runs++; runs == 1 {
			require.NoError(t, st.History().Answer(partDone(calls[1])))
		}
		return tx.History().Answer(partDone(calls[0]))
	}))
	require.Equal(t, "[a b] =a =b", partSaid(st))
	require.Equal(t, 1, runs, "answers to different calls do not conflict")

	partOpen(t, st, "2", calls...)
	runs = 0
	require.ErrorIs(t, st.Update(func(tx *state.State) error {
		if runs++; runs == 1 {
			require.NoError(t, st.History().Answer(partDone(calls[0])))
		}
		return tx.History().Answer(partDone(calls[0]))
	}), state.ErrAnswered)
	require.Equal(t, 2, runs)
	require.Equal(t, "=a", partLast(st))
}

func TestAnswerRefuses(t *testing.T) {
	calls := partCalls("a", "b", "x")
	st := state.New(state.MustSchema(state.Limits{ValueBytes: 2_000}))
	partOpen(t, st, "1", calls[:2]...)
	require.NoError(t, st.History().Answer())
	require.NoError(t, st.History().Answer(partDone(calls[0])))
	for name, c := range map[string]struct {
		results []state.ToolResultMessage
		want    error
		text    string
	}{
		"unknown": {[]state.ToolResultMessage{partDone(calls[1]), partDone(calls[2])}, state.ErrUnknownCall, `state: call "x" of "tool_x": unknown call`},
		"no name": {[]state.ToolResultMessage{partDone(state.ToolCall{ID: "x"})}, state.ErrUnknownCall, `state: call "x": unknown call`},
		"no id":   {[]state.ToolResultMessage{partDone(state.ToolCall{Name: "x"})}, state.ErrUnknownCall, `state: call of "x": unknown call`},
		"another name": {
			[]state.ToolResultMessage{partDone(state.ToolCall{ID: "b", Name: "tool_a"})},
			state.ErrUnknownCall, `state: call "b" of "tool_a": unknown call: the call with this id is of "tool_b"`,
		},
		"answered": {[]state.ToolResultMessage{partDone(calls[0])}, state.ErrAnswered, `state: call "a" of "tool_a": call is answered`},
		"twice":    {[]state.ToolResultMessage{partDone(calls[1]), partDone(calls[1])}, state.ErrAnswered, `state: call "b" of "tool_b": call is answered`},
		"zero":     {[]state.ToolResultMessage{partDone(calls[1]), {}}, state.ErrWrongType, `state: "history": $[1]: want a message, got the zero message`},
		"large": {
			[]state.ToolResultMessage{state.ToolResult(calls[1], state.JSONText(strings.Repeat("x", 2_000)))},
			state.ErrLimitExceeded, `state: "history": limit ValueBytes: 2453 is more than 2000`,
		},
	} {
		ruleUnchanged(t, st, func() {
			err := st.History().Answer(c.results...)
			require.ErrorIs(t, err, c.want, name)
			require.EqualError(t, err, c.text, name)
		})
	}
	require.ErrorIs(t, st.Snapshot().History().Answer(partDone(calls[1])), state.ErrReadOnly)
}

// A result that was recorded with another name belongs to the call of its id.
func TestRecordedResultsOfAnotherNameAreMatched(t *testing.T) {
	call := state.ToolCall{ID: "1", Name: "a", Input: "{}"}
	st := state.New(nil)
	require.NoError(t, st.History().Append(state.InferenceResult{
		Output:    []state.Message{state.ToolCalls(call)},
		ToolCalls: []state.ToolResultMessage{state.ToolResult(state.ToolCall{ID: "1", Name: "b"}, "1")},
	}))
	require.Empty(t, st.History().Pending())
}

// The latest result in which a call with the id and the name is open gets the
// answer.
func TestAnAnswerIsOfTheResultWithItsTool(t *testing.T) {
	st := state.New(nil)
	first := state.ToolCall{ID: "1", Name: "a", Input: "{}"}
	partOpen(t, st, "1", first)
	partOpen(t, st, "2", state.ToolCall{ID: "1", Name: "b", Input: "{}"})
	require.NoError(t, st.History().Answer(state.ToolResult(first, "1")))
	require.Len(t, st.History().Pending(), 1)
	require.Equal(t, "b", st.History().Pending()[0].Name)
}

// Of an output with many calls, too, an answer is for the first open call of its
// id and name.
func TestAnswersOfManyCallsAreMatchedAsThoseOfFew(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
		newCall := func() state.ToolCall {
			return state.ToolCall{ID: pick("id", "", "1", "2", "3"), Name: pick("name", "a", "b"), Input: "{}"}
		}
		calls := make([]state.ToolCall, rapid.IntRange(1, 40).Draw(t, "calls"))
		for i := range calls {
			calls[i] = newCall()
		}
		st := state.New(nil)
		output := []state.Message{state.ToolCalls(calls...)}
		require.NoError(t, st.History().Append(state.InferenceResult{Output: output}))

		given := make([]state.JSON, len(calls))
		for i := range 50 {
			call := newCall()
			known, open, number := false, false, -1
			for n, c := range calls {
				fits := c.ID == call.ID && (c.ID != "" || c.Name == call.Name)
				known = known || fits && c.Name == call.Name
				open = open || fits && given[n] == ""
				if fits && given[n] == "" && number < 0 && c.Name == call.Name {
					number = n
				}
			}
			err := st.History().Answer(state.ToolResult(call, state.JSON(fmt.Sprint(i))))
			switch {
			case number >= 0:
				require.NoError(t, err)
				given[number] = state.JSON(fmt.Sprint(i))
			case known, !open && slices.ContainsFunc(calls, func(c state.ToolCall) bool { return call.ID != "" && c.ID == call.ID }):
				require.ErrorIs(t, err, state.ErrAnswered)
			default:
				require.ErrorIs(t, err, state.ErrUnknownCall)
			}
		}
		r, _ := st.History().Last()
		var got []state.JSON
		for _, m := range r.ToolCalls {
			got = append(got, state.JSON(m.Text()))
		}
		require.ElementsMatch(t, slices.DeleteFunc(given, func(v state.JSON) bool { return v == "" }), got)
	})
}

// An id that is used again is answered in the latest result in which it is
// open.
func TestAnswerOfAnIDThatIsUsedAgain(t *testing.T) {
	st := state.New(nil)
	call := partCalls("a")[0]
	partOpen(t, st, "1", call)
	partOpen(t, st, "2", call)
	require.NoError(t, st.History().Answer(partDone(call)))
	require.Equal(t, "[a] [a] =a", partSaid(st))
	require.NoError(t, st.History().Answer(partDone(call)))
	require.Equal(t, "[a] =a [a] =a", partSaid(st))
	require.ErrorIs(t, st.History().Answer(partDone(call)), state.ErrAnswered)
}

func TestAnswerNeedsTheRightsOfAppend(t *testing.T) {
	call := partCalls("a")[0]
	open := func(team state.Team, messages *state.Field[[]state.Message]) *state.State {
		st := state.New(state.MustSchema(team, messages))
		partOpen(t, st.As("a"), "1", call)
		partOpen(t, st.As("b"), "2", call)
		return st
	}
	team := state.Team{"a": {"b", "c"}}
	st := open(team, &state.Field[[]state.Message]{Name: "messages", Owner: "a", Read: state.Public})
	ruleUnchanged(t, st, func() {
		require.EqualError(t, st.As("c").History().Answer(partDone(call)),
			`state: answer a call of "b" in "history": access denied to agent "c"`)
		require.ErrorIs(t, st.As("stranger").History().Answer(partDone(call)), state.ErrDenied)
		require.ErrorIs(t, st.As("").History().Answer(), state.ErrDenied)
	})
	require.NoError(t, st.As("a").History().Answer(partDone(call)), "its own, not the latest")
	require.Equal(t, "[a] =a", partSaid(st))
	require.NoError(t, st.As("b").History().Answer(partDone(call)))
	require.Equal(t, "[a] =a", partSaid(st), "who may not write messages completes the result only")
	require.Equal(t, "=a", partLast(st))

	st = open(team, &state.Field[[]state.Message]{Name: "messages", Owner: "a"})
	before := st.Version()
	ruleUnchanged(t, st, func() {
		require.ErrorIs(t, st.As("c").History().Answer(partDone(call)), state.ErrUnknownCall, "it does not see that there is such a call")
	})
	require.NoError(t, st.As("a").History().Answer(partDone(call)))
	require.Empty(t, ruleChanges(t, st.As("b"), before), "it does not see the result")
	require.NoError(t, st.History().Answer(partDone(call)))
	changes := ruleChanges(t, st.As("b"), before)
	require.Len(t, changes, 1)
	require.Equal(t, state.OpAnswer, changes[0].Op)
	require.Equal(t, []state.ToolResultMessage{partDone(call)}, changes[0].Value)
}

func TestAnswersInTheJournal(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	require.NoError(t, st.WithCause("why").History().Answer(partDone(calls[1]), partDone(calls[0])))
	changes := ruleChanges(t, st, 1)
	require.Len(t, changes, 2)
	for _, c := range changes {
		require.Equal(t, state.OpAnswer, c.Op)
		require.Equal(t, "why", c.Cause)
	}
	require.Empty(t, changes[0].Field)
	require.Equal(t, []state.ToolResultMessage{partDone(calls[0]), partDone(calls[1])}, changes[0].Value)
	require.Equal(t, "messages", changes[1].Field)
	require.Equal(t, []state.Message{partDone(calls[0]), partDone(calls[1])}, changes[1].Value)
	past, err := st.At(1)
	require.NoError(t, err)
	require.Equal(t, "[a b]", partSaid(past))
	require.Empty(t, partLast(past))
	require.NoError(t, st.Revert(past))
	require.NoError(t, st.History().Answer(partDone(calls[1])), "it is open again")
	require.Equal(t, "[a b] =b", partSaid(st))
	back, err := state.Import(nil, []byte(ruleExport(t, st)))
	require.NoError(t, err)
	require.NoError(t, back.History().Answer(partDone(calls[0])))
	require.Equal(t, "[a b] =a =b", partSaid(back))
}

// The effects of an answer are small, whatever the length of the conversation.
func TestEffectsOfAnswers(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	for i := range 300 {
		require.NoError(t, st.History().Append(ruleResult(fmt.Sprint(i), "x")))
	}
	partOpen(t, st, "open", calls...)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and?")}))
	before := st.Snapshot()
	require.NoError(t, st.History().Answer(partDone(calls[1])))
	effects, err := st.Effects(before)
	require.NoError(t, err)
	var kinds []string
	for _, e := range effects {
		kinds = append(kinds, fmt.Sprint(e.Part, " ", e.Kind, " ", e.N, " ", len(e.Messages), len(e.Results)))
	}
	require.Equal(t, []string{"field insert 901 1 0", "history truncate 300 0 0", "history append 0 0 1"}, kinds)
}

// The handler of the conversation sees answers as it sees what is appended.
func TestAnswersGoThroughTheHandlerOfMessages(t *testing.T) {
	calls := partCalls("a", "b")
	var seen []string
	handler := state.NewHandler("own", func(current []state.Message, _ bool, update []state.Message) ([]state.Message, error) {
		seen = append(seen, partShow(current)+" + "+partShow(update))
		return append(current, update...), nil
	})
	refused := false
	st := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: handler, Validate: func([]state.Message) error {
		if refused {
			return errRuleEven
		}
		return nil
	}}))
	partOpen(t, st, "1", calls...)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and?")}))
	seen = nil
	require.NoError(t, st.History().Answer(partDone(calls[1])))
	require.NoError(t, st.History().Answer(partDone(calls[0])))
	require.Equal(t, []string{"[a b] + =b", "[a b] + =a"}, seen)
	require.Equal(t, "[a b] =a =b and?", partSaid(st))
	partOpen(t, st, "2", calls...)
	refused = true
	ruleUnchanged(t, st, func() { require.ErrorIs(t, st.History().Answer(partDone(calls[0])), errRuleEven) })
	refused = false

	replaces := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: state.Replace[[]state.Message]()}))
	partOpen(t, replaces, "1", calls...)
	require.NoError(t, replaces.History().Answer(partDone(calls[1])))
	require.Equal(t, "[a b] =b", partSaid(replaces))
}

// If Messages has lost the call, its answer would be refused by any provider.
func TestAnswersOfCallsThatMessagesHaveLost(t *testing.T) {
	calls := partCalls("a", "b")
	st := state.New(nil)
	partOpen(t, st, "1", calls...)
	require.NoError(t, state.Messages.Replace(st, []state.Message{state.UserText("anew")}))
	require.NoError(t, st.History().Answer(partDone(calls[0])))
	require.Equal(t, "anew", partSaid(st))
	require.Equal(t, "=a", partLast(st))
	_, err := state.Messages.Delete(st)
	require.NoError(t, err)
	require.NoError(t, st.History().Answer(partDone(calls[1])))
	require.False(t, state.Messages.Has(st))

	// Messages that have the answer already get no second one.
	partOpen(t, st, "2", calls...)
	require.NoError(t, state.Messages.Set(st, []state.Message{partDone(calls[0])}))
	require.NoError(t, st.History().Answer(partDone(calls[0]), partDone(calls[1])))
	require.Equal(t, "[a b] =a =b", partSaid(st))
	require.Equal(t, "=a =b", partLast(st))

	// A window keeps open calls for their answers.
	trims := state.New(state.MustSchema(&state.Field[[]state.Message]{Name: "messages", Handler: transcript.KeepLast(2).Handler()}))
	partOpen(t, trims, "1", calls...)
	for i := range 4 {
		require.NoError(t, state.Messages.Set(trims, []state.Message{state.UserText(fmt.Sprint(i))}))
	}
	require.NoError(t, trims.History().Answer(partDone(calls[1])))
	require.NoError(t, trims.History().Answer(partDone(calls[0])))
	require.Equal(t, "[a b] =a =b 3", partSaid(trims))
	require.Empty(t, transcript.Check(state.Messages.Or(trims, nil), transcript.Anthropic))
}

func TestLoadSetsResultsAndMessagesAsGiven(t *testing.T) {
	st := ruleHistory(t, "0", "1")
	version := st.Version()
	results := []state.InferenceResult{ruleResult("a", "x"), ruleResult("b", "y")}
	msgs := []state.Message{state.UserText("hi"), state.AssistantText("hello")}
	require.NoError(t, st.History().Load(results, msgs))
	require.Equal(t, version+1, st.Version())
	require.Empty(t, cmp.Diff(results, st.History().Results()))
	require.Equal(t, msgs, state.Messages.Or(st, nil))
	changes := ruleChanges(t, st, version)
	require.Len(t, changes, 2)
	require.Equal(t, []state.Op{state.OpReset, state.OpReplace}, []state.Op{changes[0].Op, changes[1].Op})
	require.Equal(t, any(msgs), changes[1].Value)
	msgs[0] = state.UserText("changed")
	require.Equal(t, "hi hello", partSaid(st))

	past, err := st.At(version)
	require.NoError(t, err)
	require.Equal(t, "0 1", ruleIDs(past.History().Results()))
	require.NoError(t, st.History().Load(nil, nil))
	require.Zero(t, st.History().Len())
	require.Empty(t, partSaid(st))
}

func TestLoadIsAllOrNothing(t *testing.T) {
	schema := state.MustSchema(state.Team{"a": {"b"}}, state.Limits{Results: 2, ValueBytes: 1_000}, &state.Field[[]state.Message]{
		Name: "messages", Owner: "a", Read: state.Public, Handler: transcript.KeepLast(1).Handler(),
		Validate: func(msgs []state.Message) error {
			if len(msgs) == 4 {
				return errRuleEven
			}
			return nil
		},
	})
	st := state.New(schema)
	require.NoError(t, st.As("a").History().Append(ruleResult("1", "a")))
	hi := state.UserText("hi")
	require.NoError(t, st.As("a").History().Load(st.History().Results(), []state.Message{hi, hi}))
	require.Equal(t, "hi hi", partSaid(st), "as given: no handler is called")
	for name, c := range map[string]struct {
		as      string
		results []state.InferenceResult
		msgs    []state.Message
		want    error
	}{
		"no right":           {"b", nil, nil, state.ErrDenied},
		"of another":         {"a", []state.InferenceResult{{Agent: "b"}}, nil, state.ErrDenied},
		"not valid":          {"a", nil, []state.Message{hi, hi, hi, hi}, errRuleEven},
		"no message":         {"a", nil, []state.Message{nil}, state.ErrWrongType},
		"no message of one":  {"a", []state.InferenceResult{{Agent: "a", Output: []state.Message{nil}}}, nil, state.ErrWrongType},
		"too many results":   {"a", []state.InferenceResult{{Agent: "a"}, {Agent: "a"}, {Agent: "a"}}, nil, state.ErrLimitExceeded},
		"messages too large": {"a", nil, []state.Message{state.UserText(strings.Repeat("x", 2_000))}, state.ErrLimitExceeded},
	} {
		ruleUnchanged(t, st, func() {
			require.ErrorIs(t, st.As(c.as).History().Load(c.results, c.msgs), c.want, name)
		})
	}
	require.ErrorIs(t, st.Snapshot().History().Load(nil, nil), state.ErrReadOnly)
	fork := st.Fork()
	require.NoError(t, fork.History().Load(nil, nil))
	require.NoError(t, state.Messages.Set(st, []state.Message{hi}))
	require.ErrorIs(t, st.Join(fork), state.ErrConflict, "it overwrites")
}

// manyCalls returns a message of n calls.
func manyCalls(n int) state.ToolCallMessage {
	calls := make([]state.ToolCall, n)
	for i := range calls {
		calls[i] = state.ToolCall{ID: fmt.Sprint("call_", i), Name: "f", Input: "{}"}
	}
	return state.ToolCalls(calls...)
}

// A message has at most 256 calls, and so has the output of a result, whatever
// the Limits are and whichever way it comes.
func TestMoreThan256CallsAreALimitError(t *testing.T) {
	most, more := manyCalls(256), manyCalls(257)
	output := func(msgs ...state.Message) state.InferenceResult { return state.InferenceResult{Output: msgs} }
	list := func(msgs ...state.Message) []byte {
		data, err := json.Marshal(msgs)
		require.NoError(t, err)
		return data
	}
	schema := state.MustSchema(state.Limits{NameBytes: -1, ValueBytes: -1, Depth: -1, Keys: -1, Results: -1, Journal: -1})
	// exported returns what Export would write if more were allowed.
	exported := func(r state.InferenceResult, replace, by string) []byte {
		st := state.New(schema)
		require.NoError(t, st.History().Push(r))
		data, err := st.Export()
		require.NoError(t, err)
		changed := strings.Replace(string(data), replace, by, 1)
		require.NotEqual(t, string(data), changed)
		return []byte(changed)
	}
	imports := func(data []byte) error { _, err := state.Import(schema, data); return err }
	const oneCall, twoCalls = `{"type":"tool","id":"call_255",`, `{"type":"tool","id":"","name":"f"},{"type":"tool","id":"call_255",`
	type write func(st *state.State) error
	for name, do := range map[string]write{
		"Append":       func(st *state.State) error { return st.History().Append(output(more)) },
		"Push":         func(st *state.State) error { return st.History().Push(output(more)) },
		"two messages": func(st *state.State) error { return st.History().Append(output(most, manyCalls(1))) },
		"in the history": func(st *state.State) error {
			return st.History().Append(state.InferenceResult{History: []state.Message{more}})
		},
		"in the prompt": func(st *state.State) error {
			return st.History().Append(state.InferenceResult{Prompt: []state.Message{more}})
		},
		"Reset":         func(st *state.State) error { return st.History().Reset([]state.InferenceResult{output(more)}) },
		"Load results":  func(st *state.State) error { return st.History().Load([]state.InferenceResult{output(more)}, nil) },
		"Load messages": func(st *state.State) error { return st.History().Load(nil, []state.Message{more}) },
		"Set":           func(st *state.State) error { return state.Messages.Set(st, []state.Message{more}) },
		"Update": func(st *state.State) error {
			return state.Messages.Update(st, func(msgs []state.Message) ([]state.Message, error) { return append(msgs, more), nil })
		},
		"KV.Set": func(st *state.State) error { return st.KV().Set("messages", more) },
		"Patch":  func(st *state.State) error { return st.Patch(map[string]any{"messages": []state.Message{more}}) },
		"DecodeMessage": func(*state.State) error {
			_, err := state.DecodeMessage([]byte(more.Raw()))
			return err
		},
		"DecodeMessages": func(*state.State) error {
			_, err := state.DecodeMessages(list(most, more))
			return err
		},
		"Unmarshal": func(*state.State) error { return json.Unmarshal([]byte(more.Raw()), new(state.ToolCallMessage)) },
		"Unmarshal a result": func(*state.State) error {
			return json.Unmarshal(must(json.Marshal(output(more))), new(state.InferenceResult))
		},
		"Import": func(*state.State) error { return imports(exported(output(most), oneCall, twoCalls)) },
		"Import a history": func(*state.State) error {
			return imports(exported(state.InferenceResult{History: []state.Message{most}}, oneCall, twoCalls))
		},
		"Import two messages": func(*state.State) error {
			return imports(exported(state.InferenceResult{History: []state.Message{most, manyCalls(1)}}, `"history":`, `"output":`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(schema)
			require.NoError(t, st.History().Append(output(most)))
			ruleUnchanged(t, st, func() {
				err := do(st)
				var limit *state.LimitError
				require.ErrorAs(t, err, &limit)
				require.Equal(t, "Calls", limit.Name)
				require.Equal(t, 256, limit.Limit)
				require.Equal(t, 257, limit.Got)
			})
		})
	}
}

// The results of 256 calls may come one by one, and in any order.
func TestAMessageOf256CallsIsAnsweredOneByOne(t *testing.T) {
	for name, order := range map[string]func(i int) int{
		"in call order":    func(i int) int { return i },
		"in other order":   func(i int) int { return i ^ 1 },
		"in reverse order": func(i int) int { return 255 - i },
	} {
		calls := manyCalls(256)
		st := state.New(nil)
		require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{calls}}))
		said := []state.Message{calls}
		for _, c := range calls.Calls() {
			said = append(said, partDone(c))
		}
		for i := range 256 {
			require.Len(t, st.History().Pending(), 256-i, name)
			require.NoError(t, st.History().Answer(partDone(calls.Calls()[order(i)])), name)
		}
		require.Equal(t, said, state.Messages.Or(st, nil), name)
		data, err := st.Export()
		require.NoError(t, err)
		again, err := state.Import(nil, data)
		require.NoError(t, err)
		require.Equal(t, st.History().Results(), again.History().Results(), name)
	}
}
