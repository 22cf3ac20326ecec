package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
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
	st := stackOf(f.Get(h.schema.history.address()))
	table := st.clone()
	out := form.State{Format: form.Format, Version: f.Version(engine.View{}), Counts: h.schema.exportCounts(f)}
	for sp, at := range h.readable(f) {
		c := f.Get(at)
		switch {
		case c == nil || sp.ephemeral:
		case sp == h.schema.messages():
			msgs := sp.form.Share(c.Value).([]Message)
			runs := append([]form.Run{}, exportRuns(table.intern(persist.NewOwner(), msgs))...)
			out.Conversation = &runs
		default:
			data, err := sp.appendJSON(nil, at, c.Value)
			if err != nil {
				return nil, err
			}
			field := form.Field{Name: addressName(at), Value: data}
			if sp.slot.Keyed {
				out.Keys = append(out.Keys, field)
			} else {
				out.Fields = append(out.Fields, field)
			}
		}
	}
	for r := range st.all() {
		out.Results = append(out.Results, exportResult(r))
	}
	for i := range table.table.Len() {
		out.Messages = append(out.Messages, json.RawMessage(table.message(i).Raw()))
	}
	data, err := JSONOf(out)
	return []byte(data), err
}

func exportResult(r *stackedResult) form.Result {
	out := form.Result{
		ID: r.id, Agent: r.agent, Input: r.input, CreatedAt: r.created,
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

// exportCounts returns the counts of versions, from which the versions of bound
// handles follow. Without a team the version alone is enough.
func (s *Schema) exportCounts(f *engine.Branch) []form.Count {
	if s.team == nil {
		return nil
	}
	var counts []form.Count
	for _, c := range f.VersionCounts() {
		out := form.Count{Versions: c.Versions}
		for _, class := range c.Classes {
			out.Classes = append(out.Classes, s.access.readers[class])
		}
		counts = append(counts, out)
	}
	return counts
}

// importCounts takes over exported counts. Classes that the schema no longer
// has count for the host only.
func (s *Schema) importCounts(l *engine.Loader, in *form.State) {
	if s.team == nil {
		l.Count(engine.VersionCount{Classes: []int{s.keys.slot.Class}, Versions: in.Version})
		return
	}
	for _, c := range in.Counts {
		count := engine.VersionCount{Versions: c.Versions}
		for _, readers := range c.Classes {
			slices.Sort(readers)
			if class, ok := s.access.classIndex[classKey(readers)]; ok {
				count.Classes = append(count.Classes, class)
			}
		}
		if len(count.Classes) > 0 && c.Versions <= in.Version {
			l.Count(count)
		}
	}
}

// Import returns a state with the content that Export has written, converted to
// the schema's types if nothing is lost. A nil schema accepts any name. If the
// data is damaged, has a newer format, or does not fit the schema, the error
// says where. Validation is not run again. The journal begins after the
// imported version.
func Import(schema *Schema, data []byte) (*State, error) {
	in, err := form.Decode(data)
	if err != nil {
		return nil, jsonError("import", err)
	}
	return importForm(schema, in)
}

// importForm is Import of a decoded form. Package workspace, which has forms
// that were never encoded, calls it as internal.ImportForm.
func importForm(schema *Schema, in *form.State) (*State, error) {
	s := New(schema)
	if err := s.on().load(in); err != nil {
		return nil, jsonError("import", err)
	}
	return s, nil
}

// load fills the empty branch of a handle that no caller has seen.
func (h *handle) load(in *form.State) error {
	l := engine.NewLoader(h.branch, in.Version)
	st, conversation, err := importResults(in, h.schema.limits.Results)
	if err != nil {
		return err
	}
	if st.len() > 0 {
		l.Put(h.schema.history.address(), engine.Merged{Value: st})
	}
	seen := map[string]bool{}
	for i, f := range append(slices.Clone(in.Fields), in.Keys...) {
		sp, at, err := h.locate(f.Name)
		if err == nil {
			err = h.schema.mayImport(sp, f.Name, i < len(in.Fields))
		}
		if seen[f.Name] {
			err = errors.New("given twice")
		}
		if err != nil {
			return fieldError(fault.Clip(f.Name), err)
		}
		seen[f.Name] = true
		v, size, err := sp.form.Decode(f.Value)
		m, err := sp.stored(at, v, size, err)
		if err != nil {
			return err
		}
		l.Put(at, m)
	}
	if most := h.schema.limits.Keys; most > 0 && len(seen) > most {
		return &LimitError{Name: "Keys", Limit: most, Got: len(seen)}
	}
	if in.Conversation != nil {
		sp := h.schema.messages()
		u, err := sp.store(sp.address(), st.messages(conversation), true)
		if err != nil {
			return err
		}
		u.Borrowed = false // the list was made here
		m, err := replaceHandler.Merge(sp.address(), nil, u)
		if err != nil {
			return err
		}
		l.Put(sp.address(), m)
	}
	h.schema.importCounts(l, in)
	l.Done()
	return nil
}

// mayImport returns an error if a form may not have a name among its fields or
// keys.
func (s *Schema) mayImport(sp *fieldSpec, name string, declared bool) error {
	switch {
	case sp == s.messages():
		return errors.New("messages are in conversation")
	case sp.slot.Keyed && declared:
		return ErrUnknownField
	case sp.slot.Keyed:
		return checkName(name, s.limits.NameBytes)
	}
	return nil
}

// importResults returns the results with their table of messages, and the
// conversation as runs of it.
func importResults(in *form.State, limit int) (st *resultStack, conversation []messageRun, err error) {
	if limit > 0 && len(in.Results) > limit {
		return nil, nil, &LimitError{Name: "Results", Limit: limit, Got: len(in.Results)}
	}
	st = newResultStack()
	if err := st.importTable(in.Messages); err != nil {
		return nil, nil, err
	}
	if in.Conversation != nil {
		if conversation, err = st.importRuns("$.conversation", *in.Conversation); err != nil {
			return nil, nil, err
		}
	}
	results := make([]*stackedResult, len(in.Results))
	for i := range in.Results {
		if results[i], err = st.importResult(jsontext.Index("$.results", i), &in.Results[i]); err != nil {
			return nil, nil, err
		}
	}
	st.results = st.results.Append(reflect.ValueOf(results), 0)
	return st, conversation, nil
}

// importTable fills the table of a new stack.
func (st *resultStack) importTable(texts []json.RawMessage) error {
	msgs := make([]Message, len(texts))
	for i, data := range texts {
		m, err := DecodeMessage(data)
		if err != nil {
			return fmt.Errorf("$.messages[%d]: %w", i, err)
		}
		msgs[i] = m
	}
	st.intern(persist.NewOwner(), msgs)
	if st.table.Len() != len(msgs) {
		return errors.New("$.messages: a message is there twice")
	}
	return nil
}

func (st *resultStack) importResult(path string, in *form.Result) (*stackedResult, error) {
	raw, ok := in.GetRaw()
	if !ok {
		return nil, fmt.Errorf("%s.raw_base64: not base64, or together with raw", path)
	}
	r := &stackedResult{id: in.ID, agent: in.Agent, input: in.Input, raw: raw, created: in.CreatedAt}
	for _, part := range []struct {
		name string
		runs []form.Run
		to   *[]messageRun
	}{
		{"prompt", in.Prompt, &r.prompt}, {"history", in.History, &r.history},
		{"output", in.Output, &r.output}, {"tool_calls", in.ToolCalls, &r.called},
	} {
		var err error
		if *part.to, err = st.importRuns(path+"."+part.name, part.runs); err != nil {
			return nil, err
		}
	}
	for _, m := range st.messages(r.called) {
		if _, ok := m.(ToolResultMessage); !ok {
			return nil, fmt.Errorf("%s.tool_calls: %q is not a tool result", path, m.Type())
		}
	}
	return r, nil
}

func (st *resultStack) importRuns(path string, in []form.Run) ([]messageRun, error) {
	runs := make([]messageRun, len(in))
	for i, r := range in {
		if r.From < 0 || r.To <= r.From || r.To > st.table.Len() {
			return nil, fmt.Errorf("%s: no messages from %d to %d", path, r.From, r.To)
		}
		runs[i] = messageRun{r.From, r.To}
	}
	return runs, nil
}
