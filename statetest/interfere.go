package statetest

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/agentstate/state"
)

// Interfere calls run with two states that differ only in what agent may not
// know, and fails if agent could tell them apart. It finds flows that have no
// trace of the value, such as a route, a count or the length of a mask, which
// [NoLeak] cannot find.
//
// Each Vary is a subtest, in a bubble of [synctest]. setup makes a new State,
// and run gets the handle of the host. The agent sees its
// requests to the models of [Seen], the texts that are given to Seen, and in the
// end what Describe, Fields, Version and Changes, without times, return for its
// handle. Requests that the agent makes in parallel are compared in the order in
// which they arrive.
//
// At first the same state runs twice: if that differs, nothing can be concluded,
// and the failure says that run is not deterministic. Interfere fails the test
// at once if agent may read a field that varies, or if it has seen nothing.
// Interfere tries only the values that it is given.
func Interfere(t *testing.T, agent string, setup func() *state.State, run func(st *state.State, seen *Seen), vary ...Vary) {
	t.Helper()
	c := &interference{agent: agent, setup: setup, run: run, vary: vary, secrets: newSecrets()}
	if err := c.misuse(); err != nil {
		t.Fatalf("statetest: Interfere: %v", err)
	}
	first := c.play(t, nil)
	if first == nil {
		return
	}
	second := c.play(t, nil)
	if second == nil {
		return
	}
	if d := firstDifference(first.sights, second.sights); d != nil {
		t.Errorf("statetest: not deterministic: two runs with the same state differ for %s in %s (the first -, the second +)\n%s  %s",
			agent, d.what, d.text(c.secrets), rerun(t))
		return
	}
	for _, v := range vary {
		t.Run(v.kind+"_"+v.field, func(t *testing.T) {
			t.Helper()
			c.check(t, first, &v)
		})
	}
}

// Vary is how a field differs in the second run of [Interfere].
type Vary struct {
	kind   string // other or without
	field  string
	denied func(st *state.State) bool
	value  func(st *state.State) (value any, set bool)
	keep   func(tx *state.State) error // writes what is there
	change func(tx *state.State) error
}

// Other gives a field the value v in the second run.
func Other[T any](f *state.Field[T], v T) Vary {
	vary := varyOf(f, "other")
	if f == nil {
		return vary
	}
	vary.keep = func(tx *state.State) error {
		switch present, err := f.Get(tx); {
		case errors.Is(err, state.ErrNotFound):
			if err := f.Replace(tx, v); err != nil {
				return err
			}
			_, err := f.Delete(tx)
			return err
		case err != nil:
			return err
		default:
			return f.Replace(tx, present)
		}
	}
	vary.change = func(tx *state.State) error { return f.Replace(tx, v) }
	return vary
}

// Without deletes a field in the second run.
func Without[T any](f *state.Field[T]) Vary {
	vary := varyOf(f, "without")
	if f == nil {
		return vary
	}
	vary.keep = func(tx *state.State) error {
		present, err := f.Get(tx)
		if err != nil {
			return nil // unset: that it changes nothing is found later
		}
		return f.Replace(tx, present)
	}
	vary.change = func(tx *state.State) error {
		_, err := f.Delete(tx)
		return err
	}
	return vary
}

func varyOf[T any](f *state.Field[T], kind string) Vary {
	if f == nil {
		return Vary{}
	}
	return Vary{
		kind: kind, field: f.Name,
		denied: func(st *state.State) bool {
			_, err := f.Get(st)
			return errors.Is(err, state.ErrDenied)
		},
		value: func(st *state.State) (any, bool) {
			v, err := f.Get(st)
			return v, err == nil
		},
	}
}

// String returns the Vary without its value.
func (v *Vary) String() string {
	if v.kind == "without" {
		return "Without(" + v.field + ")"
	}
	return "Other(" + v.field + ")"
}

// interference is one call of Interfere.
type interference struct {
	agent   string
	setup   func() *state.State
	run     func(st *state.State, seen *Seen)
	vary    []Vary
	secrets *secrets
	states  []*state.State // that setup has returned
}

func (c *interference) misuse() error {
	switch {
	case c.agent == "":
		return errors.New("no agent: the host may know everything")
	case c.setup == nil || c.run == nil:
		return errors.New("no function")
	case len(c.vary) == 0:
		return errors.New("no Vary: nothing could be told apart")
	}
	for i, v := range c.vary {
		if v.kind == "" {
			return fmt.Errorf("Vary %d has no field", i+1)
		}
	}
	return nil
}

