package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentstate/state/store"
)

// transact makes several writes in a transaction of a server. What fails before
// the commit was certainly not made.
func (s *server) transact(ctx context.Context, conn *sql.Conn, writes []store.Write, revs []store.Revision) error {
	if _, err := conn.ExecContext(ctx, s.begin); err != nil {
		discard(conn) // it may have begun
		return err
	}
	if err := s.runAll(ctx, conn, writes, revs); err != nil {
		s.rollback(conn)
		return err
	}
	if _, err := conn.ExecContext(ctx, "commit"); err != nil {
		s.rollback(conn)
		if errors.Is(err, driver.ErrBadConn) {
			// pgx says so also if the connection broke after the commit was sent.
			return fmt.Errorf("%w: %v", store.ErrUnknownOutcome, err)
		}
		return s.classify(err)
	}
	return nil
}

// runAll makes the writes in the order of their keys, so that two batches wait
// for each other in one direction only.
func (s *server) runAll(ctx context.Context, conn execer, writes []store.Write, revs []store.Revision) error {
	order := make([]int, len(writes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(writes[a].Key, writes[b].Key) })
	for _, i := range order {
		w := writes[i]
		if w.Delete && w.Cond == store.Always {
			// A delete locks what is there only. Without a lock, another batch could
			// put the key and come both before and after this one.
			if err := s.run(ctx, conn, store.Write{Key: w.Key}, store.NewRevision()); err != nil {
				return keyError{w.Key, err}
			}
		}
		if err := s.run(ctx, conn, w, revs[i]); err != nil {
			return keyError{w.Key, err}
		}
	}
	return nil
}

// rollback ends the transaction of a connection, also after the caller's context
// has ended. A connection that cannot is not used again.
func (d *dialect) rollback(conn *sql.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "rollback"); err != nil {
		discard(conn)
	}
}

// discard keeps a connection from going back to the pool.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
