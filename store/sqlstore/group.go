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

// group makes the writes of a SQLite handle. A sync takes most of the time of a
// write, and SQLite makes one write at a time. So the first writer to arrive leads:
// it begins a transaction, takes all writes that wait by then, and commits them
// with one sync, while those who come next wait for the next leader.
type group struct {
	*dialect
	db *sql.DB // has one connection

	mu    sync.Mutex
	led   bool
	queue []*job // are waiting, in the order of arrival

	// Of the leader only:
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// job is the writes of one call.
type job struct {
	writes []store.Write
	revs   []store.Revision
	err    error
	turn   chan bool // gets true to lead, or false when the job is done and err is set
}

func (g *group) write(ctx context.Context, writes []store.Write, revs []store.Revision) error {
	// The caller may change his slices when he has left, although the leader has
	// taken the job.
	writes = slices.Clone(writes)
	for i := range writes {
		writes[i].Value = bytes.Clone(writes[i].Value)
	}
	j := &job{writes: writes, revs: revs, turn: make(chan bool, 1)}
	g.mu.Lock()
	g.queue = append(g.queue, j)
	lead := !g.led
	g.led = true
	g.mu.Unlock()
	if !lead {
		select {
		case lead = <-j.turn:
		case <-ctx.Done():
			return g.leave(ctx, j)
		}
	}
	if lead {
		g.lead(ctx, j)
	}
	return j.err
}

// leave ends the waiting of a job whose context has ended.
func (g *group) leave(ctx context.Context, j *job) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, j)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
	}
	select {
	case lead := <-j.turn:
		if !lead {
			return j.err
		}
		g.handOver()
	default:
	}
	if i < 0 {
		return store.ErrUnknownOutcome
	}
	return context.Cause(ctx)
}

// handOver lets the first who waits lead. It is called with mu held.
func (g *group) handOver() {
	g.led = len(g.queue) > 0
	if g.led {
		g.queue[0].turn <- true
	}
}

// lead makes the job and those that wait with it. Once it has taken them, its
// context counts no more: others depend on it, and what remains is a matter of the
// local disk.
func (g *group) lead(ctx context.Context, j *job) {
	if err := g.start(ctx); err != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.queue = slices.DeleteFunc(g.queue, func(other *job) bool { return other == j })
		j.err = err
		g.handOver()
		return
	}
	g.mu.Lock()
	jobs := g.queue
	g.queue = nil
	g.mu.Unlock()

	if err := g.commit(jobs); err != nil {
		for _, j := range jobs {
			j.err = err
		}
	}
	for _, j := range jobs {
		j.turn <- false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.handOver()
}

// start begins a transaction. It waits until no other handle or process has one.
func (g *group) start(ctx context.Context) error {
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
		}
		_, err := g.ExecContext(context.Background(), g.begin)
		if err != nil && !g.again(err) {
			g.reset()
		}
		return err
	})
}

// commit makes the writes of the jobs in their order. Its error is that of all of
// them; the errors of single jobs are set.
func (g *group) commit(jobs []*job) error {
	ctx := context.Background()
	for _, j := range jobs {
		if j.err = g.make(ctx, j); j.err != nil && !g.harmless(j.err) {
			err := j.err
			g.rollback()
			return err
		}
	}
	_, err := g.ExecContext(ctx, "commit")
	if err == nil {
		return nil
	}
	g.rollback()
	if g.refused(err) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, err)
}

// harmless reports whether an error leaves the transaction as it was.
func (g *group) harmless(err error) bool {
	return errors.Is(err, store.ErrConflict) || g.tooLarge(err)
}

// make makes all writes of a job or none.
func (g *group) make(ctx context.Context, j *job) error {
	if len(j.writes) == 1 {
		return g.run(ctx, g, j.writes[0], j.revs[0])
	}
	if _, err := g.ExecContext(ctx, "savepoint job"); err != nil {
		return err
	}
	for i, w := range j.writes {
		err := g.run(ctx, g, w, j.revs[i])
		if err == nil {
			continue
		}
		if g.harmless(err) {
			if _, undo := g.ExecContext(ctx, "rollback to job"); undo != nil {
				return undo
			}
			if _, undo := g.ExecContext(ctx, "release job"); undo != nil {
				return undo
			}
		}
		return keyError{w.Key, err}
	}
	_, err := g.ExecContext(ctx, "release job")
	return err
}

// ExecContext runs a statement on the connection, prepared once.
func (g *group) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
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

// rollback ends the transaction, and gives the connection up: after an error that
// ended it nobody knows its state.
func (g *group) rollback() {
	_, _ = g.ExecContext(context.Background(), "rollback")
	g.reset()
}

// reset closes the connection. The next leader opens another.
func (g *group) reset() {
	if g.conn == nil {
		return
	}
	for _, stmt := range g.stmts {
		_ = stmt.Close()
	}
	discard(g.conn)
	g.conn = nil
}

func (g *group) close() error {
	g.reset()
	return g.db.Close()
}
