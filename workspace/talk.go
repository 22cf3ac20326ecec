package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
)

// The fields of partTalk.
const (
	talkConversation = "conversation" // the numbers of messages; missing if the field messages is unset
	talkResults      = "results"      // each as a form.Result, whose runs are of numbers
	talkVersion      = "version"      // of the state
)

// table is what is in partMessage.
type table struct {
	texts map[int]state.JSON
	first map[state.JSON]int // the lowest number of each text
	last  int                // the highest number
}

func (t *table) add(n int, text state.JSON) {
	t.texts[n] = text
	if first, ok := t.first[text]; !ok || n < first {
		t.first[text] = n
	}
	t.last = max(t.last, n)
}

// messages returns the table of messages. It is not to be changed.
func (d *document) messages() (*table, error) {
	if t := d.table.Load(); t != nil {
		return t, nil
	}
	fields := d.parts[partMessage]
	t := &table{make(map[int]state.JSON, len(fields)), make(map[state.JSON]int, len(fields)), 0}
	for field, c := range fields {
		n, ok := messageNumber(field)
		if !ok {
			return nil, corrupt("content", jsontext.Path("$.message", fault.Clip(field))+": not the number of a message")
		}
		t.add(n, c.json())
	}
	d.table.Store(t)
	return t, nil
}

// index notes in the table, if it was made, that a message is set, or deleted.
func (d *document) index(field string, c *cell) {
	t := d.table.Load()
	if t == nil {
		return
	}
	n, ok := messageNumber(field)
	if !ok || c == nil || t.texts[n] != "" {
		d.table.Store(nil)
		return
	}
	t.add(n, c.json())
}

// messageNumber reads the number of a message. More than 2^31 are not expected.
func messageNumber(text string) (int, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n > 0 && strconv.FormatInt(n, 10) == text
}

// interner gives messages numbers that they have in a document already, or new
// ones.
type interner struct {
	*table
	added   []state.JSON       // under the numbers after the last of the table
	found   map[state.JSON]int // the lowest number of each text of added
	effects []Effect           // that add them to the document
}

func newInterner(t *table) *interner {
	return &interner{table: t, found: map[state.JSON]int{}}
}

func (in *interner) text(n int) state.JSON {
	if i := n - in.last - 1; i >= 0 && i < len(in.added) {
		return in.added[i]
	}
	return in.texts[n]
}

// add gives a message a new number, also if its text is there.
func (in *interner) add(m state.Message) int {
	text := m.Raw()
	in.added = append(in.added, text)
	n := in.last + len(in.added)
	if _, ok := in.found[text]; !ok {
		in.found[text] = n
	}
	in.effects = append(in.effects, Effect{Part: partMessage, Field: strconv.Itoa(n), Do: doSet, Value: text})
	return n
}

// find returns the number of a message: the one after another number, or else any
// that it has, or else a new one.
func (in *interner) find(m state.Message, after int) int {
	text := m.Raw()
	if in.text(after+1) == text {
		return after + 1
	}
	if n, ok := in.first[text]; ok {
		return n
	}
	if n, ok := in.found[text]; ok {
		return n
	}
	return in.add(m)
}

// runs returns messages as runs of numbers.
func (in *interner) runs(msgs []state.Message) []form.Run {
	var runs []form.Run
	last := 0
	for _, m := range msgs {
		last = in.find(m, last)
		runs = extend(runs, last)
	}
	return runs
}

// extend returns runs with one more place.
func extend(runs []form.Run, at int) []form.Run {
	if n := len(runs); n > 0 && runs[n-1].To == at {
		runs[n-1].To++
		return runs
	}
	return append(runs, form.Run{From: at, To: at + 1})
}

// listOf returns numbers as elements of a list.
func listOf(numbers []int) []state.JSON {
	texts := make([]state.JSON, len(numbers))
	for i, n := range numbers {
		texts[i] = state.JSON(strconv.Itoa(n))
	}
	return texts
}

// numbers returns the numbers of messages of the conversation. Fresh ones get new
// numbers: with that of an equal message from before, every run over the
// conversation would break there. Others may have been in the conversation before
// it was cut.
func (in *interner) numbers(msgs []state.Message, fresh bool) []int {
	numbers := make([]int, len(msgs))
	last := 0
	for i, m := range msgs {
		if fresh {
			last = in.add(m)
		} else {
			last = in.find(m, last)
		}
		numbers[i] = last
	}
	return numbers
}

