// Package store keeps bytes under keys, on whatever there is: in memory, in one
// file, on a database server or a cluster. Each write names the revision that it
// replaces, so that nobody overwrites what he has not seen.
//
// This package has the interface, a store in memory and [Manager], which is what
// most programs use: it keeps strings and JSON under keys with one prefix. To get
// a value, change it and set it loses what others set in between;
// [Manager.Update] does not.
//
// The real stores are modules of their own:
//
//	store/sqlstore    SQLite in one file, PostgreSQL, MariaDB and MySQL
//	store/redisstore  Redis
//	store/natsstore   NATS JetStream
//	store/storetest   the tests that every store passes, yours too
package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"iter"
)

// Store keeps values under keys. All methods are safe for concurrent use, also
// from several handles and processes on the same data. Errors are an [Error].
//
// Keys are valid UTF-8 of 1 to [MaxKey] bytes. They are compared and ordered byte
// by byte: there is no case folding, no normalisation and no wildcard. Values are
// any bytes; an empty value is a value. What a store cannot hold is ErrTooLarge
// and changes nothing. No store keeps or changes the slices it is given, and what
// it returns is the caller's.
//
// A call ends when its ctx does. A call whose ctx has ended before it began has
// changed nothing.
type Store interface {
	// Get returns the entry of a key, or ErrNotFound. It is linearizable: it sees
	// every write that was acknowledged before it began, from whatever process.
	Get(ctx context.Context, key string) (Entry, error)

	// Put writes a value if the condition holds, and returns the revision of this
	// write. It returns when the value has survived what Durability says.
	//
	// ErrConflict means that the condition did not hold, and that the write was
	// certainly not made. ErrUnknownOutcome means that it may have been made or
	// not, or may still be: the connection broke, or ctx ended, before the answer.
	// Any other error means that it was not made.
	Put(ctx context.Context, key string, value []byte, cond Condition) (Revision, error)

	// Delete removes a key if the condition holds, with the errors of Put. A key
	// that is not there is deleted already: that is no error if the condition is
	// Always, and ErrConflict if it is IfRevision. IfAbsent is ErrInvalid here.
	Delete(ctx context.Context, key string, cond Condition) error

	// Scan yields the entries whose keys begin with prefix and come after after,
	// in the order of their keys. A key that exists, unchanged, during all of the
	// scan is yielded exactly once, and no key twice. Beyond that a scan is no
	// snapshot: of what is written meanwhile it may see any part. An error is the
	// last that is yielded. An empty prefix is every key.
	Scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error]

	// Durability says what an acknowledged write has survived.
	Durability() Durability

	// Close frees what the store holds and deletes nothing. Calls that are under
	// way end; calls after it return ErrClosed, but for Close, which then does
	// nothing.
	Close() error
}

// Batcher is a Store that can make several writes at once.
type Batcher interface {
	Store

	// Batch makes all writes or none: if one condition does not hold, none of
	// them is made, and the error is ErrConflict and names the key. The revisions
	// are those of the writes, in their order, empty for deletes. A key that is in
	// two of them is ErrInvalid. No writes at all are made without an error.
	Batch(ctx context.Context, writes []Write) ([]Revision, error)
}

// Write is one write of a batch.
type Write struct {
	Key    string
	Value  []byte // nil or empty is an empty value
	Delete bool   // instead of writing Value
	Cond   Condition
}

// Watcher is a Store that tells of changes.
type Watcher interface {
	Store

	// Watch yields the changes of keys that begin with prefix, from when it is
	// called until ctx ends; then it just stops. Of several changes of a key in
	// quick succession it may yield the last only; that one it does yield.
	Watch(ctx context.Context, prefix string) iter.Seq2[Event, error]
}

// Event is a change.
type Event struct {
	Entry        // of a deleted key only the key
	Deleted bool // the key is gone
}

// Entry is what is stored under a key.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
}

// Revision names one write. Two writes never have the same one: not those of two
// keys, not those before and after a delete, not those before and after a
// failover. Only equality means anything.
type Revision string

// NewRevision returns a revision of 128 random bits, for stores whose own
// numbering could begin again.
func NewRevision() Revision {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	return Revision(hex.EncodeToString(bits[:]))
}

// Condition is what has to hold for a write to be made.
type Condition struct {
	absent   bool
	revision Revision
}

var (
	// Always is the zero Condition: whatever is there is overwritten.
	Always Condition
	// IfAbsent demands that there is no entry.
	IfAbsent = Condition{absent: true}
)

// IfRevision demands that the entry is the one of the revision. An empty revision
// is nobody's, and the condition never holds.
func IfRevision(r Revision) Condition {
	if r == "" {
		r = "none"
	}
	return Condition{revision: r}
}

// Absent reports whether the condition is [IfAbsent].
func (c Condition) Absent() bool { return c.absent }

// Revision returns the revision of [IfRevision], and false for other conditions.
func (c Condition) Revision() (Revision, bool) { return c.revision, c.revision != "" }

// Holds reports whether the condition holds for an entry of the revision, or for
// none if exists is false.
func (c Condition) Holds(r Revision, exists bool) bool {
	switch {
	case c.absent:
		return !exists
	case c.revision != "":
		return exists && c.revision == r
	}
	return true
}

// Durability is what an acknowledged write has survived.
type Durability int

const (
	// Process: nothing. It is in the memory of this process.
	DurabilityProcess Durability = iota
	// Server: the end of this process. It is in the memory of a server.
	DurabilityServer
	// Power: a loss of power. It is on the disk of one machine.
	DurabilityPower
	// Failover: the loss of a machine. It is on the disks of several.
	DurabilityFailover
)

func (d Durability) String() string {
	switch d {
	case DurabilityProcess:
		return "process"
	case DurabilityServer:
		return "server"
	case DurabilityPower:
		return "power"
	case DurabilityFailover:
		return "failover"
	}
	return "unknown"
}
