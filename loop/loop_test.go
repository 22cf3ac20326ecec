package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/internal/test/callkeys"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
)

// script is a model that gives these answers, in turn, and notes what it was
// asked. "note c1" is a call, "error TEXT" an error, and anything else a text.
type script struct {
	answers []string
	asked   []string // for each request: who asks, and the last line of the prompt
}

func (s *script) ask(ctx context.Context, turn *loop.Turn) error {
	prompt, err := turn.Prompt(ctx, state.Messages.GetOr(turn.State(), nil))
	if err != nil {
		return err
	}
	lines := spoken(prompt)
	s.asked = append(s.asked, turn.State().Agent()+" "+lines[len(lines)-1])
	if len(s.answers) == 0 {
		return errors.New("asked too often")
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	if text, ok := strings.CutPrefix(answer, "error "); ok {
		return errors.New(text)
	}
	var calls []state.ToolCall
	for _, word := range strings.Split(answer, ", ") {
		if name, id, ok := strings.Cut(word, " "); ok && (name == "note" || name == "pay" || name == "big") {
			calls = append(calls, turnCall(id, name))
		}
	}
	if calls == nil {
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText(answer)}})
	}
	return turn.Said(ctx, say(calls...))
}

// loopTools are those of a turn, and big, which needs an approval.
func loopTools(made *[]string) []*tool.Tool {
	return append(turnTools(), tool.Must(tool.New("big", "", func(ctx context.Context, _ turnIn) (string, error) {
		call, _ := tool.CallOf(ctx)
		*made = append(*made, fmt.Sprintf("%s approved %v by %q", call.ID, call.Approved, call.ApprovedBy))
		return "made", nil
	}, tool.NeedsApproval(func(ctx context.Context, _ turnIn) (string, bool) {
		call, _ := tool.CallOf(ctx)
		return call.ID + " is big", true
	}))))
}

func TestLoop(t *testing.T) {
	for name, tc := range map[string]struct {
		answers     []string
		max         int
		reply       string
		err         error
		text        string // of the error
		asked, said []string
	}{
		"no call": {
			answers: []string{"hi"}, reply: "hi",
			asked: []string{"clerk user: go"}, said: []string{"user: go", "assistant: hi"},
		},
		"calls": {
			answers: []string{"note c1, note c2", "note c3", "done"}, reply: "done",
			asked: []string{"clerk user: go", `clerk result c2: ["c2"]`, `clerk result c3: ["c3"]`},
			said:  []string{"user: go", "call c1", "call c2", `result c1: ["c1"]`, `result c2: ["c2"]`, "call c3", `result c3: ["c3"]`, "assistant: done"},
		},
		"a call that waits": {
			answers: []string{"note c1, pay c2"}, err: tool.ErrSuspended,
			text:  `loop: suspended: call "c2" of "pay" KEY: a person has to approve`,
			asked: []string{"clerk user: go"}, said: []string{"user: go", "call c1", "call c2", `result c1: ["c1"]`},
		},
		"too many steps": {
			answers: []string{"note c1", "note c2", "note c3"}, max: 2, err: loop.ErrMaxSteps,
			text:  "loop: models have answered 2 times, and there is more to do",
			asked: []string{"clerk user: go", `clerk result c1: ["c1"]`},
			said:  []string{"user: go", "call c1", `result c1: ["c1"]`, "call c2", `result c2: ["c2"]`},
		},
		"an error": {
			answers: []string{"error no such model"}, text: `loop: the agent "clerk": no such model`,
			asked: []string{"clerk user: go"}, said: []string{"user: go"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st, model := state.New(turnSchema), &script{answers: tc.answers}
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
			theLoop := &loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: model.ask, Tools: turnTools()}}, MaxSteps: tc.max}
			reply, err := theLoop.Run(t.Context(), st)
			require.Equal(t, tc.reply, reply)
			if tc.text == "" {
				require.NoError(t, err)
			} else {
				text := err.Error()
				for _, c := range st.As("clerk").History().Pending() {
					text = strings.ReplaceAll(text, c.Key, "KEY")
				}
				require.Equal(t, tc.text, text)
			}
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err)
			}
			require.Equal(t, tc.asked, model.asked)
			require.Equal(t, tc.said, spoken(state.Messages.GetOr(st, nil)))
		})
	}
}

