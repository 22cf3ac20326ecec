package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
)

// process is one incarnation of a process. Its ledger dies with it.
type process struct {
	name   string
	ledger *ledger
	dead   bool
	rate   float64 // of its clock
	seen   mark    // the newest head that it has read
}

// sees notes that a process was shown a head.
func (p *process) sees(e revised) {
	if e.mark.seq >= p.seen.seq {
		p.seen = e.mark
	}
}

// actor performs operations one by one in a process, as a coroutine.
type actor struct {
	x       *explorer
	name    string
	process *process
	yield   func(struct{}) bool
	next    func() (struct{}, bool)
	stop    func()
	wake    int // the step before which it sleeps
	healthy bool
	stale   int  // consecutive stale reads
	behind  bool // the head that it has read is older than what its process has seen

	call  *call // that is under way
	run   *held
	pulse leaseState
	since time.Duration
}

// held is a run whose lease an actor believes to hold.
type held struct {
	id, lease string
	at        position
	text      text
}

func (r *held) holder() holder { return holder{r.lease, r.id, r.at} }

type crashed struct{}

// point is a scheduling point: other actors may continue, or the process may
// crash.
func (a *actor) point() {
	if a.healthy {
		a.x.step++
		if len(a.x.store.late) > 0 && a.x.chance(0.1) {
			a.x.store.land()
		}
		return
	}
	if a.x.chance(a.x.rates.pause) {
		a.wake = a.x.step + a.x.rng.IntN(400)
	}
	if !a.yield(struct{}{}) || a.process.dead {
		panic(crashed{})
	}
	if a.x.chance(a.x.rates.crash) {
		a.crash()
	}
}

func (a *actor) crash() {
	if a.healthy {
		return
	}
	a.x.logf("%v: crashes", a)
	a.x.count["crashes"]++
	a.process.dead = true
	panic(crashed{})
}

func (a *actor) String() string { return a.process.name + a.name }

// live performs random operations until the process crashes.
func (a *actor) live(yield func(struct{}) bool) {
	defer func() {
		if p := recover(); p != nil && p != (crashed{}) {
			panic(p)
		}
	}()
	a.yield = yield
	for {
		a.point()
		a.act()
	}
}

func (a *actor) act() {
	a.call = nil
	acts := a.x.acts
	if a.run != nil {
		acts = a.x.acts2
	}
	n := 0
	for _, w := range acts {
		n += w.weight
	}
	n = a.x.rng.IntN(n)
	for _, w := range acts {
		if n -= w.weight; n < 0 {
			w.do(a)
			return
		}
	}
}

// do makes a call and judges its result.
func (a *actor) do(c *call, fn func(ctx context.Context, l *ledger) error) error {
	x := a.x
	c.n, c.by = len(x.calls), a.String()
	x.calls = append(x.calls, c)
	a.call = c
	x.logf("%v: %v%s", a, c, c.details())
	err := fn(context.Background(), a.process.ledger)
	a.call = nil
	c.err = err
	x.logf("%v: %v returns %v", a, c, err)
	switch {
	case err == nil:
		c.result = made
	case errors.Is(err, store.ErrUnknownOutcome):
		c.result = unsure
		x.count["unsure"]++
	case errors.Is(err, ErrFenced), errors.Is(err, ErrBusy), errors.Is(err, ErrQueueFull), errors.Is(err, errLeaseRenewed),
		errors.Is(err, errContentChanged), errors.Is(err, errLost), errors.Is(err, errNoChange), strings.Contains(err.Error(), ": not written: "):
		c.result = refused
	case errors.Is(err, ErrRolledBack) && x.variant.failover:
		c.result = refused
		x.count["rolledBack"]++
	default:
		x.violated("%v: %v", c, err)
	}
	x.judge(c)
	return err
}

func (c *call) details() string {
	switch c.kind {
	case "submit":
		return fmt.Sprintf(" %v", []string{"default", "enqueue", "reject", "interrupt", "rollback"}[c.busy])
	case "takeOver":
		return fmt.Sprintf(" %v", []string{"resume", "restart"}[c.how])
	}
	return ""
}

// take takes the run of a head if the actor has its lease.
func (a *actor) take(h *head, lease string) {
	a.run = nil
	if h == nil || h.Run == nil || h.Run.LeaseID != lease {
		return
	}
	r := &held{id: h.Run.Message.ID, lease: lease, at: h.position()}
	body := []byte(h.Run.Message.Body)
	l, ctx := a.process.ledger, context.Background()
	if h.Run.Message.BodyBlob != nil {
		var err error
		if body, err = l.fetchBlob(ctx, *h.Run.Message.BodyBlob); err != nil {
			return // another actor takes it over
		}
	}
	if string(body) != bodyOf(r.id) {
		a.x.violated("message %s is %s", r.id, body)
	}
	doc, err := l.content(ctx, h, h.position())
	if err != nil {
		return
	}
	r.text = a.known(h, doc)
	a.run = r
}

