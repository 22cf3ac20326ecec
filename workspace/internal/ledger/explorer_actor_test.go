package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// process is one incarnation of a process. Its ledger dies with it.
type process struct {
	name    string
	ledger  *Ledger
	dead    bool
	rate    float64            // of its clock
	skew    time.Duration      // of its time of day
	seen    mark               // the newest head that it has read
	strict  bool               // it cannot use content with the field alien
	checked *document.Document // the content whose document was checked last

	holders     *Holders
	incarnation *Incarnation // nil if there is none
	abandoned   []string     // its leases that are not held
	holder      string       // its name, or ""
	recording   bool         // an actor writes the record
	turns       *turns       // nil if it has none
}

// sees notes that a process was shown a head. A deletion stays seen when no head
// is found after it, until a later workspace comes: the read may be stale.
func (p *process) sees(e revised) {
	if e.mark != absent && !e.mark.isBehind(p.seen) {
		p.seen = e.mark
	}
}

// actor performs operations one by one in a process, as a coroutine.
type actor struct {
	x         *explorer
	name      string
	process   *process
	yield     func(struct{}) bool
	next      func() (struct{}, bool)
	stop      func()
	wake      int // the step before which it sleeps
	healthy   bool
	stale     int // reads in its call since the last write
	accepting bool
	// read is the head that it has read last, and before what its process had
	// seen until then.
	read, before mark

	call   *call                   // that is under way
	giveUp context.CancelCauseFunc // ends its context; nil if that lasts
	run    *held
	pulse  LeaseState
	holder HolderState
	ending store.Revision // of the holder record that it ends
	owned  string         // a ticket of its process
	lost   string         // the last lease that it has given up
	since  time.Duration
}

// held is a run whose lease an actor believes to hold.
type held struct {
	id, lease string
	runID     string
	ticket    bool
	at        Position
	text      text
	doc       *document.Document // with the text
	answers   int                // of models
}

func (r *held) holder() Holder {
	return Holder{LeaseID: r.lease, MessageID: r.id, At: r.at, Answers: r.answers}
}

// messageID returns the id of the message that the run handles, or "".
func (r *held) messageID() string {
	if r.ticket {
		return ""
	}
	return r.id
}

// isBehind reports whether the head that the actor has read does not follow what
// its process had seen. It may follow a deletion that the process has seen since.
func (a *actor) isBehind() bool {
	return a.read.isBehind(a.before) && a.read.isBehind(a.process.seen)
}

type crashed struct{}

var (
	errAlien = errors.New("explorer: the process cannot use the content")
	errCrowd = errors.New("explorer: too many messages before this one")
)

// point is a scheduling point: other actors may continue, or the process may
// crash.
func (a *actor) point() {
	a.mayGiveUp()
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
	a.call, a.stale = nil, 0
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
			a.checkCaches()
			return
		}
	}
}

// do makes a call and judges its result.
func (a *actor) do(c *call, fn func(ctx context.Context, l *Ledger) error) error {
	x := a.x
	c.n, c.step, c.by, c.strict, c.healthy = len(x.calls), x.step, a.String(), a.process.strict, a.healthy
	c.worlds = len(x.ghost.past)
	x.calls = append(x.calls, c)
	a.call, a.stale = c, 0
	x.logf("%v: %v%s", a, c, c.details())
	ctx, cancel := a.begin()
	defer cancel()
	err := fn(ctx, a.process.ledger)
	a.call, a.stale = nil, 0
	c.err = err
	x.logf("%v: %v returns %v", a, c, err)
	switch {
	case err == nil:
		c.result = made
	case errors.Is(err, store.ErrUnknownOutcome):
		c.result = unsure
		x.count["unsure"]++
	case errors.Is(err, work.ErrFenced), errors.Is(err, work.ErrBusy), errors.Is(err, work.ErrQueueFull), errors.Is(err, ErrLeaseRenewed),
		errors.Is(err, ErrContentChanged), errors.Is(err, errLost), errors.Is(err, errNoChange), errors.Is(err, work.ErrNotFound),
		errors.Is(err, ErrAttempts), errors.Is(err, ErrJoin), errors.Is(err, errAlien), errors.Is(err, errCrowd),
		errors.Is(err, errStopped), errors.Is(err, work.ErrExists), strings.Contains(err.Error(), ": not written: "):
		c.result = refused
	case errors.As(err, new(*absentHeadError)) && c.kind == "accept": // it reads once, and an operator can call it again
		c.result = refused
	case x.isLeftBehind(err):
		c.result = refused
		x.count["rolledBack"]++
	default:
		x.violated("%v: %v", c, err)
	}
	switch {
	case errors.Is(err, errAlien):
		x.count["alien"]++
	case errors.Is(err, errCrowd):
		x.count["crowd"]++
	}
	if t := a.process.turns; t != nil && t.holder == a {
		x.violated("%v keeps its turn", c)
	}
	x.judge(c)
	x.judgeRefusal(c)
	x.judgeRetry(c)
	return err
}

