package transcript_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// hostile are conversations of about n messages or calls for which an algorithm
// that looks at a message once for each other message is quadratic.
var hostile = map[string]func(n int) []state.Message{
	"calls without results": func(n int) (msgs []state.Message) {
		for i := range n {
			msgs = append(msgs, state.ToolCalls(call(i)))
		}
		return msgs
	},
	"results in reverse order": func(n int) (msgs []state.Message) {
		for i := range n / 3 {
			msgs = append(msgs, state.ToolCalls(call(i)), state.UserText("u"))
		}
		for i := range n / 3 {
			msgs = append(msgs, state.ToolResult(call(n/3-1-i), "1"))
		}
		return msgs
	},
	"messages of many calls, every other answered": func(n int) (msgs []state.Message) {
		for calls := range slices.Chunk(callsTo(n), 250) {
			msgs = append(msgs, state.ToolCalls(calls...))
			for i := 0; i < len(calls); i += 2 {
				msgs = append(msgs, state.ToolResult(calls[i], "1"))
			}
		}
		return msgs
	},
	"one id, many names": func(n int) (msgs []state.Message) {
		for i := range n / 2 {
			msgs = append(msgs, state.ToolCalls(state.ToolCall{ID: "1", Name: fmt.Sprint(i), Input: "{}"}))
		}
		for i := range n / 2 {
			msgs = append(msgs, state.ToolResult(state.ToolCall{ID: "1", Name: fmt.Sprint(n/2 - i)}, "1"))
		}
		return msgs
	},
	"one id again and again": func(n int) (msgs []state.Message) {
		for i := range n / 3 {
			msgs = append(msgs, state.UserText("u"), state.ToolCalls(call(1)))
			if i%2 == 0 {
				msgs = append(msgs, state.ToolResult(call(1), "1"))
			}
		}
		return msgs
	},
	"calls without ids": func(n int) (msgs []state.Message) {
		for range n / 2 {
			msgs = append(msgs, state.ToolCalls(state.ToolCall{Name: "f", Input: "{}"}))
		}
		for range n / 3 {
			msgs = append(msgs, state.ToolResult(state.ToolCall{Name: "f"}, "1"))
		}
		return msgs
	},
	"ids that are too long": func(n int) (msgs []state.Message) {
		long := strings.Repeat("x", 100)
		for i := range n / 2 {
			c := state.ToolCall{ID: long + fmt.Sprint(i), Name: long + fmt.Sprint(i), Input: "{}"}
			msgs = append(msgs, state.ToolCalls(c), state.ToolResult(c, "1"))
		}
		return msgs
	},
	"reasoning and calls that wait": func(n int) (msgs []state.Message) {
		for range n {
			msgs = append(msgs, madeOf("assistant", `{"type":"thinking","thinking":"hm","signature":"x"}`))
		}
		for calls := range slices.Chunk(callsTo(n), 250) {
			msgs = append(msgs, state.ToolCalls(calls...))
		}
		return msgs
	},
	"texts after results without calls": func(n int) (msgs []state.Message) {
		for i := range n / 2 {
			msgs = append(msgs, state.ToolResult(call(i), "1"))
		}
		for range n / 2 {
			msgs = append(msgs, state.AssistantText("a"))
		}
		return msgs
	},
	"one request that is a large group": func(n int) (msgs []state.Message) {
		for i := range n / 2 {
			msgs = append(msgs, withMember(state.ToolResult(call(i), "1"), `"anthropic":{"role":"user","joined":true}`))
		}
		for range n / 2 {
			msgs = append(msgs, state.AssistantText("a"))
		}
		return msgs
	},
	"one entry": func(n int) (msgs []state.Message) {
		for i := range n / 2 {
			msgs = append(msgs,
				withMember(state.AssistantText(""), `"openai":{"joined":true}`),
				withMember(state.ToolCalls(call(i)), `"openai":{"joined":true}`))
		}
		return msgs
	},
	"a chain of references": func(n int) (msgs []state.Message) {
		for i := range n {
			msgs = append(msgs,
				madeOf("assistant", state.JSON(fmt.Sprintf(`{"type":"server_tool_use","id":"s%d","name":"f","input":{}}`, i))),
				madeOf("assistant", state.JSON(fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":"s%d","content":[]}`, i/2))))
		}
		return msgs
	},
	"nothing but empty messages": func(n int) (msgs []state.Message) {
		for i := range n / 4 {
			msgs = append(msgs, nil, state.UserText(""), state.AssistantText(""), state.Text(fmt.Sprint("role", i), " "))
		}
		return msgs
	},
	"what is not sent": func(n int) (msgs []state.Message) {
		item, err := state.DecodeMessage([]byte(`{"type":"gemini.other","role":"assistant","item":{}}`))
		if err != nil {
			panic(err)
		}
		for i := range n / 4 {
			msgs = append(msgs, state.ToolCalls(call(i)), item, item)
		}
		for i := range n / 4 {
			msgs = append(msgs, state.ToolResult(call(i), "1"))
		}
		return msgs
	},
}

func call(i int) state.ToolCall {
	return state.ToolCall{ID: "call_" + strconv.Itoa(i), Name: "f", Input: "{}"}
}

func callsTo(n int) []state.ToolCall {
	calls := make([]state.ToolCall, n)
	for i := range calls {
		calls[i] = call(i)
	}
	return calls
}

// madeOf and withMember panic on an error, which is a fault of the test.
func madeOf(role string, parts ...state.JSON) state.Message {
	m, err := state.Parts(role, parts...)
	if err != nil {
		panic(err)
	}
	return m
}

func withMember(m state.Message, member string) state.Message {
	decoded, err := state.DecodeMessage([]byte(strings.TrimSuffix(string(m.Raw()), "}") + "," + member + "}"))
	if err != nil {
		panic(err)
	}
	return decoded
}

// useEverything calls all functions of the package with a conversation.
func useEverything(t *testing.T, msgs []state.Message) {
	n := len(msgs)
	open := transcript.Pending(msgs)
	var answers []state.ToolResultMessage
	for i, c := range slices.Backward(open) {
		if i%4 > 0 {
			answers = append(answers, state.ToolResult(c, "1"))
		}
	}
	_, err := transcript.Answer(msgs, answers...)
	require.NoError(t, err)
	for range transcript.ShapesOf(msgs).Pending(open...) {
	}
	transcript.KeepLast(n / 4)(msgs)
	require.NotEmpty(t, transcript.ShapesOf(msgs).KeepLast(0))
	for _, profile := range []transcript.Profile{
		{}, transcript.OpenAI, transcript.OpenAIResponses, transcript.Anthropic, transcript.Gemini,
	} {
		transcript.Repair(msgs, profile, transcript.Policy{AnswerCalls: true, Suspended: open[:len(open)/2]})
		transcript.Repair(msgs, profile, transcript.Policy{KeepResults: true})
	}
}

func TestWorkIsLinear(t *testing.T) {
	effort.Cost(t)
	work := testkit.Work{Packages: ".", Size: 250, More: 16, Cases: map[string]func(*testing.T, int){}}
	for name, conversation := range hostile {
		work.Cases[name] = func(t *testing.T, n int) { useEverything(t, conversation(n)) }
	}
	work.Linear(t)
}

// useWindow moves a window through a conversation, and finds it again when calls
// have been answered, and when messages have been dropped.
func useWindow(t *testing.T, msgs []state.Message) {
	msgs = slices.DeleteFunc(msgs, func(m state.Message) bool { return m == nil })
	window := &transcript.Window{Target: len(msgs) / 2, Keep: len(msgs) / 4, Tokens: func(state.Message) int { return 1 }}
	st := state.New(state.MustSchema(state.Limits{ValueBytes: -1}))
	show := func(msgs []state.Message) {
		require.NoError(t, state.Messages.Replace(st, msgs))
		for range 2 {
			if _, err := window.Messages(t.Context(), st, 0); err != nil {
				require.ErrorIs(t, err, transcript.ErrWindow)
			}
		}
		_, err := transcript.PlaceOf(st)
		require.NoError(t, err)
		if _, err = window.Show(t.Context(), st, msgs, 0); err != nil {
			require.ErrorIs(t, err, transcript.ErrWindow)
		}
	}
	show(msgs)
	show(append(msgs, state.UserText("and now?")))
	var answers []state.ToolResultMessage
	for i, c := range transcript.Pending(msgs) {
		if i%3 == 0 {
			answers = append(answers, state.ToolResult(c, "1"))
		}
	}
	answered, err := transcript.Answer(msgs, answers...)
	require.NoError(t, err)
	show(answered)
	var rest []state.Message
	for i, m := range answered {
		if i%4 > 0 {
			rest = append(rest, m)
		}
	}
	show(rest)
}

// The work of a Window is proportional to the conversation, however many calls
// are open, and whatever has become of the messages that it shows.
func TestWorkOfAWindowIsLinear(t *testing.T) {
	effort.Cost(t)
	work := testkit.Work{Packages: ".", Size: 4000, More: 4, Cases: map[string]func(*testing.T, int){
		"open calls between questions": func(t *testing.T, n int) {
			var msgs []state.Message
			for i := range n / 3 {
				msgs = append(msgs, state.UserText(fmt.Sprint("question ", i)), state.ToolCalls(call(i)), state.AssistantText("answer"))
			}
			useWindow(t, msgs)
		},
	}}
	for name, conversation := range hostile {
		work.Cases[name] = func(t *testing.T, n int) { useWindow(t, conversation(n)) }
	}
	work.Linear(t)
}

func TestCheckDoesNotCopyCalls(t *testing.T) {
	effort.Cost(t)
	allocations := func(n int) float64 {
		msgs := conversation(n)
		return testing.AllocsPerRun(10, func() { require.Empty(t, transcript.Check(msgs, transcript.Anthropic)) })
	}
	require.Less(t, allocations(1000)-allocations(100), 100.0, "fewer than one for each of 180 messages with calls")
}