// Route says whose turn it is. Each answer is stored, the last one too.
func TestLoopOfTwoAgents(t *testing.T) {
	st, clerk, chief := state.New(turnSchema), &script{answers: []string{"note c1", "ask the chief"}}, &script{answers: []string{"yes"}}
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
	turns := []string{"clerk", "clerk", "chief"}
	var stored []int
	theLoop := &loop.Loop{
		Agents: map[string]loop.Agent{"clerk": {Ask: clerk.ask, Tools: turnTools()}, "chief": {Ask: chief.ask}},
		Route: func(*state.State) (name string, ok bool) {
			if len(turns) == 0 {
				return "", false
			}
			name, turns = turns[0], turns[1:]
			return name, true
		},
		Commit: func(context.Context) error {
			stored = append(stored, len(state.Messages.GetOr(st, nil)))
			return nil
		},
	}
	reply, err := theLoop.Run(t.Context(), st)
	require.NoError(t, err)
	require.Equal(t, "yes", reply)
	require.Equal(t, []string{"chief assistant: ask the chief"}, chief.asked)
	require.Equal(t, []int{2, 3, 4, 5}, stored)

	turns = []string{"nobody"}
	_, err = theLoop.Run(t.Context(), st)
	require.ErrorIs(t, err, state.ErrInvalid)
	require.ErrorContains(t, err, `"nobody"`)
	turns, clerk.answers, theLoop.Commit = []string{"clerk"}, []string{"hm"}, func(context.Context) error { return os.ErrClosed }
	_, err = theLoop.Run(t.Context(), st)
	require.ErrorIs(t, err, os.ErrClosed)
}

// A person decides, at once or after the user has said more.
func TestLoopWithApprovals(t *testing.T) {
	decide := func(st *state.State, made *[]string, approve bool, ids ...string) error {
		turn, err := loop.NewTurn(state.NewContext(t.Context(), st), "clerk", loopTools(made)...)
		if err != nil {
			return err
		}
		var decisions []tool.Decision
		for _, id := range ids {
			key := "cNoSuchCall"
			if id != "" {
				key = callkeys.Of(t, st, id)
			}
			if approve {
				decisions = append(decisions, tool.Approve(key))
			} else {
				decisions = append(decisions, tool.Refuse(key, "it is too much"))
			}
		}
		_, err = turn.Decide(t.Context(), decisions...)
		return err
	}
	for name, tc := range map[string]struct {
		between, approve bool
		asked            string // what the prompt ends with
		made             []string
	}{
		"approved":      {approve: true, asked: "clerk result c1: made", made: []string{`c1 approved true by ""`}},
		"approved late": {approve: true, between: true, asked: "clerk result c1: made", made: []string{`c1 approved true by ""`}},
		"refused":       {asked: "clerk result c1: The call was refused by a person: it is too much"},
		"refused late":  {between: true, asked: "clerk result c1: The call was refused by a person: it is too much"},
	} {
		t.Run(name, func(t *testing.T) {
			st, model, made := state.New(turnSchema), &script{answers: []string{"big c1"}}, []string(nil)
			theLoop := &loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: model.ask, Tools: loopTools(&made)}}}
			hear := func(text string) (string, error) {
				require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(text)}))
				return theLoop.Run(t.Context(), st)
			}
			_, err := hear("go")
			require.ErrorIs(t, err, tool.ErrSuspended)
			require.ErrorContains(t, err, `call "c1" of "big" `+callkeys.Of(t, st, "c1")+": c1 is big")
			_, err = theLoop.Run(t.Context(), st)
			require.ErrorIs(t, err, tool.ErrSuspended, "the tool is asked again, and no model")
			if tc.between {
				model.answers = []string{"wait"}
				reply, err := hear("are you there?")
				require.NoError(t, err)
				require.Equal(t, "wait", reply)
			}
			err = decide(st, &made, tc.approve, "c1", "")
			require.ErrorIs(t, err, loop.ErrNotSuspended)
			require.EqualError(t, err, `loop: the call "cNoSuchCall" is not suspended: none does`)
			err = decide(st, &made, tc.approve, "")
			require.EqualError(t, err, `loop: the call "cNoSuchCall" is not suspended: waiting are `+callkeys.Of(t, st, "c1")+` ("big")`)
			require.ErrorIs(t, decide(st, &made, tc.approve, "c1", "c1"), loop.ErrNotSuspended)
			require.Empty(t, made)
			require.NoError(t, decide(st, &made, tc.approve, "c1"))
			require.ErrorIs(t, decide(st, &made, tc.approve, "c1"), loop.ErrNotSuspended)
			require.Equal(t, tc.made, made)
			model.answers, model.asked = []string{"done"}, nil
			reply, err := theLoop.Run(t.Context(), st)
			require.NoError(t, err)
			require.Equal(t, "done", reply)
			require.Equal(t, []string{tc.asked}, model.asked)
		})
	}
}

