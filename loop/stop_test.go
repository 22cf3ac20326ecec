package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
)

// ending is an answer of a model with how it has ended: a text, or a call of
// note with an id.
type ending struct {
	stop       state.Stop
	text, call string
}

func (e ending) result() state.InferenceResult {
	r := state.InferenceResult{Stop: e.stop, StopWord: string(e.stop)}
	if e.text != "" {
		r.Output = append(r.Output, state.AssistantText(e.text))
	}
	if e.call != "" {
		r.Output = append(r.Output, state.ToolCalls(turnCall(e.call, "note")))
	}
	return r
}

// asker is a model that ends its answers in these ways, in turn.
func asker(asked *[]string, answers ...ending) func(context.Context, *loop.Turn) error {
	return func(ctx context.Context, turn *loop.Turn) error {
		prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
		if err != nil {
			return err
		}
		lines := spoken(prompt)
		*asked = append(*asked, lines[len(lines)-1])
		if len(answers) == 0 {
			return errors.New("asked too often")
		}
		answer := answers[0]
		answers = answers[1:]
		return turn.Said(ctx, answer.result())
	}
}

const (
	tooLong    = "result c1: The call was not made: the answer was cut off in the middle, because it was too long. Make it again in a shorter answer, or in parts."
	tooLong2   = "result c2: The call was not made: the answer was cut off in the middle, because it was too long. Make it again in a shorter answer, or in parts."
	unfinished = "result c1: The call was not made: the answer that it is in was not finished."
)

