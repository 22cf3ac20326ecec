package statetest_test

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
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// opened is a function for Open.
type opened = func(p *statetest.Process) *workspace.Options

// saveV1 saves what an agent stores with each write, and returns the pattern of
// the files.
func saveV1(t *testing.T, v1 opened) string {
	dir := t.TempDir()
	t.Setenv("STATETEST_UPDATE", "1")
	statetest.Crash{Open: v1, Messages: keyboard, Pairs: -1, Save: filepath.Join(dir, "v1")}.Run(t)
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
		statetest.Resume(t, saveV1(t, v1), next, andNow)
	}
}

// handler is an agent without a model.
func handler(schema *state.Schema, run func(ctx context.Context, p *statetest.Process, run *workspace.Run) error) opened {
	return func(p *statetest.Process) *workspace.Options {
		return &workspace.Options{Schema: schema, Run: func(ctx context.Context, r *workspace.Run) error { return run(ctx, p, r) }}
	}
}

// books books a hotel and then a train, each in a step that is guarded by a note.
// Both steps are of one input.
func books(hotel, train string) opened {
	return handler(crashSchema, func(ctx context.Context, p *statetest.Process, run *workspace.Run) error {
		for _, step := range []string{hotel, train} {
			guard := run.Message().ID + "/" + step
			if strings.Contains(fmt.Sprint(notes.Or(run.State(), nil)), guard) {
				continue
			}
			if _, err := retried(ctx, p, "book", run.ID()+"/"+step, "Rome"); err != nil {
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
func greeter(then func(ctx context.Context, p *statetest.Process, run *workspace.Run) error) opened {
	return func(p *statetest.Process) *workspace.Options {
		m := p.Model(provider.OpenAI, statetest.Say("Done.").Times(-1))
		return &workspace.Options{Schema: crashSchema, Run: func(ctx context.Context, run *workspace.Run) error {
			if err := run.Commit(ctx); err != nil {
				return err
			}
			if err := then(ctx, p, run); err != nil {
				return err
			}
			r, err := m.Next(ctx, "desk", state.Messages.Or(run.State(), nil))
			if err != nil {
				return workspace.RetryAfter(err, time.Second)
			}
			return run.State().History().Append(r)
		}}
	}
}

func nothing(context.Context, *statetest.Process, *workspace.Run) error { return nil }

// charges makes an effect without a guard: only the key keeps it from being
// made again.
func charges(key string) opened {
	return handler(crashSchema, func(ctx context.Context, p *statetest.Process, run *workspace.Run) error {
		if _, err := retried(ctx, p, "charge", run.ID()+key, "Rome"); err != nil {
			return err
		}
		if err := refunded.Replace(run.State(), 1); err != nil {
			return err
		}
		return run.Commit(ctx)
	})
}

// files files a paper in a store of its own, notes that, and then reads it.
func files(name string) opened {
	return func(p *statetest.Process) *workspace.Options {
		db := p.Store(store.NewMemory())
		return &workspace.Options{Schema: crashSchema, Run: func(ctx context.Context, run *workspace.Run) error {
			if !notes.Has(run.State()) {
				if _, err := db.Put(ctx, "paper", []byte("signed"), store.Always); err != nil {
					return workspace.RetryAfter(err, time.Second)
				}
				if err := notes.Set(run.State(), []string{"filed"}); err != nil {
					return err
				}
				if err := run.Commit(ctx); err != nil {
					return err
				}
			}
			if _, err := db.Get(ctx, name); err != nil && errors.Is(err, store.ErrNotFound) {
				return err
			} else if err != nil {
				return workspace.RetryAfter(err, time.Second)
			}
			return nil
		}}
	}
}

// refunds is an agent that refunds for each message, and confirms it so many
// times.
func refunds(times int) opened {
	return func(p *statetest.Process) *workspace.Options {
		asked := func(r statetest.Request) bool { return r.Messages[len(r.Messages)-1].Role() == "user" }
		m := p.Model(provider.OpenAI,
			statetest.Call("refund", `{"amount":129.9}`).When(asked).Times(-1), statetest.Say("Refunded.").Times(times))
		return &workspace.Options{Schema: crashSchema, Run: loop{m, refundTool(p)}.answer}
	}
}

// hasFailed resumes a workspace in which a message has failed.
func hasFailed(t *testing.T, mistake bool) {
	t.Setenv("STATETEST_UPDATE", "1")
	fails := func(context.Context, *workspace.Run) error { return errors.New("not today") }
	opts := workspace.Options{Schema: crashSchema, Run: fails}
	db := store.NewMemory()
	m, err := workspace.Open(t.Context(), db.Open(), &opts)
	require.NoError(t, err)
	_, err = m.Handle(t.Context(), "ann", keyboard[0])
	require.ErrorContains(t, err, "not today")
	require.NoError(t, m.Close())
	file := filepath.Join(t.TempDir(), "v1.json")
	statetest.Save(t, file, db, crashSchema)
	if !mistake {
		opts.Run = func(context.Context, *workspace.Run) error { return nil }
	}
	statetest.Resume(t, file, func(*statetest.Process) *workspace.Options { return &opts }, andNow)
}

// stored returns a store with a workspace.
func stored(t *testing.T, opts workspace.Options, set func(w *workspace.Workspace) error) *store.Memory {
	db := store.NewMemory()
	m, err := workspace.Open(t.Context(), db.Open(), &opts)
	require.NoError(t, err)
	require.NoError(t, m.Update(t.Context(), "ann", set))
	require.NoError(t, m.Store("ann").Set(t.Context(), "note", "kept"))
	require.NoError(t, m.Close())
	return db
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

// savesSecret saves a workspace that had a secret in an earlier version, which
// was sealed or not.
func savesSecret(t *testing.T, mistake bool) {
	t.Setenv("STATETEST_UPDATE", "1")
	db := store.NewMemory()
	file := filepath.Join(t.TempDir(), "v1.json")
	opts := workspace.Options{Schema: cardSchema, Run: func(ctx context.Context, run *workspace.Run) error {
		if err := card.Set(run.State(), "4242-4242-4242"); err != nil {
			return err
		}
		if err := run.Commit(ctx); err != nil {
			return err
		}
		if _, err := card.Delete(run.State()); err != nil {
			return err
		}
		err := run.Commit(ctx)
		statetest.Save(t, file, db, cardSchema)
		return err
	}}
	if !mistake {
		opts.Keys = cardKeys
	}
	m, err := workspace.Open(t.Context(), db.Open(), &opts)
	require.NoError(t, err)
	_, err = m.Handle(t.Context(), "ann", andNow)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	if mistake {
		require.NoFileExists(t, file)
		return
	}
	statetest.Resume(t, file, func(*statetest.Process) *workspace.Options { return &opts })
}

// edits saves a sealed workspace and edits a value of the program's own store.
func edits(t *testing.T, mistake bool) {
	t.Setenv("STATETEST_UPDATE", "1")
	file := filepath.Join(t.TempDir(), "v1.json")
	db := stored(t, workspace.Options{Schema: cardSchema, Keys: cardKeys}, setCard)
	statetest.Save(t, file, db, cardSchema)
	if mistake {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var content map[string]any
		require.NoError(t, json.Unmarshal(data, &content))
		found := false
		for _, e := range content["entries"].([]any) {
			e := e.(map[string]any)
			if strings.Contains(e["key"].(string), "note") {
				delete(e, "bytes")
				e["text"], found = "edited", true
			}
		}
		require.True(t, found, "%v", content)
		data, err = json.Marshal(content)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, data, 0o644))
	}
	statetest.Resume(t, file, func(*statetest.Process) *workspace.Options {
		return &workspace.Options{Schema: cardSchema, Keys: cardKeys}
	})
}

func init() {
	programs = append(programs,
		program{part: "resume", name: "one of two equal effects made again", words: []string{
			"effect book, which v1 has made, is made again when the run is taken over: its key has changed", `"run_1/hotel"`, `"run_1/inn"`},
			run: versions(books("hotel", "train"), books("inn", "train"))},
		program{part: "resume", name: "key of an effect changed", words: []string{"effect charge, which v1 has made, is made again when the run is taken over: its key has changed"},
			run: versions(charges(""), charges("/charge"))},
		program{part: "resume", name: "key of another store changed", words: []string{`message "1", which was under way, was not handled`, "not found"},
			run: versions(files("paper"), files("papers"))},
		program{part: "resume", name: "reply that the next version lacks", words: []string{"no reply"},
			run: versions(refunds(-1), refunds(1))},
		program{part: "resume", name: "message that fails once more", words: []string{`message "next" has failed: not today`}, run: hasFailed},
		program{part: "resume", name: "nobody continues the run", words: []string{"the run that was under way is not finished"},
			run: func(t *testing.T, mistake bool) {
				pattern := saveV1(t, greeter(nothing))
				statetest.Resume(t, pattern, func(p *statetest.Process) *workspace.Options {
					o := greeter(nothing)(p)
					if mistake {
						o.Run = nil
					}
					return o
				})
			}},
		program{part: "resume", name: "message that was handled before", words: []string{`message "1" was handled by v1: it needs another ID`},
			run: func(t *testing.T, mistake bool) {
				msg := andNow
				if mistake {
					msg.ID = keyboard[0].ID
				}
				statetest.Resume(t, saveV1(t, greeter(nothing)), greeter(nothing), msg)
			}},
		program{part: "resume", name: "two messages with one ID", words: []string{"message 2 needs an ID that no other has"},
			run: func(t *testing.T, mistake bool) {
				other := workspace.Message{ID: "last", Content: state.UserText("Bye.")}
				if mistake {
					other.ID = andNow.ID
				}
				statetest.Resume(t, saveV1(t, greeter(nothing)), greeter(nothing), andNow, other)
			}},
		program{part: "resume", name: "secret in a refused conversation", words: []string{"would be refused by OpenAI", "My card is [SECRET 1]."},
			run: func(t *testing.T, mistake bool) {
				t.Setenv("STATETEST_UPDATE", "1")
				file := filepath.Join(t.TempDir(), "v1-card.json")
				opts := workspace.Options{Schema: cardSchema, Keys: cardKeys}
				statetest.Save(t, file, stored(t, opts, func(w *workspace.Workspace) error {
					said := []state.Message{state.UserText("My card is 4242-4242-4242.")}
					return errors.Join(setCard(w), state.Messages.Set(w.State(), said))
				}), cardSchema)
				statetest.Resume(t, file, func(p *statetest.Process) *workspace.Options {
					o := greeter(func(ctx context.Context, _ *statetest.Process, run *workspace.Run) error {
						if !mistake {
							return nil
						}
						_, err := card.Delete(run.State())
						return errors.Join(err, leaveCall(run), run.Commit(ctx))
					})(p)
					o.Schema, o.Keys = cardSchema, cardKeys
					return o
				}, andNow)
			}},
		program{part: "resume", name: "value edited", words: []string{"ann is damaged"}, run: edits},
		program{part: "resume", name: "secret saved", words: []string{"field card is secret and has a value: seal the workspaces with Options.Keys"},
			run: savesSecret},
		program{part: "resume", name: "secret in an effect", words: []string{"an effect or another store has a secret"},
			run: func(t *testing.T, mistake bool) {
				saveV1(t, func(p *statetest.Process) *workspace.Options {
					o := handler(cardSchema, func(ctx context.Context, p *statetest.Process, run *workspace.Run) error {
						if err := card.Replace(run.State(), "4242-4242-4242"); err != nil {
							return err
						}
						in := "of the customer"
						if mistake {
							in = "4242-4242-4242"
						}
						if _, err := retried(ctx, p, "charge", run.ID(), in); err != nil {
							return err
						}
						return run.Commit(ctx)
					})(p)
					o.Keys = cardKeys
					return o
				})
			}},
		program{part: "resume", name: "field that Save does not know", words: []string{"the schema does not have the stored fields notes, which may be secret"},
			run: func(t *testing.T, mistake bool) {
				t.Setenv("STATETEST_UPDATE", "1")
				schema := crashSchema
				if mistake {
					schema = state.MustSchema(refunded)
				}
				db := stored(t, workspace.Options{Schema: crashSchema}, func(w *workspace.Workspace) error {
					return notes.Set(w.State(), []string{"kept"})
				})
				statetest.Save(t, filepath.Join(t.TempDir(), "v1.json"), db, schema)
			}},
	)
}
