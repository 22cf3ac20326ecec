package workspace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentstate/state"
)

// Each method here is one change of the head, by one compare-and-set. There are no
// others.

// offer is a message for a workspace, and what its sender wants.
type offer struct {
	item  item
	body  []byte // the message, if it does not fit into the item
	busy  Busy
	queue int // how many may wait
	next  tenure
}

// tenure is what a run is to be when it begins: its ids, and for how long its
// holder may be silent.
type tenure struct {
	id, work string
	ttl      time.Duration
	now      time.Time
}

func (l *ledger) tenure() tenure {
	return tenure{id: newID(), work: newID(), ttl: l.ttl, now: l.now()}
}

// begin makes an item the run.
func (d *draft) begin(i item, t tenure) {
	d.Token++
	d.Run = &lease{
		ID: t.id, Work: t.work, Token: d.Token, TTL: t.ttl.Milliseconds(),
		Item: i, Base: d.now(), Began: t.now,
	}
}

// next makes the first of the queue the run, or none if nobody waits.
func (d *draft) next(t tenure) {
	d.Run = nil
	if len(d.Queue) == 0 {
		return
	}
	first := d.Queue[0]
	if d.Queue = d.Queue[1:]; len(d.Queue) == 0 {
		d.Queue = nil
	}
	d.begin(first, t)
}

// close ends an item.
func (d *draft) close(i item, as string) {
	d.end(i.ID, as)
	if i.Body != nil {
		d.drop(*i.Body)
	}
}

// mine returns the run if the lease is still the holder's.
func (d *draft) mine(lease string, message string) error {
	if d.Run != nil && d.Run.ID == lease {
		return nil
	}
	switch d.fate(message) {
	case interrupted, rolledBack, reset:
		return fmt.Errorf("%w: %w", ErrFenced, ErrInterrupted)
	}
	return ErrFenced
}

// write adds a record. Its effects fit the content at the head.
func (d *draft) write(r Record) error {
	r.Version = d.Version + 1
	e, err := r.link(d.Chain)
	if err != nil {
		return err
	}
	return d.append(e)
}

// closeCalls adds a record that answers the calls of tools that the run has left
// open, so that the next prompt is accepted.
func (d *draft) closeCalls(now time.Time) error {
	doc, err := d.ledger.content(d.ctx, d.head, d.now())
	if err != nil {
		return err
	}
	effects, err := doc.AnswerPending()
	if err != nil || len(effects) == 0 {
		return err
	}
	return d.write(d.record(KindInterrupt, now, effects))
}

// takeBack adds a record that undoes what the run has committed.
func (d *draft) takeBack(now time.Time) error {
	doc, err := d.ledger.content(d.ctx, d.head, d.now())
	if err != nil {
		return err
	}
	base, err := d.ledger.content(d.ctx, d.head, d.Run.Base)
	if err != nil {
		return err
	}
	// Nobody but the run has written since its base.
	effects := doc.Revert(base)
	if len(effects) == 0 {
		return nil
	}
	return d.write(d.record(KindRollback, now, effects))
}

// record returns a record of the run.
func (d *draft) record(kind Kind, now time.Time, effects []state.Effect) Record {
	return Record{
		Kind: kind, Time: now, RunID: d.Run.Work, Lease: d.Run.ID, Message: d.Run.Item.ID, Effects: effects,
	}
}

