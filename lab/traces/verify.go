package traces

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
)

// checkedSteps limits the work for long runs: an export after every step takes
// quadratic time. The State is checked after each of the first checkedSteps
// steps, after as many of the others at even distances, and after the last one.
const checkedSteps = 500

// verifier checks a State while a run is played to it.
type verifier struct {
	run    *Run
	state  *state.State
	stride int // between checked steps after the first checkedSteps
	next   int // the entry to check next
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

// afterStep checks the messages that step i has added, and then the whole
// State.
func (v *verifier) afterStep(i int) error {
	if err := v.checkEntries(i); err != nil {
		return err
	}
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

// checkEntries checks the messages of all entries up to those of a step.
func (v *verifier) checkEntries(step int) error {
	for ; v.next < len(v.run.entries) && v.run.entries[v.next].step <= step; v.next++ {
		e := &v.run.entries[v.next]
		if err := e.verify(); err != nil {
			return atPath(e.path, err)
		}
	}
	return nil
}

// verify checks that every message of the entry survives encoding, and that the
// messages together hold every scalar of the entry in its spelling.
func (e *entry) verify() error {
	held := map[string]int{}
	for i, m := range e.msgs {
		if err := sameMessage(m); err != nil {
			return fmt.Errorf("message %d of it: %w", i, err)
		}
		if err := countScalars([]byte(m.Raw()), held); err != nil {
			return err
		}
	}
	had := map[string]int{}
	if err := countScalars(e.raw, had); err != nil {
		return err
	}
	for scalar, n := range had {
		if held[scalar] < n {
			return fmt.Errorf("its messages lack a value of the file: %.60q", scalar)
		}
	}
	return nil
}

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

// countScalars counts the strings, numbers, bools and nulls in a JSON text,
// without member names. A string that holds an object counts as the scalars in
// the object, because arguments may be text or JSON.
func countScalars(data []byte, counts map[string]int) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var open []bool // for each open array or object, whether it is an object
	named := false  // whether the name of the next value has been read
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		inObject := len(open) > 0 && open[len(open)-1]
		if delim, ok := token.(json.Delim); ok {
			switch delim {
			case '{', '[':
				open = append(open, delim == '{')
			default:
				open = open[:len(open)-1]
			}
			named = false
			continue
		}
		if inObject && !named {
			named = true
			continue
		}
		named = false
		if s, ok := token.(string); ok && len(s) > 0 && s[0] == '{' && state.JSON(s).Valid() {
			if err := countScalars([]byte(s), counts); err != nil {
				return err
			}
			continue
		}
		counts[fmt.Sprintf("%T %v", token, token)]++
	}
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

// end checks the messages after the last turn, that the State holds the run,
// and that no fork has changed since it was taken. Then it writes to all forks,
// which must not change the State.
func (v *verifier) end(talk []state.Message) error {
	if err := v.checkEntries(len(v.run.Steps)); err != nil {
		return err
	}
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

// holdsRun checks that the State holds the whole conversation in its order, and
// every turn with the conversation before it.
func (v *verifier) holdsRun(talk []state.Message) error {
	fail := func(path, problem string) error { return &fault.Error{Path: path, Got: problem} }
	n := 0
	for i, m := range state.Items(v.state, state.Messages, 0) {
		if i >= len(talk) || m.Raw() != talk[i].Raw() {
			return fail(v.run.Path, fmt.Sprintf("message %d of the conversation differs", i))
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
		case len(r.History) != before || before > 0 && r.History[before-1].Raw() != talk[before-1].Raw():
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
