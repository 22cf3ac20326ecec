package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// countOne counts each message as one token.
func countOne(state.Message) int { return 1 }

// texts returns what texts say, with the summary in short.
func texts(msgs []state.Message) string {
	var said []string
	for _, m := range msgs {
		text := m.Type()
		if m, ok := m.(state.TextMessage); ok {
			text = m.Text()
			if inside, ok := strings.CutPrefix(text, summaryTag); ok {
				_, text, _ = strings.Cut(strings.TrimSuffix(inside, "\n</summary>"), "\n\n")
				text = "(" + text + ")"
			}
		}
		said = append(said, text)
	}
	return strings.Join(said, " ")
}

// talk appends a question and an answer, such as "q3" and "a3".
func talk(t testing.TB, st *state.State, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		require.NoError(t, state.Messages.Set(st, []state.Message{
			state.UserText(fmt.Sprintf("q%d", i)), state.AssistantText(fmt.Sprintf("a%d", i)),
		}))
	}
}

// shown asks the window.
func shown(t testing.TB, w *transcript.Window, st *state.State) string {
	t.Helper()
	msgs, err := w.Messages(t.Context(), st, 0)
	require.NoError(t, err)
	return texts(msgs)
}

func TestWindowMovesInSteps(t *testing.T) {
	w, st := &transcript.Window{Target: 6, Keep: 2, Tokens: countOne}, state.New(nil)
	talk(t, st, 1, 3)
	require.Equal(t, "q1 a1 q2 a2 q3 a3", shown(t, w, st))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("q4")}))
	require.Equal(t, "q4", shown(t, w, st)) // 7 are too many, and an answer goes with its question
	talk(t, st, 5, 6)
	require.Equal(t, "q4 q5 a5 q6 a6", shown(t, w, st))
	talk(t, st, 7, 7)
	require.Equal(t, "q7 a7", shown(t, w, st))
	require.Equal(t, 13, state.ListLen(st, state.Messages))
}

func TestWindowKeepsHalfByDefault(t *testing.T) {
	w, st := &transcript.Window{Target: 7, Tokens: countOne}, state.New(nil)
	talk(t, st, 1, 4)
	require.Equal(t, "q3 a3 q4 a4", shown(t, w, st))
}

func TestWindowCountsTheWholeRequest(t *testing.T) {
	w, st := &transcript.Window{Target: 6, Keep: 4, Tokens: countOne}, state.New(nil)
	talk(t, st, 1, 3)
	msgs, err := w.Messages(t.Context(), st, 1)
	require.NoError(t, err)
	require.Equal(t, "q3 a3", texts(msgs))
	_, err = w.Messages(t.Context(), st, 5) // 7, of which Keep leaves nothing
	require.ErrorIs(t, err, transcript.ErrWindow)
	require.ErrorContains(t, err, "prompt, tools and context have 5 tokens, and Keep is 4")
}

func TestWindowsThatCannotBe(t *testing.T) {
	for _, w := range []*transcript.Window{{}, {Target: -1}, {Target: 2, Keep: 3}, {Target: 2, Keep: -1}} {
		_, err := w.Messages(t.Context(), state.New(nil), 0)
		require.ErrorIs(t, err, transcript.ErrWindow)
		require.ErrorContains(t, err, "want 0 < Keep <= Target")
	}
}

// What is always shown may be more than Target. It may not be more than
// Target+Keep.
func TestWindowOfWhatIsAlwaysShown(t *testing.T) {
	for n, fits := range map[int]bool{5: true, 6: false} {
		w, st := &transcript.Window{Target: 3, Keep: 2, Tokens: countOne}, state.New(nil)
		for i := range n - 1 {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.SystemText(fmt.Sprint("s", i))}))
		}
		talk(t, st, 1, 9)
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("last")}))
		msgs, err := w.Messages(t.Context(), st, 0)
		if fits {
			require.NoError(t, err)
			require.Equal(t, "s0 s1 s2 s3 last", texts(msgs))
			continue
		}
		require.ErrorIs(t, err, transcript.ErrWindow)
		require.ErrorContains(t, err, "it has about 6 tokens, and Target is 3: nothing more can be left out")
	}
}

