package state

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
)

// Export returns the whole content as JSON, for [Import]: all fields but the
// ephemeral ones, undeclared keys, the conversation, the results and the
// version, as they are at one moment. Secrets are in it as they are. The journal
// is not. The size is linear in what is held. It is the host's.
func (s *State) Export() ([]byte, error) {
	h := s.on()
	if h.rights != nil {
		return nil, h.denied("export", "")
	}
	f := h.freeze()
	t := f.tree.Load()
	st := stackOf(t.slot(historySlot))
	table := &stack{table: st.table, results: st.results}
	st.index.Share(&table.index)
	out := form.State{Format: form.Format, Version: f.version.Load(), Counts: t.counts(h.schema)}
	for slot, sp := range h.schema.specs {
		e := f.load(slot)
		switch {
		case slot == historySlot || e == nil || sp.ephemeral:
		case slot == messagesSlot:
			runs := append([]form.Run{}, formed(table.intern(lastOwner.Add(1), sp.share(e.value).([]Message)))...)
			out.Conversation = &runs
		default:
			data, err := sp.appendJSON(nil, e.value)
			if err != nil {
				return nil, err
			}
			out.Fields = append(out.Fields, form.Field{Name: sp.name, Value: data})
		}
	}
	for _, key := range f.keys() {
		data, err := undeclaredSpec.appendJSON(nil, f.get(undeclaredSpec, key).value)
		if err != nil {
			return nil, err
		}
		out.Keys = append(out.Keys, form.Field{Name: key, Value: data})
	}
	for i := range st.results.Len() {
		r := st.at(i)
		e := form.Result{
			ID: r.id, Agent: r.agent, Input: r.input, CreatedAt: r.created,
			Prompt: formed(r.prompt), History: formed(r.history), Output: formed(r.output), ToolCalls: formed(r.called),
		}
		e.SetRaw(r.raw)
		out.Results = append(out.Results, e)
	}
	for i := range table.table.Len() {
		out.Messages = append(out.Messages, json.RawMessage(table.message(i).Raw()))
	}
	data, err := JSONOf(out)
	return []byte(data), err
}

// formed returns runs as they are exported.
func formed(runs []run) []form.Run {
	if len(runs) == 0 {
		return nil
	}
	out := make([]form.Run, len(runs))
	for i, r := range runs {
		out[i] = form.Run{From: r.from, To: r.to}
	}
	return out
}

// counts returns the tree's counts of versions, from which the versions of bound
// handles follow. Without a team the version alone says it.
func (t *tree) counts(s *Schema) []form.Count {
	if s.team == nil {
		return nil
	}
	var counts []form.Count
	for class := range t.classes {
		if n := t.classes[class].versions; n > 0 {
			counts = append(counts, form.Count{Classes: [][]string{s.readers(class)}, Versions: n})
		}
	}
	for _, m := range t.mixed {
		if m.versions == 0 {
			continue
		}
		c := form.Count{Versions: m.versions}
		for class := range t.classes {
			if m.classes.has(class) {
				c.Classes = append(c.Classes, s.readers(class))
			}
		}
		counts = append(counts, c)
	}
	return counts
}

// recount takes over exported counts. Classes that the schema no longer has
// count for nobody but the host.
func (t *tree) recount(s *Schema, in *form.State) {
	if s.team == nil {
		t.classes[undeclaredClass].versions = in.Version
		return
	}
	for _, c := range in.Counts {
		touched := make(bits, len(t.classes)>>6+1)
		known := false
		for _, readers := range c.Classes {
			slices.Sort(readers)
			if class := slices.Index(s.classes, classKey(readers)); class >= 0 {
				touched.with(class)
				known = true
			}
		}
		if known && c.Versions <= in.Version {
			t.count(touched, int(c.Versions))
		}
	}
}

// Import returns a state with the content that Export wrote, converted to the
// schema's types if nothing is lost. A nil schema stands for one that accepts any
// name. Data that is damaged, of a newer format, or does not fit the schema is an
// error that says where; validation is not asked again. The journal begins
// after the imported version.
func Import(schema *Schema, data []byte) (*State, error) {
	in, err := decodeExport(data)
	if err != nil {
		return nil, jsonError("import", err)
	}
	return importForm(schema, in)
}

// importForm is Import of a decoded form. Package workspace, which has forms that
// were never encoded, calls it as internal.ImportForm.
func importForm(schema *Schema, in *form.State) (*State, error) {
	s := New(schema)
	if err := s.on().load(in); err != nil {
		return nil, jsonError("import", err)
	}
	return s, nil
}

