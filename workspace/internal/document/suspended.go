package document

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/transcript"
)

// PartSuspended has the calls that wait for a result from outside, and those of
// tools with Once that have begun, each under its key.
const PartSuspended = "suspended"

// Suspension is the value of a field of PartSuspended.
type Suspension struct {
	RunID string `json:"run_id"` // of the run that has suspended the call
	// Reason is why it waits, At since when, and Until how long, at most.
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	// Clock names the process by whose clock At and Until are, if there is an Until.
	Clock string `json:"clock,omitempty"`
	// Digest is that of what a person is shown and approves.
	Digest string `json:"digest,omitempty"`
	// Deciders are the agents that may decide, if the tool says so.
	Deciders *[]string `json:"deciders,omitempty"`
	// Client says that the sender of the message has the tool.
	Client bool `json:"client,omitempty"`
	// Begun says that the function of the call was called, and its result is not
	// known. The call does not wait while it is Made.
	Begun bool `json:"begun,omitempty"`
	Made  bool `json:"made,omitempty"`
	// Notice says whether the program is to be told, or was told, that the call
	// waits: "" if it need not be.
	Notice Notice `json:"notice,omitempty"`
	// Again says that the call has waited before, and was approved.
	Again bool `json:"again,omitempty"`
	// Approval is that of a call that is to be made, until it has a result.
	Approval *Approval `json:"approval,omitempty"`
}

// Notice is a state of telling the program of a call.
type Notice string

// The states of a Notice.
const (
	NoticeDue   Notice = "due"
	NoticeGiven Notice = "given"
)

// noticeDelay is the time after which other Managers tell the program of a call:
// the end of the run that has suspended it may take so long.
const noticeDelay = 30 * time.Second

// NoticeAt returns when others tell the program that the call waits, or the zero
// time if they need not.
func (s Suspension) NoticeAt() (at time.Time) {
	if s.Waits() && s.Notice == NoticeDue {
		at = s.At.Add(noticeDelay)
	}
	return at
}

// dueAt returns when somebody has to look at the call, or the zero time.
func (s Suspension) dueAt() time.Time {
	at := s.NoticeAt()
	if s.Waits() && !s.Until.IsZero() && (at.IsZero() || s.Until.Before(at)) {
		at = s.Until
	}
	return at
}

// Approval says who has approved a call, and with which arguments in place of
// those of the model.
type Approval struct {
	By    string     `json:"by,omitempty"`
	Input state.JSON `json:"input,omitempty"`
	Again bool       `json:"again,omitempty"`
}

// Waits reports whether somebody has to decide about the call.
func (s Suspension) Waits() bool { return !s.Made && s.Approval == nil }