// A call that waits is shown with its request, and so is a result that comes
// later, wherever it is put.
func TestWindowShowsWaitingCalls(t *testing.T) {
	call := state.ToolCall{ID: "c1", Name: "approve", Input: `{}`}
	for _, behind := range []bool{false, true} {
		w, st := &transcript.Window{Target: 8, Keep: 6, Tokens: countOne}, state.New(nil)
		talk(t, st, 1, 2)
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("pay"), state.ToolCalls(call)}))
		talk(t, st, 3, 5)
		require.Equal(t, "pay tool_call q4 a4 q5 a5", shown(t, w, st))
		result := state.ToolResult(call, `"paid"`)
		if behind {
			require.NoError(t, state.Messages.Set(st, []state.Message{result}))
			require.Equal(t, "pay tool_call q4 a4 q5 a5 tool_result", shown(t, w, st))
			continue
		}
		msgs, err := transcript.Answer(state.Messages.GetOr(st, nil), result)
		require.NoError(t, err)
		require.NoError(t, state.Messages.Replace(st, msgs))
		require.Equal(t, "pay tool_call tool_result q4 a4 q5 a5", shown(t, w, st))
		talk(t, st, 6, 7)
		require.Equal(t, "q5 a5 q6 a6 q7 a7", shown(t, w, st)) // nothing waits any more
	}
}

// Where messages were dropped, the window begins where it did, or with the
// oldest.
func TestWindowOfAConversationThatIsTrimmed(t *testing.T) {
	w, st := &transcript.Window{Target: 6, Keep: 4, Tokens: countOne}, state.New(nil)
	talk(t, st, 1, 4)
	require.Equal(t, "q3 a3 q4 a4", shown(t, w, st))
	trim := func(n int) {
		t.Helper()
		require.NoError(t, state.Messages.Replace(st, transcript.KeepLast(n)(state.Messages.GetOr(st, nil))))
	}
	trim(5)
	require.Equal(t, "q3 a3 q4 a4", shown(t, w, st))
	talk(t, st, 5, 5)
	trim(3)
	require.Equal(t, "q5 a5", shown(t, w, st))
	talk(t, st, 6, 8)
	require.Equal(t, "q7 a7 q8 a8", shown(t, w, st))
}

// Nobody is told of the window of an agent.
func TestWindowIsHidden(t *testing.T) {
	w, st := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne}, state.New(state.MustSchema(state.AllowUndeclared))
	talk(t, st, 1, 3)
	before, described := st.Snapshot(), st.Describe()
	require.Equal(t, "q3 a3", shown(t, w, st))
	require.Equal(t, before.Version()+1, st.Version())
	for change, err := range st.Changes(before.Version()) {
		require.Fail(t, "a change is told", "%v %v", change, err)
	}
	require.Equal(t, described, st.Describe())
	require.Equal(t, before.Fields(), st.Fields())
	require.Equal(t, []string{"messages"}, st.KV().Keys())
	_, ok := st.KV().Get("messages.window")
	require.False(t, ok)
	_, err := state.NewSchema(&state.Field[string]{Name: "messages.window"})
	require.ErrorContains(t, err, "is the name of what package transcript keeps")

	require.NoError(t, st.Revert(before))
	require.Equal(t, "q1 a1 q2 a2 q3 a3", shown(t, &transcript.Window{Target: 99, Tokens: countOne}, st))
}

func TestWindowsOfAgents(t *testing.T) {
	small, large := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne}, &transcript.Window{Target: 100, Tokens: countOne}
	st := state.New(nil)
	talk(t, st, 1, 3)
	require.Equal(t, "q3 a3", shown(t, small, st.As("small")))
	require.Equal(t, "q1 a1 q2 a2 q3 a3", shown(t, large, st.As("large")))
	require.Equal(t, "q1 a1 q2 a2 q3 a3", shown(t, large, st))
}