// check runs with a state that differs, and compares.
func (c *interference) check(t *testing.T, want *Seen, v *Vary) {
	t.Helper()
	got := c.play(t, v)
	if got == nil {
		return
	}
	if d := firstDifference(want.sights, got.sights); d != nil {
		t.Errorf("statetest: %s can tell what %s is: with %s, %s differs (as set up -, with %s +)\n%s  %s",
			c.agent, v.field, v, d.what, v, d.text(c.secrets), rerun(t))
		return
	}
	c.reportModels(t, got)
}

// play runs once, with a state that differs by v if that is not nil. It returns
// nil after a failure.
func (c *interference) play(t *testing.T, v *Vary) *Seen {
	t.Helper()
	seen := newSeen(c.agent)
	var fatal, problem string
	hung, ended, any := false, false, false
	inBubble(t, func(reason string) {
		t.Helper()
		hung = true
		t.Errorf("statetest: run hangs: %s\n  %s", c.secrets.mask(reason), rerun(t))
	}, func(t *testing.T) {
		st := c.setup()
		if fatal = c.unfit(st); fatal != "" {
			return
		}
		c.states = append(c.states, st)
		c.secrets.add(st)
		if fatal, problem = c.prepare(st, v); fatal != "" || problem != "" {
			return
		}
		done := make(chan struct{})
		go func() { // a Model ends the goroutine of an agent that does not stop
			defer close(done)
			c.run(st, seen)
		}()
		<-done
		synctest.Wait()
		any = seen.end(st)
		ended = true
	})
	switch {
	case hung:
	case fatal != "":
		t.Fatalf("statetest: Interfere: %s", c.secrets.mask(fatal))
	case problem != "":
		t.Errorf("statetest: Interfere: %s\n  %s", c.secrets.mask(problem), rerun(t))
	case v == nil && !c.reportModels(t, seen):
	case v == nil && !any:
		text := fmt.Sprintf("%s has seen nothing: no request and no text", c.agent)
		if others := slices.Sorted(maps.Keys(seen.others)); len(others) > 0 {
			text += ", but there were requests " + strings.Join(others, " and ")
		}
		t.Fatalf("statetest: Interfere: %s", text)
	case ended:
		return seen
	}
	return nil
}

// reportModels reports what the models have found.
func (c *interference) reportModels(t *testing.T, seen *Seen) bool {
	t.Helper()
	for _, problem := range seen.problems {
		t.Errorf("statetest: %s\n  %s", c.secrets.mask(problem), rerun(t))
	}
	return len(seen.problems) == 0
}

// unfit returns why a state that setup has returned cannot be used.
func (c *interference) unfit(st *state.State) string {
	switch {
	case st == nil:
		return "setup returned no state"
	case slices.Contains(c.states, st):
		return "setup returned a state for the second time: it has to make a new one"
	case st.Agent() != "":
		return fmt.Sprintf("setup returned a handle of %s, want the host's", st.Agent())
	}
	view := st.As(c.agent)
	for _, v := range c.vary {
		if !v.denied(view) {
			return fmt.Sprintf("%s may read %s: it is no secret from it", c.agent, v.field)
		}
	}
	if len(view.Fields()) == 0 {
		return fmt.Sprintf("%s may not read any field: is it of the team?", c.agent)
	}
	return ""
}

// prepare writes each field that varies, in one version in all runs: v has its
// value in this run, and the others have the one that they had.
func (c *interference) prepare(st *state.State, v *Vary) (fatal, problem string) {
	var before, after any
	var was, is bool
	if v != nil {
		before, was = v.value(st)
	}
	written := map[string]bool{}
	err := st.Update(func(tx *state.State) error {
		clear(written)
		for _, other := range c.vary {
			if written[other.field] {
				continue
			}
			written[other.field] = true
			write := other.keep
			if v != nil && v.field == other.field {
				write = v.change
			}
			if err := write(tx); err != nil {
				return fmt.Errorf("%s: %w", other.String(), err)
			}
		}
		return nil
	})
	if err != nil {
		return err.Error(), ""
	}
	if v == nil {
		return "", ""
	}
	if after, is = v.value(st); was == is && (!is || reflect.DeepEqual(before, after)) {
		return "", fmt.Sprintf("%s changes nothing: the field has the same value, or none, in both runs", v)
	}
	return "", ""
}