// Suspended returns the suspended calls by their keys.
func (d *Document) Suspended() (map[string]Suspension, error) {
	if d.count(PartSuspended) == 0 {
		return nil, nil
	}
	list := make(map[string]Suspension, d.count(PartSuspended))
	for _, key := range d.Names(PartSuspended) {
		var s Suspension
		if json.Unmarshal([]byte(d.get(PartSuspended, key).json()), &s) != nil || s.RunID == "" {
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
// which the document does not have yet, and when the first of them expires or is to
// be told of, or the zero time.
func (d *Document) CountSuspended(effects []state.Effect) (calls int, due time.Time, err error) {
	after := d.Clone()
	others := func(e state.Effect) bool { return e.Part != PartSuspended }
	if err := after.Apply(slices.DeleteFunc(slices.Clone(effects), others)); err != nil {
		return 0, due, err
	}
	list, err := after.Suspended()
	for _, s := range list {
		if at := s.dueAt(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
	}
	return len(list), due, err
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
		case !present || !reflect.DeepEqual(was, s):
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
// those open that are suspended, and those of messages that the base has. What is
// approved and was not made waits again. If cancelled is not empty, it answers the
// calls that the run with this id has suspended too.
func (d *Document) EndRun(base func() (*Document, error), cancelled string) ([]state.Effect, error) {
	suspended, err := d.Suspended()
	if err != nil {
		return nil, err
	}
	stay, texts := map[string]Suspension{}, map[string]string{}
	for key, s := range suspended {
		switch {
		case cancelled == "" || s.RunID != cancelled && s.Waits():
			stay[key] = s.again(approvedBefore)
		case s.Waits() && !s.Begun:
			texts[key] = "The call was not made: the run was ended."
		default:
			texts[key] = origin.NoResult
		}
	}
	effects, err := SuspendedEffects(suspended, stay)
	if err != nil {
		return nil, err
	}
	answers, err := d.answerOpen(stay, texts, base)
	if err != nil {
		return nil, err
	}
	if effects = slices.Concat(d.DropShared(), effects, answers); len(effects) > 0 {
		effects = append(effects, d.nextVersion())
	}
	return effects, nil
}

// GiveUp returns the effects with which a run ends whose message is given up. They
// drop what it has written to shared fields, and what is approved waits again. Its
// calls stay open, so that a retry of the message makes them, with their keys.
func (d *Document) GiveUp() ([]state.Effect, error) {
	suspended, err := d.Suspended()
	if err != nil {
		return nil, err
	}
	again := maps.Clone(suspended)
	for key, s := range suspended {
		again[key] = s.again(approvedBefore)
	}
	effects, err := SuspendedEffects(suspended, again)
	if effects = slices.Concat(d.DropShared(), effects); len(effects) > 0 {
		effects = append(effects, d.nextVersion())
	}
	return effects, err
}

// approvedBefore begins the reason of a call that was approved by a message whose
// run has not said how the call ended.
const approvedBefore = "The call was approved before, and may have been made. "

// again returns a suspension that waits for a decision, after a run that has not
// said how the call ended. note begins the reason of a call that was approved.
func (s Suspension) again(note string) Suspension {
	if s.Waits() {
		return s
	}
	if s.Made {
		s.Made, s.Reason = false, runctx.ErrBegun.Error()
	} else if s.Approval != nil {
		s.Reason = note + s.Reason
	}
	s.Approval, s.Again = nil, true
	if s.Notice == NoticeGiven {
		s.Notice = NoticeDue
	}
	return s
}

// WaitAgain returns a list in which no call is approved or being made, and the
// keys of those that were.
func WaitAgain(list map[string]Suspension) (again map[string]Suspension, keys []string) {
	again = maps.Clone(list)
	for key, s := range list {
		if !s.Waits() {
			again[key] = s.again("")
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return again, keys
}

// FirstOpen returns the calls of a conversation that are suspended.
func FirstOpen(msgs []state.Message, suspended map[string]Suspension) []state.ToolCall {
	if len(suspended) == 0 {
		return nil
	}
	return slices.DeleteFunc(transcript.Pending(msgs), func(c state.ToolCall) bool {
		_, ok := suspended[c.Key]
		return !ok
	})
}

// answerOpen returns the effects that answer the open calls, except for those
// that are suspended and those of messages that the base has. texts are what some
// of them are answered with, by their keys.
func (d *Document) answerOpen(
	suspended map[string]Suspension, texts map[string]string, base func() (*Document, error),
) ([]state.Effect, error) {
	entries := d.entries()
	msgs, err := d.decodeMessages(entries)
	if err != nil {
		return nil, err
	}
	stay := FirstOpen(msgs, suspended)
	if len(transcript.Pending(msgs)) == len(stay) {
		return nil, nil
	}
	b, err := base()
	if err != nil {
		return nil, err
	}
	shapes, mine := transcript.ShapesOf(msgs), withoutNumbers(entries, b.entries())
	for i, call := range shapes.Pending(stay...) {
		if !mine[i] && texts[call.Key] == "" {
			stay = append(stay, call)
		}
	}
	var answers []state.ToolResultMessage
	for _, call := range shapes.Pending(stay...) {
		call.Input, call.Extra = "", ""
		answers = append(answers, state.ToolError(call, cmp.Or(texts[call.Key], origin.NoResult)))
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
		_, ok := suspended[c.Key]
		return ok
	}), nil
}