func TestSummaries(t *testing.T) {
	var pasts []string
	w := &transcript.Window{Target: 6, Keep: 4, Tokens: countOne, Summarize: func(_ context.Context, p transcript.Past) (string, error) {
		pasts = append(pasts, p.Summary+": "+texts(p.Messages)+" | "+texts(p.Shown()))
		return fmt.Sprintf(" s%d\n", len(pasts)), nil
	}}
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.SystemText("be kind")}))
	talk(t, st, 1, 3)
	require.Equal(t, "be kind (s1) q3 a3", shown(t, w, st))
	require.Equal(t, "be kind (s1) q3 a3", shown(t, w, st))
	talk(t, st, 4, 5)
	require.Equal(t, "be kind (s2) q5 a5", shown(t, w, st))
	require.Equal(t, []string{": q1 a1 q2 a2 | be kind q1 a1 q2 a2", "s1: q3 a3 q4 a4 | be kind (s1) q3 a3 q4 a4"}, pasts)
	msgs, err := w.Messages(t.Context(), st, 0)
	require.NoError(t, err)
	require.Equal(t, "user", msgs[1].Role())
	require.Equal(t, 11, state.ListLen(st, state.Messages)) // it is not in the conversation
}

// A summary that fails, or says nothing, leaves the window where it is, until
// the request is too long.
func TestSummariesThatFail(t *testing.T) {
	broken := errors.New("overloaded")
	for _, c := range []struct {
		summary string
		err     error
		want    string
	}{{"", broken, "summary: overloaded"}, {" \n", nil, "summary: there is no text"}} {
		calls := 0
		w := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne, Summarize: func(context.Context, transcript.Past) (string, error) {
			calls++
			return c.summary, c.err
		}}
		st := state.New(nil)
		talk(t, st, 1, 3)
		require.Equal(t, "q1 a1 q2 a2 q3 a3", shown(t, w, st)) // 6 of at most Target+Keep
		talk(t, st, 4, 4)
		_, err := w.Messages(t.Context(), st, 0)
		require.ErrorIs(t, err, transcript.ErrWindow)
		require.ErrorContains(t, err, c.want)
		if c.err != nil {
			require.ErrorIs(t, err, broken)
		}
		require.Equal(t, 2, calls)
		w.Summarize = nil
		require.Equal(t, "q4 a4", shown(t, w, st))
	}
}

// One summary is made at a time, without a lock. Others are shown what they were.
func TestSummariesOneAtATime(t *testing.T) {
	began, finish := make(chan bool), make(chan bool)
	var calls atomic.Int64
	w := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne, Summarize: func(context.Context, transcript.Past) (string, error) {
		if calls.Add(1) == 1 {
			close(began)
			<-finish
		}
		return "s", nil
	}}
	st := state.New(nil)
	talk(t, st, 1, 3)
	var wg sync.WaitGroup
	first := ""
	wg.Go(func() { first = shown(t, w, st) })
	<-began
	require.Equal(t, "q1 a1 q2 a2 q3 a3", shown(t, w, st))
	require.Equal(t, "(s) q3 a3", shown(t, w, st.As("other"))) // another agent has its own
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("meanwhile")}))
	close(finish)
	wg.Wait()
	require.Equal(t, int64(2), calls.Load())
	require.Equal(t, "(s) q3 a3 meanwhile", first)
	require.Equal(t, first, shown(t, w, st))
}

func TestSummariesHaveNoSecrets(t *testing.T) {
	card := &state.Field[string]{Name: "card", Secret: true}
	st := state.New(state.MustSchema(card))
	require.NoError(t, card.Set(st, "4242-4242"))
	w := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne, Summarize: func(context.Context, transcript.Past) (string, error) {
		return "The card is 4242-4242.", nil
	}}
	talk(t, st, 1, 3)
	require.Equal(t, "(The card is [SECRET].) q3 a3", shown(t, w, st))
}

// A State that cannot be written is shown without being asked to summarise.
func TestWindowOfASnapshot(t *testing.T) {
	w := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne, Summarize: func(context.Context, transcript.Past) (string, error) {
		return "s", nil
	}}
	st := state.New(nil)
	talk(t, st, 1, 3)
	past := st.Snapshot()
	w.Summarize, w = nil, &transcript.Window{Target: 4, Keep: 2, Tokens: countOne, Summarize: func(context.Context, transcript.Past) (string, error) {
		return "", errors.New("called")
	}}
	require.Equal(t, "q3 a3", shown(t, w, past))
	require.Equal(t, "q3 a3", shown(t, w, past))
	require.Equal(t, st.Version(), past.Version())
}

