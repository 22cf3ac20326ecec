package document

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/transcript"
)

// PartSuspended has the calls that wait for a result from outside, each under
// its key.
const PartSuspended = "suspended"

// Suspension is the value of a field of PartSuspended.
type Suspension struct {
	RunID string `json:"run_id"` // of the run that has suspended the calls
	// Calls is how many calls with the key are suspended: the first of the open
	// ones. It is 1 if calls have unique ids. Approved is how many of them, the
	// first ones, are approved and not made yet, the last one by By.
	Calls    int    `json:"calls"`
	Approved int    `json:"approved,omitempty"`
	By       string `json:"approved_by,omitempty"`
	// Reason is why they wait, At since when, and Until how long, at most.
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Until  time.Time `json:"until,omitzero"`
}

// Suspended returns the suspended calls by their keys.
func (d *Document) Suspended() (map[string]Suspension, error) {
	if d.count(PartSuspended) == 0 {
		return nil, nil
	}
	return d.decodeSuspended()
}

// decodeSuspended is Suspended for a document that has some.
func (d *Document) decodeSuspended() (map[string]Suspension, error) {
	list := make(map[string]Suspension, d.count(PartSuspended))
	for key, v := range d.fields(PartSuspended) {
		s, err := decodeSuspension(key, v)
		if err != nil {
			return nil, err
		}
		list[key] = s
	}
	return list, nil
}

func decodeSuspension(key string, v *fieldValue) (s Suspension, err error) {
	if json.Unmarshal([]byte(v.json()), &s) != nil || s.Calls <= 0 || s.Approved < 0 || s.Approved > s.Calls {
		return s, corrupt(jsontext.Path("$.suspended", key), "not a suspended call")
	}
	return s, nil
}

// ChangesSuspended reports whether effects change which calls are suspended.
func ChangesSuspended(effects []state.Effect) bool {
	return slices.ContainsFunc(effects, func(e state.Effect) bool { return e.Part == PartSuspended })
}

// CountSuspended returns the number of calls that are suspended after effects,
// which the document does not have yet, and until when the first of those waits
// that are not approved, or the zero time.
func (d *Document) CountSuspended(effects []state.Effect) (calls int, until time.Time, err error) {
	list, err := d.Suspended()
	if err != nil {
		return 0, until, err
	}
	if list == nil {
		list = map[string]Suspension{}
	}
	values := map[string]*fieldValue{} // an effect may follow one on the same call
	for i := range effects {
		e := &effects[i]
		if e.Part != PartSuspended {
			continue
		}
		value, changed := values[e.Field]
		if !changed {
			value = d.get(e.Part, e.Field)
		}
		value, problem := value.edit(e)
		if problem != "" {
			return 0, until, corrupt(jsontext.Path("$.suspended", e.Field), problem)
		}
		values[e.Field] = value
		if delete(list, e.Field); value == nil {
			continue
		}
		if list[e.Field], err = decodeSuspension(e.Field, value); err != nil {
			return 0, until, err
		}
	}
	for _, s := range list {
		if s.Approved < s.Calls && !s.Until.IsZero() && (until.IsZero() || s.Until.Before(until)) {
			until = s.Until
		}
	}
	return callsIn(list), until, nil
}

// SuspendedEffects returns the effects that turn one list of suspended calls
// into another.
func SuspendedEffects(from, to map[string]Suspension) ([]state.Effect, error) {
	var effects []state.Effect
	for _, key := range sortedUnion(slices.Collect(maps.Keys(from)), slices.Collect(maps.Keys(to))) {
		s, stays := to[key]
		switch was, present := from[key]; {
		case !stays:
			effects = append(effects, deleteEffect(PartSuspended, key))
		case !present || was != s:
			text, err := jsontext.Marshal(s)
			if err != nil {
				return nil, err
			}
			effects = append(effects, setEffect(PartSuspended, key, state.JSON(text)))
		}
	}
	return effects, nil
}

// EndRun returns the effects with which a run ends that does not finish: those of
// AnswerPending, and those that drop what the run has written to shared fields.
func (d *Document) EndRun(base func() (*Document, error), cancelled string) ([]state.Effect, error) {
	effects, err := d.AnswerPending(base, cancelled)
	if err != nil {
		return nil, err
	}
	dropped := d.DropShared()
	if len(effects) == 0 && len(dropped) > 0 {
		next, err := d.nextVersion()
		return append(dropped, next), err
	}
	return append(dropped, effects...), nil
}

