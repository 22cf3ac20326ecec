package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agentstate/state/internal/announce"
	"github.com/agentstate/state/store"
)

// sessionPresence makes names present by advisory locks of a server, one
// session per name.
type sessionPresence struct {
	sessionStatements
	db   *sql.DB
	args func(name string) []any

	mu       sync.Mutex
	sessions int // of names that are announced, or about to be
	maxConns int // of the pool without them; 0 if the pool is the program's, or has no limit
}

// occupy notes that n more connections of the pool are sessions, which leave as
// many for other calls as there were.
func (p *sessionPresence) occupy(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions += n
	if p.maxConns > 0 {
		p.db.SetMaxOpenConns(p.maxConns + p.sessions)
	}
}

// sessionStatements are the SQL of a sessionPresence. They have the same
// parameters, which identify a name.
type sessionStatements struct {
	// limit lets the server end the session after 20 seconds without a
	// statement. Otherwise, a session whose client lost power or network would
	// remain for hours.
	limit   string
	lock    string // takes the lock, or returns false if it is not free
	unlock  string
	isTaken string // returns whether any session has the lock
	session string // returns the number of the session; has no parameters
}

// sessionClaim is a session with the lock of a name.
type sessionClaim struct {
	presence *sessionPresence
	args     []any
	conn     *sql.Conn
	session  int64
}

func (p *sessionPresence) claim(ctx context.Context, name string) (announce.Claim, error) {
	p.occupy(1)
	conn, err := p.db.Conn(ctx)
	if err != nil {
		p.occupy(-1)
		return announce.Claim{}, err
	}
	c := &sessionClaim{presence: p, args: p.args(name), conn: conn}
	if err := c.lock(ctx); err != nil {
		// The lock may have been taken. It ends with the session.
		c.endSession()
		return announce.Claim{}, err
	}
	return announce.Claim{Interval: time.Second, Check: c.check, Release: c.release}, nil
}

func (c *sessionClaim) lock(ctx context.Context) error {
	p := c.presence
	if _, err := c.conn.ExecContext(ctx, p.limit); err != nil {
		return err
	}
	if err := c.conn.QueryRowContext(ctx, p.sessionStatements.session).Scan(&c.session); err != nil {
		return err
	}
	if err := c.checkShared(ctx); err != nil {
		return err
	}
	var locked sql.NullBool
	if err := c.conn.QueryRowContext(ctx, p.sessionStatements.lock, c.args...).Scan(&locked); err != nil {
		return err
	}
	if !locked.Valid {
		return errors.New("the server could not try the lock")
	}
	if !locked.Bool {
		return store.ErrConflict
	}
	return nil
}

// errShared is returned for a session that another connection has, too.
var errShared = errors.New("a pooler between client and server shares sessions")

// checkShared looks for a pooler: while the session waits, a pooler gives it to
// another connection.
func (c *sessionClaim) checkShared(ctx context.Context) error {
	var session int64
	err := c.presence.db.QueryRowContext(ctx, c.presence.sessionStatements.session).Scan(&session)
	if err == nil && session == c.session {
		err = errShared
	}
	return err
}

// check requires that the session is still there and is the same.
func (c *sessionClaim) check(ctx context.Context) error {
	var session int64
	err := c.conn.QueryRowContext(ctx, c.presence.sessionStatements.session).Scan(&session)
	if err == nil && session != c.session {
		err = fmt.Errorf("the session is %d and was %d", session, c.session)
	}
	return err
}

// release releases the lock before it ends the session, because a server
// notices the end of a session later than the client.
func (c *sessionClaim) release(ctx context.Context) error {
	_, err := c.conn.ExecContext(ctx, c.presence.unlock, c.args...)
	c.endSession()
	return err
}

// endSession closes the connection instead of returning it to the pool.
func (c *sessionClaim) endSession() {
	discard(c.conn)
	c.presence.occupy(-1)
}

func (p *sessionPresence) isPresent(ctx context.Context, name string) (bool, error) {
	var taken bool
	err := p.db.QueryRowContext(ctx, p.isTaken, p.args(name)...).Scan(&taken)
	return taken, err
}
