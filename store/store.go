// Package store keeps values, as bytes, under keys: in memory, in a file, on a
// database server or on a cluster. A write can name the revision that it
// replaces, so that no writer overwrites a change that it has not read.
//
// The package contains the interface [Store], the in-memory store [Memory] and
// [Manager], the type that most programs use: it keeps strings and JSON under
// keys with a common prefix. A program that gets a value, changes it and sets
// it loses the changes that other programs make in between. [Manager.Update]
// loses none.
//
// The durable stores are separate modules:
//
//	store/sqlitestore  SQLite in one file
//	store/sqlstore     PostgreSQL, MariaDB and MySQL, and SQLite with any driver
//	store/redisstore   Redis
//	store/storetest    the conformance tests for any implementation of Store
package store

import (
	"context"
	"iter"
)

// Store keeps values under keys. All methods are safe for concurrent use,
// including by several handles and processes on the same data. Errors are of
// type [*Error].
//
// A key is valid UTF-8 of 1 to [MaxKey] bytes. Keys are compared and ordered
// byte by byte, without case folding, normalization or wildcards. A value is
// any sequence of bytes; an empty value is a value. A write that is too large
// for the store fails with ErrTooLarge and changes nothing. A store neither
// keeps nor changes the slices that it is given. The caller owns what a store
// returns.
//
// A call ends when its context ends. A call whose context has ended before it
// began has changed nothing.
//
// What else a store can do is in interfaces of its own: [MultiGetter],
// [Lister], [Watcher] and [Transactor]. [As] tells which of them a store has.
type Store interface {
	// Get returns the entry of a key, or ErrNotFound. It is linearizable: it
	// sees every write, by any process, that was acknowledged before it began.
	Get(ctx context.Context, key string) (Entry, error)

	// Put writes a value if the condition holds, and returns the revision of
	// this write. It returns once the value has the durability that Durability
	// reports.
	//
	// ErrConflict means that the condition did not hold and that the value was
	// not written. ErrUnknownOutcome means that the value may have been written
	// or may yet be: the connection broke, or ctx ended, before the answer
	// arrived. After any other error the value was not written.
	Put(ctx context.Context, key string, value []byte, cond Condition) (Revision, error)

	// Delete removes a key if the condition holds, with the same errors as Put.
	// Deleting a missing key succeeds with Always and is ErrConflict with
	// IfRevision. Deleting with IfAbsent is ErrInvalid.
	Delete(ctx context.Context, key string, cond Condition) error

	// Batch makes all writes or none. If a condition does not hold, no write is
	// made, and the error is ErrConflict and names the key. The returned
	// revisions are in the order of the writes and empty for deletes. A batch
	// with two writes of one key is ErrInvalid. An empty batch succeeds.
	Batch(ctx context.Context, writes []Write) ([]Revision, error)

	// Scan yields the entries whose keys begin with prefix and sort after
	// after, in the order of their keys. An empty prefix matches every key. A
	// key that exists and does not change during the scan is yielded exactly
	// once, and no key is yielded twice. A scan is not a snapshot: it may see
	// any part of the concurrent writes. An error is yielded last.
	Scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error]

	// Durability reports which failures an acknowledged write survives.
	Durability() Durability

	// Close releases the resources of the handle and deletes no data. It ends
	// running calls. Later calls return ErrClosed, except Close, which does
	// nothing.
	Close() error
}

// Write is one write of a batch.
type Write struct {
	Key    string
	Value  []byte // nil is an empty value
	Delete bool   // delete the key instead of writing Value
	Cond   Condition
}

// Watcher is a Store that reports changes.
type Watcher interface {
	Store

	// Watch yields the changes of keys that begin with prefix, starting with
	// the call of Watch, until ctx ends; then it stops without an error. If a
	// key changes several times in quick succession, Watch may yield only the
	// last change, but always yields that one.
	Watch(ctx context.Context, prefix string) iter.Seq2[Event, error]
}

// Event is a change of an entry.
type Event struct {
	Entry        // has only the key if Deleted is true
	Deleted bool // the key was deleted
}

// Entry is a key with its value and the revision of the write that set it.
type Entry struct {
	Key      string
	Value    []byte
	Revision Revision
}

// Durability is the kind of failure that an acknowledged write survives. Each
// constant includes the ones before it.
type Durability int

const (
	// DurabilityProcess means that a write is in the memory of this process and
	// is lost with it.
	DurabilityProcess Durability = iota
	// DurabilityServer means that a write is in the memory of a server and
	// survives the end of this process.
	DurabilityServer
	// DurabilityPower means that a write is on the disk of one machine and
	// survives a loss of power.
	DurabilityPower
	// DurabilityFailover means that a write is on the disks of several machines
	// and survives the loss of one.
	DurabilityFailover
)

func (d Durability) String() string {
	names := [...]string{"process", "server", "power", "failover"}
	if d < 0 || int(d) >= len(names) {
		return "unknown"
	}
	return names[d]
}