// AnswerPending returns the effects that answer tool calls without a result, as
// package transcript does, so that providers accept the conversation. It leaves
// those open that are suspended, and those of messages that the base has. If
// cancelled is not empty, it answers the calls that the run with this id has
// suspended too.
func (d *Document) AnswerPending(base func() (*Document, error), cancelled string) ([]state.Effect, error) {
	entries, _, err := d.entries()
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	suspended, err := d.Suspended()
	if err != nil {
		return nil, err
	}
	stay := maps.Clone(suspended)
	maps.DeleteFunc(stay, func(_ string, s Suspension) bool { return cancelled != "" && s.RunID == cancelled })
	effects, err := SuspendedEffects(suspended, stay)
	if err != nil {
		return nil, err
	}
	msgs, err := d.decodeMessages(entries)
	if err != nil {
		return nil, err
	}
	if open := len(transcript.Pending(msgs)); open > 0 && open > callsIn(stay) {
		answers, err := d.answerOpen(entries, msgs, stay, base)
		if err != nil {
			return nil, err
		}
		effects = append(effects, answers...)
	}
	if len(effects) == 0 {
		return nil, nil
	}
	next, err := d.nextVersion()
	return append(effects, next), err
}

// FirstOpen returns the calls of a conversation that are suspended.
func FirstOpen(msgs []state.Message, suspended map[string]Suspension) []state.ToolCall {
	if len(suspended) == 0 {
		return nil
	}
	var calls []state.ToolCall
	found := map[string]int{}
	for _, call := range transcript.Pending(msgs) {
		if key := runctx.Key(call); found[key] < suspended[key].Calls {
			found[key]++
			calls = append(calls, call)
		}
	}
	return calls
}

// callsIn returns the number of suspended calls.
func callsIn(list map[string]Suspension) int {
	n := 0
	for _, s := range list {
		n += s.Calls
	}
	return n
}

// placeholder answers the calls that stay open while the others are answered.
const placeholder = "workspace: this call stays open"

// answerOpen returns the effects that answer the open calls, except for those
// that stay open.
func (d *Document) answerOpen(
	entries []int, msgs []state.Message, suspended map[string]Suspension, base func() (*Document, error),
) ([]state.Effect, error) {
	b, err := base()
	if err != nil {
		return nil, err
	}
	earlier, _, err := b.entries()
	if err != nil {
		return nil, err
	}
	policy := transcript.Policy{AnswerCalls: true, Suspended: FirstOpen(msgs, suspended), Waiting: placeholder}
	mine := withoutNumbers(entries, earlier)
	for i, call := range transcript.ShapesOf(msgs).Pending(policy.Suspended...) {
		if !mine[i] {
			policy.Suspended = append(policy.Suspended, call)
		}
	}
	repaired, _ := transcript.Repair(msgs, transcript.Profile{}, policy)
	said := make(map[state.Message]bool, len(msgs))
	for _, m := range msgs {
		said[m] = true
	}
	repaired = slices.DeleteFunc(slices.Clone(repaired), func(m state.Message) bool {
		r, ok := m.(state.ToolResultMessage)
		return ok && !said[m] && r.Text() == placeholder
	})
	in, err := newInterner(d)
	if err != nil {
		return nil, err
	}
	answered := in.numbersOf(entries, rawTexts(msgs), rawTexts(repaired))
	added, err := in.newMessages()
	return append(added, listEffects(PartConversation, fieldEntries, entries, answered, numberArray)...), err
}

// withoutNumbers reports for each number of a list whether it is not one of
// those in another list. A number that is there twice may be in the list twice.
func withoutNumbers(list, others []int) []bool {
	count := make(map[int]int, len(others))
	for _, n := range others {
		count[n]++
	}
	without := make([]bool, len(list))
	for i, n := range list {
		if count[n]--; count[n] < 0 {
			without[i] = true
		}
	}
	return without
}

// holdsSuspended reports whether a result has a suspended call in its output.
func (d *Document) holdsSuspended(r *resultRanges, suspended map[string]Suspension) (bool, error) {
	output, err := d.decodeRanges(r.Output)
	if err != nil {
		return false, err
	}
	answers, err := d.decodeRanges(r.ToolCalls)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(transcript.Pending(slices.Concat(output, answers)), func(c state.ToolCall) bool {
		return suspended[runctx.Key(c)].Calls > 0
	}), nil
}
