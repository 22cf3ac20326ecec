package crash_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/looptest"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// keyed returns an agent that refunds with a key.
func keyed(key func(ctx context.Context, run *workspace.Run, in refundIn) string) func(p *crash.Process) *workspace.Options {
	return func(p *crash.Process) *workspace.Options {
		m := p.Model(provider.OpenAI, statetest.Call("refund", `{"amount":129.9}`), statetest.Say("Refunded."))
		tools := func(run *workspace.Run) []*tool.Tool {
			return []*tool.Tool{tool.Must(tool.New("refund", "Refunds.",
				func(ctx context.Context, in refundIn) (map[string]float64, error) {
					_, err := looptest.Retried(ctx, p, "refund", key(ctx, run, in), in)
					return map[string]float64{"refunded": in.Amount}, err
				}, tool.To(refunded, "refunded")))}
		}
		return &workspace.Options{Schema: crashSchema, Run: deskLoop{m, tools}.answer}
	}
}

func soundKey(ctx context.Context, _ *workspace.Run, _ refundIn) string {
	call, _ := tool.CallOf(ctx)
	return call.Key
}

// wrongKey is a program whose mistake is its key.
func wrongKey(key func(ctx context.Context, run *workspace.Run, in refundIn) string) func(t *testing.T, mistake bool) {
	return func(t *testing.T, mistake bool) {
		if !mistake {
			key = soundKey
		}
		crash.Test{Open: keyed(key), Messages: keyboard, Pairs: -1}.Run(t)
	}
}

// agent runs a function as Options.Run, which may have a mistake.
func agent(
	run func(ctx context.Context, p *crash.Process, run *workspace.Run, mistake bool) error, ignore ...string,
) func(t *testing.T, mistake bool) {
	return func(t *testing.T, mistake bool) {
		crash.Test{
			Open: func(p *crash.Process) *workspace.Options {
				return &workspace.Options{Schema: crashSchema, TTL: 10 * time.Second, Run: func(ctx context.Context, r *workspace.Run) error {
					return run(ctx, p, r, mistake)
				}}
			},
			Messages: keyboard, Pairs: -1, Ignore: ignore,
		}.Run(t)
	}
}

// leavesCallOpen ends with a call that nobody answers.
func leavesCallOpen(t *testing.T, mistake bool) {
	crash.Test{
		Open: func(p *crash.Process) *workspace.Options {
			m := p.Model(provider.OpenAI, statetest.Call("refund", `{"amount":129.9}`))
			return &workspace.Options{Schema: crashSchema, Run: func(ctx context.Context, run *workspace.Run) error {
				r, err := m.Next(ctx, "desk", state.Messages.GetOr(run.State(), nil))
				if err != nil {
					return workspace.RetryAfter(err, time.Second)
				}
				h := run.State().History()
				if err := h.Append(r); err != nil || mistake {
					return err
				}
				return h.Answer(state.ToolResult(r.Output[0].(state.ToolCallMessage).Calls()[0], "true"))
			}}
		},
		Messages: keyboard, Pairs: -1,
	}.Run(t)
}

// repeatsUser says again what the user has said.
func repeatsUser(ctx context.Context, _ *crash.Process, run *workspace.Run, mistake bool) error {
	if mistake && run.Attempt() > 0 {
		if err := state.Messages.Set(run.State(), []state.Message{run.Message().Content}); err != nil {
			return err
		}
	}
	return run.Commit(ctx)
}

// losesUser begins a conversation anew.
func losesUser(ctx context.Context, _ *crash.Process, run *workspace.Run, mistake bool) error {
	if mistake && run.Attempt() > 0 {
		if _, err := state.Messages.Delete(run.State()); err != nil {
			return err
		}
	}
	return run.Commit(ctx)
}

var variable atomic.Int64

// countsOutside has a variable that outlives its processes.
func countsOutside(_ context.Context, _ *crash.Process, run *workspace.Run, mistake bool) error {
	n := 1.0
	if mistake {
		n = float64(variable.Add(1))
	}
	return refunded.Replace(run.State(), n)
}

