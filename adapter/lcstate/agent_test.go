package lcstate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/lcstate"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// An agent calls typed tools at the same time, with inputs that the model cannot
// see, and goes on until the model says something. The provider accepts each
// request.
func TestAgent(t *testing.T) {
	each(t, func(t *testing.T, a *lcstate.Agent, script func(...statetest.Reply) *statetest.Model) {
		m := script(
			statetest.Calls(
				state.ToolCall{Name: "refund", Input: `{"amount":12.5}`},
				state.ToolCall{Name: "note", Input: `{"text":"a"}`},
				state.ToolCall{Name: "note", Input: `{"text":"b"}`},
			),
			statetest.Say("Refunded.").Reads("refunded 12.5 of #W1 to [SECRET]"),
			statetest.Say("You are welcome.").Reads("Thanks!"),
		)
		a.Name, a.Tools = "billing", []*tool.Tool{refund, note}
		st := desk(t)
		ctx := state.NewContext(t.Context(), st)
		reply, err := chains.Run(ctx, a, "The keyboard is broken.")
		check(t, err)
		statetest.Equal(t, "Refunded.", reply)
		statetest.Equal(t, []string{"a", "b"}, notes.Or(st, nil))
		reply, err = chains.Run(ctx, a, "Thanks!")
		check(t, err)
		statetest.Equal(t, "You are welcome.", reply)
		statetest.Golden(t, "agent.txt", statetest.Transcript(state.Messages.Or(st, nil)))
		statetest.NoLeak(t, st, "billing", m.Sent(""))
		for _, r := range st.History().Results() {
			statetest.Equal(t, "billing", r.Agent)
		}
	})
}

// The model sees no injected parameter and no tool that its agent may not use. An
// argument for an injected parameter, and a call without the right, are errors
// that it reads.
func TestAgentRights(t *testing.T) {
	for name, want := range map[string]struct{ tools, results string }{
		"billing": {"refund note", "tool \"refund\": bad arguments:\n- \"card\": is not an argument, it is filled in by the program|refunded 1 of #W1 to [SECRET]|ok"},
		"search": {"note", "tool \"refund\": bad arguments:\n- \"card\": is not an argument, it is filled in by the program|" +
			`tool "refund": parameter "card": field "card": read: access denied to agent "search"|ok`},
	} {
		t.Run(name, func(t *testing.T) {
			var offered []string
			var results []string
			a := &lcstate.Agent{Name: name, Tools: []*tool.Tool{refund, note}, LLM: answers(
				func(msgs []llms.MessageContent, opts llms.CallOptions) llms.ContentChoice {
					offered = nil
					for _, t := range opts.Tools {
						offered = append(offered, t.Function.Name)
						schema := fmt.Sprint(t.Function.Parameters)
						if strings.Contains(schema, "card") || strings.Contains(schema, "order") {
							panic(schema)
						}
					}
					if len(msgs) == 2 {
						return llms.ContentChoice{ToolCalls: []llms.ToolCall{
							call("1", "refund", `{"amount":1,"card":"0000"}`),
							call("2", "refund", `{"amount":1}`),
							call("3", "note", `{"text":"ok"}`),
						}}
					}
					for _, m := range msgs[3:] {
						results = append(results, m.Parts[0].(llms.ToolCallResponse).Content)
					}
					return llms.ContentChoice{Content: "Done."}
				})}
			st := desk(t)
			_, err := chains.Run(state.NewContext(t.Context(), st), a, "Refund it.")
			check(t, err)
			statetest.Equal(t, want.tools, strings.Join(offered, " "))
			statetest.Equal(t, want.results, strings.Join(results, "|"))
		})
	}
}