// What Loop does after an answer depends on how it has ended.
func TestLoopStops(t *testing.T) {
	for name, tc := range map[string]struct {
		answers []ending
		max     int
		reply   string
		stop    state.Stop // of the error, if it is ErrStopped
		err     error
		asked   []string
		said    []string
	}{
		"all is said":            {answers: []ending{{stop: state.StopEnd, text: "hi"}}, reply: "hi"},
		"it is not said how":     {answers: []ending{{text: "hi"}}, reply: "hi"},
		"nothing behind results": {answers: []ending{{stop: state.StopCalls, call: "c1"}, {stop: state.StopEnd}}, asked: []string{"user: go", `result c1: ["c1"]`}},
		"paused": {
			answers: []ending{{stop: state.StopPaused, text: "I search."}, {stop: state.StopPaused, text: "Still."}, {stop: state.StopEnd, text: "Found."}}, reply: "Found.",
			asked: []string{"user: go", "assistant: I search.", "assistant: Still."},
			said:  []string{"user: go", "assistant: I search.", "assistant: Still.", "assistant: Found."},
		},
		"paused, and nothing more": {answers: []ending{{stop: state.StopPaused, text: "I search."}, {stop: state.StopEnd}}, reply: "I search."},
		"paused too often": {
			answers: []ending{{stop: state.StopPaused, text: "a"}, {stop: state.StopPaused, text: "b"}}, max: 2, reply: "b", err: loop.ErrMaxSteps,
		},
		"a cut text":     {answers: []ending{{stop: state.StopLength, text: "The"}}, reply: "The", stop: state.StopLength, said: []string{"user: go", "assistant: The"}},
		"a cut nothing":  {answers: []ending{{stop: state.StopLength}}, stop: state.StopLength, said: []string{"user: go"}},
		"a refusal":      {answers: []ending{{stop: state.StopRefused}}, stop: state.StopRefused},
		"a filter":       {answers: []ending{{stop: state.StopFiltered, text: "The"}}, reply: "The", stop: state.StopFiltered},
		"an unknown end": {answers: []ending{{stop: state.StopUnknown, text: "The"}}, reply: "The", stop: state.StopUnknown},
		"an interrupt":   {answers: []ending{{stop: state.StopInterrupted, text: "The"}}, reply: "The", stop: state.StopInterrupted},
		"a cut call": {
			answers: []ending{{stop: state.StopLength, text: "I note.", call: "c1"}, {stop: state.StopCalls, call: "c2"}, {stop: state.StopEnd, text: "done"}}, reply: "done",
			asked: []string{"user: go", tooLong, `result c2: ["c2"]`},
			said:  []string{"user: go", "assistant: I note.", "call c1", tooLong, "call c2", `result c2: ["c2"]`, "assistant: done"},
		},
		"two cut calls in a row": {
			answers: []ending{{stop: state.StopLength, call: "c1"}, {stop: state.StopLength, call: "c2"}}, stop: state.StopLength,
			asked: []string{"user: go", tooLong},
			said:  []string{"user: go", "call c1", tooLong, "call c2", tooLong2},
		},
		"two cut calls, not in a row": {
			answers: []ending{{stop: state.StopLength, call: "c1"}, {stop: state.StopCalls, call: "c3"}, {stop: state.StopLength, call: "c2"}, {stop: state.StopEnd, text: "done"}}, reply: "done",
			asked: []string{"user: go", tooLong, `result c3: ["c3"]`, tooLong2},
		},
		"a cut call, then a cut text": {
			answers: []ending{{stop: state.StopLength, call: "c1"}, {stop: state.StopLength, text: "The"}}, reply: "The", stop: state.StopLength,
		},
		"a refusal in a call": {answers: []ending{{stop: state.StopRefused, call: "c1"}}, stop: state.StopRefused, said: []string{"user: go", "call c1", unfinished}},
		"an unknown end of a call": {
			answers: []ending{{stop: state.StopUnknown, call: "c1"}}, stop: state.StopUnknown, said: []string{"user: go", "call c1", unfinished},
		},
		"a failed call": {
			answers: []ending{{stop: state.StopFailed, call: "c1"}, {stop: state.StopEnd, text: "done"}}, reply: "done",
			said: []string{"user: go", "call c1", unfinished, "assistant: done"},
		},
		"a failure": {
			answers: []ending{{stop: state.StopFailed, text: "Th"}, {stop: state.StopEnd, text: "hi"}}, reply: "hi",
			asked: []string{"user: go", "user: go"}, said: []string{"user: go", "assistant: hi"},
		},
		"nothing":                {answers: []ending{{stop: state.StopEnd}, {stop: state.StopEnd, text: "hi"}}, reply: "hi", asked: []string{"user: go", "user: go"}},
		"nothing without a word": {answers: []ending{{}, {stop: state.StopEnd, text: "hi"}}, reply: "hi", asked: []string{"user: go", "user: go"}},
		"no word behind results": {
			answers: []ending{{stop: state.StopCalls, call: "c1"}, {}, {stop: state.StopEnd, text: "hi"}}, reply: "hi",
			asked: []string{"user: go", `result c1: ["c1"]`, `result c1: ["c1"]`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, asked := state.New(turnSchema), []string{}
				require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
				theLoop := &loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: asker(&asked, tc.answers...), Tools: turnTools()}}, MaxSteps: tc.max}
				reply, err := theLoop.Run(t.Context(), st)
				require.Equal(t, tc.reply, reply)
				var stopped *loop.StopError
				switch {
				case tc.stop != "":
					require.ErrorIs(t, err, loop.ErrStopped)
					require.ErrorAs(t, err, &stopped)
					require.Equal(t, []string{"clerk", string(tc.stop), string(tc.stop), reply}, []string{stopped.Agent, string(stopped.Stop), stopped.Word, stopped.Reply})
					require.Equal(t, fmt.Sprintf(`loop: the answer of the agent "clerk" has ended before its end: %s ("%s")`, tc.stop, tc.stop), err.Error())
				case tc.err != nil:
					require.ErrorIs(t, err, tc.err)
				default:
					require.NoError(t, err)
				}
				if tc.asked != nil {
					require.Equal(t, tc.asked, asked)
				}
				if tc.said != nil {
					require.Equal(t, tc.said, spoken(state.Messages.GetOr(st, nil)))
				}
				require.Empty(t, st.As("clerk").History().Pending())
			})
		})
	}
}

