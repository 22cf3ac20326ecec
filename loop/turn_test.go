package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/internal/test/callkeys"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// The fields of a shop, in which clerk may not read the vault.
var (
	turnLog    = &state.Field[[]string]{Name: "log", Read: state.Public, Write: state.Public}
	turnVault  = &state.Field[string]{Name: "vault", Read: state.Only("chief")}
	turnSchema = state.MustSchema(turnLog, turnVault, state.Team{"chief": {"clerk"}})
)

type turnIn struct {
	Text string `json:"text"`
}

// turnTools: note appends to the log, pay waits, and open needs the vault.
func turnTools() []*tool.Tool {
	note := func(ctx context.Context, in turnIn) ([]string, error) {
		call, _ := tool.CallOf(ctx)
		return []string{in.Text + call.ID}, nil
	}
	pay := func(context.Context, turnIn) (string, error) {
		return "", tool.Suspend(errors.New("a person has to approve"))
	}
	open := func(_ context.Context, in turnIn) (string, error) { return in.Text, nil }
	return []*tool.Tool{
		tool.Must(tool.New("note", "", note, tool.To(turnLog, ""))),
		tool.Must(tool.New("pay", "", pay)),
		tool.Must(tool.New("open", "", open, tool.From(turnVault, "text"))),
	}
}

func turnOf(t *testing.T, st *state.State, agent string) (context.Context, *loop.Turn) {
	t.Helper()
	ctx := state.NewContext(t.Context(), st)
	turn, err := loop.NewTurn(ctx, agent, turnTools()...)
	require.NoError(t, err)
	return turn.Context(ctx), turn
}

func turnCall(id, name string) state.ToolCall {
	return state.ToolCall{ID: id, Name: name, Input: `{"text":""}`}
}

func say(calls ...state.ToolCall) state.InferenceResult {
	return state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}
}

// spoken returns a line for each message of a conversation.
func spoken(msgs []state.Message) (lines []string) {
	for _, m := range msgs {
		switch m := m.(type) {
		case state.TextMessage:
			lines = append(lines, m.Role()+": "+m.Text())
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				lines = append(lines, "call "+c.ID)
			}
		case state.ToolResultMessage:
			lines = append(lines, fmt.Sprintf("result %s: %s", m.Call().ID, m.Text()))
		}
	}
	return lines
}

func TestATurnOffersWhatItsAgentMayUse(t *testing.T) {
	st := state.New(turnSchema)
	for agent, want := range map[string]int{"clerk": 2, "chief": 3, "": 3} {
		_, turn := turnOf(t, st, agent)
		require.Len(t, turn.Tools(), want, agent)
		require.Equal(t, agent, turn.State().Agent())
		require.True(t, turn.Has("open"))
		require.False(t, turn.Has("fly"))
	}
	_, err := loop.NewTurn(t.Context(), "clerk")
	require.ErrorIs(t, err, state.ErrInvalid)
}

// An agent that is the tool of another has its own rights, and hears nobody.
func TestATurnWithinATurn(t *testing.T) {
	st := state.New(turnSchema)
	ctx, _ := turnOf(t, st, "clerk")
	inner, err := loop.NewTurn(ctx, "chief", turnTools()...)
	require.NoError(t, err)
	require.Equal(t, "chief", inner.State().Agent())
	require.Len(t, inner.Tools(), 3)
	require.NoError(t, inner.Hear(state.UserText("from the clerk")))
	require.Empty(t, state.Messages.GetOr(st, nil))
	fork := st.Fork().As("chief") // a branch that somebody has put into the context
	inner, err = loop.NewTurn(state.NewContext(ctx, fork), "")
	require.NoError(t, err)
	require.Same(t, fork, inner.State())
	inner, err = loop.NewTurn(state.NewContext(ctx, fork), "chief")
	require.NoError(t, err)
	require.NoError(t, turnVault.Set(st, "of the trunk"))
	require.False(t, turnVault.Has(inner.State()), "it works on the branch")
	_, ok := loop.TurnOf(t.Context())
	require.False(t, ok)
}

// So does an agent that the function of a tool runs.
func TestATurnWithinACall(t *testing.T) {
	st := state.New(turnSchema)
	asks := tool.Must(tool.NewStateful("ask", "", func(ctx context.Context, _ *state.State, in turnIn) (string, error) {
		turn, err := loop.NewTurn(ctx, "chief")
		if err != nil {
			return "", err
		}
		return turn.State().Agent(), turn.Hear(state.UserText("from a tool"))
	}))
	results, err := tool.Run(t.Context(), st, []*tool.Tool{asks}, []state.ToolCall{turnCall("c1", "ask")})
	require.NoError(t, err)
	require.Equal(t, "chief", results[0].Message.Text())
	require.Empty(t, state.Messages.GetOr(st, nil))
}