// A call that waits for a person ends the agent. Until there is a result, the
// model is told so in a form that the provider accepts.
func TestAgentSuspends(t *testing.T) {
	each(t, func(t *testing.T, a *lcstate.Agent, script func(...statetest.Reply) *statetest.Model) {
		script(
			statetest.Calls(
				state.ToolCall{Name: "pay", Input: `{"amount":5}`},
				state.ToolCall{Name: "note", Input: `{"text":"a"}`},
			),
			statetest.Say("Please wait.").Reads("There is no result yet."),
			statetest.Say("It is paid.").Reads("paid 5"),
		)
		a.Tools = []*tool.Tool{note, pay}
		st := desk(t)
		ctx := state.NewContext(t.Context(), st)
		_, err := chains.Run(ctx, a, "Pay 5.")
		statetest.Equal(t, true, errors.Is(err, tool.ErrSuspended))
		statetest.Equal(t, []string{"a"}, notes.Or(st, nil))
		_, err = chains.Run(ctx, a, "And now?")
		check(t, err)
		for _, c := range transcript.ShapesOf(state.Messages.Or(st, nil)).Pending() {
			check(t, st.History().Answer(state.ToolResult(c, `"paid 5"`)))
		}
		reply, err := chains.Run(ctx, a, "")
		check(t, err)
		statetest.Equal(t, "It is paid.", reply)
		statetest.Golden(t, "suspends.txt", statetest.Transcript(state.Messages.Or(st, nil)))
	})
}

// What a trim leaves is accepted by the provider, at each step.
func TestAgentTrims(t *testing.T) {
	each(t, func(t *testing.T, a *lcstate.Agent, script func(...statetest.Reply) *statetest.Model) {
		var replies []statetest.Reply
		for i := range 8 {
			replies = append(replies, statetest.Calls(
				state.ToolCall{Name: "note", Input: state.JSON(fmt.Sprintf(`{"text":"a%d"}`, i))},
				state.ToolCall{Name: "note", Input: state.JSON(fmt.Sprintf(`{"text":"b%d"}`, i))},
			).When(func(r statetest.Request) bool { return len(r.Messages) <= 8 }))
		}
		script(append(replies, statetest.Say("Noted."))...)
		a.Tools, a.Trim = []*tool.Tool{note}, transcript.KeepLast(6)
		st := desk(t)
		_, err := chains.Run(state.NewContext(t.Context(), st), a, "Write sixteen notes.")
		check(t, err)
		statetest.Equal(t, 16, len(notes.Or(st, nil)))
		statetest.Equal(t, 1+8*3+1, len(state.Messages.Or(st, nil)))
	})
}