// A turn of the program whose function is asked for its input is approved in it.
func TestNeedsApproval(t *testing.T) {
	yes := func(context.Context, turnIn) (string, bool) { return "", true }
	echo := func(_ context.Context, in turnIn) (string, error) { return in.Text, nil }
	for want, opts := range map[string][]tool.Option{
		"NeedsApproval: its function takes string, that of the tool takes loop_test.turnIn": {tool.NeedsApproval(func(context.Context, string) (string, bool) { return "", true })},
		"NeedsApproval: no function":    {tool.NeedsApproval[turnIn](nil)},
		"NeedsApproval: is given twice": {tool.NeedsApproval(yes), tool.NeedsApproval(yes)},
	} {
		_, err := tool.New("echo", "", echo, opts...)
		require.ErrorIs(t, err, tool.ErrInvalidTool)
		require.ErrorContains(t, err, want)
	}
	vault := &state.Field[string]{Name: "text", Secret: true}
	st := state.New(state.MustSchema(vault))
	require.NoError(t, vault.Set(st, "s3cret-value"))
	raw := tool.Must(tool.Raw("raw", "", `{"type":"object","properties":{"text":{"type":"string"}}}`,
		func(_ context.Context, args state.JSON) (state.JSON, error) { return args, nil }, tool.From(vault, "text"),
		tool.NeedsApproval(func(_ context.Context, in state.JSON) (string, bool) { return "is " + string(in), in != "{}" })))
	open := tool.Must(tool.New("open", "", func(_ context.Context, in map[string]any) (any, error) { return in, nil },
		tool.NeedsApproval(func(_ context.Context, in map[string]any) (string, bool) { return "", len(in) > 0 })))
	_, err := raw.Call(t.Context(), st, "{}")
	require.EqualError(t, err, `is {"text":"[SECRET]"}`, "what is injected can be looked at, and is masked")
	require.ErrorIs(t, err, tool.ErrSuspended)
	_, err = open.Call(t.Context(), st, `{"a":1}`)
	require.EqualError(t, err, "a person has to approve the call")
	out, err := open.Call(t.Context(), st, "{}")
	require.NoError(t, err)
	require.Equal(t, state.JSON("{}"), out)

	ctx := runctx.WithApprovals(state.NewContext(t.Context(), st), map[string]runctx.Approval{"k1": {By: "eve"}})
	results, err := tool.Run(ctx, st, []*tool.Tool{raw}, []state.ToolCall{{ID: "c", Name: "raw", Key: "k1"}, {ID: "c", Name: "raw", Key: "k2"}})
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Equal(t, 0, results[0].Index)
}

// timeout is a net.Error.
type timeout struct{}

