package store

import (
	"crypto/rand"
	"encoding/hex"
)

// Revision identifies one write. No two writes have the same revision,
// including writes of different keys, writes before and after a delete, and
// writes before and after a failover. Revisions can only be compared for
// equality.
type Revision string

// NewRevision returns a revision of 128 random bits. It is for stores without a
// sequence number that is never reused.
func NewRevision() Revision {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return Revision(hex.EncodeToString(bits[:]))
}

// Condition is the precondition of a write: a compare-and-set on the revision
// of the entry.
type Condition struct {
	absent   bool
	revision Revision
}

var (
	// Always is the zero Condition. It holds whether or not the key exists.
	Always Condition
	// IfAbsent holds if the key does not exist.
	IfAbsent = Condition{absent: true}
)

// IfRevision returns a condition that holds if the entry has the revision r. No
// entry has the empty revision, so that IfRevision("") never holds.
func IfRevision(r Revision) Condition {
	if r == "" {
		r = "none"
	}
	return Condition{revision: r}
}

// Absent reports whether the condition is [IfAbsent].
func (c Condition) Absent() bool { return c.absent }

// Revision returns the revision of [IfRevision], or false for other conditions.
func (c Condition) Revision() (Revision, bool) { return c.revision, c.revision != "" }

// Holds reports whether the condition holds for an entry with the revision r,
// or for a missing entry if exists is false.
func (c Condition) Holds(r Revision, exists bool) bool {
	switch {
	case c.absent:
		return !exists
	case c.revision != "":
		return exists && c.revision == r
	}
	return true
}
