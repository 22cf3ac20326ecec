package workspace

import (
	"context"
	"errors"
	"iter"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Watch returns what happens in the workspace of a user, by any process. The
// workspace need not exist yet. Its reader says who is shown the events:
//
//	for e, err := range m.Watch(ctx, user).As("ui") {
//
// The events end with ctx, or when the loop is left. The first one is an
// EventSummary, and so is one for each change of the workspace, but at most four a
// second. If this Manager holds a run, its other events come at once, first of them
// the answer that a model is streaming, as far as it has come. Of a run that another
// Manager holds there is only EventEnded, when this one looks at the workspace, see
// Await, and with Options.Live EventDelta. After EventEnded, no event is about that
// message.
//
// Watch of a user part, of which [Shared] returns the id, also has an EventSummary
// for each workspace of the user that changes: its UserID says which. A program that
// shows a list of threads reads [Manager.Threads] after the first event. What other
// processes do it finds within a second, and on a store that is a store.Watcher at
// once, but what they do to the user's own workspace within five.
//
// A loop that is slow does not delay the run: it gets one EventSummary for the
// events that it has missed, but no EventEnded of the last messages is missed.
// Values are masked as in [Manager.Records]. An error ends the loop.
func (m *Manager) Watch(ctx context.Context, userID string) Events {
	return Events{func(show func(*Event) bool, yield func(Event, error) bool) {
		if err := m.watch(ctx, userID, show, func(e Event) bool { return yield(e, nil) }); err != nil {
			yield(Event{}, wrapError("watch", userID, err))
		}
	}, m.schema}
}

// Events are what happens in a workspace: see [Manager.Watch].
type Events struct {
	each   func(show func(*Event) bool, yield func(Event, error) bool)
	schema *state.Schema
}

// As yields the events for a program that shows them to somebody who may see what
// an agent may read, such as a page for the user: they have nothing of a workspace
// that [View.As] does not have. Of an agent that may not read the conversation,
// there are no deltas, replies and suspended calls. No event has the title, which
// is made of everything.
func (e Events) As(agent string) iter.Seq2[Event, error] {
	return e.shown(reader{state.New(e.schema).As(agent)}.mayRead)
}

// AsHost yields the events for the program itself, which may read everything.
func (e Events) AsHost() iter.Seq2[Event, error] {
	return e.shown(func(*Event) bool { return true })
}

func (e Events) shown(show func(*Event) bool) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if e.each != nil { // else it is the zero Events
			e.each(show, yield)
		}
	}
}

// watch yields the events that are shown.
func (m *Manager) watch(ctx context.Context, userID string, show func(*Event) bool, yield func(Event) bool) error {
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
	for i := (item{Event: Event{Kind: EventSummary}, head: h}); ; {
		switch {
		case i.thread != "":
			i.Summary = newSummary(i.thread, i.head)
		case i.Kind == EventSummary || i.Kind == EventEnded || i.head != nil && i.head.Age().After(h.Age()):
			if i.head != nil {
				h = i.head
			}
			fallthrough
		default:
			i.Summary = newSummary(userID, h)
		}
		if i.stored {
			m.maskOutcome(ctx, l, &i)
		}
		order, dropped = order+i.dropped-dropped, i.dropped
		if show(&i.Event) {
			order++
			i.Order = order
			if !yield(i.Event) {
				return nil
			}
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
		if i.Err != nil {
			i.Err = &maskedError{redact(i.Err.Error()), i.Err}
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

// As finds an AccessError, which has names only.
func (e *maskedError) As(target any) bool {
	_, ok := target.(**state.AccessError)
	return ok && errors.As(e.err, target)
}

// follow adds a follower that wants all events of a workspace.
func (m *Manager) follow(l *ledger.Ledger) (w *follower, leave func(), err error) {
	if w, leave, err = m.feeds.follow(l, ""); err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	var held []*Run
	for r := range m.localRuns {
		if r.ledger.User() == l.User() && r.isLoaded() {
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