func (c *call) details() string {
	switch c.kind {
	case "submit":
		return fmt.Sprintf(" %v", []string{"default", "enqueue", "reject", "interrupt", "rollback", "join"}[c.busy])
	case "takeOver":
		return fmt.Sprintf(" %v", []string{"resume", "restart"}[c.how])
	}
	return ""
}

// take takes the run of a head if the actor has its lease.
func (a *actor) take(h *Head, lease string) {
	a.run = nil
	if h == nil || h.Run == nil || lease == "" || h.Run.LeaseID != lease {
		return
	}
	r := &held{id: h.Run.Message.ID, lease: lease, runID: h.Run.RunID, ticket: h.Run.Message.Ticket, at: h.Position(), answers: h.Run.Answers}
	l, ctx := a.process.ledger, context.Background()
	body, _, err := l.ReadBody(ctx, h.Run.Message)
	if err != nil {
		return // another actor takes it over
	}
	if string(body) != bodyOf(r.id) && !r.ticket {
		a.x.violated("message %s is %s", r.id, body)
	}
	doc, err := l.Content(ctx, h, h.Position())
	if err != nil {
		return
	}
	r.text, r.doc = a.known(h, doc), doc
	if a.process.strict && r.text.isAlien() {
		a.x.violated("%v: it holds a run whose content it cannot use", a)
	}
	a.run = r
}

func bodyOf(id string) string { return `"body of ` + id + `"` }

// known returns the text of a document and checks that it is the one written.
func (a *actor) known(h *Head, doc *document.Document) text {
	want, known := a.x.ghost.texts[h.Chain]
	if !known {
		a.x.violated("%v: a head with a chain that nobody has written", a)
	}
	if got := string(doc.Encode()); got != want.encode() {
		a.x.violated("%v: version %d reads as %s, not %s", a, h.Version, brief(got), brief(want.encode()))
	}
	if a.x.chance(0.2) { // the document keeps the conversation of the State
		if _, _, err := doc.Load(explorerSchema); err != nil {
			a.x.violated("%v: version %d: %v", a, h.Version, err)
		}
	}
	return want
}

// after handles the result of a call that has ended or begun a run.
func (a *actor) after(h *Head, lease string, err error) {
	switch {
	case err == nil:
		a.take(h, lease)
	case errors.Is(err, work.ErrFenced), errors.Is(err, work.ErrRolledBack), errors.Is(err, store.ErrUnknownOutcome):
		a.forget()
		a.abandon(lease)
	}
}

