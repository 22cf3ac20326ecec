package transcript

import (
	"fmt"
)

// Policy says what [Repair] does with what has no counterpart. Policies can be
// combined.
type Policy uint8

const (
	// Drop drops calls without a result and results without a call.
	PolicyDrop Policy = 0

	// AnswerCalls keeps calls without a result, and answers each with an error.
	PolicyAnswerCalls Policy = 1

	// KeepResults keeps what results without a call say, as a text of the user's
	// that quotes it; of content that is no string, parts among it, the JSON.
	PolicyKeepResults Policy = 2
)

// Change is something that [Repair] did.
type Change struct {
	Message int    // the place, in the history that was given, of the message it concerns
	Rule    string // of the finding that it mends
	Detail  string // what was done, and to which call, id, role …; never content
}

func (c Change) String() string {
	return fmt.Sprintf("message %d: %s: %s", c.Message, c.Rule, c.Detail)
}