func TestATurnHearsWhatIsNew(t *testing.T) {
	st := state.New(turnSchema)
	_, turn := turnOf(t, st, "clerk")
	for _, c := range []struct{ said, want []string }{
		{nil, nil},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"b", "c"}, []string{"a", "b", "c"}},
		{[]string{"b"}, []string{"a", "b", "c", "b"}},
	} {
		var said []state.Message
		for _, text := range c.said {
			said = append(said, state.UserText(text))
		}
		require.NoError(t, turn.Hear(said...))
		var want []string
		for _, text := range c.want {
			want = append(want, "user: "+text)
		}
		require.Equal(t, want, spoken(state.Messages.GetOr(st, nil)))
	}
	_, turn = turnOf(t, st.As("stranger"), "clerk") // whose handle may not write it
	require.NoError(t, turn.Hear(state.UserText("d")))
	require.Len(t, state.Messages.GetOr(st, nil), 4)
}

// A framework makes the calls of an answer one by one: fields and results are in
// the order of the calls, and each call is made for itself, also if two are equal.
func TestATurnMakesTheCallsOfAnAnswer(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	calls := []state.ToolCall{turnCall("c1", "note"), turnCall("c2", "note"), turnCall("c3", "pay"), turnCall("f", "foreign"), turnCall("c4", "note")}
	require.NoError(t, turn.Said(ctx, say(calls...)))
	for _, i := range []int{4, 1, 2} {
		_, err := turn.Call(ctx, calls[i])
		require.Equal(t, i == 2, errors.Is(err, tool.ErrSuspended))
	}
	require.Len(t, spoken(state.Messages.GetOr(st, nil)), 5, "nothing is recorded before the last has returned")
	r, err := turn.Call(ctx, calls[0])
	require.NoError(t, err)
	require.Equal(t, `["c1"]`, r.Message.Text())
	require.Equal(t, []string{"c1", "c2", "c4"}, turnLog.GetOr(st, nil))
	require.Equal(t, []string{"call c1", "call c2", "call c3", "call f", "call c4", `result c1: ["c1"]`, `result c2: ["c2"]`, `result c4: ["c4"]`},
		spoken(state.Messages.GetOr(st, nil)))
	_, err = turn.Call(ctx, calls[0]) // by a framework
	require.ErrorIs(t, err, state.ErrAnswered)
	require.Equal(t, []string{"c1", "c2", "c4"}, turnLog.GetOr(st, nil), "it is not made again")

	require.Equal(t, []state.ToolCall{calls[3]}, callkeys.Calls(turn.Pending()...))
	require.Equal(t, []state.ToolCall{calls[2]}, callkeys.Calls(turn.Suspended()...))
	others, err := turn.End()
	require.NoError(t, err)
	require.True(t, others)
	foreign := state.ToolResult(calls[3], `"seen"`)
	require.NoError(t, turn.Answer(foreign, foreign, state.ToolResult(turnCall("x", "nobody"), `1`)))
	require.Empty(t, turn.Pending())
	answered, ok := turn.Answered(callkeys.Of(t, st, "f"))
	require.True(t, ok)
	require.Equal(t, "seen", answered.Text())
	for _, key := range []string{callkeys.Of(t, st, "c3"), "f", "x", ""} {
		_, ok := turn.Answered(key)
		require.False(t, ok, key)
	}
	others, err = turn.End()
	require.NoError(t, err)
	require.False(t, others)
	for name, want := range map[string]bool{"note": false, "foreign": true} {
		require.NoError(t, turn.Said(ctx, say(turnCall("d", name))))
		others, err = turn.End()
		require.NoError(t, err)
		require.Equal(t, want, others, name)
	}
}