func TestWindowNeedsTheRightToReadOnly(t *testing.T) {
	team := state.Team{"reader": {}, "writer": {}, "other": {}}
	messages := &state.Field[[]state.Message]{
		Name: state.Messages.Name, Read: state.Only("reader", "writer"), Write: state.Only("writer"),
	}
	st := state.New(state.MustSchema(team, messages))
	talk(t, st, 1, 3)
	w := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne}
	require.Equal(t, "q3 a3", shown(t, w, st.As("reader")))
	talk(t, st, 4, 4)
	require.Equal(t, "q3 a3 q4 a4", shown(t, w, st.As("reader")))
	_, err := w.Messages(t.Context(), st.As("other"), 0)
	require.ErrorIs(t, err, state.ErrDenied)
}

// Where the provider has said how many tokens a request had, that counts.
func TestWindowBelievesTheProvider(t *testing.T) {
	w, st := &transcript.Window{Target: 1000, Keep: 500, Tokens: countOne}, state.New(nil)
	ask := func(tokens int) string {
		t.Helper()
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(fmt.Sprint("q", st.Version()))}))
		msgs, err := w.Messages(t.Context(), st, 0)
		require.NoError(t, err)
		require.NoError(t, st.History().Append(state.InferenceResult{
			History: msgs, Output: []state.Message{state.AssistantText(fmt.Sprint("a", st.Version()))},
			Usage: state.Usage{Input: tokens, Output: 70, Reasoning: 60},
		}))
		return texts(msgs)
	}
	for range 20 {
		ask(500)
	}
	require.Contains(t, ask(989), "q0 ") // 989 and 10 of the answer, and the question
	got := ask(0)
	require.Contains(t, got, "q0 ")
	require.Equal(t, 43, len(strings.Fields(got)))
	got = ask(0) // nothing is reported: it is 45 by its own count
	require.Equal(t, 45, len(strings.Fields(got)))
}

// Of what is too long, about Keep of the provider's tokens are left, also
// afterwards, when it has not reported any.
func TestWindowKeepsTokensOfTheProvider(t *testing.T) {
	w, st := &transcript.Window{Target: 100, Keep: 50, Tokens: countOne}, state.New(nil)
	talk(t, st, 1, 19)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("q")}))
	msgs, err := w.Messages(t.Context(), st, 0)
	require.NoError(t, err)
	require.Len(t, msgs, 39)
	require.NoError(t, st.History().Append(state.InferenceResult{
		History: msgs, Output: []state.Message{state.AssistantText("a")}, Usage: state.Usage{Input: 117, Output: 3}, // three for each
	}))
	require.Len(t, strings.Fields(shown(t, w, st)), 16)
	require.Len(t, strings.Fields(shown(t, w, st)), 16)
	talk(t, st, 20, 27)
	require.Len(t, strings.Fields(shown(t, w, st)), 32) // 96 tokens
	talk(t, st, 28, 28)
	require.Len(t, strings.Fields(shown(t, w, st)), 16)
}

func TestWindowIsStoredAndForked(t *testing.T) {
	w := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne, Summarize: func(_ context.Context, p transcript.Past) (string, error) {
		return fmt.Sprint("s", len(p.Messages)), nil
	}}
	st := state.New(nil)
	talk(t, st, 1, 3)
	require.Equal(t, "(s4) q3 a3", shown(t, w, st))
	data, err := st.Export()
	require.NoError(t, err)
	again, err := state.Import(nil, data)
	require.NoError(t, err)
	never := &transcript.Window{Target: 100, Tokens: countOne}
	require.Equal(t, "(s4) q3 a3", shown(t, never, again))

	one, two := st.Fork(), st.Fork()
	talk(t, one, 4, 4)
	require.Equal(t, "(s2) q4 a4", shown(t, w, one))
	talk(t, two, 5, 6)
	require.Equal(t, "(s4) q6 a6", shown(t, w, two))
	require.Equal(t, "(s4) q3 a3", shown(t, never, st))
	require.NoError(t, st.Join(two, one)) // two begins later
	require.Equal(t, "(s4) q6 a6 q4 a4", shown(t, never, st))
}

