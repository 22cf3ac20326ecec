package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/looptest"
	"github.com/agentstate/state/internal/test/mistakes"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/workspace"
)

// opened is a function for Open.
type opened = func(p *crash.Process) *workspace.Options

// saveV1 saves what an agent stores with each write, and returns the pattern of
// the files.
func saveV1(t *testing.T, v1 opened, setup ...func(w *workspace.Workspace) error) string {
	dir := t.TempDir()
	t.Setenv("STATETEST_UPDATE", "1")
	test := crash.Test{Open: v1, Messages: keyboard, Pairs: -1, Save: filepath.Join(dir, "v1")}
	for _, test.Setup = range setup {
	}
	test.Run(t)
	return filepath.Join(dir, "*", "*.json")
}

// versions is a program whose second version has a mistake, or does what the
// first does.
func versions(v1, v2 opened) func(t *testing.T, mistake bool) {
	return func(t *testing.T, mistake bool) {
		next := v1
		if mistake {
			next = v2
		}
		crash.Resume(t, saveV1(t, v1), next, andNow)
	}
}

// handler is an agent without a model.
func handler(schema *state.Schema, run func(ctx context.Context, p *crash.Process, run *workspace.Run) error) opened {
	return func(p *crash.Process) *workspace.Options {
		return &workspace.Options{Schema: schema, Run: func(ctx context.Context, r *workspace.Run) error { return run(ctx, p, r) }}
	}
}

