package state

import (
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/form"
)

// Export returns the whole content as JSON, for [Import]: all fields except the
// ephemeral ones, undeclared keys, the conversation, the results and the
// version, as they are at one moment. Secrets are included unmasked. The
// journal is not included. The size is linear in the content. Only the host may
// call it.
func (s *State) Export() ([]byte, error) {
	h := s.on()
	if h.rights != nil {
		return nil, h.denied("export", "")
	}
	f := h.branch.Scan()
	st := h.schema.history.stackIn(f.Get(h.schema.history.address()))
	table := st.clone()
	table.table.index = nil // the conversation is not in the table of st
	out := form.State{Format: form.Format, Version: f.Version()}
	if c := f.Slot(&h.schema.messages().slot); c != nil && !h.schema.messages().ephemeral {
		msgs := h.schema.messages().form.Share(c.Value).([]Message)
		runs := append([]form.Run{}, exportRuns(table.intern(msgs))...)
		out.Conversation = &runs
	}
	var values exportedValues
	for _, sp := range h.schema.fields[1:] {
		if c := f.Slot(&sp.slot); c != nil && !sp.ephemeral {
			if err := values.add(sp, sp.address(), c); err != nil {
				return nil, err
			}
		}
	}
	out.Fields, values.fields = values.fields, nil
	keys := h.schema.keys
	cells := f.KeyedCells()
	values.fields = make([]form.Field, 0, len(cells))
	for _, e := range cells {
		if err := values.add(keys, engine.Address{Slot: &keys.slot, Key: e.Key}, e.Cell); err != nil {
			return nil, err
		}
	}
	out.Keys = values.fields
	for r := range st.all() {
		out.Results = append(out.Results, exportResult(r))
	}
	size := 2*len(values.text) + 256
	for _, m := range table.table.messages.All() {
		out.Messages = append(out.Messages, form.Message(m.Raw()))
		size += 2 * len(m.Raw())
	}
	return out.AppendJSON(make([]byte, 0, size)), nil
}

// exportedValues collects the fields of an export. All values are parts of one
// text.
type exportedValues struct {
	fields []form.Field
	text   []byte
}

func (e *exportedValues) add(sp *fieldSpec, at engine.Address, c *engine.Cell) (err error) {
	from := len(e.text)
	if e.text, err = sp.appendJSON(e.text, at, c.Value); err != nil {
		return err
	}
	e.fields = append(e.fields, form.Field{Name: addressName(at), Value: e.text[from:]})
	return nil
}

func exportResult(r *stackedResult) form.Result {
	out := form.Result{
		ID: r.id, Agent: r.agent, Input: r.input, StartedAt: r.started, CreatedAt: r.created,
		Prompt: exportRuns(r.prompt), History: exportRuns(r.history),
		Output: exportRuns(r.output), ToolCalls: exportRuns(r.called),
	}
	out.SetRaw(r.raw)
	return out
}

func exportRuns(runs []messageRun) []form.Run {
	if len(runs) == 0 {
		return nil
	}
	out := make([]form.Run, len(runs))
	for i, r := range runs {
		out[i] = form.Run{From: r.from, To: r.to}
	}
	return out
}
