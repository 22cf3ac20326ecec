package transcript_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// conversation returns n messages of a long run: a system message, then rounds of
// a user's text, a turn that calls two tools, their results and an answer.
func conversation(n int) []state.Message {
	msgs := []state.Message{state.SystemText("You are a travel agent.")}
	for round := 0; len(msgs)+5 <= n; round++ {
		calls := []state.ToolCall{
			{ID: fmt.Sprintf("call_%d_a", round), Name: "flights", Input: `{"from":"OSL","to":"FCO"}`},
			{ID: fmt.Sprintf("call_%d_b", round), Name: "fares", Input: `{"flight":"DY1872"}`},
		}
		msgs = append(msgs,
			state.UserText("And the day after?"),
			state.ToolCalls(calls...),
			state.ToolResult(calls[0], `["DY1872","AZ1483"]`),
			state.ToolResult(calls[1], `"99.00"`),
			state.AssistantText("That would be 99.00."))
	}
	for len(msgs) < n {
		msgs = append(msgs, state.UserText("Thank you."))
	}
	return msgs
}

// ownConversationOf returns the same conversation in messages of a framework.
func ownConversationOf(msgs []state.Message) []*chatMessage {
	own := make([]*chatMessage, len(msgs))
	for i, m := range msgs {
		own[i] = &chatMessage{Role: m.Role()}
		switch m := m.(type) {
		case state.TextMessage:
			own[i].Content = m.Text()
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				own[i].ToolCalls = append(own[i].ToolCalls, chatCall{c.ID, c.Name, string(c.Input)})
			}
		case state.ToolResultMessage:
			own[i].Role, own[i].ToolCallID, own[i].Content = "tool", m.Call().ID, m.Text()
		}
	}
	return own
}

// BenchmarkGoal measures the speed goals of this package: the work before each
// request is linear in the messages.
func BenchmarkGoal(b *testing.B) {
	for _, row := range []struct {
		name string
		run  func(msgs []state.Message) bool
	}{
		{"transcript-check", func(msgs []state.Message) bool {
			return len(transcript.Check(msgs, transcript.Anthropic)) == 0
		}},
		{"transcript-keep-last", func(msgs []state.Message) bool {
			return len(transcript.KeepLast(len(msgs)/2)(msgs)) > 0
		}},
		{"transcript-repair", func(msgs []state.Message) bool {
			_, changes := transcript.Repair(msgs, transcript.Anthropic, transcript.Policy{})
			return len(changes) == 0
		}},
	} {
		b.Run(row.name, func(b *testing.B) {
			// As many conversations take turns as have the same number of messages in
			// all: short ones must not seem fast for being in a cache still.
			const all = 100_000
			for n := 100; n <= all; n *= 10 {
				b.Run("subject/n="+strconv.Itoa(n), func(b *testing.B) {
					talks := make([][]state.Message, all/n)
					for i := range talks {
						talks[i] = conversation(n)
					}
					runtime.GC() // what the making of the messages left
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						if !row.run(talks[i%len(talks)]) {
							b.Fatal("another result than expected")
						}
					}
				})
			}
		})
	}

	// What a framework's own messages cost, and what they cost if they are
	// messages of package state already.
	const n = 2_000
	msgs := conversation(n)
	own := ownConversationOf(msgs)
	for _, row := range []struct {
		name              string
		baseline, subject func() bool
	}{
		{"transcript-own-keep-last", func() bool {
			return len(transcript.KeepLast(n/2)(msgs)) > 0
		}, func() bool {
			kept := transcript.ShapesFunc(own, chatShape).KeepLast(n / 2)
			return len(transcript.Select(own, kept)) > 0
		}},
	} {
		b.Run(row.name, func(b *testing.B) {
			measure := func(b *testing.B, run func() bool) {
				b.ReportAllocs()
				for b.Loop() {
					if !run() {
						b.Fatal("another result than expected")
					}
				}
			}
			b.Run("baseline", func(b *testing.B) { measure(b, row.baseline) })
			b.Run("subject", func(b *testing.B) { measure(b, row.subject) })
		})
	}
}

// BenchmarkWindow asks for what a model is shown of the last messages of 100 000,
// after a new one: of those of the State, and of those that a framework carries
// along.
func BenchmarkWindow(b *testing.B) {
	texts := make([]state.Message, 100_000)
	for i := range texts {
		texts[i] = state.UserText(fmt.Sprintf("message %d: %s", i, strings.Repeat("word ", 20)))
	}
	for name, msgs := range map[string][]state.Message{"texts": texts, "calls": conversation(100_001)} {
		st := state.New(nil)
		require.NoError(b, state.Messages.Set(st, msgs))
		w := &transcript.Window{Target: 4_000, Keep: 2_000}
		_, err := w.Messages(b.Context(), st, 0)
		require.NoError(b, err)
		require.NoError(b, state.Messages.Set(st, []state.Message{state.UserText("And now?")}))
		msgs := state.Messages.GetOr(st, nil)
		for from, show := range map[string]func() ([]state.Message, error){
			"stored":  func() ([]state.Message, error) { return w.Messages(b.Context(), st, 0) },
			"carried": func() ([]state.Message, error) { return w.Show(b.Context(), st, msgs, 0) },
		} {
			b.Run(name+"/"+from, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					shown, err := show()
					if err != nil || len(shown) > 300 {
						b.Fatal(len(shown), err)
					}
				}
			})
		}
	}
}