// books books a hotel and then a train, each in a step that is guarded by a note.
// Both steps are of one input.
func books(hotel, train string) opened {
	return handler(crashSchema, func(ctx context.Context, p *crash.Process, run *workspace.Run) error {
		for _, step := range []string{hotel, train} {
			guard := run.Message().ID + "/" + step
			if strings.Contains(fmt.Sprint(notes.GetOr(run.State(), nil)), guard) {
				continue
			}
			if _, err := looptest.Retried(ctx, p, "book", run.ID()+"/"+step, "Rome"); err != nil {
				return err
			}
			if err := notes.Set(run.State(), []string{guard}); err != nil {
				return err
			}
			if err := run.Commit(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// greeter is an agent that answers with a text, after a commit. then is what it
// does before it answers.
func greeter(then func(ctx context.Context, p *crash.Process, run *workspace.Run) error) opened {
	return func(p *crash.Process) *workspace.Options {
		m := p.Model(provider.OpenAI, statetest.Say("Done.").Times(-1))
		return &workspace.Options{Schema: crashSchema, Run: func(ctx context.Context, run *workspace.Run) error {
			if err := run.Commit(ctx); err != nil {
				return err
			}
			if err := then(ctx, p, run); err != nil {
				return err
			}
			r, err := m.Next(ctx, "desk", state.Messages.GetOr(run.State(), nil))
			if err != nil {
				return workspace.RetryAfter(err, time.Second)
			}
			return run.State().History().Append(r)
		}}
	}
}

func nothing(context.Context, *crash.Process, *workspace.Run) error { return nil }

// charges makes an effect without a guard: only the key keeps it from being
// made again.
func charges(key string) opened {
	return handler(crashSchema, func(ctx context.Context, p *crash.Process, run *workspace.Run) error {
		if _, err := looptest.Retried(ctx, p, "charge", run.ID()+key, "Rome"); err != nil {
			return err
		}
		if err := refunded.Replace(run.State(), 1); err != nil {
			return err
		}
		return run.Commit(ctx)
	})
}

// refunds is an agent that refunds for each message, and confirms it so many
// times.
func refunds(times int) opened {
	return func(p *crash.Process) *workspace.Options {
		asked := func(r statetest.Request) bool { return r.Messages[len(r.Messages)-1].Role() == "user" }
		m := p.Model(provider.OpenAI,
			statetest.Call("refund", `{"amount":129.9}`).When(asked).Times(-1), statetest.Say("Refunded.").Times(times))
		return &workspace.Options{Schema: crashSchema, Run: deskLoop{m, refundTool(p)}.answer}
	}
}

var (
	card       = &state.Field[string]{Name: "card", Secret: true}
	cardSchema = state.MustSchema(card, notes)
	cardKeys   = []workspace.Key{{ID: "k1", Secret: []byte(strings.Repeat("k", 32))}}
)

// leaveCall ends the conversation with a call that nobody answers.
func leaveCall(run *workspace.Run) error {
	call := state.ToolCalls(state.ToolCall{ID: "call_9", Name: "refund", Input: "{}"})
	return state.Messages.Set(run.State(), []state.Message{call})
}

func setCard(w *workspace.Workspace) error { return card.Set(w.State(), "4242-4242-4242") }

// sealed is an agent whose workspaces are sealed.
func sealed(o opened) opened {
	return func(p *crash.Process) *workspace.Options {
		opts := o(p)
		opts.Schema, opts.Keys = cardSchema, cardKeys
		return opts
	}
}

// hadSecret deletes a secret that it had in an earlier version.
var hadSecret = handler(cardSchema, func(ctx context.Context, _ *crash.Process, run *workspace.Run) error {
	if err := errors.Join(card.Replace(run.State(), "4242-4242-4242"), run.Commit(ctx)); err != nil {
		return err
	}
	_, err := card.Delete(run.State())
	return err
})

// edits edits a value of the program's own store in a file.
func edits(t *testing.T, mistake bool) {
	keeps := sealed(handler(nil, func(ctx context.Context, _ *crash.Process, run *workspace.Run) error {
		if err := run.Store().Set(ctx, "note", "kept"); err != nil {
			return workspace.RetryAfter(err, time.Second)
		}
		return run.Commit(ctx)
	}))
	pattern := saveV1(t, keeps)
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	found := false
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var content map[string]any
		require.NoError(t, json.Unmarshal(data, &content))
		for _, e := range content["entries"].([]any) {
			if e := e.(map[string]any); strings.Contains(e["key"].(string), "note") && mistake {
				delete(e, "bytes")
				e["text"], found = "edited", true
			}
		}
		data, err = json.Marshal(content)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o644))
	}
	require.Equal(t, mistake, found)
	crash.Resume(t, pattern, keeps)
}

func init() {
	programs = append(programs,
		mistakes.Program{Part: "resume", Name: "one of two equal effects made again", Words: []string{
			"effect book, which v1 has made, is made again when the run is taken over: its key has changed", `"run_1/hotel"`, `"run_1/inn"`},
			Run: versions(books("hotel", "train"), books("inn", "train"))},
		mistakes.Program{Part: "resume", Name: "key of an effect changed", Words: []string{"effect charge, which v1 has made, is made again when the run is taken over: its key has changed"},
			Run: versions(charges(""), charges("/charge"))},
		mistakes.Program{Part: "resume", Name: "reply that the next version lacks", Words: []string{"no reply"},
			Run: versions(refunds(-1), refunds(1))},
		mistakes.Program{Part: "resume", Name: "nobody continues the run", Words: []string{"the run that was under way is not finished"},
			Run: func(t *testing.T, mistake bool) {
				pattern := saveV1(t, greeter(nothing))
				crash.Resume(t, pattern, func(p *crash.Process) *workspace.Options {
					o := greeter(nothing)(p)
					if mistake {
						o.Run = nil
					}
					return o
				})
			}},
		mistakes.Program{Part: "resume", Name: "message that was handled before", Words: []string{`message "1" was handled by v1: it needs another ID`},
			Run: func(t *testing.T, mistake bool) {
				msg := andNow
				if mistake {
					msg.ID = keyboard[0].ID
				}
				crash.Resume(t, saveV1(t, greeter(nothing)), greeter(nothing), msg)
			}},
		mistakes.Program{Part: "resume", Name: "two messages with one ID", Words: []string{"message 2 needs an ID that no other has"},
			Run: func(t *testing.T, mistake bool) {
				other := workspace.Message{ID: "last", Content: state.UserText("Bye.")}
				if mistake {
					other.ID = andNow.ID
				}
				crash.Resume(t, saveV1(t, greeter(nothing)), greeter(nothing), andNow, other)
			}},
		mistakes.Program{Part: "resume", Name: "secret in a refused conversation", Words: []string{"would be refused by OpenAI", "My card is [SECRET 1]."},
			Run: func(t *testing.T, mistake bool) {
				pattern := saveV1(t, sealed(greeter(nothing)), func(w *workspace.Workspace) error {
					said := []state.Message{state.UserText("My card is 4242-4242-4242.")}
					return errors.Join(setCard(w), state.Messages.Set(w.State(), said))
				})
				crash.Resume(t, pattern, sealed(greeter(func(ctx context.Context, _ *crash.Process, run *workspace.Run) error {
					if !mistake {
						return nil
					}
					_, err := card.Delete(run.State())
					return errors.Join(err, leaveCall(run), run.Commit(ctx))
				})), andNow)
			}},
		mistakes.Program{Part: "resume", Name: "value edited", Words: []string{"ann is damaged"}, Run: edits},
		mistakes.Program{Part: "resume", Name: "secret saved", Words: []string{"field card is secret and has a value: seal the workspaces with Options.Keys"},
			Run: func(t *testing.T, mistake bool) {
				agent := hadSecret
				if !mistake {
					agent = sealed(agent)
				}
				crash.Resume(t, saveV1(t, agent), sealed(agent))
			}},
		mistakes.Program{Part: "resume", Name: "secret in an effect", Words: []string{"an effect has a secret"},
			Run: func(t *testing.T, mistake bool) {
				saveV1(t, sealed(handler(nil, func(ctx context.Context, p *crash.Process, run *workspace.Run) error {
					if err := card.Replace(run.State(), "4242-4242-4242"); err != nil {
						return err
					}
					in := "of the customer"
					if mistake {
						in = "4242-4242-4242"
					}
					if _, err := looptest.Retried(ctx, p, "charge", run.ID(), in); err != nil {
						return err
					}
					return run.Commit(ctx)
				})))
			}},
	)
}