// submit hands over a message. It returns what has become of it: Started,
// Queued, Duplicate or Rejected.
func (l *ledger) submit(ctx context.Context, o offer) (*head, Status, error) {
	var status Status
	h, err := l.transact(ctx, func(d *draft) error {
		if d.fate(o.item.ID) != "" {
			status = StatusDuplicate
			return errNothing
		}
		i := o.item
		if d.Run != nil && o.busy == BusyReject {
			status = StatusRejected
			return errNothing
		}
		if d.Run != nil && o.busy == BusyEnqueue && len(d.Queue) >= o.queue {
			return ErrQueueFull
		}
		if o.body != nil {
			body := d.blob(o.body)
			i.Body = &body
		}
		switch {
		case d.Run == nil:
			d.begin(i, o.next)
			status = StatusStarted
			return nil
		case o.busy == BusyEnqueue:
			d.Queue = append(d.Queue, i)
			status = StatusQueued
			return nil
		}
		as, stop := interrupted, d.closeCalls
		if o.busy == BusyRollback {
			as, stop = rolledBack, d.takeBack
		}
		if err := stop(o.next.now); err != nil {
			return err
		}
		d.close(d.Run.Item, as)
		d.begin(i, o.next)
		status = StatusStarted
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	if err != nil {
		status = ""
	}
	return h, status, err
}

// renew shows that the holder lives.
func (l *ledger) renew(ctx context.Context, lease, message string) (*head, error) {
	return l.transact(ctx, func(d *draft) error {
		if err := d.mine(lease, message); err != nil {
			return err
		}
		d.Run.Beat++
		return nil
	})
}

// commit adds a record of a run, and returns the point to which it leads. The
// effects fit the content at a point, which is where the run has left it.
func (l *ledger) commit(ctx context.Context, lease, message string, at point, effects []state.Effect, purge bool) (point, error) {
	now := l.now()
	var to point
	_, err := l.transact(ctx, func(d *draft) error {
		if err := d.mine(lease, message); err != nil {
			return err
		}
		d.Run.Beat++
		if err := d.step(KindStep, at, now, effects, purge); err != nil {
			return err
		}
		to = d.now()
		return nil
	})
	return to, err
}

// behind is what a run returns whose last record is not the last one any more. The
// run is the only one to add any, so they were lost.
func (d *draft) behind() error {
	return fmt.Errorf("%w: %s: what the run has committed is gone", ErrRolledBack, d.ledger.key)
}

// step adds a record to the point for which it was made.
func (d *draft) step(kind Kind, at point, now time.Time, effects []state.Effect, purge bool) error {
	if d.now() != at {
		return d.behind()
	}
	if err := d.write(d.record(kind, now, effects)); err != nil {
		return err
	}
	if purge {
		d.Purge = d.Version
	}
	return nil
}

// finish adds the last record of a run, and begins the next run if a message
// waits.
func (l *ledger) finish(ctx context.Context, lease, message string, at point, effects []state.Effect, purge bool, next tenure) (*head, point, error) {
	now := l.now()
	var to point
	h, err := l.transact(ctx, func(d *draft) error {
		if err := d.mine(lease, message); err != nil {
			return err
		}
		if d.now() != at {
			return d.behind()
		}
		if len(effects) > 0 {
			if err := d.step(KindFinish, at, now, effects, purge); err != nil {
				return err
			}
		}
		to = d.now()
		d.close(d.Run.Item, handled)
		d.next(next)
		return nil
	})
	return h, to, err
}

// fail ends a run whose message cannot be handled. What it has committed stays.
func (l *ledger) fail(ctx context.Context, lease, message string, at point, next tenure) (*head, error) {
	now := l.now()
	return l.transact(ctx, func(d *draft) error {
		if err := d.mine(lease, message); err != nil {
			return err
		}
		if d.now() != at {
			return d.behind()
		}
		if err := d.closeCalls(now); err != nil {
			return err
		}
		d.close(d.Run.Item, failed)
		d.next(next)
		return nil
	})
}

// errAlive is returned for a run that was not silent for long enough.
var errAlive = errors.New("workspace: the run lives")

// takeOver makes a run the caller's that has shown no sign of life since it was
// seen. A run that was tried too often goes to the dead.
func (l *ledger) takeOver(ctx context.Context, seen pulse, how Takeover, attempts int, next tenure) (*head, error) {
	return l.transact(ctx, func(d *draft) error {
		if pulseOf(d.head) != seen {
			return errAlive
		}
		stop := d.closeCalls
		if how == TakeoverRestart {
			stop = d.takeBack
		}
		if err := stop(next.now); err != nil {
			return err
		}
		if how == TakeoverRestart {
			d.Run.Base = d.now()
		}
		if d.Run.Attempt+1 >= attempts {
			d.Dead = append(d.Dead, dead{Item: d.Run.Item, Attempt: d.Run.Attempt + 1})
			for len(d.Dead) > deadRing {
				d.close(d.Dead[0].Item, failed)
				d.Dead = d.Dead[1:]
			}
			d.next(next)
			return nil
		}
		d.Token++
		d.Run.ID, d.Run.Token, d.Run.TTL, d.Run.Beat = next.id, d.Token, next.ttl.Milliseconds(), 0
		d.Run.Attempt++
		return nil
	})
}

// pulse is what shows that the holder of a run lives: it changes.
type pulse struct {
	lease string
	beat  uint64
}

func pulseOf(h *head) pulse {
	if h.Run == nil {
		return pulse{}
	}
	return pulse{h.Run.ID, h.Run.Beat}
}

// errMoved is returned for effects that do not fit the content any more.
var errMoved = errors.New("workspace: content has changed")

// update adds a record while there is no run.
func (l *ledger) update(ctx context.Context, at point, effects []state.Effect, purge bool) (*head, error) {
	now := l.now()
	return l.transact(ctx, func(d *draft) error {
		if d.Run != nil {
			return ErrBusy
		}
		if d.now() != at {
			return errMoved
		}
		if err := d.write(Record{Kind: KindUpdate, Time: now, Effects: effects}); err != nil {
			return err
		}
		if purge {
			d.Purge = d.Version
		}
		return nil
	})
}

// reset empties the workspace and returns the ids of the messages that it dropped.
func (l *ledger) reset(ctx context.Context) (*head, []string, error) {
	var ids []string
	h, err := l.transact(ctx, func(d *draft) error {
		if d.Seq == 0 {
			return errNothing
		}
		for _, r := range d.refs() {
			if r.To == 0 {
				d.drop(r)
			}
		}
		if err := d.dropRecords(d.Segs); err != nil {
			return err
		}
		var items []item
		if d.Run != nil {
			items = append(items, d.Run.Item)
		}
		items = append(items, d.Queue...)
		for _, x := range d.Dead {
			items = append(items, x.Item)
		}
		// Not before nothing can fail: an earlier attempt may turn out to have been made.
		ids = nil
		// As long as they are known they are not taken again.
		for _, i := range items {
			d.Done = append(d.Done, done{ID: i.ID, As: reset})
			ids = append(ids, i.ID)
		}
		d.Done = d.Done[max(0, len(d.Done)-max(doneRing, len(ids))):]
		d.Epoch++
		d.Token++
		d.Version++
		d.Chain = hash([]byte(d.Chain), []byte("reset"))
		d.Run, d.Queue, d.Dead, d.Segs, d.Tail, d.Purge = nil, nil, nil, nil, nil, 0
		d.Snap = &snap{point: d.now()}
		return nil
	})
	if errors.Is(err, errNothing) {
		err = nil
	}
	return h, ids, err
}