// The calls of an answer that were not all made end with the next answer, and
// with End.
func TestATurnEndsItsSteps(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	for n, end := range []func(){
		func() {
			require.NoError(t, turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("done")}}))
		},
		func() {
			_, err := turn.End()
			require.NoError(t, err)
		},
	} {
		first, second := turnCall(fmt.Sprint("a", n), "note"), turnCall(fmt.Sprint("b", n), "note")
		require.NoError(t, turn.Said(ctx, say(first, second)))
		_, err := turn.Call(ctx, second)
		require.NoError(t, err)
		require.Len(t, turnLog.GetOr(st, nil), n)
		end()
		require.Len(t, turnLog.GetOr(st, nil), n+1)
		require.Equal(t, first, callkeys.Calls(turn.Pending()...)[n])
		msgs := state.Messages.GetOr(st, nil)
		_, ok := msgs[len(msgs)-1-(1-n)].(state.ToolResultMessage)
		require.True(t, ok)
	}
	require.Error(t, turn.Said(ctx, state.InferenceResult{Agent: "chief"}))
}

// A turn goes on with an answer of an earlier process.
func TestATurnGoesOn(t *testing.T) {
	st := state.New(turnSchema)
	ctx, before := turnOf(t, st, "clerk")
	calls := []state.ToolCall{turnCall("c1", "note"), turnCall("c2", "note"), turnCall("f", "foreign")}
	require.NoError(t, before.Said(ctx, say(calls...)))
	_, turn := turnOf(t, st, "clerk")
	_, err := turn.End() // of nothing
	require.NoError(t, err)
	for _, i := range []int{1, 0} {
		ctx, cancel := context.WithCancel(ctx) // that of a call ends with it
		_, err := turn.Call(ctx, calls[i])
		require.NoError(t, err)
		cancel()
	}
	require.Equal(t, []string{"c1", "c2"}, turnLog.GetOr(st, nil))
	require.Equal(t, calls[2:], callkeys.Calls(turn.Pending()...))
	others, err := turn.End()
	require.NoError(t, err)
	require.True(t, others)
}

// Ids repeat: each agent has its own calls, and a call that is open again has no
// answer.
func TestATurnTellsCallsWithOneIDApart(t *testing.T) {
	st := state.New(turnSchema)
	ctx, clerk := turnOf(t, st, "clerk")
	require.NoError(t, clerk.Said(ctx, say(turnCall("c1", "note"), turnCall("c2", "note"))))
	ctx, chief := turnOf(t, st, "chief")
	require.NoError(t, chief.Said(ctx, say(turnCall("c2", "note"), turnCall("c1", "note"))))
	ctx, clerk = turnOf(t, st, "clerk") // in a later process
	for _, id := range []string{"c2", "c1"} {
		_, err := clerk.Call(ctx, turnCall(id, "note"))
		require.NoError(t, err)
	}
	require.Equal(t, []string{"c1", "c2"}, turnLog.GetOr(st, nil))
	require.Empty(t, clerk.Pending())
	first, _ := st.History().At(0)
	require.NoError(t, clerk.Said(ctx, say(turnCall("c1", "note"))))
	_, ok := clerk.Answered(callkeys.Of(t, st, "c1"))
	require.False(t, ok)
	for _, c := range first.Output[0].(state.ToolCallMessage).Calls() {
		_, ok = clerk.Answered(c.Key)
		require.True(t, ok)
	}
}

// A prompt has the results of other agents, those of calls that are open in the
// history among them.
func TestATurnRecordsNoResultsOfOtherAgents(t *testing.T) {
	st := state.New(turnSchema)
	ctx, chief := turnOf(t, st, "chief")
	made, left := turnCall("c1", "foreign"), turnCall("c2", "foreign")
	require.NoError(t, chief.Said(ctx, say(made, left)))
	require.NoError(t, chief.Answer(state.ToolResult(made, `"made"`)))
	_, clerk := turnOf(t, st, "clerk")
	require.NoError(t, clerk.Answer(state.ToolResult(made, `"made"`), state.ToolResult(left, `"waits"`)))
	require.Equal(t, []state.ToolCall{left}, callkeys.Calls(chief.Pending()...))
	require.Equal(t, []string{"call c1", "call c2", `result c1: made`}, spoken(state.Messages.GetOr(st, nil)))
}

