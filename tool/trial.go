package tool

import "github.com/agentstate/state"

// trial is the outputs of a call together with those that are held.
type trial struct {
	st    *state.State // of the step
	start *state.State // frozen, without the outputs
	calls []heldOutputs
	tried int // the index of the call in calls
}

// heldOutputs are the outputs of a call.
type heldOutputs struct {
	tool    *Tool
	cause   string
	outputs []output
}

// run returns an error if the state refuses the outputs, or others because of
// them.
func (t *trial) run() error {
	tool := t.calls[t.tried].tool
	if err := t.st.Patch(nil); err != nil { // a copy of a frozen state could be written to
		return &OutputError{Tool: tool.name, Field: t.calls[t.tried].outputs[0].field, Err: err}
	}
	with := t.writeAll(true)
	if with == nil {
		return nil
	}
	if err := with[t.tried]; err != nil {
		return err
	}
	without := t.writeAll(false)
	for i, err := range with {
		if err != nil && (without == nil || without[i] == nil) {
			refused := err.(*OutputError)
			return &OutputError{Tool: tool.name, Field: refused.Field, Err: refused.Err}
		}
	}
	return nil
}

// writeAll writes all outputs to a copy of the state, with or without those
// that are tried. It returns the error of each call, or nil if there is none.
func (t *trial) writeAll(tried bool) (errs []error) {
	copied := t.start.Fork()
	for i, c := range t.calls {
		if i == t.tried && !tried {
			continue
		}
		if err := c.tool.write(copied.WithCause(c.cause), c.outputs); err != nil {
			if errs == nil {
				errs = make([]error, len(t.calls))
			}
			errs[i] = err
		}
	}
	return errs
}
