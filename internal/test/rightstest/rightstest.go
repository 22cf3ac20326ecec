// Package rightstest draws workspaces of which agents may read different parts, for
// tests of what shows them. Only tests import it.
package rightstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// World is a workspace with random rights. Each of its texts is somewhere once, so
// that it can be told from what is shown where it comes from.
type World struct {
	Agent  string // who is shown something
	Schema *state.Schema
	// Holding gets a value when the run of a message has said and committed what it
	// does, and goes on when it is taken.
	Holding chan struct{}
	fields  []field
	said    field
}

type field struct {
	name, owner string
	public      bool
	only        []string
	secret      bool
}

var team = []string{"desk", "boss", "ui"}

// New draws a world.
func New(seed uint64) *World {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &World{Agent: append(team, "stranger")[r.IntN(4)], Holding: make(chan struct{})}
	parts := []state.Part{state.Team{"desk": team[1:]}}
	for _, name := range []string{"alpha", "bravo", "carol", "dance"} {
		f := newField(r, name)
		w.fields = append(w.fields, f)
		parts = append(parts, &state.Field[string]{Name: name, Owner: f.owner, Read: f.scope(), Secret: f.secret})
	}
	w.said = newField(r, state.Messages.Name)
	w.said.secret = false
	parts = append(parts, &state.Field[[]state.Message]{Name: w.said.name, Owner: w.said.owner, Read: w.said.scope()})
	w.Schema = state.MustSchema(parts...)
	return w
}

func newField(r *rand.Rand, name string) field {
	f := field{name: name, owner: []string{"", "desk", "ui"}[r.IntN(3)], public: r.IntN(4) == 0, secret: r.IntN(5) == 0}
	for _, agent := range team {
		if r.IntN(2) == 0 {
			f.only = append(f.only, agent)
		}
	}
	return f
}

func (f field) scope() state.Scope {
	if f.public {
		return state.Public
	}
	return state.Only(f.only...)
}

// isRead reports whether the agent of the world may read a field.
func (w *World) isRead(f field) bool {
	return slices.Contains(team, w.Agent) && (f.public || f.owner == w.Agent || slices.Contains(f.only, w.Agent))
}

// said are the texts of the conversation, and reply and thought are what no view has
// of it.
var said = []string{"text-asked", "text-answered", "tool-called", "text-argued"}

const (
	reply   = "text-replied"
	thought = "text-thought"
)

// texts returns the texts that the agent may read, and those that it may not.
func (w *World) texts() (read, hidden []string) {
	for _, f := range w.fields {
		switch name, value := f.name, "value-of-"+f.name; {
		case !w.isRead(f):
			hidden = append(hidden, name, value)
		case f.secret:
			read, hidden = append(read, name), append(hidden, value)
		default:
			read = append(read, value)
		}
	}
	if w.isRead(w.said) {
		return append(read, said...), hidden
	}
	return read, append(append(hidden, reply, thought), said...)
}

// T is what a test fails with.
type T interface {
	Fatalf(format string, args ...any)
}

// Check fails if what is shown to the agent has a text that it may not read.
func (w *World) Check(t T, what, shown string) {
	_, hidden := w.texts()
	for _, text := range hidden {
		if strings.Contains(shown, text) {
			t.Fatalf("%s shows %q to %q, which may not read it:\n%s", what, text, w.Agent, shown)
		}
	}
}

// CheckAll is Check for something that has all that the agent may read, but for some
// texts.
func (w *World) CheckAll(t T, what, shown string, but ...string) {
	w.Check(t, what, shown)
	read, _ := w.texts()
	for _, text := range read {
		if !slices.Contains(but, text) && !strings.Contains(shown, text) {
			t.Fatalf("%s does not show %q to %q, which may read it:\n%s", what, text, w.Agent, shown)
		}
	}
}

// Message returns a message that changes all fields that are not secret.
func (w *World) Message(id string) workspace.Message {
	m := workspace.Message{ID: id, Content: state.UserText("text-asked"), Fields: map[string]state.JSON{}}
	for _, f := range w.fields {
		if !f.secret {
			m.Fields[f.name] = state.JSONText("before, value-of-" + f.name)
		}
	}
	return m
}

// Options are those of a Manager of the world. Its titles have all that there is.
// A run streams its answer, its thoughts and its call, and suspends a call; that of a message with the id
// "fails" fails.
func (w *World) Options() *workspace.Options {
	return &workspace.Options{Schema: w.Schema, Run: w.run, Attempts: 1, Title: func(st *state.State) string {
		title := ""
		for name, value := range st.KV().All() {
			title += fmt.Sprint(name, " ", value, " ")
		}
		return title
	}}
}

func (w *World) run(ctx context.Context, run *workspace.Run) error {
	run.EmitThought(thought)
	for _, word := range []string{"text-", "answered"} {
		run.Emit(word)
	}
	run.EmitInput(0, "tool-called", `{"why":"text-argued"}`)
	id := run.Message().ID
	call := state.ToolCall{ID: "call-" + id, Name: "tool-called", Input: `{"why":"text-argued"}`, Key: "key-" + id}
	err := state.Messages.Set(run.State(), []state.Message{state.AssistantText("text-answered"), state.ToolCalls(call)})
	for _, f := range w.fields {
		err = errors.Join(err, run.State().KV().Set(f.name, "value-of-"+f.name))
	}
	run.SetReply(reply)
	if err = errors.Join(err, run.Suspend(call.Key), run.Commit(ctx)); err != nil {
		return err
	}
	select {
	case w.Holding <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if id == "fails" {
		return errors.New("the run fails")
	}
	return nil
}