func (timeout) Error() string   { return "slow" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// A request that may succeed later is made again.
func TestLoopAsksAgain(t *testing.T) {
	failed := errors.New("overloaded")
	for name, tc := range map[string]struct {
		err    error
		noted  time.Duration // by what sends the request; negative: nothing
		tries  int           // that fail
		takes  time.Duration
		passes bool
	}{
		"once":                {err: loop.Retryable(failed, 0), noted: -1, tries: 1, takes: time.Second, passes: true},
		"five times":          {err: timeout{}, noted: -1, tries: 5, takes: 31 * time.Second, passes: true},
		"too often":           {err: io.ErrUnexpectedEOF, noted: -1, tries: 6, takes: 31 * time.Second},
		"the service says so": {err: loop.Retryable(failed, 90*time.Second), noted: -1, tries: 1, takes: 90 * time.Second, passes: true},
		"for too long":        {err: loop.Retryable(failed, time.Hour), noted: -1, tries: 1, takes: 10 * time.Minute, passes: true},
		"what sends it knows": {err: failed, noted: 20 * time.Second, tries: 1, takes: 20 * time.Second, passes: true},
		"final":               {err: failed, noted: -1, tries: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st, tries := spokenTo(t), 0
				theLoop := &loop.Loop{Agents: map[string]loop.Agent{"": {Ask: func(ctx context.Context, turn *loop.Turn) error {
					if tries++; tries <= tc.tries {
						if tc.noted >= 0 {
							runctx.NoteFailure(ctx, failed, tc.noted)
						}
						return tc.err
					}
					return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("hi")}})
				}}}}
				began := time.Now()
				_, err := theLoop.Run(t.Context(), st)
				require.Equal(t, tc.passes, err == nil, err)
				if !tc.passes {
					require.ErrorIs(t, err, tc.err)
					require.Equal(t, tc.tries, tries)
				}
				require.Equal(t, tc.takes, time.Since(began))
			})
		})
	}
	require.NoError(t, loop.Retryable(nil, time.Second))
}

// spokenTo returns a State to which a user has said something.
func spokenTo(t *testing.T) *state.State {
	t.Helper()
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Hello!")}))
	return st
}

// What was answered is not asked again, even if Ask says that its request failed.
// A context that has ended ends the loop.
func TestLoopAsksNotAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		says, ends bool
		err, want  error
	}{
		"an answer, and an error that may pass": {says: true, err: io.ErrUnexpectedEOF},
		"an answer, and another error":          {says: true, err: os.ErrClosed, want: os.ErrClosed},
		"the end of the context":                {ends: true, err: timeout{}, want: timeout{}},
		"an answer, and the end of the context": {says: true, ends: true, err: timeout{}, want: timeout{}},
		"no answer":                             {want: state.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			st, tries := spokenTo(t), 0
			theLoop := &loop.Loop{Agents: map[string]loop.Agent{"": {Ask: func(ctx context.Context, turn *loop.Turn) error {
				tries++
				if tc.says {
					require.NoError(t, turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("hi")}}))
				}
				if tc.ends {
					cancel()
				}
				return tc.err
			}}}}
			_, err := theLoop.Run(ctx, st)
			require.ErrorIs(t, err, tc.want)
			require.Equal(t, 1, tries)
		})
	}
}

// In a run, a loop goes on where the one before has stopped.
func TestLoopGoesOn(t *testing.T) {
	call := turnCall("c1", "note")
	for name, tc := range map[string]struct {
		said  []state.Message // since the user has spoken
		run   commits
		asked []string
		reply string
	}{
		"nothing was said":     {asked: []string{"clerk user: go"}, reply: "hi"},
		"the last word":        {said: []state.Message{state.AssistantText("bye")}, run: commits{answers: 1, ended: true}, reply: "bye"},
		"a call is left":       {said: []state.Message{state.ToolCalls(call)}, run: commits{answers: 1}, asked: []string{`clerk result c1: ["c1"]`}, reply: "hi"},
		"a call after another": {said: []state.Message{state.ToolCalls(call)}, run: commits{answers: 1, ended: true}, asked: []string{`clerk result c1: ["c1"]`}, reply: "hi"},
		"a call waits":         {said: []state.Message{state.ToolCalls(call)}, run: commits{answers: 1, waiting: []state.ToolCall{call}}},
		"a result from outside": {
			said: []state.Message{state.ToolCalls(call), state.ToolResult(call, "1"), state.UserText("hm"), state.AssistantText("wait")},
			run:  commits{decided: []state.ToolCall{call}}, asked: []string{"clerk result c1: 1"}, reply: "hi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(turnSchema)
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
			for _, m := range tc.said {
				clerk := st.As("clerk").History()
				switch m := m.(type) {
				case state.ToolResultMessage:
					require.NoError(t, clerk.Answer(m))
				default:
					if m.Role() == "user" {
						require.NoError(t, state.Messages.Set(st, []state.Message{m}))
						continue
					}
					require.NoError(t, clerk.Append(state.InferenceResult{Output: []state.Message{m}}))
				}
			}
			model, run := &script{answers: []string{"hi"}}, tc.run
			run.st = st
			for _, calls := range [][]state.ToolCall{run.waiting, run.decided} {
				for i := range calls {
					calls[i].Key = callkeys.Of(t, st, calls[i].ID)
				}
			}
			ask := func(ctx context.Context, turn *loop.Turn) error {
				require.False(t, run.ended, "a process that takes over now would not ask")
				return model.ask(ctx, turn)
			}
			theLoop := &loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: ask, Tools: turnTools()}}}
			reply, err := theLoop.Run(runctx.NewContext(t.Context(), &run), st)
			if run.waiting != nil {
				require.ErrorIs(t, err, tool.ErrSuspended)
			} else {
				require.NoError(t, err)
				require.True(t, run.ended)
			}
			require.Equal(t, tc.reply, reply)
			require.Equal(t, tc.asked, model.asked)
			require.Equal(t, tc.run.answers+len(tc.asked), run.answers)
		})
	}
}

