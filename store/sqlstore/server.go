package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/agentstate/state/store"
)

// maxBroken is the number of broken connections that a pool may return.
const maxBroken = 4

// serverWriter makes writes on a database server, which orders concurrent ones.
type serverWriter struct {
	*database
	db *sql.DB
}

func (s *serverWriter) close() error { return nil }

func (s *serverWriter) write(ctx context.Context, writes []store.Write, revs []store.Revision) error {
	broken := 0 // connections
	return s.retry(ctx, func() error {
		for {
			// Without a connection nothing is sent: the outcome is never
			// unknown.
			conn, err := s.db.Conn(ctx)
			if err != nil {
				return err
			}
			if len(writes) == 1 {
				_, err = s.makeWrite(ctx, conn, writes[0], revs[0])
				err = s.classify(err)
			} else if b := s.batchStatement(writes, revs); b != nil {
				err = s.makeBatch(ctx, conn, b, writes, revs)
			} else {
				err = s.transact(ctx, conn, writes, revs)
			}
			_ = conn.Close()
			// A driver should return ErrBadConn only if it did not send the
			// statement. Not all keep to that: the condition may not hold
			// because the write was made.
			if broken > 0 && errors.Is(err, store.ErrConflict) {
				return fmt.Errorf("%w: the connection broke, and then the condition did not hold", store.ErrUnknownOutcome)
			}
			if !errors.Is(err, driver.ErrBadConn) {
				return err
			}
			if broken++; broken == maxBroken {
				return err
			}
		}
	})
}

// batchStatement returns the statement that makes several writes, or nil if the
// database has none for them.
func (s *serverWriter) batchStatement(writes []store.Write, revs []store.Revision) *batchStatement {
	if s.batch == nil {
		return nil
	}
	return s.batch(writes, revs)
}

// makeBatch makes several writes in one round trip.
func (s *serverWriter) makeBatch(
	ctx context.Context, conn *sql.Conn, b *batchStatement, writes []store.Write, revs []store.Revision,
) error {
	result, err := conn.ExecContext(ctx, b.text, b.args...)
	if err != nil && s.is(err, s.answers.batchRefused) {
		return s.transact(ctx, conn, writes, revs)
	}
	if err != nil {
		return s.classify(err)
	}
	if b.conditional == "" { // its success says that all writes were made
		return nil
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = writeError{b.conditional, store.ErrConflict}
	}
	return err
}

// transact makes several writes in a transaction. After an error before the
// commit, no write was made.
func (s *serverWriter) transact(
	ctx context.Context, conn *sql.Conn, writes []store.Write, revs []store.Revision,
) error {
	if _, err := conn.ExecContext(ctx, s.begin); err != nil {
		discard(conn) // the transaction may have begun
		return err
	}
	if err := s.makeWrites(ctx, conn, writes, revs); err != nil {
		rollBack(conn)
		return err
	}
	if _, err := conn.ExecContext(ctx, "commit"); err != nil {
		rollBack(conn)
		return s.classifyCommit(err)
	}
	return nil
}