// A tool is offered, called and recorded under its name, also if the provider
// knows it under another one.
func TestAgentRenamesTools(t *testing.T) {
	dotted := tool.Must(tool.New("desk.note", "Write a note.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	}))
	var offered string
	a := &lcstate.Agent{Tools: []*tool.Tool{dotted}, LLM: answers(
		func(msgs []llms.MessageContent, opts llms.CallOptions) llms.ContentChoice {
			offered = opts.Tools[0].Function.Name
			if last := msgs[len(msgs)-1].Parts[0]; last != (llms.TextContent{Text: "Note it."}) {
				statetest.Equal(t, offered, last.(llms.ToolCallResponse).Name)
				return llms.ContentChoice{Content: "Noted."}
			}
			return llms.ContentChoice{ToolCalls: []llms.ToolCall{call("1", offered, object("a"))}}
		})}
	st := desk(t)
	_, err := chains.Run(state.NewContext(t.Context(), st), a, "Note it.")
	check(t, err)
	statetest.Equal(t, transcript.OpenAI.ToolName("desk.note"), offered)
	statetest.Equal(t, `user: "Note it."
assistant calls desk.note {"text":"a"} (call_1)
result of desk.note (call_1): "a"
assistant: "Noted."
`, statetest.Transcript(state.Messages.Or(st, nil)))
}

// An agent that is called by a tool of another agent does not make the open call
// of that one.
func TestAgentAsTool(t *testing.T) {
	st := desk(t)
	search := &lcstate.Agent{Name: "search", LLM: answers(func([]llms.MessageContent, llms.CallOptions) llms.ContentChoice {
		return llms.ContentChoice{Content: "found"}
	})}
	ask := tool.Must(tool.New("ask", "Ask search.", func(ctx context.Context, in struct{}) (string, error) {
		return chains.Run(state.NewContext(ctx, st), search, "")
	}))
	support := &lcstate.Agent{Name: "support", Tools: []*tool.Tool{ask}, LLM: answers(
		func(msgs []llms.MessageContent, _ llms.CallOptions) llms.ContentChoice {
			if last := msgs[len(msgs)-1]; last.Role == llms.ChatMessageTypeHuman {
				return llms.ContentChoice{ToolCalls: []llms.ToolCall{call("1", "ask", "")}}
			}
			return llms.ContentChoice{Content: "done"}
		})}
	reply, err := chains.Run(state.NewContext(t.Context(), st), support, "Search.")
	check(t, err)
	statetest.Equal(t, "done", reply)
	statetest.Golden(t, "as_tool.txt", statetest.Transcript(state.Messages.Or(st, nil)))
}

func TestAgentErrors(t *testing.T) {
	endless := &lcstate.Agent{Tools: []*tool.Tool{note}, MaxIterations: 3, LLM: answers(
		func(msgs []llms.MessageContent, _ llms.CallOptions) llms.ContentChoice {
			return llms.ContentChoice{ToolCalls: []llms.ToolCall{call(fmt.Sprint(len(msgs)), "note", `{"text":"a"}`)}}
		})}
	st := desk(t)
	ctx := state.NewContext(t.Context(), st)
	_, err := chains.Run(ctx, endless, "Write.")
	statetest.Equal(t, true, errors.Is(err, agents.ErrNotFinished))
	statetest.Equal(t, 2, len(notes.Or(st, nil)))

	_, err = chains.Run(t.Context(), endless, "Write.")
	statetest.Equal(t, true, errors.Is(err, lcstate.ErrNoState))
	for _, answer := range []*llms.ContentResponse{nil, {}} {
		_, err = chains.Run(ctx, &lcstate.Agent{LLM: silent{answer: answer}}, "Hello?")
		statetest.Equal(t, "lcstate: the model has returned no choice", fmt.Sprint(err))
	}
	_, err = chains.Call(ctx, endless, map[string]any{"input": 5})
	statetest.Equal(t, "lcstate: the input is a int, not a string", fmt.Sprint(err))
}

// silent is a model that returns one answer.
type silent struct {
	answers
	answer *llms.ContentResponse
}

func (s silent) GenerateContent(
	context.Context, []llms.MessageContent, ...llms.CallOption,
) (*llms.ContentResponse, error) {
	return s.answer, nil
}

// Wherever a process dies, another one goes on with the client of a provider, and
// each payment is made once: the calls of an interrupted step keep their ids.
func TestAgentCrash(t *testing.T) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			crash.Test{
				Open: func(p *crash.Process) *workspace.Options {
					pay := tool.Must(tool.New("pay", "Pay an amount.", func(ctx context.Context, in struct {
						Amount int `json:"amount"`
					}) (string, error) {
						run, _ := workspace.FromContext(ctx)
						made, _ := tool.CallOf(ctx)
						out, err := p.Effect(ctx, "pay", run.ID()+"/"+made.ID, in)
						if err != nil { // only asking again tells whether it was made
							out, err = p.Effect(ctx, "pay", run.ID()+"/"+made.ID, in)
						}
						return string(out), err
					}))
					llm, err := c.open(p.Model(c.format,
						statetest.Calls(
							state.ToolCall{Name: "pay", Input: `{"amount":1}`},
							state.ToolCall{Name: "note", Input: `{"text":"paid"}`},
							state.ToolCall{Name: "pay", Input: `{"amount":2}`},
						),
						statetest.Call("pay", `{"amount":3}`),
						statetest.Say("Paid."),
					))
					if err != nil {
						panic(err)
					}
					a := &lcstate.Agent{Name: "search", LLM: llm, Profile: c.profile, Tools: []*tool.Tool{pay, note}}
					return &workspace.Options{Schema: fields, Pending: workspace.PendingLeave,
						Run: func(ctx context.Context, _ *workspace.Run) error {
							_, err := chains.Run(ctx, a, "")
							return workspace.RetryAfter(err, time.Second)
						}}
				},
				Messages: []workspace.Message{{ID: "1", Content: state.UserText("Pay all.")}},
				Pairs:    10,
			}.Run(t)
		})
	}
}
