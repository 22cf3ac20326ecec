package crash_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/looptest"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/workspace"
)

// A desk of version 1, whose stored workspaces are in testdata/workspaces. It
// charges in two steps, and keeps the steps that are done.
type desk struct {
	schema *state.Schema
	steps  *state.Field[[]string]
	charge string // the name of a step
	amount func(st *state.State) error
}

func deskV1() desk {
	amount := &state.Field[string]{Name: "amount"}
	steps := &state.Field[[]string]{Name: "steps"}
	return desk{state.MustSchema(amount, steps), steps, "charge", func(st *state.State) error { return amount.Replace(st, "129.9") }}
}

// handle makes the effect of each step that is not done, and then answers.
func (d desk) handle(p *crash.Process, reply string) *workspace.Options {
	m := p.Model(provider.OpenAI, statetest.Say(reply).Times(-1))
	return &workspace.Options{Schema: d.schema, Run: func(ctx context.Context, run *workspace.Run) error {
		st := run.State()
		for _, step := range []string{d.charge, "mail"} {
			if slices.Contains(d.steps.GetOr(st, nil), step) {
				continue
			}
			if err := errors.Join(d.amount(st), d.steps.Set(st, []string{step})); err != nil {
				return err
			}
			effect := map[bool]string{true: "mail", false: "charge"}[step == "mail"]
			if _, err := looptest.Retried(ctx, p, effect, run.ID()+"/"+step, map[string]float64{"amount": 129.9}); err != nil {
				return err
			}
			if err := run.Commit(ctx); err != nil {
				return err
			}
		}
		result, err := m.Next(ctx, "desk", state.Messages.GetOr(st, nil))
		if err != nil {
			return workspace.RetryAfter(err, time.Second)
		}
		return st.History().Append(result)
	}}
}

const savedDesks = "testdata/workspaces/v1/*.json"

var andNow = workspace.Message{ID: "next", Content: state.UserText("And now?")}

// The files of version 1 are kept: -update writes them if there are none.
func TestSavedDesksOfVersion1(t *testing.T) {
	crash.Test{
		Open:     func(p *crash.Process) *workspace.Options { return deskV1().handle(p, "Charged.") },
		Messages: []workspace.Message{{ID: "1", Content: state.UserText("Charge me.")}},
		Save:     filepath.Dir(savedDesks), Pairs: -1,
	}.Run(t)
}

func resumeProgram(row int, name string, run func(t *testing.T, mistake bool), words ...string) {
	programs = append(programs, mistakes.Program{Row: row, Part: "resume", Name: name, Run: run, Words: words})
}

func init() {
	resumeProgram(37, "type changed", func(t *testing.T, mistake bool) {
		d := deskV1()
		if mistake {
			amount := &state.Field[map[string]int]{Name: "amount"}
			d.schema = state.MustSchema(amount, d.steps)
		}
		crash.Resume(t, savedDesks, func(p *crash.Process) *workspace.Options { return d.handle(p, "Done.") }, andNow)
	}, "v1-write_3.json: ann cannot be read: \"amount\": want object, got string: each workspace that v1 has stored would be unreadable",
		"again: go test -run '^TestBroken$/^37_type_changed$/^v1-write_3$'")

	resumeProgram(38, "field renamed", func(t *testing.T, mistake bool) {
		d := deskV1()
		total := &state.Field[string]{Name: "total", Was: []string{"amount"}}
		if mistake {
			total = &state.Field[string]{Name: "total"}
		}
		d.schema, d.amount = state.MustSchema(total, d.steps), func(st *state.State) error { return total.Replace(st, "129.9") }
		crash.Resume(t, savedDesks, func(p *crash.Process) *workspace.Options { return d.handle(p, "Done.") }, andNow)
	}, "v1-write_3.json: ann has fields that the schema does not: amount: each workspace")

	resumeProgram(39, "guard of a step renamed", func(t *testing.T, mistake bool) {
		d := deskV1()
		if mistake {
			d.charge = "charge_card"
		}
		crash.Resume(t, savedDesks, func(p *crash.Process) *workspace.Options { return d.handle(p, "Done.") })
	}, "effect charge, which v1 has made, is made again when the run is taken over: its key has changed")

	resumeProgram(0, "no file matches", func(t *testing.T, mistake bool) {
		pattern := savedDesks
		if mistake {
			pattern = "testdata/workspaces/v9/*.json"
		}
		crash.Resume(t, pattern, func(p *crash.Process) *workspace.Options { return deskV1().handle(p, "Done.") }, andNow)
	}, "no file matches testdata/workspaces/v9/*.json")

	changedRun("run that fails when it is resumed", func(ctx context.Context, r *workspace.Run, run runFunc) error {
		if r.Attempt() > 0 {
			return errors.New("unknown step")
		}
		return run(ctx, r)
	}, `message "1", which was under way, was not handled`, "unknown step")

	changedRun("conversation that is cut", func(ctx context.Context, r *workspace.Run, run runFunc) error {
		err := run(ctx, r)
		if r.Message().ID == "next" {
			call := state.ToolCalls(state.ToolCall{ID: "c1", Name: "charge", Input: "{}"})
			err = errors.Join(err, state.Messages.Set(r.State(), []state.Message{call}))
		}
		return err
	}, "would refuse the conversation", "unanswered-call")

	changedRun("message that fails", func(ctx context.Context, r *workspace.Run, run runFunc) error {
		if r.Message().ID == "next" {
			return errors.New("no plan")
		}
		return run(ctx, r)
	}, `message "next" has failed: `, "no plan")
}

type runFunc = func(ctx context.Context, run *workspace.Run) error

// changedRun adds a program whose next version handles messages otherwise, with
// the mistake.
func changedRun(name string, run func(ctx context.Context, r *workspace.Run, before runFunc) error, words ...string) {
	resumeProgram(0, name, func(t *testing.T, mistake bool) {
		crash.Resume(t, savedDesks, func(p *crash.Process) *workspace.Options {
			opts := deskV1().handle(p, "Done.")
			if before := opts.Run; mistake {
				opts.Run = func(ctx context.Context, r *workspace.Run) error { return run(ctx, r, before) }
			}
			return opts
		}, andNow)
	}, words...)
}