// chosenKey refunds with a key that it chooses first and stores. commit stores
// it before the effect, or does not.
func chosenKey(ctx context.Context, p *crash.Process, run *workspace.Run, commit func() error) error {
	st := run.State()
	key := time.Now().Format(time.RFC3339)
	if stored := notes.GetOr(st, nil); len(stored) > 0 {
		key = stored[0]
	} else if err := notes.Set(st, []string{key}); err != nil {
		return err
	}
	if err := commit(); err != nil {
		return err
	}
	_, err := p.Effect(context.WithoutCancel(ctx), "refund", key, refundIn{10})
	if err != nil {
		return workspace.RetryAfter(err, time.Second)
	}
	return run.Commit(ctx)
}

func ignoresCommit(ctx context.Context, p *crash.Process, run *workspace.Run, mistake bool) error {
	return chosenKey(ctx, p, run, func() error {
		if err := run.Commit(ctx); err != nil && !mistake {
			return err
		}
		return nil
	})
}

func actsBeforeItDecides(ctx context.Context, p *crash.Process, run *workspace.Run, mistake bool) error {
	return chosenKey(ctx, p, run, func() error {
		if mistake {
			return nil // the next commit will store it
		}
		return run.Commit(ctx)
	})
}

func triesAgainWithNewKey(ctx context.Context, p *crash.Process, run *workspace.Run, mistake bool) error {
	for try := 1; ; try++ {
		key := run.ID()
		if mistake {
			key = fmt.Sprint(run.ID(), "/", try)
		}
		_, err := p.Effect(ctx, "refund", key, refundIn{10})
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// countsInProcess makes two steps and counts them.
func countsInProcess(t *testing.T, mistake bool) {
	crash.Test{
		Open: func(p *crash.Process) *workspace.Options {
			steps := 0
			return &workspace.Options{Schema: crashSchema, Run: func(ctx context.Context, run *workspace.Run) error {
				st := run.State()
				for i := len(notes.GetOr(st, nil)); i < 2; i++ {
					if _, err := looptest.Retried(ctx, p, "step", fmt.Sprint(run.ID(), "/", i), i); err != nil {
						return err
					}
					steps++
					if err := notes.Set(st, []string{fmt.Sprint("step ", i)}); err != nil {
						return err
					}
					if err := run.Commit(ctx); err != nil {
						return err
					}
				}
				if !mistake {
					steps = len(notes.GetOr(st, nil))
				}
				return refunded.Replace(st, float64(steps))
			}}
		},
		Messages: keyboard, Pairs: -1,
	}.Run(t)
}

func addsAgain(ctx context.Context, _ *crash.Process, run *workspace.Run, mistake bool) error {
	st := run.State()
	if mistake || !refunded.Has(st) {
		if err := refunded.Set(st, 10); err != nil {
			return err
		}
		if err := run.Commit(ctx); err != nil {
			return err
		}
	}
	return notes.Replace(st, []string{"refunded"})
}

func asksOtherwiseAgain(ctx context.Context, p *crash.Process, run *workspace.Run, mistake bool) error {
	amount := 10.0
	if mistake {
		amount += float64(run.Attempt())
	}
	_, err := retriedOnce(ctx, p, run.ID(), refundIn{amount})
	return err
}

// retriedOnce makes a refund, again only if its outcome is unknown.
func retriedOnce(ctx context.Context, p *crash.Process, key string, in refundIn) (state.JSON, error) {
	for {
		out, err := p.Effect(ctx, "refund", key, in)
		if err == nil || ctx.Err() != nil || strings.Contains(err.Error(), "another input") {
			return out, err
		}
	}
}

// escalates reports a run that takes long. A holder that stood still takes long,
// and no longer holds the run: a commit says so.
func escalates(ctx context.Context, p *crash.Process, run *workspace.Run, mistake bool) error {
	began := time.Now()
	_, err := looptest.Retried(ctx, p, "refund", run.ID(), refundIn{10})
	if time.Since(began) > 5*time.Second {
		if mistake {
			ctx = context.WithoutCancel(ctx)
		} else if err := errors.Join(run.Memory().Set("escalated", "true"), run.Commit(ctx)); err != nil {
			return err
		}
		_, err = p.Effect(ctx, "escalate", run.ID(), "the refund takes long")
	}
	return err
}

// asksForTheCallAgain answers a call that a dead process has left open with the
// error of Repair. The model makes it once more, with another id, which is no
// key of what the call does. A refund that takes long is given up, and may still
// arrive.
func asksForTheCallAgain(t *testing.T, mistake bool) {
	crash.Test{
		Open: func(p *crash.Process) *workspace.Options {
			m := p.Model(provider.OpenAI, statetest.Call("refund", `{"amount":129.9}`), statetest.Say("Refunded."))
			return &workspace.Options{Schema: crashSchema, Run: func(ctx context.Context, run *workspace.Run) error {
				history := run.State().History()
				for {
					said := state.Messages.GetOr(run.State(), nil)
					accepted, _ := transcript.Repair(said, transcript.OpenAI, transcript.Policy{AnswerCalls: true})
					for _, failed := range accepted[len(said):] {
						if err := history.Answer(failed.(state.ToolResultMessage)); err != nil {
							return err
						}
					}
					r, err := m.Next(ctx, "desk", accepted)
					if err != nil {
						return workspace.RetryAfter(err, time.Second)
					}
					err = history.Append(r)
					calls, ok := r.Output[0].(state.ToolCallMessage)
					if err != nil || !ok {
						return err
					}
					if err := run.Commit(ctx); err != nil {
						return err
					}
					call := calls.Calls()[0]
					key := run.ID() + "/" + string(call.Input)
					if mistake {
						key = run.ID() + "/" + call.ID
					}
					try, cancel := context.WithTimeout(ctx, 5*time.Second)
					_, err = p.Effect(try, "refund", key, refundIn{129.9})
					cancel()
					if err != nil {
						return workspace.RetryAfter(err, time.Second)
					}
					if err := errors.Join(history.Answer(state.ToolResult(call, "true")), run.Commit(ctx)); err != nil {
						return err
					}
				}
			}}
		},
		Messages: keyboard, Pairs: -1,
	}.Run(t)
}

// makesAnsweredCallsAgain makes a call, and all calls again in a later attempt. A
// service that drops repeated keys hides it.
func makesAnsweredCallsAgain(ctx context.Context, p *crash.Process, run *workspace.Run, mistake bool) error {
	st := run.State()
	pay := tool.Must(tool.New("refund", "Refunds.", func(ctx context.Context, in refundIn) (string, error) {
		_, err := looptest.Retried(ctx, p, "refund", soundKey(ctx, run, in), in)
		return "done", err
	}))
	if st.History().Len() == 0 {
		said := state.ToolCalls(state.ToolCall{ID: "call_1", Name: "refund", Input: `{"amount":10}`})
		if err := errors.Join(st.History().Append(state.InferenceResult{Output: []state.Message{said}}), run.Commit(ctx)); err != nil {
			return err
		}
	}
	calls := st.History().Pending()
	if r, ok := st.History().Last(); ok && mistake && run.Attempt() > 0 {
		calls = r.Output[0].(state.ToolCallMessage).Calls()
	}
	step, err := tool.BeginStep(ctx, st, []*tool.Tool{pay}, calls)
	if err != nil {
		return err
	}
	if step.Run(ctx); len(st.History().Pending()) > 0 {
		_, err = step.Answer()
	}
	return errors.Join(err, run.Commit(ctx))
}

func init() {
	programs = append(programs,
		mistakes.Program{Row: 20, Part: "crash", Name: "no key", Words: []string{"effect refund was made 2 times, want 1: it has no key", "again: go test -run '^TestBroken$/"},
			Run: wrongKey(func(context.Context, *workspace.Run, refundIn) string { return "" })},
		mistakes.Program{Row: 21, Part: "crash", Name: "key from time", Words: []string{"effect refund was made 2 times", "the key changed when B took the run over"},
			Run: wrongKey(func(context.Context, *workspace.Run, refundIn) string { return time.Now().Format(time.RFC3339) })},
		mistakes.Program{Row: 22, Part: "crash", Name: "key from Attempt", Words: []string{"effect refund was made 2 times", "the key changed when B took the run over"},
			Run: wrongKey(func(_ context.Context, run *workspace.Run, _ refundIn) string {
				return fmt.Sprint(run.ID(), run.Attempt())
			})},
		mistakes.Program{Row: 24, Part: "crash", Name: "error of Commit ignored", Words: []string{"effect refund was made 2 times, want 1: the key changed when B took the run over", "stands still"},
			Run: agent(ignoresCommit, "notes")},
		mistakes.Program{Row: 25, Part: "crash", Name: "unknown outcome tried again with a new key", Words: []string{"effect refund was made 2 times, want 1: the key changed", "the answer is lost"},
			Run: agent(triesAgainWithNewKey)},
		mistakes.Program{Row: 26, Part: "crash", Name: "progress in a variable of the process", Words: []string{"field refunded differs from the undisturbed case", "- 2", "+ 1"},
			Run: countsInProcess},
		mistakes.Program{Row: 27, Part: "crash", Name: "counter added again", Words: []string{"field refunded differs from the undisturbed case", "- 10", "+ 20"},
			Run: agent(addsAgain)},
		mistakes.Program{Row: 28, Part: "crash", Name: "effect before the commit that decides it", Words: []string{"effect refund was made 2 times", "effect_refund_1/crash_after"},
			Run: agent(actsBeforeItDecides, "notes")},
		mistakes.Program{Row: 29, Part: "crash", Name: "open call made again with another input", Words: []string{"its key was used with another input", `{"amount":11}`},
			Run: agent(asksOtherwiseAgain)},
		mistakes.Program{Part: "crash", Name: "key from the id of a call that is made again", Words: []string{"effect refund was made 2 times, want 1: the key changed when B took the run over"},
			Run: asksForTheCallAgain},
		mistakes.Program{Row: 30, Part: "crash", Name: "panic on a resumed state", Words: []string{"has failed", "panic"},
			Run: agent(func(ctx context.Context, p *crash.Process, run *workspace.Run, mistake bool) error {
				if mistake && run.Attempt() > 0 {
					panic("resumed")
				}
				if err := state.Messages.Set(run.State(), []state.Message{state.AssistantText("Hello.")}); err != nil {
					return err
				}
				return run.Commit(ctx)
			})},
		mistakes.Program{Row: 31, Part: "crash", Name: "goroutine left", Words: []string{"1 goroutine is left"},
			Run: agent(func(_ context.Context, _ *crash.Process, run *workspace.Run, mistake bool) error {
				if mistake {
					go waitForEver()
				}
				return refunded.Set(run.State(), 1)
			})},
		mistakes.Program{Part: "crash", Name: "call left open", Words: []string{"the undisturbed case fails", "OpenAI would refuse the conversation", "call_1"},
			Run: leavesCallOpen},
		mistakes.Program{Part: "crash", Name: "answered call made again", Words: []string{"effect refund is made for a call that has a result"},
			Run: agent(makesAnsweredCallsAgain)},
		mistakes.Program{Part: "crash", Name: "message of the user repeated", Words: []string{"the conversation has the messages of the user"},
			Run: agent(repeatsUser)},
		mistakes.Program{Part: "crash", Name: "message of the user lost", Words: []string{"the conversation has the messages of the user"},
			Run: agent(losesUser)},
		mistakes.Program{Part: "crash", Name: "variable of the package", Words: []string{"not deterministic", "- 1", "+ 2"},
			Run: agent(countsOutside)},
		mistakes.Program{Row: 32, Part: "crash", Name: "stalled holder acts on", Words: []string{"effect escalate was made with an input that it does not have in the undisturbed case", "stands still"},
			Run: agent(escalates)},
	)
}

// waitForEver has a name for the text of the failure.
func waitForEver() { <-make(chan int) }
