package store

import (
	"context"
	"database/sql"
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
// What else a store can do is in separate interfaces: [Watcher] and
// [Transactor]. [As] tells which of them a store has.
//
// The functions [Get], [Put] and [Delete] read and write one key.
type Store interface {
	// Get returns an entry for each of the keys, in their order. The entry of a
	// missing key has the key and an empty revision, which no write has. A key
	// may be given more than once. With an error, no entries are returned.
	//
	// Each entry is read linearizably: Get sees every write, by any process, that
	// was acknowledged before it began. Together the entries are not a snapshot:
	// a store may see them at different times, and a part of a concurrent batch.
	//
	// The number of keys is not limited: a store may divide a long list into
	// several requests. All values are in memory at once, so a caller that does
	// not know how large they are asks for a few at a time.
	Get(ctx context.Context, keys ...string) ([]Entry, error)

	// Batch makes all writes or none, and returns their revisions in their order,
	// empty for deletes. It returns once the values have the durability that
	// Durability reports.
	//
	// ErrConflict means that a condition did not hold and that no write was made;
	// the error names the key. A delete of a missing key holds with Always and is
	// a conflict with IfRevision; with IfAbsent it is ErrInvalid, as are two
	// writes of one key. ErrUnknownOutcome means that the writes may have been
	// made or may yet be: the connection broke, or ctx ended, before the answer
	// arrived. After any other error no write was made. An empty batch succeeds.
	Batch(ctx context.Context, writes []Write) ([]Revision, error)

	// List yields the entries whose keys begin with prefix and sort after after,
	// in the order of their keys. An empty prefix matches every key. If values is
	// false, it reads no values, and the entries have only their keys.
	//
	// A key that exists and does not change meanwhile is yielded exactly once,
	// and no key is yielded twice. A list is not a snapshot: it may see any part
	// of the concurrent writes. The body of the loop may call the store. An error
	// is yielded last.
	List(ctx context.Context, prefix, after string, values bool) iter.Seq2[Entry, error]

	// Durability reports which failures an acknowledged write survives.
	Durability() Durability

	// Close releases the resources of the handle and deletes no data. It ends
	// running calls. Later calls return ErrClosed, except Close, which does
	// nothing.
	Close() error
}

// Get returns the entry of a key, or ErrNotFound.
func Get(ctx context.Context, s Store, key string) (Entry, error) {
	entries, err := s.Get(ctx, key)
	if err != nil {
		return Entry{}, err
	}
	if entries[0].Revision == "" {
		return Entry{}, &Error{Op: "get", Key: key, Err: ErrNotFound}
	}
	return entries[0], nil
}

// Put writes a value if the condition holds, and returns the revision of the
// write. The errors are those of [Store.Batch].
func Put(ctx context.Context, s Store, key string, value []byte, cond Condition) (Revision, error) {
	revisions, err := s.Batch(ctx, []Write{{Key: key, Value: value, Cond: cond}})
	if err != nil {
		return "", err
	}
	return revisions[0], nil
}

// Delete removes a key if the condition holds. The errors are those of
// [Store.Batch].
func Delete(ctx context.Context, s Store, key string, cond Condition) error {
	_, err := s.Batch(ctx, []Write{{Key: key, Delete: true, Cond: cond}})
	return err
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
	// DurabilityFailover means that a write is on several machines when it is
	// acknowledged, and survives the loss of one: PostgreSQL with synchronous
	// standbys, a Galera cluster, and MariaDB or MySQL that wait for a replica
	// without end. Replicas of Redis are not meant: they get a write later.
	DurabilityFailover
)

func (d Durability) String() string {
	names := [...]string{"process", "server", "power", "failover"}
	if d < 0 || int(d) >= len(names) {
		return "unknown"
	}
	return names[d]
}

// Transactor is a [Store] in a SQL database, which makes writes together with
// those that a program makes to its own tables.
type Transactor interface {
	Store
	// Transact makes writes as Batch does, calls fn with the transaction, and
	// commits it. If fn returns an error, no write is made, and Transact returns
	// that error in a chain. fn is called only if the conditions of the writes
	// hold. It is called again if the database has rolled the transaction back to
	// end a deadlock, or has closed the connection; if that lasts, the error is
	// the database's, and the chain does not have that of fn. Other writes of the
	// same keys wait meanwhile, so fn must be quick. It must not use the store. If
	// it commits, rolls back, or ignores an error with which the database has rolled
	// back, the error is ErrInvalid, or ErrUnknownOutcome after a commit.
	Transact(ctx context.Context, writes []Write, fn func(*sql.Tx) error) ([]Revision, error)
	// In returns the store within a transaction of the program: it sees what the
	// transaction sees, and what it writes is written when the program commits.
	// The transaction must be one of the same database, and of the pool of the
	// store if that has one. The program may use the result until the transaction
	// ends, from one goroutine at a time. A conflict leaves the transaction as it
	// was before; after another error, it is to be rolled back.
	In(tx *sql.Tx) Store
}

// Wrapper is a Store that passes calls on to another one, for example to count
// or to trace them. It can have the methods of every optional interface:
// [As] says that it has one only if the other store has it as well.
//
// A method of an optional interface that the other store does not have returns
// an error that wraps errors.ErrUnsupported.
type Wrapper interface {
	Store

	// Unwrap returns the other store.
	Unwrap() Store
}

// As returns s as a store of an optional interface, such as [Watcher]. It reports
// whether s is such a store. A Wrapper is one only if the store in it is one as
// well, so use As instead of a type assertion:
//
//	if w, ok := store.As[store.Watcher](s); ok {
//		for event, err := range w.Watch(ctx, "user/") {
//			…
//		}
//	}
func As[T Store](s Store) (T, bool) {
	own, ok := s.(T)
	for ok {
		w, wraps := s.(Wrapper)
		if !wraps {
			return own, true
		}
		s = w.Unwrap()
		_, ok = s.(T)
	}
	var none T
	return none, false
}