// results returns results as elements of a list.
func (in *interner) results(results []state.InferenceResult) ([]state.JSON, error) {
	texts := make([]state.JSON, len(results))
	for i, r := range results {
		called := make([]state.Message, len(r.ToolCalls))
		for i, m := range r.ToolCalls {
			called[i] = m
		}
		f := form.Result{
			ID: r.ID, Agent: r.Agent, Input: r.Input, CreatedAt: r.CreatedAt,
			Prompt: in.runs(r.Prompt), History: in.runs(r.History), Output: in.runs(r.Output), ToolCalls: in.runs(called),
		}
		f.SetRaw(r.Raw)
		data, err := encode(f)
		if err != nil {
			return nil, fmt.Errorf("workspace: history: %w", err)
		}
		texts[i] = state.JSON(data)
	}
	return texts, nil
}

// effects returns the effects on the document of what turned one state into
// another. The document is the one that the first belongs to.
func (d *document) effects(from, to *state.State) ([]Effect, error) {
	made, err := to.Effects(from)
	if err != nil {
		return nil, err
	}
	t, err := d.messages()
	if err != nil {
		return nil, err
	}
	in := newInterner(t)
	fresh := d.get(partTalk, talkConversation) == nil || !slices.ContainsFunc(made, func(e state.Effect) bool {
		return e.Part == state.EffectPartField && e.Field == state.Messages.Name && e.Kind != state.EffectAppend && e.Kind != state.EffectDropFirst
	})
	var effects []Effect
	for i, e := range made {
		x := Effect{Field: e.Field, Do: string(e.Kind), N: e.N, Agent: e.Agent, Cause: e.Cause}
		var texts []state.JSON
		switch {
		case e.Part == state.EffectPartHistory:
			x.Part, x.Field = partTalk, talkResults
			texts, err = in.results(e.Results)
		case e.Part == state.EffectPartField && e.Field == state.Messages.Name:
			x.Part, x.Field = partTalk, talkConversation
			texts = listOf(in.numbers(e.Messages, fresh))
		default:
			x.Part = e.Part
		}
		if err != nil {
			return nil, err
		}
		if list := x.Do == doSet || x.Do == doAppend || x.Do == doInsert; list && x.Part == partTalk {
			x.Value = arrayOf(texts)
		} else {
			x.Value = e.Value
		}
		if i == 0 || made[i-1].Field != e.Field || made[i-1].Part != e.Part {
			effects = append(effects, d.prepare(&x)...)
		}
		if x.Do != "" {
			effects = append(effects, x)
		}
	}
	effects = append(in.effects, effects...)
	if now, err := d.version(); err != nil || now == to.Version() {
		return effects, err
	}
	return append(effects, versionEffect(to.Version())), nil
}

// prepare returns the effects that have to come before the first effect on a field.
// What was stored of a declared field when it was an undeclared key moves.
func (d *document) prepare(e *Effect) []Effect {
	now := d.get(e.Part, e.Field)
	var effects []Effect
	moved := false
	if e.Part == partField {
		if key := d.get(partKey, e.Field); key != nil {
			effects = []Effect{{Part: partKey, Field: e.Field, Do: doDelete}}
			if now == nil {
				now, moved = key, true
			}
		}
	}
	switch {
	case e.Do == doSet:
	case e.Do == doDelete:
		if moved {
			e.Do = ""
		}
	case now == nil || now.list == nil && now.text[0] != '[':
		// What it is can be null, if the field had another type, or nothing, if the
		// state has no results.
		effects = append(effects, Effect{Part: e.Part, Field: e.Field, Do: doSet, Value: "[]"})
	case moved:
		effects = append(effects, Effect{Part: e.Part, Field: e.Field, Do: doSet, Value: now.json()})
	}
	return effects
}

// version returns the version of the state.
func (d *document) version() (uint64, error) {
	c := d.get(partTalk, talkVersion)
	if c == nil {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(c.json()), 10, 64)
	if err != nil || n > 1<<53 { // more no state has counted
		return 0, corrupt("content", "$.talk.version: not a version")
	}
	return n, nil
}

func versionEffect(n uint64) Effect {
	return Effect{Part: partTalk, Field: talkVersion, Do: doSet, Value: state.JSON(strconv.FormatUint(n, 10))}
}

// nextVersion returns the effect that counts others as a version of the state.
func (d *document) nextVersion() (Effect, error) {
	n, err := d.version()
	return versionEffect(n + 1), err
}

