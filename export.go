package state

import (
	"errors"
	"fmt"

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
	for _, sp := range h.schema.stored[1:] {
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
		ID: r.id, Agent: r.agent, Input: r.input, Stop: string(r.stop), StopWord: r.stopWord, Usage: form.Usage(r.usage),
		StartedAt: r.started, CreatedAt: r.created,
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

// Import returns a state with the content that Export has written, converted to
// the schema's types if nothing is lost. A nil schema declares no fields and
// accepts undeclared keys.
//
// If the data is damaged, has a newer format, or does not fit the schema, the
// error is a [TypeError], or an [ErrUnknownField], and says where. The value of
// a field that the schema no longer declares is an [ErrUnknownField], also with
// [AllowUndeclared]: it may have been secret, and undeclared keys are public. If
// the content is larger than the schema's [Limits], the error is a
// [LimitError]: what the data only refers to is counted before it is made.
// Validation is not run again. The journal begins after the imported version.
func Import(schema *Schema, data []byte) (*State, error) {
	in, err := form.Decode(data)
	if err != nil {
		return nil, jsonError("import", err)
	}
	s, _, err := importForm(schema, in, nil)
	return s, err
}

// importForm is Import of a decoded form: see [Insider.ImportForm].
func importForm(schema *Schema, in *form.State, c *conversation) (*State, []form.Moved, error) {
	s := New(schema)
	i := importer{handle: s.on(), loader: engine.NewLoader(s.branch, in.Version), conversation: c}
	if err := i.load(in); err != nil {
		return nil, nil, jsonError("import", err)
	}
	i.loader.Done()
	return s, i.moved, nil
}

// importer puts the content of a form into the empty branch of a handle.
type importer struct {
	*handle
	loader *engine.Loader
	moved  []form.Moved
	// conversation takes the place of that of the form, unless it is nil.
	conversation *conversation
}

// load puts all of a form.
func (i *importer) load(in *form.State) error {
	if err := i.schema.mayHold(in); err != nil {
		return err
	}
	for n := range in.Fields {
		if err := i.loadField(&in.Fields[n], true); err != nil {
			return err
		}
	}
	for n := range in.Keys {
		if err := i.loadField(&in.Keys[n], false); err != nil {
			return err
		}
	}
	if double, ok := i.loader.PutKeys(); !ok {
		return givenTwice(double)
	}
	if i.conversation != nil {
		i.conversation.putInto(i.loader)
		return nil
	}
	t, err := importTable(in.Messages)
	if err == nil && in.Conversation != nil {
		err = i.loadConversation(t, *in.Conversation)
	}
	if err == nil && len(in.Results) > 0 {
		err = i.loadResults(t, in.Results)
	}
	return err
}

// mayHold returns an error if a form has more than the limits allow.
func (s *Schema) mayHold(in *form.State) error {
	if n, most := len(in.Fields)+len(in.Keys), s.limits.Keys; most > 0 && n > most {
		return &LimitError{Name: "Keys", Limit: most, Got: n}
	}
	if n, most := len(in.Results), s.limits.Results; most > 0 && n > most {
		return &LimitError{Name: "Results", Limit: most, Got: n}
	}
	return nil
}

// loadField puts the value of a declared field or an undeclared key.
func (i *importer) loadField(f *form.Field, declared bool) error {
	sp, at, err := i.locateStored(f.Name, declared)
	if err != nil {
		return err
	}
	former := !sp.slot.Keyed && f.Name != sp.name
	m, converted, err := sp.decodeStored(at, f.Value, former)
	if err != nil {
		return err
	}
	if !i.loader.Put(at, m) {
		return givenTwice(sp.nameAt(at))
	}
	// A list can be made of a single value.
	converted = converted || sp.form.Elem != nil && jsontext.Kind(f.Value) != "array"
	if former || converted {
		value, err := sp.appendJSON(nil, at, m.Value)
		if err != nil {
			return err
		}
		i.moved = append(i.moved, form.Moved{Field: sp.name, From: f.Name, Value: value})
	}
	return nil
}

func givenTwice(name string) error {
	return &TypeError{Field: fault.Clip(name), Path: "$", Got: "given twice"}
}

// locateStored is locate for the name of a stored value, which may be a former
// one. A value that was that of a declared field does not become an undeclared
// key, which is public: the field may have been secret.
func (h *handle) locateStored(name string, declared bool) (*fieldSpec, engine.Address, error) {
	if sp, ok := h.schema.former[name]; ok {
		return sp, sp.address(), nil
	}
	if declared && name == windowsName {
		return h.schema.windows, h.schema.windows.address(), nil
	}
	sp, at, err := h.locate(name)
	switch {
	case declared && (err != nil || sp.slot.Keyed):
		err = errNotDeclared(name, "name it in Was of the field that has its values now")
	case err != nil:
		err = errNotDeclared(name, "give the schema AllowUndeclared")
	case sp == h.schema.messages():
		err = &TypeError{Field: name, Path: "$", Got: "messages are in conversation"}
	case sp.slot.Keyed:
		err = checkName(name, h.schema.limits.NameBytes)
	}
	return sp, at, err
}

// errNotDeclared is the error for a stored value that the schema does not take.
func errNotDeclared(name, otherwise string) error {
	return fieldError(fault.Clip(name), fmt.Errorf("%w: declare it, or %s", ErrUnknownField, otherwise))
}

// decodeStored returns the value of a JSON text from a stored state, and whether
// the field's Convert has made it.
func (sp *fieldSpec) decodeStored(
	at engine.Address, text []byte, former bool,
) (m engine.Merged, converted bool, err error) {
	var v any
	var size int
	if !former || sp.convert == nil {
		v, size, err = sp.form.Decode(text)
	}
	if sp.convert != nil && (former || err != nil) {
		converted = true
		if v, err = sp.convertStored(JSON(text)); err == nil {
			v, size, err = sp.form.Store(v, false)
		}
		if err == nil {
			v, err = sp.form.Settle(v, size, false)
		}
	}
	m, err = sp.stored(at, v, size, err)
	return m, converted, err
}

// convertStored calls the field's Convert.
func (sp *fieldSpec) convertStored(text JSON) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, &userError{panicError("", "Convert", p, sp.form.Secret)}
		}
	}()
	switch v, err = sp.convert(text); {
	case err != nil && sp.form.Secret:
		return nil, &userError{errors.New("refused by Convert")}
	case err != nil:
		return nil, &userError{fmt.Errorf("from Convert: %w", err)}
	}
	return v, nil
}

