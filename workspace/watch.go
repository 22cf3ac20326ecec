package workspace

import (
	"context"
	"errors"
	"iter"

	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Watch yields what happens in the workspace of a user, by any process, until
// ctx ends or the loop is left. The workspace need not exist yet.
//
// The first event is an EventSummary, and so is one for each change of the
// workspace, but at most four a second. If this Manager holds a run, Watch
// yields its other events at once, first of them the text that a model is
// streaming, as far as it has come. Of a run that another Manager holds it
// yields only EventEnded, when it looks at the workspace, see Await, and with
// Options.Live EventDelta. After EventEnded, no event is about that message.
//
// Watch of a user part, of which [Shared] returns the id, also yields an
// EventSummary for each workspace of the user that changes: its UserID says which.
// A program that shows a list of threads reads [Manager.Threads] after the first
// event. What other processes do it finds within a second, and on a store that is
// a store.Watcher at once, but what they do to the user's own workspace within five.
//
// A loop that is slow does not delay the run: it gets one EventSummary for the
// events that it has missed, but no EventEnded of the last messages is missed.
// Values are masked as in [Manager.Records]. An error ends the loop.
func (m *Manager) Watch(ctx context.Context, userID string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := m.watch(ctx, userID, func(e Event) bool { return yield(e, nil) }); err != nil {
			yield(Event{}, wrapError("watch", userID, err))
		}
	}
}

func (m *Manager) watch(ctx context.Context, userID string, yield func(Event) bool) error {
	l, err := m.ledger(userID)
	if err != nil {
		return err
	}
	w, leave, err := m.follow(l)
	if err != nil {
		return err
	}
	defer leave()
	h, err := l.ReadHead(ctx)
	if err != nil {
		return err
	}
	w.noteTold(h)
	if ledger.IsShared(userID) {
		if err := w.feed.lookAtThreads(ctx); err != nil {
			return err
		}
	}
	var order, dropped uint64
	for i := (item{Event: work.Event{Kind: EventSummary}, head: h}); ; {
		var s Summary
		switch {
		case i.thread != "":
			s = newSummary(i.thread, i.head)
		case i.head != nil:
			h = i.head
			fallthrough
		default:
			s = newSummary(userID, h)
		}
		order += 1 + i.dropped - dropped
		i.Order, dropped = order, i.dropped
		if i.stored {
			m.maskOutcome(ctx, l, &i)
		}
		if !yield(Event{s, i.Event, i.err}) {
			return nil
		}
		if i, err = w.next(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// maskOutcome masks the secrets in the outcome of an event.
func (m *Manager) maskOutcome(ctx context.Context, l *ledger.Ledger, i *item) {
	if i.Outcome.Reply != "" || i.Outcome.Reason != "" {
		redact := m.presentMasks(ctx, l)
		i.Outcome.Reply, i.Outcome.Reason = redact(i.Outcome.Reply), redact(i.Outcome.Reason)
		if i.err != nil {
			i.err = &maskedError{redact(i.err.Error()), i.err}
		}
	}
	i.Reply = i.Outcome.Reply
}

// maskedError is an error with another text.
type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string        { return e.text }
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }

// follow adds a follower that wants all events of a workspace.
func (m *Manager) follow(l *ledger.Ledger) (w *follower, leave func(), err error) {
	if w, leave, err = m.feeds.follow(l, ""); err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	var held []*Run
	for r := range m.localRuns {
		if r.ready && r.ledger.User() == l.User() {
			held = append(held, r)
		}
	}
	m.mu.Unlock()
	for _, run := range held {
		w.feed.followRun(&run.told)
		run.live.soFar(w.beginText)
	}
	return w, leave, nil
}
