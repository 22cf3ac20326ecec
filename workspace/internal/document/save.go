package document

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
)

// Save returns the effects that store what turned one state into another. The
// document must hold the content of the first, except for the fields that have
// moved.
func (d *Document) Save(from, to *state.State, moved Moved) ([]state.Effect, error) {
	changes, err := to.Effects(from)
	if err != nil {
		return nil, err
	}
	in, err := newInterner(d)
	if err != nil {
		return nil, err
	}
	s := saver{interner: in, reuse: d.Has(PartConversation, fieldEntries) && entriesEdited(changes)}
	var effects []state.Effect
	for i, change := range changes {
		e, err := s.stored(change)
		if err != nil {
			return nil, err
		}
		needed := true
		if i == 0 || changes[i-1].Field != change.Field || changes[i-1].Part != change.Part {
			var before []state.Effect
			before, needed = d.prepareField(e, moved)
			effects = append(effects, before...)
		}
		if needed {
			effects = append(effects, e)
		}
	}
	added, err := s.newMessages()
	if err != nil {
		return nil, err
	}
	effects = append(added, effects...)
	if stored, err := d.version(); err != nil || stored == to.Version() {
		return effects, err
	}
	return append(effects, versionEffect(to.Version())), nil
}

// isConversation reports whether an effect edits the conversation.
func isConversation(e state.Effect) bool {
	return e.Part == state.EffectPartField && e.Field == state.Messages.Name
}

// entriesEdited reports whether changes do more with the conversation than to
// add messages at its end and to drop them at its beginning.
func entriesEdited(changes []state.Effect) bool {
	return slices.ContainsFunc(changes, func(e state.Effect) bool {
		return isConversation(e) && e.Kind != state.EffectAppend && e.Kind != state.EffectDropFirst
	})
}

// saver turns effects on a state into effects on a document.
type saver struct {
	*interner
	said []int // the numbers of messages that are added to the conversation
	// reuse says that messages of the conversation may have been in it before.
	// Otherwise they get new numbers, even if an equal message has one: the
	// conversation stays a range of consecutive numbers, and so do the results
	// that hold all of it.
	reuse bool
}

// stored returns the effect on the document that does what e does to the state.
func (s *saver) stored(e state.Effect) (state.Effect, error) {
	x := e
	x.Messages, x.Results, x.Secret = nil, nil, false
	adds := e.Kind == state.EffectSet || e.Kind == state.EffectAppend || e.Kind == state.EffectInsert
	switch {
	case e.Part == state.EffectPartHistory:
		x.Part, x.Field = PartConversation, fieldResults
		if adds {
			texts, err := s.results(e.Results)
			if err != nil {
				return x, err
			}
			x.Value = arrayText(texts)
		}
	case isConversation(e):
		x.Part, x.Field = PartConversation, fieldEntries
		if adds && s.reuse {
			x.Value = numberArray(s.findAll(e.Messages))
		} else if adds {
			added := s.addAll(e.Messages)
			s.said = append(s.said, added...)
			x.Value = numberArray(added)
		}
	}
	return x, nil
}

// results returns the texts of results.
func (s *saver) results(results []state.InferenceResult) ([]state.JSON, error) {
	ranges := func(msgs []state.Message) []form.Run { return rangesOf(s.findAll(msgs)) }
	texts := make([]state.JSON, len(results))
	for i, r := range results {
		answers := make([]state.Message, len(r.ToolCalls))
		for i, m := range r.ToolCalls {
			answers[i] = m
		}
		f := form.Result{
			ID: r.ID, Agent: r.Agent, Input: r.Input, StartedAt: r.StartedAt, CreatedAt: r.CreatedAt,
			Prompt: ranges(r.Prompt), History: rangesOf(s.findAlong(r.History)),
			Output: ranges(r.Output), ToolCalls: ranges(answers),
		}
		f.SetRaw(r.Raw)
		data, err := jsontext.Marshal(f)
		if err != nil {
			return nil, fmt.Errorf("workspace: history: %w", err)
		}
		texts[i] = state.JSON(data)
	}
	return texts, nil
}

// findAlong is findAll for the history of a result, which is mostly the latest
// part of the conversation. Messages with texts that occur repeatedly would
// otherwise be found at their first occurrence: the history would be many
// ranges, and keep messages that the conversation has dropped.
func (s *saver) findAlong(msgs []state.Message) []int {
	const after = 64 // messages of the conversation that came after the history
	if s.reuse || len(msgs) == 0 {
		return s.findAll(msgs)
	}
	talk := append(s.document.lastEntries(len(msgs)+after), s.said...)
	steps := 4*len(msgs) + after // which bounds the search among equal texts
	for end := len(talk); end >= len(msgs) && steps > 0; end-- {
		n := 0
		for n < len(msgs) && s.text(talk[end-1-n]) == msgs[len(msgs)-1-n].Raw() {
			n++
		}
		if steps -= n + 1; n == len(msgs) {
			return talk[end-n : end]
		}
	}
	return s.findAll(msgs)
}

// prepareField returns the effects that must come before the first effect on a
// field, and whether that effect is still needed after them. A declared field
// that is stored as an undeclared key, under a former name or in a former form
// moves.
func (d *Document) prepareField(e state.Effect, moved Moved) (before []state.Effect, needed bool) {
	value, moves := d.get(e.Part, e.Field), false
	needed = value != nil
	if key := d.get(PartKey, e.Field); key != nil && e.Part == PartField {
		before = append(before, deleteEffect(PartKey, e.Field))
		if value == nil {
			value, moves = key, true
		}
	}
	if m, ok := moved[e.Field]; ok && e.Part == PartField {
		if m.name != e.Field {
			before = append(before, deleteEffect(m.part, m.name))
		}
		value, moves = m.value, true
	}
	switch {
	case e.Kind == state.EffectSet:
	case e.Kind == state.EffectDelete:
		return before, needed || !moves
	case value == nil || !value.isList():
		// The stored value is null if the field had another type, and missing
		// if the state has no results.
		before = append(before, setEffect(e.Part, e.Field, "[]"))
	case moves:
		before = append(before, setEffect(e.Part, e.Field, value.json()))
	}
	return before, true
}
