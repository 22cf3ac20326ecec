package tool

import "github.com/agentstate/state"

// mask replaces the values of secrets in the texts of a call that a model
// reads.
type mask []*state.Redactor

// newMask returns the mask for the secrets that a handle may read, and the
// state to inject fields from.
func (t *Tool) newMask(reads *state.State) (mask, *state.State) {
	if t.reveals {
		return nil, reads
	}
	r := reads.Redactor()
	if r != nil && len(t.sources) > 0 { // the mask must have what is injected
		reads = reads.Snapshot()
		r = reads.Redactor()
	}
	if r == nil {
		return nil, reads
	}
	return mask{r}, reads
}

// with adds the secrets that have been set since the mask was made: by a
// stateful function, or by others if there was no secret before.
func (m mask) with(t *Tool, st *state.State) mask {
	if t.reveals || m != nil && !t.stateful {
		return m
	}
	if r := st.Redactor(); r != nil {
		return append(m, r)
	}
	return m
}

// text returns a text without the secrets.
func (m mask) text(text string) string {
	for _, r := range m {
		text = r.Redact(text)
	}
	return text
}

// json returns a result without the secrets. A result that would not be JSON
// without them becomes a text.
func (m mask) json(text state.JSON) state.JSON {
	masked := state.JSON(m.text(string(text)))
	if masked != text && !masked.Valid() {
		return state.JSONText(string(masked))
	}
	return masked
}

// error returns an error whose text is without the secrets.
func (m mask) error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if masked := m.text(text); masked != text {
		return &maskedError{masked, err}
	}
	return err
}

// maskedError is an error with another text.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string { return e.text }
func (e *maskedError) Unwrap() error { return e.err }
