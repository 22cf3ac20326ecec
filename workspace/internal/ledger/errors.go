package ledger

import (
	"fmt"

	"github.com/agentstate/state/workspace/work"
)

// corrupt returns ErrCorrupt for the data under a key of the store.
func corrupt(key, problem string) error {
	return fmt.Errorf("%w: %s: %s", work.ErrCorrupt, key, problem)
}

// ProgramError has the error of a function of the program. It does not wrap it,
// because its text and kind mean nothing to the ledger.
type ProgramError struct{ Err error }

func (e *ProgramError) Error() string { return "workspace: the program has given the transaction up" }
