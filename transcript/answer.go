package transcript

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/agentstate/state"
)

// Answer returns a conversation in which results are inserted behind the calls
// that they answer, in the order of the calls, as [state.History.Answer] does
// it. It is for calls that are not in a history. A result answers the call with its
// key. Without one it answers the last open call with its id, or with its name if
// the provider gives calls no ids.
//
// It returns [state.ErrUnknownCall] if there is no such call, or only one of
// another tool than the result, and [state.ErrAnswered] if the call has a
// result. If there is an error, the conversation stays as it is. Answer does not
// change msgs.
func Answer(msgs []state.Message, results ...state.ToolResultMessage) ([]state.Message, error) {
	o := packShapes(msgs)
	wanted := make([]state.ToolCall, len(results))
	for i, m := range results {
		wanted[i] = m.Call()
	}
	index := o.index(wanted)
	answers := make([]answer, 0, len(results))
	for _, m := range results {
		if !inside.IsMessage(m) {
			return nil, fmt.Errorf("%w: the zero message answers no call", state.ErrInvalid)
		}
		number, err := index.lastOpen(m.Call())
		if err != nil {
			return nil, err
		}
		o.calls[number].take()
		answers = append(answers, answer{call: number, message: inside.ResultOf(m, *o.calls[number].ToolCall)})
	}
	return insertAnswers(msgs, o, answers, func(a answer) state.Message { return a.message }), nil
}

// answer is a result that is inserted, and the number of the call that it
// answers.
type answer struct {
	call    int
	message state.ToolResultMessage
}

// insertAnswers returns a list, which has one element for each message, with one
// more for each answer: behind the turn with its call, among the results in the
// order of the calls.
func insertAnswers[T any](list []T, o *packedShapes, answers []answer, element func(answer) T) []T {
	groupOf := make([]int, len(list))
	for number, group := range o.groups() {
		for _, i := range group {
			groupOf[i] = number
		}
	}
	slices.SortFunc(answers, func(a, b answer) int { return cmp.Compare(a.call, b.call) })
	at := make([][]T, len(list)+1)
	place := 0 // of the answer before: what comes before that one comes before this one
	for _, a := range answers {
		place = max(place, o.calls[a.call].message+1)
		for place < len(list) && groupOf[place] == groupOf[place-1] && o.comesBefore(place, a.call) {
			place++
		}
		at[place] = append(at[place], element(a))
	}
	inserted := make([]T, 0, len(list)+len(answers))
	for i, elements := range at {
		inserted = append(inserted, elements...)
		if i < len(list) {
			inserted = append(inserted, list[i])
		}
	}
	return inserted
}

// comesBefore reports whether a message of the same group comes before the
// result of a call: the rest of the turn does, and so do the results of earlier
// calls.
func (o *packedShapes) comesBefore(i, call int) bool {
	if o.shapes[i].has(shapeAnswer) {
		return o.answers[i] < call
	}
	return o.shapes[i].has(shapeAssistant)
}
