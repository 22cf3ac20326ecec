package store

import (
	"context"
	"database/sql"
)

// Transactor is a [Store] in a SQL database, which makes writes together with
// those that a program makes to tables of its own.
type Transactor interface {
	Store
	// Transact makes writes as Batch does, calls fn with the transaction, and
	// commits it. If fn returns an error, no write is made, and Transact returns
	// that error in a chain. fn is called only if the conditions of the writes
	// hold; it is called again if the database has rolled the transaction back,
	// for example to end a deadlock. Other writes of the same keys wait
	// meanwhile, so fn must be quick. It must neither commit nor roll back, and
	// not use the store.
	Transact(ctx context.Context, writes []Write, fn func(*sql.Tx) error) ([]Revision, error)
	// In returns the store within a transaction of the program: it sees what the
	// transaction sees, and what it writes is written when the program commits.
	// The transaction must be one of the same database. The program may use the
	// result until the transaction ends, from one goroutine at a time. A
	// conflict leaves the transaction as it was before; after another error, it
	// is to be rolled back.
	In(tx *sql.Tx) Store
}
