package einostate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// What a model is shown of a large result is the same in each request, also in a
// later run of the agent, and names recall for an agent that has it.
func TestLargeResults(t *testing.T) {
	long := strings.Repeat("0123456789abcde\n", 100_000)
	read := tool.Must(tool.New("read", "Reads.", func(context.Context, struct{}) (string, error) { return long, nil }))
	rows := tool.Must(tool.New("rows", "Lists.", func(context.Context, struct{}) ([]string, error) { return strings.Split(long, "\n"), nil }))
	foreign, err := utils.InferTool("foreign", "Reads.", func(context.Context, struct{}) (string, error) { return long, nil })
	must(err)
	for _, recall := range []bool{true, false} {
		st := state.New(nil)
		var sent [][]*schema.Message
		turns := script(calls(call("c1", "read", `{}`), call("c2", "foreign", `{}`), call("c3", "rows", `{}`)), said("done"), said("yes"))
		play := scripted(func(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error) {
			sent = append(sent, slices.Clone(msgs))
			return turns(ctx, msgs, opts...)
		})
		tools := []*tool.Tool{read, rows}
		if recall {
			tools = append(tools, loop.Recall())
		}
		a := agent("any", play, append(einostate.Tools(tools...), foreign), einostate.Middleware("any", &einostate.Options{Window: &transcript.Window{Target: 30_000}}))
		texts, err := runOn(t, st, a)
		must(err)
		if !slices.Contains(texts, "tool: "+long) {
			t.Error("the agent itself has the whole")
		}
		msgs := append(state.Messages.GetOr(st, nil), state.UserText("again"))
		own, err := einostate.FromMessages(msgs...)
		must(err)
		ctx := state.NewContext(t.Context(), st)
		_, err = drain(adk.NewRunner(ctx, adk.RunnerConfig{Agent: a}).Run(ctx, own))
		must(err)
		if len(sent) != 3 {
			t.Fatal(len(sent), "requests")
		}
		results := 0
		for _, m := range transcript.Shown(msgs, recall) {
			r, ok := m.(state.ToolResultMessage)
			if !ok {
				continue
			}
			results++
			for i, request := range sent[1:] {
				if !slices.ContainsFunc(request, func(m *schema.Message) bool {
					return m.Role == schema.Tool && m.ToolCallID == r.Call().ID && m.Content == r.Text()
				}) {
					t.Errorf("request %d does not show %s as other formats do", i, r.Call().Name)
				}
			}
			if len(r.Text()) > 16<<10 || strings.Contains(r.Text(), "The tool recall") != recall {
				t.Errorf("it shows %d bytes", len(r.Text()))
			}
		}
		if results != 3 {
			t.Error(results, "results")
		}
		for _, m := range own {
			if m.Role == schema.Tool && len(m.Content) > 16<<10 {
				t.Error("a conversation of eino has", len(m.Content))
			}
		}
	}
}

// A result that the program has shortened stays as it is.
func TestLargeResultsThatAreShortened(t *testing.T) {
	st := state.New(nil)
	read := tool.Must(tool.New("read", "Reads.", func(context.Context, struct{}) (string, error) { return strings.Repeat("a", 1<<20), nil }))
	var last []*schema.Message
	turns := script(calls(call("c1", "read", `{}`)), said("done"))
	play := scripted(func(ctx context.Context, msgs []*schema.Message, opts ...model.Option) (*schema.Message, error) {
		last = msgs
		return turns(ctx, msgs, opts...)
	})
	_, err := runOn(t, st, agent("any", play, einostate.Tools(read), shortens{&adk.BaseChatModelAgentMiddleware{}}, einostate.Middleware("any", nil)))
	must(err)
	if got := last[len(last)-1].Content; got != "[cleared]" {
		t.Errorf("the model reads %.100q", got)
	}
}

// shortens is a middleware that clears results.
type shortens struct {
	*adk.BaseChatModelAgentMiddleware
}

func (shortens) BeforeModelRewriteState(ctx context.Context, s *adk.ChatModelAgentState, _ *adk.ModelContext) (context.Context, *adk.ChatModelAgentState, error) {
	for i, m := range s.Messages {
		if m.Role == schema.Tool {
			short := *m
			short.Content = "[cleared]"
			s.Messages[i] = &short
		}
	}
	return ctx, s, nil
}
