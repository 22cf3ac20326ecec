package transcript

import (
	"context"
	"slices"

	"github.com/agentstate/state"
)

// Place is where the [Window] of an agent begins in a conversation.
type Place struct {
	Begin   int    // the index of the message from which all are shown: 0 if nothing is left out
	Before  []int  // the indexes of messages in front of it that are shown, such as the system prompt
	Summary string // what stands for the others, "" if nothing does
}

// PlaceOf returns where the window of the agent of a handle begins, as it was
// moved last. The error is that of reading the messages.
func PlaceOf(st *state.State) (Place, error) {
	s, err := openSight(context.Background(), st, nil)
	if err != nil {
		return Place{}, err
	}
	return Place{Begin: s.begin, Before: slices.Clone(s.before), Summary: s.place.Summary}, nil
}