// Waiting for a summary ends with the context that Summarize is given.
func TestSummaryGetsTheContext(t *testing.T) {
	w := &transcript.Window{Target: 4, Keep: 2, Tokens: countOne, Summarize: func(ctx context.Context, _ transcript.Past) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}}
	st := state.New(nil)
	talk(t, st, 1, 4)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := w.Messages(ctx, st, 0)
	require.ErrorIs(t, err, transcript.ErrWindow)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// What a framework carries along has other results, and not all that was said: the
// window stays where it is, whoever asks.
func TestWindowOfAnotherConversation(t *testing.T) {
	w, st := &transcript.Window{Target: 8, Keep: 5, Tokens: countOne}, state.New(nil)
	call := state.ToolCall{ID: "c1", Name: "look", Input: `{}`}
	talk(t, st, 1, 2)
	require.NoError(t, state.Messages.Set(st, []state.Message{
		state.UserText("look"), state.ToolCalls(call), state.ToolResult(call, `"seen"`), state.AssistantText("of another agent"), state.AssistantText("a3"),
	}))
	require.Equal(t, "look tool_call tool_result of another agent a3", shown(t, w, st))
	carried := []state.Message{state.SystemText("be kind")}
	for i, m := range state.Messages.GetOr(st, nil) {
		if i == 6 {
			m = state.ToolResult(call, `"1 result"`)
		}
		if i != 7 {
			carried = append(carried, m)
		}
	}
	msgs, err := w.Show(t.Context(), st, carried, 0)
	require.NoError(t, err)
	require.Equal(t, "be kind look tool_call tool_result a3", texts(msgs))
	require.Equal(t, carried[len(carried)-2], msgs[3])
	msgs, err = w.Show(t.Context(), st, nil, 0)
	require.NoError(t, err)
	require.Empty(t, msgs)
}

// A framework may put a call that has waited behind what was said meanwhile. The
// window begins with the call, and that is shown nevertheless.
func TestWindowOfACallThatHasMoved(t *testing.T) {
	w, st := &transcript.Window{Target: 6, Keep: 2, Tokens: countOne}, state.New(nil)
	call := state.ToolCall{ID: "c1", Name: "approve", Input: `{}`}
	look := state.ToolCall{ID: "c0", Name: "look", Input: `{}`}
	talk(t, st, 1, 2)
	require.NoError(t, state.Messages.Set(st, []state.Message{
		state.UserText("pay"), state.ToolCalls(look), state.ToolResult(look, `"seen"`), state.ToolCalls(call),
	}))
	require.Equal(t, "pay tool_call", shown(t, w, st))
	talk(t, st, 4, 4)
	msgs := state.Messages.GetOr(st, nil)
	carried := append(append(msgs[:7:7], msgs[8:]...), msgs[7], state.ToolResult(call, `"yes"`))
	shown, err := w.Show(t.Context(), st, carried, 0)
	require.NoError(t, err)
	require.Equal(t, "pay q4 a4 tool_call tool_result", texts(shown))
}

// What a request costs depends on what is shown, and not on the conversation,
// whether that begins with a question, a call or an answer.
func TestWindowReadsWhatItShows(t *testing.T) {
	msgs := conversation(20_001)
	for keep := 300; keep < 360; keep += 10 {
		st := state.New(nil)
		require.NoError(t, state.Messages.Set(st, msgs))
		w := &transcript.Window{Target: 2000, Keep: keep}
		for _, show := range []func() ([]state.Message, error){
			func() ([]state.Message, error) { return w.Messages(t.Context(), st, 0) },
			func() ([]state.Message, error) { return w.Show(t.Context(), st, msgs, 0) },
		} {
			shown, err := show() // moves it
			require.NoError(t, err)
			require.Less(t, len(shown), 100)
			require.Less(t, testing.AllocsPerRun(1, func() { _, _ = show() }), 2000.0)
		}
	}
}