// load fills the empty branch of a handle that nobody else has seen.
func (h *handle) load(in *form.State) error {
	b := h.branch
	t := b.tree.Load().clone()
	put := func(sp *spec, key string, v any, size int) {
		e := &entry{value: sp.hide(v), size: size, version: in.Version, born: in.Version}
		t.put(sp, key, e)
		t.member(sp, nil, e)
	}
	st, talk, err := importStack(in, h.schema.limits)
	if err != nil {
		return err
	}
	if st.results.Len() > 0 {
		t.put(historySpec, "", &entry{value: st, version: in.Version, born: in.Version})
	}
	seen := map[string]bool{}
	for i, f := range append(slices.Clone(in.Fields), in.Keys...) {
		declared := i < len(in.Fields)
		sp, key, err := h.named(f.Name)
		switch {
		case seen[f.Name]:
			err = errors.New("given twice")
		case declared && err == nil && sp.slot < 0:
			err = ErrUnknownField
		case err == nil && sp.slot < 0:
			err = checkName(f.Name, h.schema.limits.NameBytes)
		case err == nil && sp.slot == messagesSlot:
			err = errors.New("messages are in conversation")
		}
		if err != nil {
			return fieldError(fault.Clip(f.Name), err)
		}
		seen[f.Name] = true
		v, size, err := sp.imported(f.Value, h.schema.limits)
		if err != nil {
			o := op{spec: sp, key: key}
			return o.about(err)
		}
		put(sp, key, v, size)
	}
	if most := h.schema.limits.Keys; most > 0 && len(seen) > most {
		return &LimitError{Name: "Keys", Limit: most, Got: len(seen)}
	}
	if in.Conversation != nil {
		sp := h.schema.specs[messagesSlot]
		v, size, err := sp.take(st.messages(talk), h.schema.limits.value(), true)
		if err != nil {
			return err
		}
		if v, err = sp.settle(v, size, false); err != nil {
			return err
		}
		put(sp, "", v, size)
	}
	t.recount(h.schema, in)
	b.forked = in.Version
	b.version.Store(in.Version)
	b.tree.Store(t)
	b.owned = true
	return nil
}

// imported returns an exported value in stored form, and its size.
func (sp *spec) imported(data []byte, lim Limits) (any, int, error) {
	if sp.any {
		tree, err := jsontext.Decode(data, jsontext.Limits{})
		if err != nil {
			return nil, 0, jsonError(sp.name, err)
		}
		return sp.takeAny(tree, lim.value())
	}
	c, size, err := sp.plan.Decode(data, lim.value())
	if err != nil {
		return nil, 0, sp.fault(err)
	}
	v := c.Interface()
	if sp.maxBytes > 0 && size > sp.maxBytes {
		return nil, 0, &LimitError{Name: "MaxBytes", Field: sp.name, Limit: sp.maxBytes, Got: size}
	}
	v, err = sp.settle(v, size, false)
	return v, size, err
}

// decodeExport reads the format, strictly.
func decodeExport(data []byte) (*form.State, error) {
	if err := jsontext.Check(data, jsontext.Limits{Depth: 10_000}); err != nil {
		return nil, err
	}
	var head struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if head.Format != form.Format {
		return nil, fmt.Errorf("format %d; this package reads format %d", head.Format, form.Format)
	}
	in := &form.State{}
	if err := exactMembers(data, reflect.TypeOf(*in), map[string]reflect.Type{
		"fields": reflect.TypeFor[form.Field](), "keys": reflect.TypeFor[form.Field](),
		"results": reflect.TypeFor[form.Result](), "counts": reflect.TypeFor[form.Count](),
	}); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, in); err != nil {
		return nil, err
	}
	if in.Version > math.MaxInt64 {
		return nil, errors.New("$.version: out of range")
	}
	return in, nil
}

// importStack returns the results with their table of messages, and the
// conversation as runs of it.
func importStack(in *form.State, lim Limits) (st *stack, talk []run, err error) {
	if lim.Results > 0 && len(in.Results) > lim.Results {
		return nil, nil, &LimitError{Name: "Results", Limit: lim.Results, Got: len(in.Results)}
	}
	msgs := make([]Message, len(in.Messages))
	for i, data := range in.Messages {
		m, err := DecodeMessage(data)
		if err != nil {
			return nil, nil, fmt.Errorf("$.messages[%d]: %w", i, err)
		}
		msgs[i] = m
	}
	st = newStack()
	if runs := st.intern(lastOwner.Add(1), msgs); len(msgs) > 0 && (len(runs) != 1 || st.table.Len() != len(msgs)) {
		return nil, nil, errors.New("$.messages: a message is there twice")
	}
	take := func(path string, in []form.Run) ([]run, error) {
		runs := make([]run, len(in))
		for i, r := range in {
			if r.From < 0 || r.To <= r.From || r.To > len(msgs) {
				return nil, fmt.Errorf("%s: no messages from %d to %d", path, r.From, r.To)
			}
			runs[i] = run{r.From, r.To}
		}
		return runs, nil
	}
	if in.Conversation != nil {
		if talk, err = take("$.conversation", *in.Conversation); err != nil {
			return nil, nil, err
		}
	}
	results := make([]*stackedResult, len(in.Results))
	for i, e := range in.Results {
		path := jsontext.Index("$.results", i)
		r := &stackedResult{id: e.ID, agent: e.Agent, input: e.Input, raw: e.Raw, created: e.CreatedAt}
		for _, part := range []struct {
			name string
			runs []form.Run
			to   *[]run
		}{{"prompt", e.Prompt, &r.prompt}, {"history", e.History, &r.history}, {"output", e.Output, &r.output}, {"tool_calls", e.ToolCalls, &r.called}} {
			if *part.to, err = take(path+"."+part.name, part.runs); err != nil {
				return nil, nil, err
			}
		}
		for _, m := range st.messages(r.called) {
			if _, ok := m.(ToolResultMessage); !ok {
				return nil, nil, fmt.Errorf("%s.tool_calls: %q is no tool result", path, m.Type())
			}
		}
		if e.RawBytes != "" {
			raw, err := base64.StdEncoding.DecodeString(e.RawBytes)
			if err != nil || e.Raw != "" {
				return nil, nil, fmt.Errorf("%s.raw_base64: not base64, or beside raw", path)
			}
			r.raw = string(raw)
		}
		results[i] = r
	}
	st.results = st.results.Append(reflect.ValueOf(results), 0)
	return st, talk, nil
}
