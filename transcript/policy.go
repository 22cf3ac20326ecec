package transcript

import "fmt"

// Policy says what [Repair] does with calls and results that have no counterpart.
// Policies can be combined.
type Policy uint8

const (
	// PolicyDrop drops calls without a result and results without a call.
	PolicyDrop Policy = 0

	// PolicyAnswerCalls keeps calls without a result, and answers each with an
	// error.
	PolicyAnswerCalls Policy = 1

	// PolicyKeepResults keeps the content of results without a call, as a text of
	// the user that quotes it. Content that is not a string is quoted as JSON.
	PolicyKeepResults Policy = 2
)

// Change is something that [Repair] did.
type Change struct {
	Message int    // the index in the original conversation of the message concerned
	Rule    string // of the finding that it mends
	Detail  string // what was done, and to which call, id, role and so on; never content
}

func (c Change) String() string {
	return fmt.Sprintf("message %d: %s: %s", c.Message, c.Rule, c.Detail)
}
