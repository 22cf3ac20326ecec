package document

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/persist"
)

// Save returns the effects that store what turned one state into another. The
// document must hold the content of the first, except for the fields that have
// moved.
func (d *Document) Save(from, to *state.State, moved Moved) ([]state.Effect, error) {
	effects, _, err := d.save(from, to, moved)
	return effects, err
}

func (d *Document) save(from, to *state.State, moved Moved) ([]state.Effect, *saver, error) {
	changes, err := to.Effects(from)
	if err != nil {
		return nil, nil, err
	}
	s := &saver{interner: newInterner(d), conversation: newNumberedConversation(d, from)}
	edited := d.Has(PartConversation, fieldEntries) && entriesEdited(changes)
	const extraEffects = 8 // those of messages, the version and dropped fields
	effects := make([]state.Effect, 0, len(changes)+extraEffects)
	for i, change := range changes {
		isFirst := i == 0 || changes[i-1].Field != change.Field || changes[i-1].Part != change.Part
		if edited && isConversation(change) {
			if isFirst {
				effects = append(effects, s.editedEntries(change, to)...)
			}
			continue
		}
		e, needed := s.stored(change), true
		if isFirst {
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
		return nil, nil, err
	}
	effects = append(effects, d.markSecrets(to.Schema(), effects)...)
	effects = slices.Insert(effects, 0, added...)
	if d.version() != to.Version() {
		effects = append(effects, versionEffect(to.Version()))
	}
	return effects, s, nil
}

// isConversation reports whether an effect edits the conversation.
func isConversation(e state.Effect) bool {
	return e.Part == state.EffectPartField && e.Field == state.Messages.Name
}

// entriesEdited reports whether changes do more with the conversation than to
// add messages at its end and to drop them at its beginning, and leave one.
func entriesEdited(changes []state.Effect) bool {
	isKind := func(kinds ...state.EffectKind) func(state.Effect) bool {
		return func(e state.Effect) bool { return isConversation(e) && slices.Contains(kinds, e.Kind) }
	}
	return slices.ContainsFunc(changes, isKind(state.EffectSet, state.EffectInsert, state.EffectTruncate,
		state.EffectRemoveAt)) &&
		!slices.ContainsFunc(changes, isKind(state.EffectDelete))
}

// saver turns effects on a state into effects on a document.
type saver struct {
	*interner
	conversation numberedConversation // of the saved state
}

// stored returns the effect on the document that does what e does to the state.
func (s *saver) stored(e state.Effect) state.Effect {
	x := e
	x.Messages, x.Results, x.Secret = nil, nil, false
	adds := e.Kind == state.EffectSet || e.Kind == state.EffectAppend || e.Kind == state.EffectInsert
	switch {
	case e.Part == state.EffectPartHistory:
		x.Part, x.Field = PartConversation, fieldResults
		if adds {
			x.Value = arrayText(s.results(e.Results))
		}
	case isConversation(e):
		x.Part, x.Field = PartConversation, fieldEntries
		if adds {
			added := s.addAll(e.Messages)
			s.conversation.add(e.Messages, added)
			x.Value = numberArray(added)
		}
	}
	return x
}

// editedEntries returns the effects that turn the conversation into that of
// another state. Messages that stay keep their numbers. e is the first change.
func (s *saver) editedEntries(e state.Effect, to *state.State) []state.Effect {
	before := s.conversation.messages
	numbers := persist.SliceOf[int](s.conversation.numbers, 0, s.conversation.numbers.Len())
	after := inside.Conversation(to).Messages()
	edited := s.numbersOf(numbers, rawTextsOf(before), rawTextsOf(after))
	s.conversation = numberedConversation{messages: after, numbers: s.conversation.numbers.Take(0, 0).Append(edited, 0)}
	effects := listEffects(PartConversation, fieldEntries, numbers, edited, numberArray)
	for i := range effects {
		effects[i].Agent, effects[i].Cause = e.Agent, e.Cause
	}
	return effects
}

// rawTextsOf returns the texts of a list of messages.
func rawTextsOf(l *persist.List) []state.JSON {
	return rawTexts(persist.SliceOf[state.Message](l, 0, l.Len()))
}

func rawTexts(msgs []state.Message) []state.JSON {
	texts := make([]state.JSON, len(msgs))
	for i, m := range msgs {
		texts[i] = m.Raw()
	}
	return texts
}

// results returns the texts of results.
func (s *saver) results(results []state.InferenceResult) []state.JSON {
	ranges := func(msgs []state.Message) []form.Run { return rangesOf(s.findAll(msgs)) }
	texts := make([]state.JSON, len(results))
	for i, r := range results {
		answers := make([]state.Message, len(r.ToolCalls))
		for i, m := range r.ToolCalls {
			answers[i] = m
		}
		f := form.Result{
			ID: r.ID, Agent: r.Agent, Input: r.Input, Stop: string(r.Stop), StopWord: r.StopWord,
			Usage: form.Usage(r.Usage), StartedAt: r.StartedAt, CreatedAt: r.CreatedAt,
			Prompt: ranges(r.Prompt), History: s.findAlong(r.History),
			Output: ranges(r.Output), ToolCalls: ranges(answers),
		}
		f.SetRaw(r.Raw)
		texts[i] = state.JSON(f.AppendJSON(make([]byte, 0, 256+len(f.Input)+len(f.Raw))))
	}
	return texts
}

// findAlong returns the ranges of the history of a result, which is mostly the
// latest part of the conversation. Messages with texts that occur repeatedly
// would otherwise be found at their first occurrence: the history would be many
// ranges, and keep messages that the conversation has dropped.
func (s *saver) findAlong(msgs []state.Message) []form.Run {
	const after = 64 // messages of the conversation that came after the history
	if len(msgs) == 0 {
		return nil
	}
	steps := 4*len(msgs) + after // which bounds the search among equal texts
	for end := s.conversation.len(); end >= max(len(msgs), s.conversation.len()-after) && steps > 0; end-- {
		n := 0
		for n < len(msgs) && s.conversation.holds(end-1-n, msgs[len(msgs)-1-n]) {
			n++
		}
		if steps -= n + 1; n == len(msgs) {
			return s.conversation.ranges(end-n, end)
		}
	}
	return rangesOf(s.findAll(msgs))
}

// numberedConversation is a conversation with the numbers of its messages: those
// of a document, and those that are added.
type numberedConversation struct {
	messages     *persist.List // of state.Message
	numbers      *persist.List // of ints
	added        []state.Message
	addedNumbers []int
}

// newNumberedConversation returns the conversation of a document, as a state holds
// it. It is empty if the state has none, because the schema has another place for it.
func newNumberedConversation(d *Document, st *state.State) numberedConversation {
	numbers := d.entryList()
	messages := inside.Conversation(st).Messages()
	if messages.Len() != numbers.Len() {
		messages, numbers = messages.Take(0, 0), numbers.Take(0, 0)
	}
	return numberedConversation{messages: messages, numbers: numbers}
}

func (c *numberedConversation) add(msgs []state.Message, numbers []int) {
	c.added, c.addedNumbers = append(c.added, msgs...), append(c.addedNumbers, numbers...)
}

// lastNumber returns the number of the last message, or 0.
func (c *numberedConversation) lastNumber() int {
	if n := len(c.addedNumbers); n > 0 {
		return c.addedNumbers[n-1]
	}
	if n := c.numbers.Len(); n > 0 {
		return persist.At[int](c.numbers, n-1)
	}
	return 0
}

func (c *numberedConversation) len() int { return c.messages.Len() + len(c.added) }

// holds reports whether the text of a message is that of the one at a place.
func (c *numberedConversation) holds(i int, m state.Message) bool {
	var other state.Message
	if i < c.messages.Len() {
		other = persist.At[state.Message](c.messages, i)
	} else {
		other = c.added[i-c.messages.Len()]
	}
	return other == m || other.Raw() == m.Raw()
}

// ranges returns the numbers of the messages from one place up to another.
func (c *numberedConversation) ranges(from, to int) []form.Run {
	var ranges []form.Run
	for i := from; i < to; i++ {
		if i < c.numbers.Len() {
			ranges = appendNumber(ranges, persist.At[int](c.numbers, i))
		} else {
			ranges = appendNumber(ranges, c.addedNumbers[i-c.numbers.Len()])
		}
	}
	return ranges
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
