package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

var explorerSchema = state.MustSchema(state.AllowUndeclared)

// checkCaches checks the law of everything that a process has cached: what is
// live equals what a ledger without caches loads from the store. It is called
// after each operation.
func (a *actor) checkCaches() {
	l, g := a.process.ledger, a.x.ghost
	g.checkContent(a)
	g.checkOutcomes(l)
	g.checkRemembered(l)
	g.checkBlobs(l)
	if len(l.index.lists) == 0 {
		return
	}
	for _, e := range g.heads() {
		g.checkIndex(l, g.decode(e.value))
	}
}

// checkContent checks the content and what its document keeps. A position that no
// head has had is one of a write that was not made.
func (g *ghost) checkContent(a *actor) {
	c := a.process.ledger.contents
	if want, known := g.texts[c.newest.Chain]; known && c.newest.doc != nil {
		at, doc := c.newest.Position, c.newest.doc
		if got := string(doc.Encode()); got != want.encode() {
			g.x.violated("%v: version %d is cached as %s, not %s", a, at.Version, brief(got), brief(want.encode()))
		}
		if doc != a.process.checked {
			if err := checkLive(doc); err != nil {
				g.x.violated("%v: the document of version %d: %v", a, at.Version, err)
			}
			if w := g.world; w.seq > 0 && w.chain == at.Chain && w.version == at.Version { // it can be read
				g.check(g.freshReader(), g.decode(g.x.store.entries[headOf].value), at, want)
				g.x.count["loaded"]++
			}
			a.process.checked = doc
		}
	}
	if text, known := g.texts[c.fitting.Chain]; known && a.process.strict && text.isAlien() {
		g.x.violated("%v: it takes content for fitting that it cannot use", a)
	}
}

// checkLive returns an error if a document has another conversation than one that
// is decoded from its text, or does not know the same messages to be unused.
func checkLive(doc *document.Document) error {
	decoded, err := document.Decode(doc.Encode())
	if err != nil {
		return err
	}
	var states [2]*state.State
	var effects [2][]state.Effect
	for i, d := range []*document.Document{doc.Clone(), decoded} {
		if states[i], _, err = d.Load(explorerSchema); err != nil {
			return err
		}
		if effects[i], err = d.Shorten(-1, -1); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(effects[0], effects[1]) {
		return fmt.Errorf("unused messages: live %v, stored %v", effects[0], effects[1])
	}
	// Not by exports: that of a live conversation may have messages that it had.
	changes, err := states[0].Effects(states[1])
	if err != nil {
		return err
	}
	if a, b := states[0].History().Results(), states[1].History().Results(); len(changes) > 0 || fmt.Sprint(a) != fmt.Sprint(b) {
		return fmt.Errorf("differences of what is live and stored: %v; results: live %v, stored %v", changes, a, b)
	}
	return nil
}

func (g *ghost) checkOutcomes(l *Ledger) {
	if text, known := g.texted[l.contents.outcomesName]; known {
		var want []Outcome
		if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(want, l.contents.outcomes) {
			g.x.violated("the outcomes %v are cached, not %v", l.contents.outcomes, want)
		}
	}
}

// checkRemembered checks the head that a ledger remembers.
func (g *ghost) checkRemembered(l *Ledger) {
	for _, e := range g.heads() {
		if l.lastHead == nil || e.revision != l.lastRevision || g.x.fault != "" {
			continue
		}
		data, err := g.x.sealer.open(headOf, headOf, e.value)
		if err != nil || string(data) != string(l.lastHead.encode()) {
			g.x.violated("the head %s is remembered, not %s", l.lastHead.encode(), data)
		}
	}
}

func (g *ghost) checkBlobs(l *Ledger) {
	for _, cache := range []*blobCache{l.cache, l.lists} {
		for name, data := range cache.blobs {
			if text, known := g.texted[name]; known && text != string(data) {
				g.x.violated("a blob is cached as %q, not %q", data, text)
			}
		}
	}
}

// checkIndex checks that the index of a queue finds all messages that wait in a
// head, which may be older than those that it was asked for before.
func (g *ghost) checkIndex(l *Ledger, h *sight) {
	ctx, head := context.Background(), &Head{Queue: blobList(h.Queue)}
	read := func(_ context.Context, name string) ([]byte, error) { return []byte(g.texted[name]), nil }
	lists := func(_ context.Context, _ int, names []string) ([][]byte, error) {
		return [][]byte{[]byte(g.texted[names[0]])}, nil
	}
	for n := range head.Queue.all(ctx, lists) {
		if n.level > 0 {
			continue
		}
		_, hash := cutQueueEntry(n.text)
		x := &queueIndex{lists: maps.Clone(l.index.lists)}
		if maybe, err := x.mayHave(ctx, head, hash, read); err != nil || !maybe {
			g.x.violated("the index does not know a message that waits at seq %d: %v", h.Seq, err)
		}
	}
}

// heads returns the last heads, the present one last.
func (g *ghost) heads() []revised {
	old := g.x.store.old[headOf]
	list := slices.Clone(old[max(0, len(old)-3):])
	if e, found := g.x.store.entries[headOf]; found {
		list = append(list, e)
	}
	return slices.DeleteFunc(list, func(e revised) bool { return e.absent })
}
