package main

import (
	"context"
	"errors"
	"time"
)

const (
	leaseTime = 10 * time.Second
	waitTime  = 2 * time.Millisecond // between looks of a caller that waits for the lease
)

// rows is what a good engineer writes by hand: an inbox, a lease with an epoch
// that fences a holder that was too slow, and a row for each message and
// result. One transaction accepts a message, takes the lease and reads the
// conversation; another one stores the answer and gives the lease back.
type rows struct {
	tables
	answer model
}

func openRows(ctx context.Context, s site, answer model) (handler, error) {
	t, err := openTables(ctx, s)
	return &rows{t, answer}, err
}

// A turn is the right to handle the first message of a user's inbox.
type turn struct {
	epoch, n int64
	first    message
	entries  []entry
}

func (r *rows) handle(ctx context.Context, m message) (string, error) {
	var t *turn
	err := inTx(ctx, r.db, func(tx tx) (err error) {
		if err := r.accept(ctx, tx, m); err != nil {
			return err
		}
		t, err = r.take(ctx, tx, m.User)
		return err
	})
	if err != nil {
		return "", err
	}
	return r.work(ctx, m, t)
}

// work handles messages of the user in their order, also those of other senders, until m
// is handled.
func (r *rows) work(ctx context.Context, m message, t *turn) (string, error) {
	for {
		if t != nil {
			reply := r.answer(t.first)
			err := r.finish(ctx, t, reply)
			if err == nil && t.first.ID == m.ID {
				return reply, nil
			}
			if err != nil && !errors.Is(err, errFenced) {
				return "", err
			}
		} else {
			reply, found, err := r.reply(ctx, m)
			if found || err != nil {
				return reply, err
			}
			select {
			case <-time.After(waitTime):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		if err := inTx(ctx, r.db, func(tx tx) (err error) {
			t, err = r.take(ctx, tx, m.User)
			return err
		}); err != nil {
			return "", err
		}
	}
}

// accept puts a message into the inbox, unless it is there.
func (r *rows) accept(ctx context.Context, t tx, m message) error {
	_, err := t.exec(ctx, r.bind("insert"+r.ignore+" into inbox (user_id, id, body) values (?, ?, ?)"+r.keep), m.User, m.ID, m.Text)
	return err
}

// take takes the lease and reads what is to be done. It returns nil if another
// holder has the lease, or if nothing waits.
func (r *rows) take(ctx context.Context, t tx, user string) (*turn, error) {
	var got turn
	taken, err := r.lease(ctx, t, user, &got)
	if err == nil && !taken {
		if err = r.person(ctx, t, user); err == nil {
			taken, err = r.lease(ctx, t, user, &got)
		}
	}
	if !taken || err != nil {
		return nil, err
	}
	if err := t.each(ctx, func(scan func(...any) error) error {
		got.first.User = user
		return scan(&got.first.ID, &got.first.Text)
	}, r.bind("select id, body from inbox where user_id = ? and handled = 0 order by n limit 1"), user); err != nil {
		return nil, err
	}
	if got.first.ID == "" {
		_, err := t.exec(ctx, r.bind("update people set expires = 0 where user_id = ? and epoch = ?"), user, got.epoch)
		return nil, err
	}
	got.entries, err = r.load(ctx, t, user, got.n)
	return &got, err
}

func (r *rows) lease(ctx context.Context, t tx, user string, got *turn) (taken bool, err error) {
	now := time.Now()
	scan := func(scan func(...any) error) error {
		taken = true
		return scan(&got.epoch, &got.n)
	}
	update := "update people set epoch = epoch + 1, expires = ? where user_id = ? and expires < ?"
	args := []any{now.Add(leaseTime).UnixMilli(), user, now.UnixMilli()}
	if r.engine != "mysql" {
		err = t.each(ctx, scan, r.bind(update+" returning epoch, n"), args...)
		return taken, err
	}
	n, err := t.exec(ctx, update, args...) // MariaDB has no returning there
	if n > 0 && err == nil {
		err = t.each(ctx, scan, "select epoch, n from people where user_id = ?", user)
	}
	return taken, err
}

var errFenced = errors.New("another holder has taken the lease")

// finish stores the answer and gives the lease back, unless it is lost.
func (r *rows) finish(ctx context.Context, t *turn, reply string) error {
	return inTx(ctx, r.db, func(tx tx) error {
		user := t.first.User
		n, err := tx.exec(ctx, r.bind("update people set n = n + 2, expires = 0 where user_id = ? and epoch = ?"), user, t.epoch)
		if err != nil {
			return err
		}
		if n == 0 {
			return errFenced
		}
		if err := r.add(ctx, tx, t.n, t.first, reply); err != nil {
			return err
		}
		_, err = tx.exec(ctx, r.bind("update inbox set handled = 1, reply = ? where user_id = ? and id = ?"), reply, user, t.first.ID)
		return err
	})
}

// reply returns the answer to a message that is handled.
func (r *rows) reply(ctx context.Context, m message) (reply string, found bool, err error) {
	err = sqlTx{r.db}.each(ctx, func(scan func(...any) error) error {
		found = true
		return scan(&reply)
	}, r.bind("select reply from inbox where user_id = ? and id = ? and handled = 1"), m.User, m.ID)
	return reply, found, err
}
