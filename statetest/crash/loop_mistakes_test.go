package crash_test

import (
	"context"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/workspace"
)

// ownLoop is a program that asks in turns, commits what a model has said, and
// only then sets the reply. goOn is what it does when it is taken over behind the
// last word. It returns false to ask.
func ownLoop(
	goOn func(run *workspace.Run, last state.TextMessage, mistake bool) (ended bool, err error), asks int,
) func(t *testing.T, mistake bool) {
	return func(t *testing.T, mistake bool) {
		crash.Test{
			Open: func(p *crash.Process) *workspace.Options {
				m := p.Model(provider.OpenAI, statetest.Say("Hello.").Times(-1))
				return &workspace.Options{Schema: crashSchema, Run: func(ctx context.Context, run *workspace.Run) error {
					msgs := state.Messages.GetOr(run.State(), nil)
					if last, _ := msgs[len(msgs)-1].(state.TextMessage); last.Role() == "assistant" {
						if ended, err := goOn(run, last, mistake); ended || err != nil {
							return err
						}
					}
					turn, err := loop.NewTurn(ctx, "")
					if err != nil {
						return err
					}
					said, err := m.Next(turn.Context(ctx), "", state.Messages.GetOr(run.State(), nil))
					for n := 1; err == nil && n < asks && mistake && run.Attempt() > 0; n++ {
						_, err = m.Next(turn.Context(ctx), "", state.Messages.GetOr(run.State(), nil))
					}
					if err != nil {
						return workspace.RetryAfter(err, time.Second)
					}
					if err := turn.Said(ctx, said); err != nil {
						return err
					}
					if err := run.Commit(ctx); err != nil {
						return err
					}
					run.SetReply("Hello.")
					return nil
				}}
			},
			Messages: keyboard, Pairs: -1,
		}.Run(t)
	}
}

func init() {
	replied := func(run *workspace.Run, last state.TextMessage, _ bool) (bool, error) {
		run.SetReply(last.Text())
		return true, nil
	}
	programs = append(programs,
		mistakes.Program{Part: "crash", Name: "asked after the last word", Words: []string{"request 2, of \"\", is none of the undisturbed case", "Hello."},
			Run: ownLoop(func(run *workspace.Run, last state.TextMessage, mistake bool) (bool, error) {
				if mistake {
					return false, nil
				}
				return replied(run, last, false)
			}, 1)},
		mistakes.Program{Part: "crash", Name: "reply lost at a takeover", Words: []string{"message 1 has another reply than in the undisturbed case", `- "Hello."`, `+ ""`},
			Run: ownLoop(func(run *workspace.Run, last state.TextMessage, mistake bool) (bool, error) {
				if mistake {
					return true, nil
				}
				return replied(run, last, false)
			}, 1)},
		mistakes.Program{Part: "crash", Name: "last word said twice", Words: []string{"the conversation differs from that of the undisturbed case"},
			Run: ownLoop(func(run *workspace.Run, last state.TextMessage, mistake bool) (bool, error) {
				if mistake {
					if err := state.Messages.Set(run.State(), []state.Message{last}); err != nil {
						return true, err
					}
				}
				return replied(run, last, false)
			}, 1)},
		mistakes.Program{Part: "crash", Name: "asked twice after a takeover", Words: []string{"models were asked 3 times, want at most 2"},
			Run: ownLoop(replied, 2)},
	)
}
