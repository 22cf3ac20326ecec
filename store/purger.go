package store

import "context"

// Purger is a Store on which a deleted key leaves a marker, and which can
// remove keys without one.
type Purger interface {
	Store

	// Purge removes keys, and the markers of deleted ones, so that nothing of
	// them is left. It is for garbage: keys that nobody reads, and that nobody
	// writes meanwhile. It has no condition, is no batch, and a Watch need not
	// report it. Purging a missing key succeeds. An invalid key is
	// ErrInvalidKey, and nothing is removed. After any other error, any of the
	// keys may remain, and Purge may be called again.
	//
	// If a server needs its time for other calls, Purge may take long. It should
	// not be called by something that a user waits for.
	Purge(ctx context.Context, keys ...string) error
}
