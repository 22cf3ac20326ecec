package document

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
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
	list := make(map[string]Suspension, d.count(PartSuspended))
	for _, key := range d.Names(PartSuspended) {
		var s Suspension
		if json.Unmarshal([]byte(d.get(PartSuspended, key).json()), &s) != nil || s.Calls <= 0 || s.Approved < 0 || s.Approved > s.Calls {
			return nil, corrupt(jsontext.Path("$.suspended", key), "not a suspended call")
		}
		list[key] = s
	}
	return list, nil
}

// ChangesSuspended reports whether effects change which calls are suspended.
func ChangesSuspended(effects []state.Effect) bool {
	return slices.ContainsFunc(effects, func(e state.Effect) bool { return e.Part == PartSuspended })
}

// CountSuspended returns the number of calls that are suspended after effects,
// which the document does not have yet, and until when the first of those waits
// that are not approved, or the zero time.
func (d *Document) CountSuspended(effects []state.Effect) (calls int, until time.Time, err error) {
	after := d.Clone()
	others := func(e state.Effect) bool { return e.Part != PartSuspended }
	if err := after.Apply(slices.DeleteFunc(slices.Clone(effects), others)); err != nil {
		return 0, until, err
	}
	list, err := after.Suspended()
	for _, s := range list {
		if s.Approved < s.Calls && !s.Until.IsZero() && (until.IsZero() || s.Until.Before(until)) {
			until = s.Until
		}
	}
	return callsIn(list), until, err
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

// EndRun returns the effects with which a run ends that does not finish. They
// drop what it has written to shared fields, and answer tool calls without a
// result with an error, so that providers accept the conversation. It leaves
// those open that are suspended, and those of messages that the base has. If
// cancelled is not empty, it answers the calls that the run with this id has
// suspended too.
func (d *Document) EndRun(base func() (*Document, error), cancelled string) ([]state.Effect, error) {
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
	answers, err := d.answerOpen(stay, base)
	if err != nil {
		return nil, err
	}
	if effects = slices.Concat(d.DropShared(), effects, answers); len(effects) > 0 {
		effects = append(effects, d.nextVersion())
	}
	return effects, nil
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

// answerOpen returns the effects that answer the open calls, except for those
// that are suspended and those of messages that the base has.
func (d *Document) answerOpen(suspended map[string]Suspension, base func() (*Document, error)) ([]state.Effect, error) {
	entries := d.entries()
	msgs, err := d.decodeMessages(entries)
	if err != nil || len(transcript.Pending(msgs)) <= callsIn(suspended) {
		return nil, err
	}
	b, err := base()
	if err != nil {
		return nil, err
	}
	shapes, stay, mine := transcript.ShapesOf(msgs), FirstOpen(msgs, suspended), withoutNumbers(entries, b.entries())
	for i, call := range shapes.Pending(stay...) {
		if !mine[i] {
			stay = append(stay, call)
		}
	}
	var answers []state.ToolResultMessage
	for _, call := range shapes.Pending(stay...) {
		answers = append(answers, state.ToolError(state.ToolCall{ID: call.ID, Name: call.Name, Key: call.Key}, origin.NoResult))
	}
	slices.Reverse(answers) // each answers the last open call that it fits
	answered, err := transcript.Answer(msgs, answers...)
	switch {
	case errors.Is(err, state.ErrAnswered), errors.Is(err, state.ErrUnknownCall):
		answered = msgs // it is broken in another way, and the run can end all the same
	case err != nil:
		return nil, err
	}
	in := newInterner(d)
	numbers := in.numbersOf(entries, rawTexts(msgs), rawTexts(answered))
	added, err := in.newMessages()
	return append(added, listEffects(PartConversation, fieldEntries, entries, numbers, numberArray)...), err
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
func (d *Document) holdsSuspended(r result, suspended map[string]Suspension) (bool, error) {
	output, err := d.decodeRanges(r.ranges.Output)
	if err != nil {
		return false, err
	}
	answers, err := d.decodeRanges(r.ranges.ToolCalls)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(transcript.Pending(slices.Concat(output, answers)), func(c state.ToolCall) bool {
		return suspended[runctx.Key(c)].Calls > 0
	}), nil
}