func bodyOf(id string) string { return `"body of ` + id + `"` }

// known returns the text of a document and checks that it is the one written.
func (a *actor) known(h *head, doc *document.Document) text {
	want, known := a.x.ghost.texts[h.Chain]
	if !known {
		a.x.violated("%v: a head with a chain that nobody has written", a)
	}
	if got := string(doc.Encode()); got != want.encode() {
		a.x.violated("%v: version %d reads as %s, not %s", a, h.Version, brief(got), brief(want.encode()))
	}
	return want
}

// after handles the result of a call that has ended or begun a run.
func (a *actor) after(h *head, lease string, err error) {
	switch {
	case err == nil:
		a.take(h, lease)
	case errors.Is(err, ErrFenced), errors.Is(err, ErrRolledBack), errors.Is(err, store.ErrUnknownOutcome):
		a.run = nil
	}
}

func (a *actor) submit() {
	if len(a.x.sent) == 50 { // fewer than maxFinished
		return
	}
	id := fmt.Sprint("m", len(a.x.sent))
	a.x.sent = append(a.x.sent, id)
	a.send(id)
}

func (a *actor) resend() {
	if len(a.x.sent) > 0 {
		a.send(a.x.sent[a.x.rng.IntN(len(a.x.sent))])
	}
}

func (a *actor) send(id string) {
	c := &call{kind: "submit", id: id, busy: a.x.busies[a.x.rng.IntN(len(a.x.busies))], next: a.process.ledger.newLease()}
	o := submission{message: pendingMessage{ID: id, At: a.process.ledger.now()}, busy: c.busy, maxQueue: a.x.queue, lease: c.next}
	if a.x.chance(0.3) {
		o.body = []byte(bodyOf(id))
	} else {
		o.message.Body = []byte(bodyOf(id))
	}
	var h *head
	var status Status
	err := a.do(c, func(ctx context.Context, l *ledger) (err error) {
		h, status, err = l.submit(ctx, o)
		if err == nil && (status == StatusDuplicate || status == StatusRejected) {
			if a.x.count["duplicates"]++; status == StatusDuplicate && !a.x.ghost.accepted[id] {
				a.x.violated("%s is no duplicate", id)
			}
			err = errNoChange
		}
		return err
	})
	switch {
	case err == nil && status != StatusStarted && status != StatusQueued:
		a.x.violated("%v is %q", c, status)
	case err == nil && status == StatusStarted && a.run == nil:
		a.take(h, c.next.leaseID)
	}
}

func (a *actor) commit() {
	r := a.run
	c := &call{kind: "commit", id: r.id, lease: r.lease, at: r.at, edits: a.x.edits(r.text), purge: a.x.chance(0.1)}
	var to position
	err := a.do(c, func(ctx context.Context, l *ledger) (err error) {
		to, err = l.commit(ctx, r.holder(), change{effectsOf(c.edits), c.purge})
		return err
	})
	if err != nil {
		a.after(nil, "", err)
		return
	}
	for _, e := range c.edits {
		r.text = e.on(r.text)
	}
	if r.at = to; a.x.ghost.texts[to.Chain].encode() != r.text.encode() {
		a.x.violated("%v: what %v has acknowledged is not what was written", a, c)
	}
}

func effectsOf(edits []edit) []state.Effect {
	var effects []state.Effect
	for _, e := range edits {
		effects = append(effects, e.effect())
	}
	return effects
}

func (a *actor) finish() {
	r := a.run
	c := &call{kind: "finish", id: r.id, lease: r.lease, at: r.at, next: a.process.ledger.newLease(), purge: a.x.chance(0.1)}
	if a.x.chance(a.x.rates.last) {
		c.edits = a.x.edits(r.text)
	}
	var h *head
	err := a.do(c, func(ctx context.Context, l *ledger) (err error) {
		h, _, err = l.finish(ctx, r.holder(), change{effectsOf(c.edits), c.purge}, c.next)
		return err
	})
	a.after(h, c.next.leaseID, err)
}

func (a *actor) fail() {
	r := a.run
	c := &call{kind: "fail", id: r.id, lease: r.lease, at: r.at, next: a.process.ledger.newLease()}
	var h *head
	err := a.do(c, func(ctx context.Context, l *ledger) (err error) {
		h, err = l.fail(ctx, r.holder(), c.next)
		return err
	})
	a.after(h, c.next.leaseID, err)
}