// A loop in the call of a tool counts for itself.
func TestLoopInALoop(t *testing.T) {
	st := state.New(turnSchema)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("go")}))
	chief, clerk := &script{answers: []string{"note c9", "note c8", "yes"}}, &script{answers: []string{"big c1", "done"}}
	inner := loop.Loop{Agents: map[string]loop.Agent{"chief": {Ask: chief.ask, Tools: turnTools()}}, MaxSteps: 3}
	ask := tool.Must(tool.NewStateful("big", "", func(ctx context.Context, st *state.State, _ turnIn) (string, error) {
		return inner.Run(ctx, st)
	}))
	outer := loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: clerk.ask, Tools: []*tool.Tool{ask}}}, MaxSteps: 2}
	run := &commits{st: st}
	reply, err := outer.Run(runctx.NewContext(t.Context(), run), st)
	require.NoError(t, err)
	require.Equal(t, "done", reply)
	require.Equal(t, 2, run.answers)
	require.Equal(t, []string{"clerk user: go", "clerk result c1: yes"}, clerk.asked)
}

func TestLoopThatCannotWork(t *testing.T) {
	ask := (&script{}).ask
	agents := map[string]loop.Agent{"a": {Ask: ask}}
	st, ctx, noContext := state.New(nil), t.Context(), context.Context(nil)
	for want, call := range map[string]func() (string, error){
		"no Agents": func() (string, error) { return (&loop.Loop{}).Run(ctx, st) },
		"no Route": func() (string, error) {
			return (&loop.Loop{Agents: map[string]loop.Agent{"a": {Ask: ask}, "b": {Ask: ask}}}).Run(ctx, st)
		},
		`"a" of a Loop`:    func() (string, error) { return (&loop.Loop{Agents: map[string]loop.Agent{"a": {}}}).Run(ctx, st) },
		"MaxSteps -1":      func() (string, error) { return (&loop.Loop{Agents: agents, MaxSteps: -1}).Run(ctx, st) },
		"the State is nil": func() (string, error) { return (&loop.Loop{Agents: agents}).Run(ctx, nil) },
		"context is nil":   func() (string, error) { return (&loop.Loop{Agents: agents}).Run(noContext, st) },
	} {
		_, err := call()
		require.ErrorIs(t, err, state.ErrInvalid)
		require.ErrorContains(t, err, want)
	}
}

// An answer that is recorded before Ask fails is told with the error.
func TestAskFailsBehindItsAnswer(t *testing.T) {
	refused := errors.New("the SDK cannot read it")
	l := loop.Loop{Agents: map[string]loop.Agent{"": {Ask: func(ctx context.Context, turn *loop.Turn) error {
		return errors.Join(turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("Hello")}, Stop: state.StopEnd}), refused)
	}}}}
	st := state.New(nil)
	require.NoError(t, st.UserSays("Hi"))
	reply, err := l.Run(t.Context(), st)
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "its answer is recorded")
	require.Equal(t, "Hello", reply)
}