func TestAPromptHasAResultForEachCall(t *testing.T) {
	st := state.New(turnSchema)
	ctx, before := turnOf(t, st, "clerk")
	require.NoError(t, before.Hear(state.UserText("go")))
	require.NoError(t, before.Said(ctx, say(turnCall("c1", "note"), turnCall("c2", "pay"), turnCall("f", "foreign"))))
	_, turn := turnOf(t, st, "clerk")
	part, err := turn.Prompt(ctx, state.Messages.GetOr(st, nil)[:1])
	require.NoError(t, err)
	require.Len(t, part, 1)
	require.Len(t, turn.Pending(), 3, "only calls of the prompt are made")
	_, err = turn.Prompt(ctx, state.Messages.GetOr(st, nil))
	require.ErrorIs(t, err, tool.ErrSuspended, "the user has said nothing since then")
	require.EqualError(t, err, `loop: suspended: call "c2" of "pay" `+callkeys.Of(t, st, "c2")+": a person has to approve")
	for range 2 { // nothing is made again
		prompt, err := turn.Prompt(ctx, state.Messages.GetOr(st, nil))
		require.NoError(t, err)
		lines := spoken(prompt)
		require.Equal(t, []string{"user: go", "call c1", "call c2", "call f", `result c1: ["c1"]`, "result c2: Waiting for approval."}, lines[:6])
		require.Len(t, lines, 7)
		require.Empty(t, transcript.Check(prompt, transcript.Anthropic))
		require.Len(t, state.Messages.GetOr(st, nil), 3, "the others fail in the prompt alone")
		require.Equal(t, []string{"c1"}, turnLog.GetOr(st, nil))
	}
}

// What was left has a result when the model has said more: the prompt ends with it.
func TestAPromptEndsWithWhatIsToBeAnswered(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	require.NoError(t, turn.Hear(state.UserText("go")))
	require.NoError(t, turn.Said(ctx, say(turnCall("c1", "note"), turnCall("c2", "note"))))
	text := func(s string) state.InferenceResult {
		return state.InferenceResult{Output: []state.Message{state.AssistantText(s)}}
	}
	require.NoError(t, turn.Said(ctx, text("wait")))
	prompt, err := turn.Prompt(ctx, state.Messages.GetOr(st, nil))
	require.NoError(t, err)
	require.Equal(t, []string{"user: go", "assistant: wait", "call c1", "call c2", `result c1: ["c1"]`, `result c2: ["c2"]`}, spoken(prompt))

	require.NoError(t, turn.Said(ctx, say(turnCall("c3", "note"))))
	require.NoError(t, turn.Said(ctx, text("wait")))
	require.NoError(t, turn.Hear(state.UserText("how long?")))
	prompt, err = turn.Prompt(ctx, state.Messages.GetOr(st, nil))
	require.NoError(t, err)
	lines := spoken(prompt)
	require.Equal(t, []string{"call c3", `result c3: ["c3"]`, "assistant: wait", "user: how long?"}, lines[len(lines)-4:])
}

// commits is a run of a workspace.
type commits struct {
	st                *state.State
	n                 int
	err               error
	noted             []string
	waiting           []state.ToolCall
	approved, decided []state.ToolCall
	answers           int
	ended             bool
	text              string // that was emitted
	window            any
}

func (c *commits) State() *state.State { return c.st }

func (c *commits) Commit(context.Context) error { c.n++; return c.err }

func (c *commits) Join(ctx context.Context) error { return c.Commit(ctx) }

func (c *commits) Suspend(call state.ToolCall, s runctx.Suspension) {
	c.noted = append(c.noted, call.ID+": "+s.Reason)
}

func (c *commits) Waiting() []state.ToolCall { return c.waiting }

func (c *commits) Approval(key string) (runctx.Approval, bool) {
	ok := slices.ContainsFunc(transcript.Pending(state.Messages.GetOr(c.st, nil)), func(call state.ToolCall) bool {
		return call.Key == key && slices.ContainsFunc(c.approved, func(a state.ToolCall) bool { return a.ID == call.ID })
	})
	return runctx.Approval{By: "chief"}, ok
}

func (c *commits) BeginOnce(context.Context, state.ToolCall, runctx.Suspension) error { return nil }

func (c *commits) Emit(text string) { c.text += text }

func (c *commits) EmitThought(string) {}

func (c *commits) EmitInput(int, string, string) {}

func (c *commits) Report(state.ToolCall, error) {}

func (c *commits) Memory() string { return "" }

func (c *commits) WithMemory(masks *state.Redactor) *state.Redactor { return masks }

func (c *commits) Redact(text string) string { return text }

func (c *commits) CacheKey() string { return "" }

func (c *commits) Window() any { return c.window }

func (c *commits) DeferWindow(string, int) {}

func (c *commits) RestartText() { c.text = "" }

func (c *commits) Decided() []state.ToolCall { return c.decided }

func (c *commits) Progress() (int, bool) { return c.answers, c.ended }

func (c *commits) SetProgress(answers int, ended bool) { c.answers, c.ended = answers, ended }

