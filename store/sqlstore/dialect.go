package sqlstore

import (
	"context"
	"database/sql"

	"github.com/agentstate/state/store"
)

// dialect is what one kind of database says differently. Keys, values and
// revisions are []byte in all statements, and never nil. Each condition is evaluated by
// the database within the statement that writes; the number of affected rows says
// whether it held.
type dialect struct {
	name       string // such as "postgres"
	durability store.Durability
	maxValue   int // bytes of a value; no larger one is sent

	get      string // of (k): v, rev
	scan     string // of (from, to, limit): k, v, rev with from <= k < to by bytes, in the order of k
	upsert   string // of (k, v, rev): Always
	insert   string // of (k, v, rev): IfAbsent; affects one row, or none if the key is there
	update   string // of (v, rev, k, old): IfRevision; affects one row, or none
	remove   string // of (k): Always
	removeIf string // of (k, old): IfRevision; affects one row, or none

	begin string // begins a transaction that writes; "commit" and "rollback" end it

	// setup makes the table if it is not there, and refuses a server that would
	// not keep what it acknowledges.
	setup func(ctx context.Context, db *sql.DB) error
	// refused reports whether err is the database's definite answer that it did
	// not make a write, or a commit. What is none is an unknown outcome.
	refused func(err error) bool
	// again reports whether err is such an answer to something that can be tried
	// again at once, such as a deadlock.
	again func(err error) bool
	// tooLarge reports whether err says that the value is too large.
	tooLarge func(err error) bool
}

// statement returns the text and the arguments that make a write, and whether it
// has a condition, so that affecting no row is a conflict.
func (d *dialect) statement(w store.Write, rev store.Revision) (text string, args []any, conditional bool) {
	key, value := []byte(w.Key), w.Value
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	old, ifRevision := w.Cond.Revision()
	switch {
	case w.Delete && ifRevision:
		return d.removeIf, []any{key, []byte(old)}, true
	case w.Delete:
		return d.remove, []any{key}, false
	case ifRevision:
		return d.update, []any{value, []byte(rev), key, []byte(old)}, true
	case w.Cond.Absent():
		return d.insert, []any{key, value, []byte(rev)}, true
	}
	return d.upsert, []any{key, value, []byte(rev)}, false
}

// bounds returns the range from <= k < to of the keys that begin with prefix and
// come after after.
func bounds(prefix, after string) (from, to []byte) {
	from = []byte(prefix)
	if after >= prefix {
		from = append([]byte(after), 0) // nothing is between a key and this
	}
	to = []byte(prefix)
	for len(to) > 0 && to[len(to)-1] == 0xff {
		to = to[:len(to)-1]
	}
	if len(to) == 0 {
		return from, []byte{0xff} // which begins no key, as it is no UTF-8
	}
	to[len(to)-1]++
	return from, to
}