// loadConversation puts the field messages.
func (i *importer) loadConversation(t *importedTable, in []form.Run) error {
	runs, sum, err := t.runs("$.conversation", in)
	if err != nil {
		return err
	}
	sp := i.schema.messages()
	if err := sp.checkSize(listSize(sum)); err != nil {
		return sp.valueError(sp.address(), err)
	}
	msgs := t.stack.messages(runs)
	u, err := sp.store(sp.address(), msgs, true)
	if err != nil {
		return err
	}
	u.Borrowed = false // the list was made here
	m, err := replaceHandler.Merge(sp.address(), nil, u)
	if err != nil {
		return err
	}
	i.loader.Put(sp.address(), m)
	return nil
}

// listSize returns the size of a list of messages as its form counts it.
func listSize(sum messageSum) int { return sum.bytes + sum.messages + 2 }

// loadResults puts the history.
func (i *importer) loadResults(t *importedTable, in []form.Result) error {
	t.stack.classes = i.schema.history.classes
	for n := range in {
		r, err := t.result(jsontext.Index("$.results", n), &in[n], i.schema.limits.ValueBytes)
		if err != nil {
			return err
		}
		t.stack.add(r)
	}
	i.loader.Put(i.schema.history.address(), engine.Merged{Value: t.stack})
	return nil
}

// importedTable is the table of messages of a form. It has the sums of any run
// of messages, because a short text can refer to each message many times: such
// a form is refused before its runs are expanded.
type importedTable struct {
	stack *resultStack
	sums  []messageSum // of the messages before each place
	used  int          // the places below it are those of messages of earlier results
}

// messageSum counts messages.
type messageSum struct {
	messages int
	bytes    int
	results  int // messages that are tool results
	calls    int // in all messages
}

func (a messageSum) plus(b messageSum) messageSum {
	return messageSum{a.messages + b.messages, a.bytes + b.bytes, a.results + b.results, a.calls + b.calls}
}

func (a messageSum) minus(b messageSum) messageSum {
	return messageSum{a.messages - b.messages, a.bytes - b.bytes, a.results - b.results, a.calls - b.calls}
}