// A turn has the window of its program, or that of the workspace. An agent that a
// tool calls says nothing of the conversation that a window is for.
func TestTheWindowOfATurn(t *testing.T) {
	st, own, shared := state.New(turnSchema), &transcript.Window{}, &transcript.Window{}
	ctx := state.NewContext(t.Context(), st)
	turn, err := loop.NewTurn(ctx, "clerk")
	require.NoError(t, err)
	require.Nil(t, turn.Window(ctx, nil))
	require.Same(t, own, turn.Window(ctx, own))
	in := runctx.NewContext(ctx, &commits{st: st, window: shared})
	require.Same(t, shared, turn.Window(in, nil))
	require.Same(t, own, turn.Window(in, own))
	require.Nil(t, turn.Window(runctx.NewContext(ctx, &commits{st: st}), nil))
	inner, err := loop.NewTurn(turn.Context(ctx), "other")
	require.NoError(t, err)
	require.Nil(t, inner.Window(in, own))
}

func TestATurnOfARunIsCommitted(t *testing.T) {
	st := state.New(turnSchema)
	run := &commits{st: st}
	ctx := runctx.NewContext(state.NewContext(t.Context(), st), run)
	turn, err := loop.NewTurn(ctx, "clerk", turnTools()...)
	require.NoError(t, err)
	require.NoError(t, turn.Hear(state.UserText("the run has it")))
	require.Empty(t, state.Messages.GetOr(st, nil))
	calls := []state.ToolCall{turnCall("c1", "note"), turnCall("c2", "pay")}
	require.NoError(t, turn.Said(ctx, say(calls...)))
	require.Equal(t, 1, run.n, "before the calls are made")
	results, err := turn.Run(ctx, calls...)
	require.NoError(t, err)
	require.Len(t, results, 1)
	require.Equal(t, 3, run.n, "and when they have returned")
	require.Equal(t, []string{"c2: a person has to approve"}, run.noted)
	require.Equal(t, calls[1:], callkeys.Calls(turn.Pending()...), "what is suspended, the run says")
	run.waiting = turn.Pending()
	require.Empty(t, turn.Pending())
	require.NoError(t, turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("done")}}))
	_, err = turn.Run(ctx)
	require.NoError(t, err)
	require.Equal(t, 3, run.n, "the end of the run commits the last answer")
	run.err = errors.New("fenced")
	require.ErrorIs(t, turn.Said(ctx, say(turnCall("c3", "note"))), run.err)
	_, err = turn.Run(ctx, turnCall("c3", "note"))
	require.ErrorIs(t, err, run.err)
	require.Len(t, turnLog.GetOr(st, nil), 1, "a run that is lost makes no call")
	hidden, err := loop.NewTurn(runctx.NewContext(ctx, nil), "clerk")
	require.NoError(t, err)
	require.NoError(t, hidden.Commit(ctx))
}

// A call that a framework repeats while others are open does not end their step.
func TestATurnMakesEachCallOnce(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	first, second := turnCall("c1", "note"), turnCall("c2", "note")
	require.NoError(t, turn.Said(ctx, say(first, second)))
	for range 2 {
		r, err := turn.Call(ctx, first)
		require.NoError(t, err)
		require.Equal(t, `["c1"]`, r.Message.Text())
		require.Len(t, spoken(state.Messages.GetOr(st, nil)), 2)
	}
	_, err := turn.Call(ctx, second)
	require.NoError(t, err)
	require.Equal(t, []string{"call c1", "call c2", `result c1: ["c1"]`, `result c2: ["c2"]`}, spoken(state.Messages.GetOr(st, nil)))
}

// A call that was suspended and has a result now is not suspended any more, so
// that another call may have its id.
func TestATurnForgetsWhatWasAnswered(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	c := turnCall("1", "pay")
	for range 2 {
		require.NoError(t, turn.Said(ctx, say(c)))
		require.Equal(t, []state.ToolCall{c}, callkeys.Calls(turn.Pending()...))
		results, err := turn.Run(ctx, turn.Pending()...)
		require.NoError(t, err)
		require.Empty(t, results)
		require.Equal(t, []state.ToolCall{c}, callkeys.Calls(turn.Suspended()...))
		require.NoError(t, turn.Answer(state.ToolResult(turn.Suspended()[0], `"paid"`)))
		require.Empty(t, turn.Suspended())
	}
}

