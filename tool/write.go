package tool

import "github.com/agentstate/state"

// checkOutputs returns an error if st may not write a field of the outputs: the
// function is not called then.
func (t *Tool) checkOutputs(st *state.State) error {
	for _, s := range t.sinks {
		if err := inside.CheckWrite(st, s.field); err != nil {
			return &OutputError{Tool: t.name, Field: s.field, Err: err}
		}
	}
	return nil
}

// try returns the error that writing outputs to a state would have now. It
// writes them to a copy.
func (t *Tool) try(st *state.State, outputs []output) error {
	if err := st.Patch(nil); err != nil { // a copy of a frozen state could be written to
		return &OutputError{Tool: t.name, Field: outputs[0].field, Err: err}
	}
	return t.write(st.Snapshot().Fork(), outputs)
}

// write writes outputs to a state as one version.
func (t *Tool) write(st *state.State, outputs []output) (err error) {
	defer recoverPanic(t.name, &err)
	each := func(st *state.State) error {
		for _, o := range outputs {
			if err := o.write(st); err != nil {
				return &OutputError{Tool: t.name, Field: o.field, Err: err}
			}
		}
		return nil
	}
	if len(outputs) <= 1 { // one write is one version anyway
		return each(st)
	}
	err = st.Update(each)
	if _, ok := err.(*OutputError); err != nil && !ok { // of the transaction
		err = &OutputError{Tool: t.name, Err: err}
	}
	return err
}
