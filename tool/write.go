package tool

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// outputs returns what a result writes to fields.
func (t *Tool) outputs(r result) ([]output, error) {
	if len(t.sinks) == 0 {
		return nil, nil
	}
	var room [8][]byte
	texts, err := t.sinkTexts(room[:0], []byte(r.text))
	if err != nil {
		return nil, err
	}
	outputs := make([]output, 0, len(t.sinks))
	for i, text := range texts {
		s := &t.sinks[i]
		if text == nil {
			continue
		}
		o, err := output{write: s.delete}, error(nil)
		if string(text) != "null" && !isNil(memberOf(r.value, s.key)) {
			o, err = s.decode(text)
		}
		if err != nil {
			return nil, &OutputError{Tool: t.name, Field: s.field, Err: err}
		}
		if o.write != nil {
			o.field = s.field
			outputs = append(outputs, o)
		}
	}
	return outputs, nil
}

// sinkTexts appends the part of a result that each sink takes, or nil.
func (t *Tool) sinkTexts(texts [][]byte, data []byte) ([][]byte, error) {
	for i := range t.sinks {
		texts = append(texts, nil)
		if t.sinks[i].key == "" {
			texts[i] = data
		}
	}
	if !t.keyed || string(data) == "null" {
		return texts, nil
	}
	err := jsontext.EachMember(data, func(name []byte, value jsontext.Span) error {
		for i := range t.sinks {
			if key := t.sinks[i].key; key != "" && key == string(name) {
				texts[i] = value.In(data)
			}
		}
		return nil
	})
	if err != nil {
		return nil, &OutputError{Tool: t.name,
			Err: badResult("the result is not an object but " + jsontext.Kind(data) + ": its keys cannot be written to fields")}
	}
	return texts, nil
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