// So it is if nobody asks between the result and the next call with the id.
func TestATurnForgetsWhatWasAnsweredBeforeTheNextCall(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	c := turnCall("1", "pay")
	for range 2 {
		require.NoError(t, turn.Said(ctx, say(c)))
		require.Equal(t, []state.ToolCall{c}, callkeys.Calls(turn.Pending()...))
		open := turn.Pending()[0]
		_, err := turn.Run(ctx, open)
		require.NoError(t, err)
		require.NoError(t, turn.Answer(state.ToolResult(open, `"paid"`)))
	}
}

// A framework knows a call by the id that requests have: one that an earlier call
// had is that call's alone.
func TestATurnAnswersCallsByTheIDsOfRequests(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	for range 2 {
		require.NoError(t, turn.Said(ctx, say(turnCall("1", "foreign"))))
	}
	require.Len(t, turn.Pending(), 2)
	sent, _ := transcript.Repair(state.Messages.GetOr(st, nil), transcript.OpenAI, transcript.Policy{AnswerCalls: true})
	var ids []string
	for _, m := range sent {
		if m, ok := m.(state.ToolCallMessage); ok {
			ids = append(ids, m.Calls()[0].ID)
		}
	}
	require.Len(t, ids, 2)
	require.NotEqual(t, ids[0], ids[1])
	second := turn.Pending()[1]
	require.NoError(t, turn.Answer(state.ToolResult(turnCall(ids[1], "foreign"), `"second"`)))
	result, ok := turn.Answered(second.Key)
	require.True(t, ok)
	require.Equal(t, "second", result.Text())
	require.Equal(t, "1", result.Call().ID, "it is recorded with the id of its call")
	require.NoError(t, turn.Answer(state.ToolResult(turnCall("1", "foreign"), `"first"`)))
	require.NoError(t, turn.Answer(state.ToolResult(turnCall("1", "foreign"), `"again"`)))
	require.Empty(t, turn.Pending())
	require.Equal(t, []string{"call 1", "result 1: first", "call 1", "result 1: second"}, spoken(state.Messages.GetOr(st, nil)))
}

// Some providers give calls no id.
func TestATurnTellsCallsWithoutIDApart(t *testing.T) {
	st := state.New(turnSchema)
	require.NoError(t, turnVault.Set(st, "gold"))
	ctx, turn := turnOf(t, st, "chief")
	note, open := turnCall("", "note"), turnCall("", "open")
	open.Input = `{}`
	require.NoError(t, turn.Said(ctx, say(note, open, note)))
	var got []string
	for _, c := range []state.ToolCall{open, note, note} {
		r, err := turn.Call(ctx, c)
		require.NoError(t, err)
		got = append(got, fmt.Sprint(r.Index, r.Message.Text()))
	}
	require.Equal(t, []string{`1gold`, `0[""]`, `2[""]`}, got)
	require.Empty(t, turn.Pending())
}

// The result of a call has no place in a history that was replaced meanwhile. The
// call has been made, and says so.
func TestATurnWhoseHistoryWasReset(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	require.NoError(t, turn.Said(ctx, say(turnCall("c1", "note"))))
	require.NoError(t, st.History().Reset(nil))
	r, err := turn.Call(ctx, turnCall("c1", "note"))
	require.Equal(t, `["c1"]`, r.Message.Text())
	require.ErrorIs(t, err, state.ErrUnknownCall)
}

// A prompt that was trimmed may have one of two calls with an id.
func TestATurnMakesOnlyTheCallsOfThePrompt(t *testing.T) {
	st := state.New(turnSchema)
	ctx, turn := turnOf(t, st, "clerk")
	calls := []state.ToolCall{turnCall("", "note"), turnCall("", "open"), turnCall("", "note")}
	require.NoError(t, turn.Said(ctx, say(calls...)))
	prompt, err := turn.Prompt(ctx, []state.Message{state.UserText("go on"), state.ToolCalls(calls[0])})
	require.NoError(t, err)
	require.Len(t, prompt, 3)
	require.Len(t, turn.Pending(), 2)
	require.Len(t, turnLog.GetOr(st, nil), 1)
}

// Without a tool, and with one that is nil, a turn knows no tool.
func TestATurnWithANilTool(t *testing.T) {
	turn, err := loop.NewTurn(state.NewContext(t.Context(), state.New(turnSchema)), "", nil, turnTools()[0])
	require.NoError(t, err)
	require.True(t, turn.Has("note"))
	require.False(t, turn.Has("pay"))
	require.Len(t, turn.Tools(), 1)
}
