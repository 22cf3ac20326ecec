package mcpstate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/mcpstate"
	"github.com/agentstate/state/tool"
)

// BenchmarkGoal measures the speed goals of this module: a step of two calls, on
// a state and with the SDK alone.
func BenchmarkGoal(b *testing.B) {
	for row, variants := range map[string]map[string]func(b *testing.B) (run func(steps int)){
		"mcp-serve":  {"baseline": callOwn, "subject": callServed},
		"mcp-import": {"baseline": stepOwn, "subject": stepImported},
	} {
		for variant, start := range variants {
			for _, n := range []int{10, 50, 200} {
				b.Run(fmt.Sprintf("%s/%s/n=%d", row, variant, n), func(b *testing.B) {
					run := start(b)
					for b.Loop() {
						run(n)
					}
				})
			}
		}
	}
}

type noteInput struct {
	Order string `json:"order"`
	Text  string `json:"text"`
}

type noteOutput struct {
	Note string `json:"note"`
}

func (in noteInput) note() noteOutput { return noteOutput{in.Order + ": " + in.Text} }

// noteArguments are the arguments of a call without the state.
var noteArguments = map[string]any{"order": "#W1", "text": "delivered on Monday"}

func listOf(out string) ([]string, error) { return []string{out}, nil }

// ownServer is a server whose notes are in memory.
func ownServer(took func(noteOutput)) *mcp.Server {
	srv := newServer()
	mcp.AddTool(srv, &mcp.Tool{Name: "note"}, func(_ context.Context, _ *mcp.CallToolRequest, in noteInput) (*mcp.CallToolResult, noteOutput, error) {
		out := in.note()
		took(out)
		return nil, out, nil
	})
	return srv
}

func twoCalls(b *testing.B, s *mcp.ClientSession, args any) {
	for range 2 {
		if r, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: "note", Arguments: args}); err != nil || r.IsError {
			b.Fatal(r, err)
		}
	}
}

func callOwn(b *testing.B) func(steps int) {
	var mu sync.Mutex
	var list []string
	s := connectInMemory(b, ownServer(func(out noteOutput) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, out.Note)
	}))
	return func(steps int) {
		list = nil
		for range steps {
			twoCalls(b, s, noteArguments)
		}
		if len(list) != 2*steps {
			b.Fatal(len(list))
		}
	}
}

func callServed(b *testing.B) func(steps int) {
	st := desk()
	srv := newServer()
	mcpstate.AddTools(srv, mcpstate.Memory(st, func(mcp.Request) (string, error) { return "guest", nil }),
		tool.Must(tool.New("note", "", func(_ context.Context, in noteInput) (noteOutput, error) { return in.note(), nil },
			tool.From(order, "order"), tool.ToFunc(notes, "note", listOf))))
	s := connectInMemory(b, srv)
	return func(steps int) {
		if _, err := notes.Delete(st); err != nil {
			b.Fatal(err)
		}
		for range steps {
			twoCalls(b, s, map[string]any{"text": noteArguments["text"]})
		}
		if state.ListLen(st, notes) != 2*steps {
			b.Fatal(state.ListLen(st, notes))
		}
	}
}

// stepOwn makes the calls of a message as a host without a state does.
func stepOwn(b *testing.B) func(steps int) {
	s := connectInMemory(b, ownServer(func(noteOutput) {}))
	return func(steps int) {
		var list []string
		var conversation []*mcp.CallToolResult
		for range steps {
			results := make([]*mcp.CallToolResult, 2)
			var wg sync.WaitGroup
			for i := range results {
				wg.Go(func() {
					results[i], _ = s.CallTool(b.Context(), &mcp.CallToolParams{Name: "note", Arguments: noteArguments})
				})
			}
			wg.Wait()
			for _, r := range results {
				list = append(list, r.StructuredContent.(map[string]any)["note"].(string))
				conversation = append(conversation, r)
			}
		}
		if len(list) != 2*steps || len(conversation) != 2*steps {
			b.Fatal(len(list))
		}
	}
}

func stepImported(b *testing.B) func(steps int) {
	s := connectInMemory(b, ownServer(func(noteOutput) {}))
	tools, err := mcpstate.Import(b.Context(), s, &mcpstate.ImportOptions{Bind: func(*mcp.Tool) []tool.Option {
		return []tool.Option{tool.From(order, "order"), tool.ToFunc(notes, "note", listOf)}
	}})
	must(err)
	return func(steps int) {
		st := desk()
		guest := st.As("guest")
		for n := range steps {
			var calls []state.ToolCall
			for i := range 2 {
				calls = append(calls, state.ToolCall{ID: fmt.Sprint(n, "_", i), Name: "note", Input: `{"text":"delivered on Monday"}`})
			}
			turn := []state.Message{state.ToolCalls(calls...)}
			for _, r := range ran(tool.Run(b.Context(), guest, tools, calls)) {
				turn = append(turn, r.Message)
			}
			must(state.Messages.Set(guest, turn))
		}
		if state.ListLen(st, notes) != 2*steps || state.ListLen(st, state.Messages) != 3*steps {
			b.Fatal(state.ListLen(st, notes))
		}
	}
}
