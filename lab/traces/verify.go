package traces

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
)

var inside = state.Inside(internal.Key{})

// checkedSteps limits the work for long runs: an export after every step takes
// quadratic time. The State is checked after each of the first checkedSteps
// steps, after as many of the others at even distances, and after the last one.
const checkedSteps = 500

// verifier checks a State while a run is played to it.
type verifier struct {
	run    *Run
	state  *state.State
	stride int // between checked steps after the first checkedSteps
	forks  []fork
}

// fork is a branch that was taken after a step, with the hash of its content
// then.
type fork struct {
	path  string
	state *state.State
	sum   [sha256.Size]byte // of its export
}

func newVerifier(run *Run, st *state.State) *verifier {
	more := max(0, len(run.Steps)-checkedSteps)
	return &verifier{run: run, state: st, stride: max(1, (more+checkedSteps-1)/checkedSteps)}
}

// checksStep reports whether the State is checked after a step.
func (v *verifier) checksStep(step int) bool {
	return step < checkedSteps || (step-checkedSteps)%v.stride == 0 || step == len(v.run.Steps)-1
}

// afterStep checks the whole State after step i.
func (v *verifier) afterStep(i int) error {
	if !v.checksStep(i) {
		return nil
	}
	path := v.run.Steps[i].Path
	sum, err := roundTrip(v.state)
	if err != nil {
		return atPath(path, err)
	}
	v.forks = append(v.forks, fork{path, v.state.Fork(), sum})
	return nil
}

// sameMessage checks that a message survives encoding.
func sameMessage(m state.Message) error {
	back, err := state.DecodeMessage([]byte(m.Raw()))
	if err != nil {
		return err
	}
	if back.Raw() != m.Raw() || !m.Equal(back) {
		return errors.New("decoding its JSON gives another message")
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if back, err = state.DecodeMessage(data); err != nil {
		return err
	}
	if back.Type() != m.Type() || !m.Equal(back) {
		return errors.New("json.Marshal gives another message")
	}
	return nil
}

// roundTrip checks that Import restores what Export returns, and returns the
// hash of the export.
func roundTrip(st *state.State) (sum [sha256.Size]byte, err error) {
	data, err := st.Export()
	if err != nil {
		return sum, err
	}
	back, err := state.Import(schema, data)
	if err != nil {
		return sum, err
	}
	again, err := back.Export()
	if err != nil {
		return sum, err
	}
	if !bytes.Equal(data, again) {
		return sum, fmt.Errorf("exported, imported and exported again: it differs from byte %d on", firstDifference(data, again))
	}
	return sha256.Sum256(data), nil
}

func firstDifference(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// end checks that the State holds the run, and that no fork has changed since it
// was taken. Then it writes to all forks, which must not change the State.
func (v *verifier) end(talk []state.Message) error {
	if err := v.holdsRun(talk); err != nil {
		return err
	}
	sum, err := roundTrip(v.state)
	if err != nil {
		return atPath(v.run.Path, err)
	}
	for _, f := range v.forks {
		now, err := f.sumNow()
		if err == nil && now != f.sum {
			err = errors.New("a fork taken after this step was changed by later steps")
		}
		if err == nil {
			err = state.Messages.Set(f.state, []state.Message{state.UserText("written to the fork")})
		}
		if err != nil {
			return atPath(f.path, err)
		}
	}
	now, err := (&fork{state: v.state}).sumNow()
	if err == nil && now != sum {
		err = errors.New("writes to forks have changed the state")
	}
	if err != nil {
		return atPath(v.run.Path, err)
	}
	return nil
}

func (f *fork) sumNow() (sum [sha256.Size]byte, err error) {
	data, err := f.state.Export()
	return sha256.Sum256(data), err
}

// keyless returns the JSON of a message without the keys that its calls got when they
// were recorded.
func keyless(m state.Message) state.JSON { return inside.WithoutKeys(m).Raw() }

// holdsRun checks that the State holds the whole conversation in its order, and
// every turn with the conversation before it.
func (v *verifier) holdsRun(talk []state.Message) error {
	fail := func(path, problem string) error { return &fault.Error{Path: path, Got: problem} }
	n := 0
	for i, m := range state.ListItems(v.state, state.Messages, 0) {
		if i >= len(talk) || keyless(m) != talk[i].Raw() {
			return fail(v.run.Path, fmt.Sprintf("message %d of the conversation differs", i))
		}
		if err := sameMessage(m); err != nil {
			return atPath(v.run.Path, fmt.Errorf("message %d of the conversation: %w", i, err))
		}
		n++
	}
	if n != len(talk) {
		return fail(v.run.Path, fmt.Sprintf("the conversation has %d messages, want %d", n, len(talk)))
	}
	n = 0
	before := 0 // messages before the turn
	for i, r := range v.state.History().All() {
		if i >= len(v.run.Steps) {
			break
		}
		step := &v.run.Steps[i]
		before += len(step.Said)
		switch {
		case r.Raw != step.Raw:
			return fail(step.Path, "Raw is not the turn in the file")
		case r.Agent != step.Agent:
			return fail(step.Path, fmt.Sprintf("the agent is %q, want %q", r.Agent, step.Agent))
		case len(r.History) != before || before > 0 && keyless(r.History[before-1]) != talk[before-1].Raw():
			return fail(step.Path, "History is not the conversation before the turn")
		case len(r.Output) != len(step.Output) || len(r.ToolCalls) != len(step.Results):
			return fail(step.Path, "the result does not have the messages of the turn")
		}
		before += len(step.Output) + len(step.Results)
		n++
	}
	if n != len(v.run.Steps) || v.state.History().Len() != n {
		return fail(v.run.Path, fmt.Sprintf("the history has %d results, want %d", v.state.History().Len(), len(v.run.Steps)))
	}
	return nil
}
