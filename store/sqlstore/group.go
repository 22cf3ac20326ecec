package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/agentstate/state/store"
)

// groupWriter makes the writes of a SQLite handle with group commit. SQLite
// makes one write at a time, and a sync takes most of the time of a write. The
// first job to arrive therefore becomes the leader: it begins a transaction,
// takes all jobs that are waiting by then and commits them with one sync. Jobs
// that arrive in the meantime wait for the next leader.
type groupWriter struct {
	*database
	db *sql.DB

	mu        sync.Mutex
	hasLeader bool
	queue     []*writeJob // waiting, in the order of arrival
	spare     []*writeJob // empty, the next queue

	// Used only by the leader:
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// writeJob is the writes of one call.
type writeJob struct {
	writes []store.Write
	revs   []store.Revision
	err    error
	// wake receives true to lead, or false when the job is done and err is set. It is
	// nil if the job leads at once.
	wake chan bool
}

func (g *groupWriter) write(ctx context.Context, writes []store.Write, revs []store.Revision) error {
	j := &writeJob{writes: writes, revs: revs}
	g.mu.Lock()
	lead := !g.hasLeader
	if !lead {
		j.wake = make(chan bool, 1)
		// If ctx ends, the caller may change its slices while the leader still
		// makes the writes.
		j.writes = slices.Clone(writes)
		for i := range j.writes {
			j.writes[i].Value = bytes.Clone(j.writes[i].Value)
		}
	}
	g.queue = append(g.queue, j)
	g.hasLeader = true
	g.mu.Unlock()
	if !lead {
		select {
		case lead = <-j.wake:
		case <-ctx.Done():
			return g.abandon(ctx, j)
		}
	}
	if lead {
		g.lead(ctx, j)
	}
	return j.err
}

// abandon stops waiting for a job whose context has ended.
func (g *groupWriter) abandon(ctx context.Context, j *writeJob) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, j)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	select {
	case lead := <-j.wake:
		if !lead {
			return j.err
		}
		g.passLead()
	default:
	}
	if i < 0 {
		return store.ErrUnknownOutcome
	}
	return context.Cause(ctx)
}

// passLead makes the first job of the queue the leader. The caller holds mu.
func (g *groupWriter) passLead() {
	g.hasLeader = len(g.queue) > 0
	if g.hasLeader {
		g.queue[0].wake <- true
	}
}

// lead makes the writes of j and of all waiting jobs. Once lead has taken the
// jobs, it ignores ctx: the other jobs depend on it, and only local disk
// operations remain.
func (g *groupWriter) lead(ctx context.Context, j *writeJob) {
	if err := g.beginTransaction(ctx); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.queue = slices.DeleteFunc(g.queue, func(other *writeJob) bool { return other == j })
		j.err = err
		g.passLead()
		return
	}
	g.mu.Lock()
	jobs := g.queue
	g.queue, g.spare = g.spare, nil
	g.mu.Unlock()

	if err := g.commitJobs(jobs); err != nil {
		for _, j := range jobs {
			j.err = err
		}
	}
	for _, j := range jobs {
		if j.wake != nil {
			j.wake <- false
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(jobs)
	g.spare = jobs[:0]
	g.passLead()
}

// beginTransaction waits until no other handle or process has a transaction and
// begins one.
func (g *groupWriter) beginTransaction(ctx context.Context) error {
	return g.retry(ctx, func() error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if g.conn == nil {
			conn, err := g.db.Conn(ctx)
			if err != nil {
				return err
			}
			g.conn, g.stmts = conn, map[string]*sql.Stmt{}
			if err := g.setup(ctx, g.conn); err != nil {
				g.closeConn()
				return err
			}
		}
		_, err := g.ExecContext(context.Background(), g.begin)
		if err != nil && !g.is(err, g.answers.retryable) {
			g.closeConn()
		}
		return err
	})
}

// commitJobs makes the writes of the jobs in order. It sets the errors of
// single jobs and returns an error that all jobs share.
func (g *groupWriter) commitJobs(jobs []*writeJob) error {
	ctx := context.Background()
	if len(jobs) == 1 {
		return g.commitJob(ctx, jobs[0])
	}
	for _, j := range jobs {
		if j.err = g.makeJob(ctx, j); j.err != nil && !g.keepsTransaction(j.err) {
			err := j.err
			g.rollBack()
			return err
		}
	}
	return g.commit()
}

// commitJob makes the writes of a job that is alone in the transaction. If one
// fails, the transaction ends, so that none needs a savepoint.
func (g *groupWriter) commitJob(ctx context.Context, j *writeJob) error {
	err := g.makeWrites(ctx, g, j.writes, j.revs)
	if err == nil {
		return g.commit()
	}
	if !g.keepsTransaction(err) {
		g.rollBack()
	} else if _, undo := g.ExecContext(ctx, "rollback"); undo != nil {
		g.closeConn()
	}
	return err
}

// commit commits the transaction and checks that it can be found.
func (g *groupWriter) commit() error {
	err := g.endTransaction()
	if err == nil { // what was committed counts only if it can be found
		err = g.check()
	}
	if err == nil {
		return nil
	}
	g.rollBack()
	if g.refused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

// endTransaction commits. Without a log of writes (WAL), it waits for those who
// read.
func (g *groupWriter) endTransaction() error {
	commit := func() error {
		_, err := g.ExecContext(context.Background(), "commit")
		return err
	}
	err := commit()
	if err == nil || !g.is(err, g.answers.retryable) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	return g.retry(ctx, commit)
}

// keepsTransaction reports whether an error leaves the transaction usable.
func (g *groupWriter) keepsTransaction(err error) bool {
	return errors.Is(err, store.ErrConflict) || g.is(err, g.answers.tooLarge)
}

// makeJob makes all writes of a job or none.
func (g *groupWriter) makeJob(ctx context.Context, j *writeJob) error {
	if len(j.writes) == 1 {
		_, err := g.makeWrite(ctx, g, j.writes[0], j.revs[0])
		return err
	}
	if _, err := g.ExecContext(ctx, "savepoint job"); err != nil {
		return err
	}
	err := g.makeWrites(ctx, g, j.writes, j.revs)
	if err != nil {
		if !g.keepsTransaction(err) {
			return err
		}
		if _, undo := g.ExecContext(ctx, "rollback to job"); undo != nil {
			return undo
		}
	}
	if _, release := g.ExecContext(ctx, "release job"); release != nil {
		return release
	}
	return err
}

// ExecContext executes a statement on the connection. It prepares each text
// once.
func (g *groupWriter) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	stmt := g.stmts[text]
	if stmt == nil {
		var err error
		if stmt, err = g.conn.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
		g.stmts[text] = stmt
	}
	return stmt.ExecContext(ctx, args...)
}

// rollBack ends the transaction and closes the connection, whose state is not
// known after an error.
func (g *groupWriter) rollBack() {
	_, _ = g.ExecContext(context.Background(), "rollback")
	g.closeConn()
}

// closeConn closes the connection. The next leader opens another.
func (g *groupWriter) closeConn() {
	if g.conn == nil {
		return
	}
	for _, stmt := range g.stmts {
		_ = stmt.Close()
	}
	discard(g.conn)
	g.conn = nil
}

func (g *groupWriter) close() error {
	g.closeConn()
	return nil
}