// An answer that fails again and again is an error, and is not in the conversation.
func TestLoopAsksAgainAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, asked, answers := state.New(turnSchema), []string{}, make([]ending, 9)
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
		theLoop := &loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: asker(&asked, answers...)}}}
		began := time.Now()
		_, err := theLoop.Run(t.Context(), st)
		require.Equal(t, 31*time.Second, time.Since(began))
		require.Len(t, asked, 6)
		require.NotErrorIs(t, err, loop.ErrStopped)
		var stopped *loop.StopError
		require.ErrorAs(t, err, &stopped)
		require.Equal(t, state.StopFailed, stopped.Stop)
		require.Contains(t, err.Error(), "with nothing said")
		require.Equal(t, []string{"user: go"}, spoken(state.Messages.GetOr(st, nil)))
	})
}

// Whatever Route says, the agent whose answer was paused goes on, and a bad end ends
// the run.
func TestLoopStopsWithRoute(t *testing.T) {
	st, asked := state.New(turnSchema), []string{}
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
	routed := 0
	theLoop := &loop.Loop{
		Agents: map[string]loop.Agent{
			"clerk": {Ask: asker(&asked, ending{stop: state.StopPaused, text: "a"}, ending{stop: state.StopEnd, text: "b"})},
			"chief": {Ask: asker(&asked, ending{stop: state.StopRefused, text: "c"})},
		},
		Route: func(*state.State) (string, bool) {
			routed++
			return map[int]string{1: "clerk", 2: "chief", 3: "clerk"}[routed], true
		},
	}
	reply, err := theLoop.Run(t.Context(), st)
	require.ErrorIs(t, err, loop.ErrStopped)
	require.Equal(t, "c", reply)
	require.Equal(t, 2, routed)
	require.Equal(t, []string{"user: go", "assistant: a", "assistant: b"}, asked)
}

// An agent that is a tool gives what it has said to the model that has called it, as
// an error.
func TestAgentAsToolStops(t *testing.T) {
	st, asked := state.New(turnSchema), []string{}
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
	inner := &loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: asker(&asked, ending{stop: state.StopLength, text: "Half of it"})}}}
	consult := tool.Must(tool.NewStateful("note", "", func(ctx context.Context, st *state.State, _ turnIn) (string, error) {
		return inner.Run(ctx, st)
	}))
	outer := &loop.Loop{Agents: map[string]loop.Agent{"": {
		Ask:   asker(&asked, ending{stop: state.StopCalls, call: "c1"}, ending{stop: state.StopEnd, text: "done"}),
		Tools: []*tool.Tool{consult},
	}}}
	reply, err := outer.Run(t.Context(), st)
	require.NoError(t, err)
	require.Equal(t, "done", reply)
	require.Contains(t, asked[len(asked)-1], "length")
	require.Contains(t, asked[len(asked)-1], "\nIt had said: Half of it")
}

// A program with its own loop asks Next. A framework that makes a call of a cut
// answer gets its result.
func TestTurnNext(t *testing.T) {
	ctx, turn := turnOf(t, state.New(turnSchema), "clerk")
	next := func() string {
		more, err := turn.Next()
		return fmt.Sprint(more, " ", errors.Is(err, loop.ErrStopped))
	}
	require.Equal(t, "true false", next(), "nobody has said anything")
	require.NoError(t, turn.Said(ctx, ending{stop: state.StopCalls, call: "c0"}.result()))
	require.Equal(t, "true false", next())
	_, err := turn.Run(ctx, turn.Pending()...)
	require.NoError(t, err)
	require.NoError(t, turn.Said(ctx, ending{stop: state.StopLength, call: "c1"}.result()))
	require.Equal(t, "true false", next())
	require.Empty(t, turn.Pending())
	result, err := turn.Call(ctx, turnCall("c1", "note"))
	require.NoError(t, err)
	require.Error(t, result.Err)
	require.Equal(t, []string{tooLong}, spoken([]state.Message{result.Message}))
	require.NoError(t, turn.Said(ctx, ending{stop: state.StopEnd, text: "hi"}.result()))
	require.Equal(t, "false false", next())
	require.NoError(t, turn.Said(ctx, ending{stop: state.StopFiltered, text: "h"}.result()))
	require.Equal(t, "false true", next())
	err = turn.Said(ctx, ending{stop: state.StopFailed, text: "h"}.result())
	var stopped *loop.StopError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, 4, turn.State().History().Len(), "what has failed is not recorded")
}
