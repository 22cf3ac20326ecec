package main

import (
	"context"
	"slices"
	"sync"

	"github.com/cloudwego/eino/adk"
	"github.com/firebase/genkit/go/core/x/session"

	"github.com/agentstate/state"
)

// values is what agents and tools share.
type values interface {
	// SetGet writes a number and reads it.
	SetGet(n int) int
	// Add adds a note as the documentation does it. It calls between when it has
	// read and not yet written.
	Add(note string, between func())
	Notes() []string
	// Fill replaces the notes.
	Fill(notes []string)
}

type contender struct {
	name string
	// with calls a function with new values.
	with func(func(values))
}

var contenders = []contender{
	{"State", func(f func(values)) { f(newStateValues()) }},
	{"map and mutex", func(f func(values)) { f(&mapValues{values: map[string]any{}}) }},
	{"eino v0.9.13, session values", inEino},
	{"Genkit v1.4.0, session", inGenkit},
}

// stateValues are fields of a State.
type stateValues struct {
	st     *state.State
	number *state.Field[int]
	notes  *state.Field[[]string]
}

func newStateValues() *stateValues {
	v := &stateValues{number: &state.Field[int]{Name: "number"}, notes: &state.Field[[]string]{Name: "notes"}}
	v.st = state.New(state.MustSchema(v.number, v.notes))
	return v
}

func (v *stateValues) SetGet(n int) int {
	must(v.number.Set(v.st, n))
	return v.number.GetOr(v.st, 0)
}

func (v *stateValues) Add(note string, between func()) {
	between()
	must(v.notes.Set(v.st, []string{note}))
}

func (v *stateValues) Notes() []string     { return v.notes.GetOr(v.st, nil) }
func (v *stateValues) Fill(notes []string) { must(v.notes.Replace(v.st, notes)) }

// mapValues are a map whose reads and writes each take a lock.
type mapValues struct {
	mu     sync.Mutex
	values map[string]any
}

func (v *mapValues) get(key string) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.values[key]
}

func (v *mapValues) set(key string, value any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.values[key] = value
}

func (v *mapValues) SetGet(n int) int {
	v.set("number", n)
	return v.get("number").(int)
}

func (v *mapValues) Add(note string, between func()) {
	notes := v.Notes()
	between()
	v.set("notes", append(slices.Clip(notes), note))
}

func (v *mapValues) Notes() []string {
	notes, _ := v.get("notes").([]string)
	return notes
}

func (v *mapValues) Fill(notes []string) { v.set("notes", notes) }

// einoValues are the session values of a run of eino.
type einoValues struct{ ctx context.Context }

func (v einoValues) SetGet(n int) int {
	adk.AddSessionValue(v.ctx, "number", n)
	got, _ := adk.GetSessionValue(v.ctx, "number")
	return got.(int)
}

func (v einoValues) Add(note string, between func()) {
	notes := v.Notes()
	between()
	adk.AddSessionValue(v.ctx, "notes", append(slices.Clip(notes), note))
}

func (v einoValues) Notes() []string {
	value, _ := adk.GetSessionValue(v.ctx, "notes")
	notes, _ := value.([]string)
	return notes
}

func (v einoValues) Fill(notes []string) { adk.AddSessionValue(v.ctx, "notes", notes) }

// inEino calls a function within an agent, where session values are.
func inEino(f func(values)) {
	agent := &einoAgent{func(ctx context.Context) { f(einoValues{ctx}) }}
	ctx := context.Background()
	events := adk.NewRunner(ctx, adk.RunnerConfig{Agent: agent}).Query(ctx, "go")
	for {
		if _, more := events.Next(); !more {
			return
		}
	}
}

type einoAgent struct{ run func(context.Context) }

func (a *einoAgent) Name(context.Context) string        { return "memory" }
func (a *einoAgent) Description(context.Context) string { return "measures" }
func (a *einoAgent) Run(ctx context.Context, _ *adk.AgentInput, _ ...adk.AgentRunOption) *adk.AsyncIterator[*adk.AgentEvent] {
	out, events := adk.NewAsyncIteratorPair[*adk.AgentEvent]()
	go func() {
		defer events.Close()
		a.run(ctx)
	}()
	return out
}

// genkitValues are a session of Genkit, whose state is a struct.
type genkitValues struct {
	ctx     context.Context
	session *session.Session[shared]
}

type shared struct {
	Number int
	Notes  []string
}

func inGenkit(f func(values)) {
	s, err := session.New(context.Background(), session.WithInitialState(shared{}))
	must(err)
	f(&genkitValues{session.NewContext(context.Background(), s), s})
}

func (v *genkitValues) SetGet(n int) int {
	s := v.session.State()
	s.Number = n
	must(v.session.UpdateState(v.ctx, s))
	return v.session.State().Number
}

func (v *genkitValues) Add(note string, between func()) {
	s := v.session.State()
	between()
	s.Notes = append(slices.Clip(s.Notes), note)
	must(v.session.UpdateState(v.ctx, s))
}

func (v *genkitValues) Notes() []string { return v.session.State().Notes }

func (v *genkitValues) Fill(notes []string) {
	s := v.session.State()
	s.Notes = notes
	must(v.session.UpdateState(v.ctx, s))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