// importTable reads the messages of a form.
func importTable(texts []form.Message) (*importedTable, error) {
	t := &importedTable{stack: newResultStack(nil), sums: make([]messageSum, len(texts)+1)}
	msgs, r := make([]Message, len(texts)), messageReader{}
	for i, text := range texts {
		m, err := r.read(string(text))
		if err != nil {
			return nil, fault.Under(jsontext.Index("$.messages", i), err)
		}
		one := messageSum{messages: 1, bytes: m.size()}
		switch m := m.(type) {
		case ToolResultMessage:
			one.results = 1
		case ToolCallMessage:
			one.calls = len(m.toolCalls())
		}
		msgs[i], t.sums[i+1] = m, t.sums[i].plus(one)
	}
	t.stack.table.makeRoomFor(len(msgs))
	t.stack.intern(msgs)
	if t.stack.table.len() != len(msgs) {
		return nil, &fault.Error{Path: "$.messages", Got: "a message is there twice"}
	}
	return t, nil
}

// runs checks runs of messages and returns them with their sum.
func (t *importedTable) runs(path string, in []form.Run) (runs []messageRun, sum messageSum, err error) {
	runs = make([]messageRun, len(in))
	for i, r := range in {
		if r.From < 0 || r.To <= r.From || r.To >= len(t.sums) {
			return nil, sum, &fault.Error{Path: path, Got: fmt.Sprintf("no messages from %d to %d", r.From, r.To)}
		}
		runs[i] = messageRun{r.From, r.To}
		sum = sum.plus(t.sums[r.To].minus(t.sums[r.From]))
	}
	return runs, sum, nil
}

// result reads a result. It checks what History.Append checks, the size of the
// messages included.
func (t *importedTable) result(path string, in *form.Result, maxBytes int) (*stackedResult, error) {
	raw, ok := in.GetRaw()
	if !ok {
		return nil, &fault.Error{Path: path + ".raw_base64", Want: "base64, and no raw", Got: "other text"}
	}
	r := &stackedResult{
		id: in.ID, agent: in.Agent, input: in.Input, raw: raw, origin: persist.NewOwner(),
		stop: Stop(in.Stop), stopWord: in.StopWord, usage: Usage(in.Usage), started: in.StartedAt, created: in.CreatedAt,
	}
	var prompt, history, output, called messageSum
	for _, part := range []struct {
		name string
		runs []form.Run
		to   *[]messageRun
		sum  *messageSum
	}{
		{"prompt", in.Prompt, &r.prompt, &prompt}, {"history", in.History, &r.history, &history},
		{"output", in.Output, &r.output, &output}, {"tool_calls", in.ToolCalls, &r.called, &called},
	} {
		var err error
		if *part.to, *part.sum, err = t.runs(path+"."+part.name, part.runs); err != nil {
			return nil, err
		}
	}
	if err := checkCalls(path+".output", output.calls); err != nil {
		return nil, err
	}
	if called.results != called.messages {
		return nil, &fault.Error{Path: path + ".tool_calls", Want: "tool results", Got: "another message"}
	}
	// The messages need no check but that of their size.
	checked := InferenceResult{
		ID: r.id, Agent: r.agent, Input: r.input, Raw: r.raw, Stop: r.stop, StopWord: r.stopWord, Usage: r.usage,
		StartedAt: r.started, CreatedAt: r.created,
	}
	if err := checked.check(0); err != nil {
		return nil, err
	}
	r.size = len(r.id) + len(r.agent) + len(r.input) + len(r.stop) + len(r.stopWord) + len(r.raw) + output.bytes + called.bytes
	if err := checkResultSizes(maxBytes, r.size, prompt.bytes, history.bytes); err != nil {
		return nil, err
	}
	r.weight = r.textBytes()
	for _, runs := range [][]messageRun{r.prompt, r.history, r.output, r.called} {
		for _, run := range runs {
			r.weight += t.use(run)
		}
	}
	return r, nil
}

// use returns what the messages of a run take that no earlier one has used.
// Results use messages in about the order of the table.
func (t *importedTable) use(run messageRun) int {
	if run.to <= t.used {
		return 0
	}
	sum := t.sums[run.to].minus(t.sums[max(run.from, t.used)])
	t.used = run.to
	return sum.bytes + 64*sum.messages
}