// state returns the state with the document's content. What the schema does not
// have a place for stays in the document.
func (d *document) state(schema *state.Schema) (*state.State, error) {
	version, err := d.version()
	if err != nil {
		return nil, err
	}
	out := form.State{Format: form.Format, Version: version}
	known := map[string]bool{}
	talks := false
	for _, f := range state.New(schema).Fields() {
		known[f.Name] = true
		c := d.get(partField, f.Name)
		if key := d.get(partKey, f.Name); c == nil && key != nil && fits(schema, f.Name, key) {
			c = key
		}
		switch {
		case f.Ephemeral:
		case f.Name == state.Messages.Name:
			talks = true
		case c != nil:
			out.Fields = append(out.Fields, form.Field{Name: f.Name, Value: []byte(c.json())})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.parts[partKey])) {
		// Whatever cannot be the name of a key is not given to Import.
		if !known[name] && state.New(schema).KV().Set(name, nil) == nil {
			out.Keys = append(out.Keys, form.Field{Name: name, Value: []byte(d.get(partKey, name).json())})
		}
	}
	rest := out
	if err := d.talk(&out, talks); err != nil {
		return nil, err
	}
	s, err := imported(schema, &out)
	if err == nil {
		return s, nil
	}
	err = fmt.Errorf("workspace: content: %w", err)
	if _, other := imported(schema, &rest); other == nil && !errors.Is(err, state.ErrLimitExceeded) {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err) // it is the talk
	}
	return nil, err
}

func imported(schema *state.Schema, f *form.State) (*state.State, error) {
	s, err := internal.ImportForm(schema, f)
	if err != nil {
		return nil, err
	}
	return s.(*state.State), nil
}

// fits reports whether a value can be that of a declared field.
func fits(schema *state.Schema, name string, c *cell) bool {
	_, err := imported(schema, &form.State{Format: form.Format, Fields: []form.Field{{Name: name, Value: []byte(c.json())}}})
	return err == nil
}

// talk adds the messages and what refers to them. In the form each text is there
// once, and places count from 0.
func (d *document) talk(out *form.State, conversation bool) error {
	t, err := d.messages()
	if err != nil {
		return err
	}
	numbers := slices.Sorted(maps.Keys(t.texts))
	places := make([]int, len(numbers))
	for i, n := range numbers {
		text := t.texts[n]
		if first := t.first[text]; first < n {
			at, _ := slices.BinarySearch(numbers, first)
			places[i] = places[at]
			continue
		}
		places[i] = len(out.Messages)
		out.Messages = append(out.Messages, []byte(text))
	}
	place := func(path string, runs []form.Run) ([]form.Run, error) {
		var placed []form.Run
		for _, r := range runs {
			at, ok := slices.BinarySearch(numbers, r.From)
			n := r.To - r.From
			if !ok || n <= 0 || n > len(numbers)-at || numbers[at+n-1] != r.To-1 {
				return nil, corrupt("content", fmt.Sprintf("%s: no messages from %d to %d", path, r.From, r.To))
			}
			for _, p := range places[at : at+n] {
				placed = extend(placed, p)
			}
		}
		return placed, nil
	}
	if numbers, ok, err := d.conversation(); err != nil {
		return err
	} else if ok && conversation {
		var runs []form.Run
		for _, n := range numbers {
			runs = extend(runs, n)
		}
		if runs, err = place("$.talk.conversation", runs); err != nil {
			return err
		}
		runs = append([]form.Run{}, runs...)
		out.Conversation = &runs
	}
	texts, err := d.results()
	if err != nil {
		return err
	}
	for i, text := range texts {
		var r form.Result
		path := jsontext.Index("$.talk.results", i)
		if json.Unmarshal([]byte(text), &r) != nil {
			return corrupt("content", path+": not a result")
		}
		for _, runs := range []*[]form.Run{&r.Prompt, &r.History, &r.Output, &r.ToolCalls} {
			if *runs, err = place(path, *runs); err != nil {
				return err
			}
		}
		out.Results = append(out.Results, r)
	}
	return nil
}

// conversation returns the numbers of the messages of the conversation, and false
// if there is none.
func (d *document) conversation() ([]int, bool, error) {
	c := d.get(partTalk, talkConversation)
	if c == nil {
		return nil, false, nil
	}
	texts, ok := c.texts()
	numbers := make([]int, len(texts))
	for i := range texts {
		if ok {
			numbers[i], ok = messageNumber(string(texts[i]))
		}
	}
	if !ok {
		return nil, false, corrupt("content", "$.talk.conversation: not a list of messages")
	}
	return numbers, true, nil
}

// results returns the texts of the results.
func (d *document) results() ([]state.JSON, error) {
	c := d.get(partTalk, talkResults)
	if c == nil {
		return nil, nil
	}
	texts, ok := c.texts()
	if !ok {
		return nil, corrupt("content", "$.talk.results: not a list")
	}
	return texts, nil
}
