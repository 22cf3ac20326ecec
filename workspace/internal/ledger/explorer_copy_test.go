package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/workspace/work"
)

// imported is what a workspace becomes by an import.
type imported struct {
	copy  Copy
	world *world // of which it is a copy
}

// waiting returns the ids of the messages that wait in a copy of a world.
func (g *ghost) waiting(w *world) []string {
	var ids []string
	if w.run != nil {
		ids = append(ids, w.run.id)
		for _, j := range w.run.joined {
			ids = append(ids, j.id)
		}
	}
	return slices.DeleteFunc(append(ids, w.queue...), func(id string) bool { return g.tickets[id] })
}

// settled returns the text of a world without what the run may lose.
func (w *world) settled() text {
	if w.run != nil {
		return w.run.base
	}
	return w.text
}

// sketch returns what a copy of a world has, in short.
func (g *ghost) sketch(w *world) string {
	return fmt.Sprint(w.settled().encode(), g.waiting(w), w.dead, w.done, w.name, w.settledNotes())
}

// settledNotes returns the notes about messages of the settled text.
func (w *world) settledNotes() []note {
	last := w.settled().last
	return slices.DeleteFunc(slices.Clone(w.notes), func(n note) bool { return n.Message > last })
}

// noted returns notes with another one, of which there is room for three.
func noted(notes []note, n note) []note {
	notes = slices.DeleteFunc(slices.Clone(notes), func(o note) bool { return o.Message == n.Message })
	if n.Text != "" {
		notes = append(notes, n)
	}
	slices.SortFunc(notes, func(a, b note) int { return a.Message - b.Message })
	return notes[max(0, len(notes)-3):]
}

func sketchOf(c Copy) string {
	var waiting, dead []string
	var done []ending
	for _, m := range c.Messages {
		waiting = append(waiting, m.ID)
	}
	for _, d := range c.DeadLetters {
		dead = append(dead, d.Message.ID)
	}
	for _, o := range c.Outcomes {
		done = append(done, ending{o.ID, string(o.Ending)})
	}
	var notes []note
	for _, n := range c.Notes {
		notes = append(notes, note{n.Message, n.Text})
	}
	return fmt.Sprint(string(c.Content.Encode()), waiting, dead, done, c.Name, notes)
}

// imports applies an import to a world.
func (g *ghost) imports(w *world, from *world) {
	w.version, w.deleted = w.version+1, false
	w.text, w.queue, w.dead, w.done = from.settled(), g.waiting(from), from.dead, from.done
	w.stands, w.joins, w.name, w.notes = from.stands, from.joins, from.name, from.settledNotes()
	w.forgotten = g.without(w.forgotten, g.heldBy(w))
	for _, id := range g.heldBy(w) {
		g.accepted[id] = true
		delete(g.x.told, id)
	}
}

// heldBy returns the ids of the messages that a world knows.
func (g *ghost) heldBy(w *world) []string {
	ids := slices.Concat(g.waiting(w), w.dead)
	for _, d := range w.done {
		ids = append(ids, d.ID)
	}
	return ids
}

func (g *ghost) without(set map[string]bool, ids []string) map[string]bool {
	rest := map[string]bool{}
	for id := range set {
		if !slices.Contains(ids, id) {
			rest[id] = true
		}
	}
	return rest
}

// expire notes that the head of a deleted workspace was removed.
func (g *ghost) expire(c *call) {
	w := g.world
	switch {
	case c.kind != "expire" || !w.deleted:
		g.x.violated("%v: the head was deleted", c)
	case c.early:
		g.x.violated("%v: the head was removed too early", c)
	}
	g.world = &world{forgotten: w.forgotten, calls: append(slices.Clip(w.calls), c)}
	g.past = append(g.past, g.world)
	c.applied++
	g.live = map[string]bool{}
	g.x.count["expired"]++
	if g.x.variant.failover {
		g.x.store.photograph(g.world)
	}
}

// mayExpire reports whether the deletion of the workspace is so long ago that no
// program of before writes any more.
func (s *faultyStore) mayExpire() bool {
	head := s.entries[headOf]
	isOld := func(c *call, read mark) bool { return c != nil && (c.step <= head.step || read.seq < head.mark.seq) }
	return !slices.ContainsFunc(s.late, func(r request) bool { return isOld(r.call, r.read) }) &&
		!slices.ContainsFunc(s.x.actors, func(a *actor) bool { return isOld(a.call, a.read) })
}

func (a *actor) expires() bool { return a.call != nil && a.call.kind == "expire" }

func (a *actor) expire() {
	if !a.x.store.mayExpire() {
		return
	}
	c := &call{kind: "expire", early: a.x.chance(0.2)}
	before := a.process.ledger.now().Add(time.Hour)
	if c.early {
		before = time.Time{}
	}
	_ = a.do(c, func(ctx context.Context, l *Ledger) error {
		removed, err := l.Expire(ctx, before)
		if err == nil && !removed {
			err = errNoChange
		}
		return err
	})
}

// copy copies the workspace, for an import.
func (a *actor) copy() {
	c, err := a.process.ledger.Copy(context.Background())
	if errors.Is(err, work.ErrNotFound) {
		return
	}
	if err != nil {
		a.failed(err)
		return
	}
	for _, m := range c.Messages {
		if string(m.Body) != bodyOf(m.ID) {
			a.x.violated("%v: the copy has a message %s with the body %s", a, m.ID, m.Body)
		}
	}
	got := sketchOf(c)
	for _, w := range slices.Backward(a.x.ghost.past) {
		if w.seq > 0 && !w.deleted && a.x.ghost.sketch(w) == got {
			a.x.copies = append(a.x.copies, imported{c, w})
			a.x.count["copies"]++
			return
		}
	}
	a.x.violated("%v: there was no workspace with this copy: %s", a, brief(got))
}

func (a *actor) imports() {
	if len(a.x.copies) == 0 {
		return
	}
	from := a.x.copies[a.x.rng.IntN(len(a.x.copies))]
	c := &call{kind: "import", from: from.world, next: a.process.ledger.NewLease().Vacant()}
	_ = a.do(c, func(ctx context.Context, l *Ledger) error {
		_, err := l.Import(ctx, from.copy, c.next)
		return err
	})
}

// ask asks what became of a message.
func (a *actor) ask() {
	id := a.someMessage()
	var fate Fate
	h, err := a.process.ledger.ReadStable(context.Background(), func(h *Head) (err error) {
		fate, err = a.process.ledger.Fate(context.Background(), h, id)
		return err
	})
	if err != nil {
		a.failed(err)
		return
	}
	want := ""
	for _, w := range a.x.ghost.past {
		if w.seq == h.Seq && strings.HasSuffix(w.ops, h.nonce()) {
			want = a.x.ghost.where(w, id)
		}
	}
	got := map[string]string{PlaceRunning: "run", PlaceQueued: "queue", PlaceDead: "dead", PlaceEnded: string(fate.Ending)}[fate.Place]
	if got != want {
		a.x.violated("%v: message %s is in %q at seq %d, not in %q", a, id, got, h.Seq, want)
	}
	a.x.count["fates"]++
}
