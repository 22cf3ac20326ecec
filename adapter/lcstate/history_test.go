package lcstate_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/lcstate"
	"github.com/agentstate/state/provider/providertest"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// places are where a conversation is kept. The function do works on it, on SQLite
// each time in another Manager, as in another process.
var places = map[string]func(t *testing.T) (do func(func(ctx context.Context))){
	"memory": func(t *testing.T) func(func(context.Context)) {
		st := state.New(nil)
		return func(fn func(context.Context)) { fn(state.NewContext(t.Context(), st)) }
	},
	"sqlite": func(t *testing.T) func(func(context.Context)) {
		file := filepath.Join(t.TempDir(), "desk.db")
		return func(fn func(context.Context)) {
			db, err := sqlitestore.Open(t.Context(), file, nil)
			check(t, err)
			m, err := workspace.Open(t.Context(), db, nil)
			check(t, err)
			check(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
				fn(state.NewContext(t.Context(), w.State()))
				return nil
			}))
			check(t, m.Close())
			check(t, db.Close())
		}
	},
}

func eachPlace(t *testing.T, test func(t *testing.T, do func(func(context.Context)))) {
	for name, open := range places {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// everything has each type of message.
var everything = []llms.ChatMessage{
	llms.SystemChatMessage{Content: "You are a clerk."},
	llms.HumanChatMessage{Content: "Where is \"it\"?\n<b>größer</b>"},
	llms.AIChatMessage{Content: "I look.", ReasoningContent: "hm", ToolCalls: []llms.ToolCall{
		call("c1", "look_up", `{"topic":"delivery","n":9007199254740993}`), call("c2", "look_up", `{"topic":`),
	}},
	llms.ToolChatMessage{ID: "c1", Content: "It was delivered."},
	llms.ToolChatMessage{ID: "c2", Content: `{"error":"bad"}`},
	llms.AIChatMessage{Content: "Delivered."},
	llms.AIChatMessage{ToolCalls: []llms.ToolCall{call("c3", "look_up", `{}`)}},
	llms.ToolChatMessage{ID: "c3"},
	llms.AIChatMessage{FunctionCall: &llms.FunctionCall{Name: "old", Arguments: `{"a":1.0}`}},
	llms.FunctionChatMessage{Name: "old", Content: "5"},
	llms.AIChatMessage{Content: "", ReasoningContent: "only thoughts"},
	llms.GenericChatMessage{Role: "moderator", Content: "Order!", Name: "Bo"},
	llms.GenericChatMessage{Role: "user", Content: "Yes.", Name: "Ann"},
	llms.HumanChatMessage{Content: ""},
	llms.AIChatMessage{Content: ""},
}

func TestMessageFormat(t *testing.T) { providertest.RunMessages(t, lcstate.Format, everything) }

// The rules of schema.ChatMessageHistory, as the histories of langchaingo and
// their tests have them. There is no suite for other packages.
func TestHistory(t *testing.T) {
	eachPlace(t, func(t *testing.T, do func(func(context.Context))) {
		h := lcstate.History("")
		want := func(want []llms.ChatMessage) {
			t.Helper()
			do(func(ctx context.Context) {
				got, err := h.Messages(ctx)
				check(t, err)
				statetest.Equal(t, want, got)
				if len(got) > 0 { // the caller's own
					got[0] = llms.HumanChatMessage{Content: "changed"}
				}
			})
		}
		want([]llms.ChatMessage{})
		do(func(ctx context.Context) { check(t, h.AddAIMessage(ctx, "foo")) })
		do(func(ctx context.Context) { check(t, h.AddUserMessage(ctx, "bar")) })
		want([]llms.ChatMessage{llms.AIChatMessage{Content: "foo"}, llms.HumanChatMessage{Content: "bar"}})
		do(func(ctx context.Context) { check(t, h.SetMessages(ctx, everything[:3])) })
		want(everything[:3])
		for _, m := range everything[3:] {
			do(func(ctx context.Context) { check(t, h.AddMessage(ctx, m)) })
		}
		want(everything)
		do(func(ctx context.Context) { check(t, h.Clear(ctx)) })
		want([]llms.ChatMessage{})
	})
}

// The rules of schema.Memory, as ConversationBuffer and its tests have them.
func TestMemory(t *testing.T) {
	eachPlace(t, func(t *testing.T, do func(func(context.Context))) {
		m := lcstate.Memory("", nil)
		list := lcstate.Memory("", nil, memory.WithReturnMessages(true), memory.WithMemoryKey("talk"),
			memory.WithInputKey("in"), memory.WithOutputKey("out"))
		want := func(text string, msgs []llms.ChatMessage) {
			t.Helper()
			do(func(ctx context.Context) {
				statetest.Equal(t, []string{"talk"}, list.MemoryVariables(ctx))
				statetest.Equal(t, "history", m.GetMemoryKey(ctx))
				got, err := m.LoadMemoryVariables(ctx, map[string]any{})
				check(t, err)
				statetest.Equal(t, map[string]any{"history": text}, got)
				got, err = list.LoadMemoryVariables(ctx, map[string]any{"in": "new", "x": 1})
				check(t, err)
				statetest.Equal(t, map[string]any{"talk": msgs}, got)
			})
		}
		want("", []llms.ChatMessage{})
		do(func(ctx context.Context) {
			check(t, m.SaveContext(ctx, map[string]any{"foo": "bar"}, map[string]any{"bar": "foo"}))
		})
		said := []llms.ChatMessage{llms.HumanChatMessage{Content: "bar"}, llms.AIChatMessage{Content: "foo"}}
		want("Human: bar\nAI: foo", said)
		do(func(ctx context.Context) {
			for _, c := range []struct{ in, out map[string]any }{
				{map[string]any{"in": "a", "x": 1}, map[string]any{"y": 1}},
				{map[string]any{"x": 1}, map[string]any{"out": "b"}},
				{map[string]any{"in": 5}, map[string]any{"out": "b"}},
			} {
				if err := list.SaveContext(ctx, c.in, c.out); err == nil {
					t.Error("no error for", c)
				}
			}
			check(t, list.SaveContext(ctx, map[string]any{"in": "a", "x": 1}, map[string]any{"out": "b", "y": 1}))
		})
		said = append(said, llms.HumanChatMessage{Content: "a"}, llms.AIChatMessage{Content: "b"})
		want("Human: bar\nAI: foo\nHuman: a\nAI: b", said)
		do(func(ctx context.Context) { check(t, m.Clear(ctx)) })
		want("", []llms.ChatMessage{})
	})
}

// As one text, a conversation has the calls of tools.
func TestMemoryShowsCalls(t *testing.T) {
	ctx := state.NewContext(t.Context(), state.New(nil))
	check(t, lcstate.History("").SetMessages(ctx, everything[1:6]))
	got, err := lcstate.Memory("", nil).LoadMemoryVariables(ctx, nil)
	check(t, err)
	statetest.Golden(t, "memory.txt", got["history"].(string)+"\n")
}

// A message that is in the conversation already, as that of a run, is neither
// shown nor added again.
func TestMemoryInRun(t *testing.T) {
	st := state.New(nil)
	ctx := state.NewContext(t.Context(), st)
	check(t, state.Messages.Set(st, []state.Message{state.UserText("Hello!")}))
	m, in := lcstate.Memory("", nil), map[string]any{"input": "Hello!"}
	got, err := m.LoadMemoryVariables(ctx, in)
	check(t, err)
	statetest.Equal(t, map[string]any{"history": ""}, got)
	check(t, m.SaveContext(ctx, in, map[string]any{"text": "Hi."}))
	statetest.Equal(t, []state.Message{state.UserText("Hello!"), state.AssistantText("Hi.")}, state.Messages.Or(st, nil))
}

// An agent without the right to read the conversation has no history.
func TestHistoryRights(t *testing.T) {
	talk := &state.Field[[]state.Message]{
		Name: state.Messages.Name, Read: state.Only("support"), Write: state.Only("support"),
	}
	st := state.New(state.MustSchema(talk, state.Team{"support": {"search"}}))
	ctx := state.NewContext(t.Context(), st)
	check(t, lcstate.History("support").AddUserMessage(ctx, "Hello!"))
	_, err := lcstate.History("search").Messages(ctx)
	denied(t, err)
	denied(t, lcstate.History("search").AddAIMessage(ctx, "Hi."))
	_, err = lcstate.Memory("search", transcript.KeepLast(4)).LoadMemoryVariables(ctx, nil)
	denied(t, err)
	statetest.Equal(t, 1, len(state.Messages.Or(st, nil)))
}