func (a *actor) renew() {
	r := a.run
	err := a.do(&call{kind: "renew", id: r.id, lease: r.lease}, func(ctx context.Context, l *ledger) error {
		_, err := l.renew(ctx, r.holder())
		return err
	})
	if err != nil {
		a.after(nil, "", err)
	}
}

// forget abandons a run, as a process that hangs does.
func (a *actor) forget() { a.run = nil }

// watch takes a run over if its lease has expired.
func (a *actor) watch() {
	h, _, err := a.process.ledger.readHead(context.Background())
	if err != nil {
		a.failed(err)
		return
	}
	switch p := leaseStateOf(h); {
	case h.Run == nil, p != a.pulse:
		a.pulse, a.since = p, a.x.clock(a.process)
	case a.x.clock(a.process)-a.since >= h.Run.ttl()*3/2:
		a.takeOver(p)
	}
}

func (a *actor) takeOver(p leaseState) {
	c := &call{kind: "takeOver", seen: p, how: a.x.takeovers[a.x.rng.IntN(len(a.x.takeovers))], next: a.process.ledger.newLease()}
	var h *head
	err := a.do(c, func(ctx context.Context, l *ledger) (err error) {
		h, err = l.takeOver(ctx, p, c.how, a.x.attempts, c.next)
		return err
	})
	if err == nil && a.run == nil {
		a.take(h, c.next.leaseID)
	}
}

func (a *actor) view() {
	h, doc, err := a.process.ledger.readPresent(context.Background())
	if err != nil {
		a.failed(err)
		return
	}
	a.known(h, doc)
	a.x.count["views"]++
}

// failed judges the error of a read.
func (a *actor) failed(err error) {
	a.x.logf("%v: %v", a, err)
	if !errors.Is(err, errLost) && !(errors.Is(err, ErrRolledBack) && a.x.variant.failover) {
		a.x.violated("%v: reading: %v", a, err)
	}
}

func (a *actor) update() {
	h, doc, err := a.process.ledger.readPresent(context.Background())
	if err != nil {
		a.failed(err)
		return
	}
	at := h.position()
	c := &call{kind: "update", at: at, edits: a.x.edits(a.known(h, doc)), purge: a.x.chance(0.1)}
	_ = a.do(c, func(ctx context.Context, l *ledger) error {
		_, err := l.update(ctx, at, change{effectsOf(c.edits), c.purge})
		return err
	})
}

func (a *actor) reset() {
	c := &call{kind: "reset"}
	var dropped []string
	err := a.do(c, func(ctx context.Context, l *ledger) error {
		h, ids, err := l.reset(ctx)
		if err == nil && h == nil {
			return errNoChange // the workspace does not exist yet
		}
		dropped = ids
		return err
	})
	if err == nil && !slices.Equal(dropped, c.dropped) {
		a.x.violated("reset returns %v, and has dropped %v", dropped, c.dropped)
	}
}

func (a *actor) compact() {
	force := a.x.chance(0.3)
	_ = a.do(&call{kind: "compact"}, func(ctx context.Context, l *ledger) error { return l.compact(ctx, force) })
}

func (a *actor) collect() {
	_ = a.do(&call{kind: "collect"}, func(ctx context.Context, l *ledger) error { return l.collect(ctx) })
}

// edits returns random edits that fit a text.
func (x *explorer) edits(t text) []edit {
	var edits []edit
	for range 1 + x.rng.IntN(2) {
		e := x.edit(t)
		t = e.on(t)
		edits = append(edits, e)
	}
	return edits
}

func (x *explorer) edit(t text) edit {
	x.values++
	value := fmt.Sprint(x.values)
	if x.chance(x.rates.big) {
		value = `"` + value + strings.Repeat("x", 1000+x.rng.IntN(4000)) + `"`
	}
	field := []string{"log", "tasks"}[x.rng.IntN(2)]
	list, present := t.lists[field]
	n := 0
	if len(list) > 0 {
		n = x.rng.IntN(len(list))
	}
	switch k := x.rng.IntN(12); {
	case k < 2:
		return edit{do: state.EffectSet, field: "count", more: []string{value}}
	case k == 2 && t.values["count"] != "":
		return edit{do: state.EffectDelete, field: "count"}
	case !present:
		return edit{do: state.EffectSet, field: field, n: 1, more: []string{value}}
	case k == 3:
		return edit{do: state.EffectDelete, field: field}
	case k == 4 && len(list) > 0:
		return edit{do: state.EffectDropFirst, field: field, n: n + 1}
	case k == 5:
		return edit{do: state.EffectTruncate, field: field, n: n}
	case k == 6 && len(list) > 0:
		return edit{do: state.EffectRemoveAt, field: field, n: n}
	case k == 7:
		return edit{do: state.EffectInsert, field: field, n: n, more: []string{value}}
	}
	return edit{do: state.EffectAppend, field: field, more: []string{value}}
}
