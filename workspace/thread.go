package workspace

import (
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// Thread returns the id of a thread, which is a workspace of its own: one of
// several conversations of a user, with its own content, queue and run. With ""
// as threadID, it is the id of the user's own workspace: userID itself, unless
// that contains "/" or "%".
//
// Every method of a Manager that takes the id of a workspace takes that of a
// thread. A program that gets names from outside always makes the id with Thread:
// both names are escaped, so that no name reaches what belongs to another user.
// A Manager returns ErrInvalid for an id that neither Thread nor [Shared] returns:
// one with more than one "/", with a "%" that escapes neither "/" nor "%", without
// a user, or that is not UTF-8.
func Thread(userID, threadID string) string { return ledger.ThreadID(userID, threadID) }

// NewThread returns the id of a new thread, which cannot be guessed. The ids of
// a user are ordered by the time when they were made, the newest first.
func NewThread(userID string) string {
	age := math.MaxInt64 - time.Now().UnixMicro() // 63 bits, which shrink
	return Thread(userID, fmt.Sprintf("%016x-%s", age, rand.Text()))
}

// SplitThread is the inverse of Thread. It returns "" as threadID for the user's
// own workspace, and also for what [Shared] returns.
func SplitThread(id string) (userID, threadID string) { return ledger.SplitID(id) }

// Shared returns the id of the user part: the workspace of what all threads of a
// user share. It has no messages and no runs.
func Shared(userID string) string { return ledger.SharedID(userID) }