// Of calls with one id, each is shown with the result that answers it, and without
// that of the other one.
func TestWindowOfCallsWithOneID(t *testing.T) {
	w, st := &transcript.Window{Target: 5, Keep: 2, Tokens: countOne}, state.New(nil)
	twice, other := state.ToolCall{ID: "twice", Name: "search", Input: `{}`}, state.ToolCall{ID: "other", Name: "look", Input: `{}`}
	conversation := []state.Message{
		state.UserText("search"), state.ToolCalls(other, twice), state.AssistantText("again"), state.ToolCalls(twice),
		state.ToolResult(twice, `"first"`), state.ToolResult(other, `"seen"`), state.ToolResult(twice, `"second"`),
	}
	require.NoError(t, state.Messages.Set(st, conversation))
	require.Equal(t, [][]int{{0}, {1, 4, 5}, {2, 3, 6}}, transcript.Groups(conversation))
	require.Equal(t, "search again tool_call tool_result", shown(t, w, st))
	msgs, err := w.Messages(t.Context(), st, 0)
	require.NoError(t, err)
	require.Equal(t, "second", msgs[3].(state.ToolResultMessage).Text())
}

// A conversation that is carried along in another order than that of the State may
// begin where it did, wherever the window is moved to. Show stops then.
func TestWindowThatDoesNotGetShorter(t *testing.T) {
	w, st := &transcript.Window{Target: 3, Keep: 1, Tokens: countOne}, state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.AssistantText("last")}))
	talk(t, st, 1, 2)
	msgs := state.Messages.GetOr(st, nil)
	carried := append(msgs[1:5:5], msgs[0])
	_, err := w.Show(t.Context(), st, carried, 0)
	require.ErrorIs(t, err, transcript.ErrWindow)
	require.ErrorContains(t, err, "nothing more can be left out")

	w.Keep = 2 // a request may have that much more
	shown, err := w.Show(t.Context(), st, carried, 0)
	require.NoError(t, err)
	require.Equal(t, "q1 a1 q2 a2 last", texts(shown))
}

// A call that waits is shown, although the conversation that is carried along has a
// result for it.
func TestWindowShowsCallsThatAreAnsweredForNow(t *testing.T) {
	w, st := &transcript.Window{Target: 6, Keep: 4, Tokens: countOne}, state.New(nil)
	call := state.ToolCall{ID: "c1", Name: "approve", Input: `{}`}
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("pay")}))
	require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}))
	talk(t, st, 1, 3)
	carried, err := transcript.Answer(state.Messages.GetOr(st, nil), state.ToolResult(call, `"It waits."`))
	require.NoError(t, err)
	msgs, err := w.Show(t.Context(), st, carried, 0)
	require.NoError(t, err)
	require.Equal(t, "pay tool_call tool_result q3 a3", texts(msgs))
	require.Equal(t, "pay tool_call q3 a3", shown(t, w, st))
	require.NoError(t, st.History().Answer(state.ToolResult(call, `"yes"`)))
	require.Equal(t, "pay tool_call tool_result q3 a3", shown(t, w, st))
}

// A place is where the window was moved to, and what is shown in front of it.
func TestPlaceOfAWindow(t *testing.T) {
	st := state.New(nil)
	w := &transcript.Window{Target: 6, Keep: 4, Tokens: countOne, Summarize: func(context.Context, transcript.Past) (string, error) { return "so far", nil }}
	require.NoError(t, state.Messages.Set(st, []state.Message{state.SystemText("s")}))
	talk(t, st, 1, 2)
	_, err := w.Messages(t.Context(), st.As("ann"), 0)
	require.NoError(t, err)
	place, err := transcript.PlaceOf(st.As("ann"))
	require.NoError(t, err)
	require.Equal(t, transcript.Place{}, place)

	talk(t, st, 3, 4)
	msgs, err := w.Messages(t.Context(), st.As("ann"), 0)
	require.NoError(t, err)
	place, err = transcript.PlaceOf(st.As("ann").Snapshot())
	require.NoError(t, err)
	require.Equal(t, transcript.Place{Begin: 7, Before: []int{0}, Summary: "so far"}, place)
	require.Equal(t, texts(state.Messages.GetOr(st, nil)[place.Begin:]), texts(msgs[2:]))
	place, err = transcript.PlaceOf(st.As("bob"))
	require.NoError(t, err)
	require.Equal(t, transcript.Place{}, place, "that of another agent")

	messages := &state.Field[[]state.Message]{Name: state.Messages.Name, Read: state.Only("ann"), Write: state.Only("ann")}
	_, err = transcript.PlaceOf(state.New(state.MustSchema(state.Team{"ann": nil, "bob": nil}, messages)).As("bob"))
	require.ErrorIs(t, err, state.ErrDenied)
}