func (a *actor) submit() {
	if len(a.x.sent) == 50 { // fewer than maxOutcomes
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
	c := &call{
		kind: "submit", id: id, busy: a.x.busies[a.x.rng.IntN(len(a.x.busies))], next: a.lease(),
		limit: a.x.crowds[a.x.rng.IntN(len(a.x.crowds))],
	}
	o := Submission{
		Message: Message{ID: id, At: a.process.ledger.now(), Body: []byte(bodyOf(id))},
		Busy:    c.busy, MaxQueue: a.x.queue, Lease: c.next, Check: c.check,
	}
	if a.x.ghost.tickets[id] {
		o.Message.Ticket, o.Message.Body, o.Busy, o.Check = true, nil, work.BusyEnqueue, nil
		c.busy = work.BusyEnqueue
	}
	var h *Head
	var status work.Status
	err := a.do(c, func(ctx context.Context, l *Ledger) (err error) {
		var fate Fate
		h, status, fate, err = l.Submit(ctx, o)
		if err == nil && (status == work.StatusDuplicate || status == work.StatusRejected) {
			if a.x.count["duplicates"]++; status == work.StatusDuplicate && !a.x.ghost.accepted[id] {
				a.x.violated("%s is no duplicate", id)
			}
			x := a.x
			if status == work.StatusDuplicate { // a message that was rejected is not kept
				x.told[id] = true
			}
			if status == work.StatusDuplicate && x.variant.shows && !x.kept[id] {
				x.violated("%s was called a duplicate, and no store has kept it", id)
			}
			if status == work.StatusDuplicate && (fate.ID != id || fate.Place == PlaceDead || fate.Place == PlaceNone) {
				a.x.violated("the duplicate %s was first %+v", id, fate)
			}
			err = errNoChange
		}
		return err
	})
	switch {
	case err == nil && status != work.StatusStarted && status != work.StatusQueued:
		a.x.violated("%v is %q", c, status)
	case err == nil && status == work.StatusStarted && a.run == nil:
		a.take(h, c.next.ID)
	}
}

func (a *actor) commit() {
	r := a.run
	c := &call{kind: "commit", id: r.id, lease: r.lease, at: r.at, edits: a.edits(r.text, r.runID), purge: a.x.chance(0.1)}
	effects := effectsOf(r.text, c.edits)
	now := a.process.ledger.now()
	if a.x.chance(0.5) {
		r.answers++
	}
	by := r.holder()
	c.answers, by.MayJoin = r.answers, a.x.chance(0.7)
	var to Position
	err := a.do(c, func(ctx context.Context, l *Ledger) (err error) {
		if c.joins = nil; by.MayJoin {
			by.Join, c.joins = l.Joining(ctx), []string{}
			for _, m := range by.Join {
				c.joins = append(c.joins, m.ID)
			}
		}
		to, err = l.Commit(ctx, by, Change{Effects: effects, Purge: c.purge, Time: now}, nil)
		return err
	})
	if err != nil {
		a.after(nil, "", err)
		return
	}
	a.changed(r.doc, Change{Effects: effects, Time: now}, r.messageID())
	for _, e := range c.edits {
		r.text = e.on(r.text)
	}
	r.text.give(r.messageID(), now.UnixMilli())
	if r.at = to; a.x.ghost.texts[to.Chain].encode() != r.text.encode() {
		a.x.violated("%v: what %v has acknowledged is not what was written", a, c)
	}
}

func (a *actor) finish() {
	r := a.run
	c := &call{kind: "finish", id: r.id, lease: r.lease, at: r.at, next: a.lease(), purge: a.x.chance(0.1)}
	if a.x.chance(0.5) {
		r.answers++
	}
	c.answers = r.answers
	if a.x.chance(a.x.rates.last) {
		c.edits = a.edits(r.text, r.runID)
	}
	doc := r.doc.Clone()
	change := Change{Effects: effectsOf(r.text, c.edits), Purge: c.purge, Time: a.process.ledger.now()}
	a.changed(doc, change, r.messageID())
	if a.x.chance(0.5) {
		n := a.x.rng.IntN(3)
		shortened, err := doc.Shorten(-1, n)
		if err != nil {
			a.x.violated("%v: %v", a, err)
		}
		c.edits, change.Effects = append(c.edits, edit{do: editWindow, n: n}), append(change.Effects, shortened...)
	}
	if len(change.Effects) == 0 {
		c.edits = nil
	}
	var h *Head
	var to Position
	err := a.do(c, func(ctx context.Context, l *Ledger) (err error) {
		h, to, err = l.Finish(ctx, r.holder(), change, "reply to "+r.id, c.next, nil)
		return err
	})
	if err == nil {
		a.process.ledger.CacheContent(to, doc)
	}
	a.after(h, c.next.ID, err)
}

// changed applies a change to a document.
func (a *actor) changed(doc *document.Document, c Change, messageID string) {
	if err := doc.ApplyRecord(c.Effects, document.Origin{Time: c.Time, Run: messageID}); err != nil {
		a.x.violated("%v: %v", a, err)
	}
}

func (a *actor) fail() {
	r := a.run
	c := &call{kind: "fail", id: r.id, lease: r.lease, at: r.at, next: a.lease()}
	var h *Head
	err := a.do(c, func(ctx context.Context, l *Ledger) (err error) {
		h, _, err = l.Fail(ctx, r.holder(), "broken", c.next)
		return err
	})
	a.after(h, c.next.ID, err)
}

func (a *actor) again() {
	r := a.run
	c := &call{kind: "again", id: r.id, lease: r.lease, at: r.at}
	err := a.do(c, func(ctx context.Context, l *Ledger) error {
		_, err := l.Again(ctx, r.holder(), a.x.attempts)
		return err
	})
	if err != nil {
		a.after(nil, "", err)
	}
}

func (a *actor) release() {
	r := a.run
	a.run = nil
	_ = a.do(&call{kind: "release", id: r.id, lease: r.lease}, func(ctx context.Context, l *Ledger) error {
		_, err := l.Release(ctx, r.holder())
		return err
	})
}

func (a *actor) renew() {
	r := a.run
	err := a.do(&call{kind: "renew", id: r.id, lease: r.lease}, func(ctx context.Context, l *Ledger) error {
		_, err := l.Renew(ctx, r.holder())
		return err
	})
	if err != nil {
		a.after(nil, "", err)
	}
}

// forget abandons a run, if the actor has one.
func (a *actor) forget() {
	if a.run != nil {
		a.lost = a.run.lease
		a.abandon(a.run.lease)
	}
	a.run = nil
}

// watch takes a run over if its lease has expired.
func (a *actor) watch() {
	h, _, err := a.process.ledger.readHead(context.Background())
	if err != nil {
		a.failed(err)
		return
	}
	switch {
	case h.Run == nil:
	case h.Run.Vacant() && (!h.Run.Message.Ticket || h.Run.Message.ID == a.owned), a.isGone(h):
		a.takeOver(h.LeaseState())
	}
}

func (a *actor) takeOver(p LeaseState) {
	a.contend(&call{seen: p, next: a.lease(), id: a.owned})
}

// vacate makes the lease that it has given up vacant.
func (a *actor) vacate() {
	if a.lost == "" {
		return
	}
	c := &call{own: a.lost, next: a.process.ledger.NewLease().Vacant()}
	if a.lost = ""; a.contend(c) {
		a.x.count["vacated"]++
	}
}

func (a *actor) contend(c *call) (taken bool) {
	c.kind, c.how = "takeOver", a.x.takeovers[a.x.rng.IntN(len(a.x.takeovers))]
	var h *Head
	err := a.do(c, func(ctx context.Context, l *Ledger) (err error) {
		h, _, err = l.TakeOver(ctx, Contender{
			Observed: c.seen, Own: c.own, How: c.how, MaxAttempts: a.x.attempts, Lease: c.next, Ticket: c.id,
		})
		return err
	})
	if err == nil && a.run == nil {
		a.take(h, c.next.ID)
	}
	return err == nil
}

func (a *actor) view() {
	h, doc, err := a.process.ledger.ReadPresent(context.Background())
	if err != nil {
		a.failed(err)
		return
	}
	a.known(h, doc)
	a.x.count["views"]++
}

// look reads the content at a version that is held.
func (a *actor) look() {
	l, ctx, n := a.process.ledger, context.Background(), a.x.rng.Uint64()
	_, err := l.ReadStable(ctx, func(h *Head) error {
		at, err := l.PositionAt(ctx, h, h.Oldest()+n%(h.Version-h.Oldest()+1))
		if err != nil {
			return err
		}
		doc, err := l.Content(ctx, h, at)
		if err == nil {
			a.known(&Head{Version: at.Version, Chain: at.Chain}, doc)
		}
		return err
	})
	if err != nil {
		a.failed(err)
		return
	}
	a.x.count["looks"]++
}

// mayRollBack reports whether a process may find an older head than it has seen.
func (x *explorer) mayRollBack() bool {
	return x.variant.failover && !x.variant.shows || x.count["expired"] > 0
}

// isLeftBehind reports whether an error says that the head does not follow what
// the process has seen, as it may be. The last of several reads may then have
// been stale.
func (x *explorer) isLeftBehind(err error) bool {
	_, there := x.store.entries[headOf]
	return x.mayRollBack() && (errors.Is(err, work.ErrRolledBack) || errors.As(err, new(*absentHeadError)) && there)
}

// failed judges the error of a read.
func (a *actor) failed(err error) {
	a.x.logf("%v: %v", a, err)
	if !errors.Is(err, errLost) && !a.x.isLeftBehind(err) {
		a.x.violated("%v: reading: %v", a, err)
	}
}

func (a *actor) update() {
	h, doc, err := a.process.ledger.ReadPresent(context.Background())
	if err != nil {
		a.failed(err)
		return
	}
	at, t := h.Position(), a.known(h, doc)
	if a.process.strict && t.isAlien() {
		return
	}
	c := &call{kind: "update", at: at, epoch: h.Epoch, edits: a.edits(t, ""), purge: a.x.chance(0.1)}
	change := Change{Effects: effectsOf(t, c.edits), Purge: c.purge, Time: a.process.ledger.now()}
	a.changed(doc, change, "")
	of := h
	err = a.do(c, func(ctx context.Context, l *Ledger) (err error) {
		h, err = l.Update(ctx, []work.Kind{KindUpdate, KindRevert}[at.Version%2], of, change, nil)
		return err
	})
	if err == nil && h.Version == at.Version+1 { // as Manager.Update does
		a.process.ledger.CacheContent(h.Position(), doc)
	}
}

func (a *actor) reset() {
	c := &call{kind: "reset"}
	var dropped []string
	err := a.do(c, func(ctx context.Context, l *Ledger) error {
		h, ids, err := l.Reset(ctx)
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

// ticket queues a ticket.
func (a *actor) ticket() {
	a.x.tickets++
	a.owned = fmt.Sprint("t", a.x.tickets)
	a.x.ghost.tickets[a.owned] = true
	a.send(a.owned)
}

func (a *actor) withdraw() {
	c := &call{kind: "withdraw", id: a.owned, next: a.nextLease()}
	var h *Head
	err := a.do(c, func(ctx context.Context, l *Ledger) (err error) {
		var found bool
		if h, found, err = l.Withdraw(ctx, c.id, c.next); err == nil && !found {
			err = errNoChange
		}
		return err
	})
	if err == nil && a.run == nil {
		a.take(h, c.next.ID)
	}
}

// nextLease returns the lease of the run that follows one that the actor does
// not hold. It is vacant if it is not known whether the process can use the
// content.
func (a *actor) nextLease() Lease {
	lease := a.lease()
	if a.process.strict || a.x.chance(0.5) {
		return lease.Vacant()
	}
	return lease
}

// check is the Check of a submission.
func (c *call) check(content *document.Document, accepted [][]byte, _ bool) error {
	c.checked = append(c.checked, string(bytes.Join(append([][]byte{content.Encode()}, accepted...), []byte("\n"))))
	if len(accepted) >= c.limit {
		return errCrowd
	}
	return nil
}

// someMessage returns the id of a message that was sent.
func (a *actor) someMessage() string {
	if len(a.x.sent) == 0 {
		return "none"
	}
	return a.x.sent[a.x.rng.IntN(len(a.x.sent))]
}

// someDead returns the id of a dead letter, if there is one.
func (a *actor) someDead() string {
	if dead := a.x.ghost.world.dead; len(dead) > 0 && a.x.chance(0.9) {
		return dead[a.x.rng.IntN(len(dead))]
	}
	return a.someMessage()
}

func (a *actor) retry() {
	c := &call{kind: "retry", id: a.someDead(), next: a.lease()}
	_ = a.do(c, func(ctx context.Context, l *Ledger) error {
		_, err := l.Retry(ctx, c.id, c.next)
		return err
	})
}

func (a *actor) discard() {
	c := &call{kind: "discard", id: a.someDead()}
	if queue := a.x.ghost.world.queue; len(queue) > 0 && a.x.chance(0.5) {
		c.id = queue[a.x.rng.IntN(len(queue))]
	}
	if a.x.ghost.tickets[c.id] {
		return
	}
	_ = a.do(c, func(ctx context.Context, l *Ledger) error {
		_, err := l.Discard(ctx, c.id)
		return err
	})
}

func (a *actor) rename() {
	c := &call{kind: "rename", note: note{Text: []string{"", "a", "b"}[a.x.rng.IntN(3)]}}
	_ = a.do(c, func(ctx context.Context, l *Ledger) error {
		_, err := l.Rename(ctx, c.note.Text)
		return err
	})
}

// note notes something about a message, which needs not be there.
func (a *actor) note() {
	h, err := a.process.ledger.ReadHead(context.Background())
	if err != nil {
		a.failed(err)
		return
	}
	c := &call{kind: "note", epoch: h.Epoch, note: note{1 + a.x.rng.IntN(6), []string{"", "a", "b", "c"}[a.x.rng.IntN(4)]}}
	_ = a.do(c, func(ctx context.Context, l *Ledger) error {
		_, err := l.SetNote(ctx, h, work.Note{Message: c.note.Message, Text: c.note.Text})
		return err
	})
}

func (a *actor) cancel() {
	w := a.x.ghost.world
	if w.run == nil {
		return
	}
	c := &call{kind: "cancel", run: w.run.runID, next: a.nextLease()}
	var h *Head
	err := a.do(c, func(ctx context.Context, l *Ledger) (err error) {
		h, err = l.Cancel(ctx, c.run, "stopped by an operator", c.next)
		return err
	})
	if err == nil && a.run == nil {
		a.take(h, c.next.ID)
	}
}

func (a *actor) delete() {
	_ = a.do(&call{kind: "delete"}, func(ctx context.Context, l *Ledger) error {
		h, err := l.Delete(ctx)
		if err == nil && h == nil {
			err = errNoChange // the workspace does not exist
		}
		return err
	})
}

func (a *actor) accept() {
	if !a.x.mayRollBack() {
		return
	}
	a.accepting = true
	gone := a.x.count["failovers"] + a.x.count["expired"]
	err := a.do(&call{kind: "accept"}, func(ctx context.Context, l *Ledger) error {
		_, err := l.Accept(ctx)
		return err
	})
	a.accepting = false
	if err != nil || a.healthy {
		return
	}
	_, err = a.process.ledger.ReadHead(context.Background())
	if errors.Is(err, work.ErrRolledBack) && gone == a.x.count["failovers"]+a.x.count["expired"] {
		a.x.violated("%v does not read what it has accepted: %v", a, err)
	}
}

func (a *actor) compact() {
	force := a.x.chance(0.3)
	_ = a.do(&call{kind: "compact", force: force}, func(ctx context.Context, l *Ledger) error { return l.Compact(ctx, force) })
}
