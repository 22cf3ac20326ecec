package page

import (
	"context"
	"iter"
	"reflect"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// Follow yields what a page shows of a thread, and then each change, until ctx ends
// or the loop is left. Somebody who has seen the changes up to a version gives that
// as from, and gets in its place first what was stored since, together with the
// answer that is being made, from its beginning. A version that is not held any
// more, or is of another thread, is taken for "", which stands for nothing seen.
//
// A page that is slow delays nobody: what it has missed comes as one change. The
// answer of a run that another process holds comes when it is stored, or as a text,
// about a second late, with Options.Live. What other threads do to shared fields comes
// with the next change of this one. An error ends the loop.
func (s *Source) Follow(ctx context.Context, thread, from string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		f := &follower{source: s, ctx: ctx, thread: thread, from: from}
		for e, err := range s.events(ctx, thread) {
			var changes []Change
			if err == nil {
				changes, err = f.take(&e)
			}
			if err != nil {
				if ctx.Err() == nil {
					yield(Change{}, err)
				}
				return
			}
			for _, c := range changes {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// follower knows what a page shows.
type follower struct {
	source *Source
	ctx    context.Context
	thread string
	from   string

	seen    string // the last write of which it was told
	page    *Page  // nil at first; its Tail is without answers
	last    int    // the highest number of a message of it
	answers []*answer
	redact  func(string) string
}

// take returns what an event changes.
func (f *follower) take(e *workspace.Event) ([]Change, error) {
	switch e.Kind {
	case workspace.EventDelta, workspace.EventThought, workspace.EventInput:
		return f.piece(e), nil
	case workspace.EventChange, workspace.EventReply: // is not stored
		return nil, nil
	}
	if f.page != nil && e.Revision == f.seen && e.Kind != workspace.EventEnded {
		return nil, nil
	}
	f.seen = e.Revision
	return f.refresh()
}

// refresh returns what has changed since the page was read last.
func (f *follower) refresh() ([]Change, error) {
	v, err := f.source.Manager.View(f.ctx, f.thread)
	if err != nil {
		return nil, err
	}
	now, last := f.source.page(v)
	before := f.page
	if before == nil {
		before, _ = f.source.ReadAt(f.ctx, f.thread, f.from) // else nothing that was seen is known
	}
	f.last, f.redact = last, v.Redact
	kept := slices.DeleteFunc(slices.Clone(f.answers), func(a *answer) bool {
		return a.number <= last || v.Run == nil || v.Run.Message.ID != a.message || v.Run.Attempt > a.attempt
	})
	isNew := len(kept) != len(f.answers)
	f.answers = kept
	isFirst := f.page == nil
	f.page = now
	if before == nil {
		return []Change{f.whole()}, nil
	}
	c, ok := difference(before, now)
	if !ok {
		return []Change{f.whole()}, nil
	}
	if isFirst || isNew || !reflect.DeepEqual(before.Tail, now.Tail) {
		c.Tail = f.tail()
	}
	if !isFirst && c.Tail == nil && c.Version == before.Version && len(c.Items)+len(c.Removed)+len(c.Fields) == 0 {
		return nil, nil
	}
	return []Change{c}, nil
}

// whole returns all that the page shows.
func (f *follower) whole() Change {
	p := *f.page
	p.Tail = *f.tail()
	return Change{Version: p.Version, Page: &p}
}

// tail returns the Tail with the answers that are being made: behind the question,
// and in front of what waits.
func (f *follower) tail() *Tail {
	t := f.page.Tail
	waits := map[string]bool{}
	for _, turn := range t.Turns {
		waits[turn.ID] = turn.State == TurnWaiting
	}
	at := slices.IndexFunc(t.Pending, func(i *Item) bool { return waits[i.ID] })
	if at < 0 {
		at = len(t.Pending)
	}
	var shown []*Item
	for _, a := range f.answers {
		shown = append(shown, a.shown())
	}
	t.Pending = slices.Insert(slices.Clone(t.Pending), at, shown...)
	return &t
}

// piece returns what a piece of an answer changes.
func (f *follower) piece(e *workspace.Event) []Change {
	if f.page == nil || e.Message <= f.last { // it is stored
		return nil
	}
	var changes []Change
	n := slices.IndexFunc(f.answers, func(a *answer) bool { return a.number >= e.Message })
	if n < 0 || !f.answers[n].isOf(e) {
		restarts := n >= 0
		a := &answer{
			message: e.MessageID, number: e.Message, attempt: e.Attempt, begun: e.Begun,
			item: Item{ID: itemID(f.thread, e.MessageID, e.Message), Role: "assistant", Turn: f.turn(e.MessageID), Open: true},
		}
		if restarts {
			f.answers = f.answers[:n]
		}
		f.answers = append(f.answers, a)
		c := Change{Version: f.page.Version, Tail: f.tail()}
		if restarts {
			c.Restart = a.item.ID
		}
		changes, n = append(changes, c), len(f.answers)-1
	}
	if d, ok := f.answers[n].add(e); ok {
		changes = append(changes, Change{Version: f.page.Version, Delta: &d})
	}
	return changes
}

// turn returns the turn that the answer to a message belongs to.
func (f *follower) turn(message string) string {
	message = f.redact(message)
	for _, t := range f.page.Turns {
		if t.ID == message && t.Of != "" {
			return t.Of
		}
	}
	return message
}

// difference returns what has changed of what is stored. It returns false if the
// order has.
func difference(from, to *Page) (c Change, ok bool) {
	c.Version = to.Version
	was := make(map[string]*Item, len(from.Items))
	for _, item := range from.Items {
		was[item.ID] = item
	}
	behind, at := "", 0
	for _, item := range to.Items {
		old := was[item.ID]
		for old != nil && at < len(from.Items) && from.Items[at] != old {
			c.Removed, at = append(c.Removed, from.Items[at].ID), at+1
		}
		switch {
		case old != nil && at == len(from.Items): // it was in front of another one that stays
			return c, false
		case old == nil || !reflect.DeepEqual(old, item):
			c.Items = append(c.Items, Placed{behind, item})
		}
		if old != nil {
			at++
		}
		behind = item.ID
	}
	for _, item := range from.Items[at:] {
		c.Removed = append(c.Removed, item.ID)
	}
	c.Fields = changed(from.Fields, to.Fields)
	return c, true
}

// changed returns the new values of fields, and null for those that have none.
func changed(from, to map[string]state.JSON) map[string]state.JSON {
	made := map[string]state.JSON{}
	for name, value := range to {
		if was, known := from[name]; !known || was != value {
			made[name] = value
		}
	}
	for name := range from {
		if _, stays := to[name]; !stays {
			made[name] = "null"
		}
	}
	return made
}
