package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state/workspace/work"
)

// world is the expected state of a workspace in the plainest form. It is
// compared with each head that is written. It never changes; each write makes
// the next one.
type world struct {
	seq, epoch, token, version uint64
	run                        *period
	queue                      []string
	done                       []ending
	dead                       []string
	stands                     map[string]bool // ids of messages that a run has stored and given up
	joins                      map[string]bool // ids of messages that want to join a run
	forgotten                  map[string]bool // ids of deleted workspaces
	deleted                    bool
	text                       text
	ops, chain                 string
	calls                      []*call // that have taken effect
	purge                      uint64  // the version that replaced or deleted a secret, if one is to go
	gone                       uint64  // the version before which nothing may be left
	start                      uint64  // the version of the snapshot
	name                       string
	notes                      []note // ordered by their numbers
}

// period is the run of a world.
type period struct {
	id, lease string
	runID     string
	ticket    bool
	token     uint64
	beat      uint64
	attempt   int
	base      text
	holder    string
	from      uint64 // the version of base
	joined    []joinedID
	answers   int
}

// joinedID is the id of a message that has joined a run after some answers.
type joinedID struct {
	id      string
	answers int
}

// call is one call of a method of a ledger by an actor, with its result.
type call struct {
	n      int
	step   int // when it began
	worlds int // the number of worlds that there had been by then
	by     string
	kind   string

	id      string // of the message
	busy    work.WhenBusy
	lease   string
	next    Lease
	run     string // its id
	seen    LeaseState
	own     string // a lease that its process has given up
	how     work.Takeover
	at      Position
	epoch   uint64 // of the head that it changes
	edits   []edit
	joins   []string // the ids of the messages that join the run, nil if none may
	answers int
	purge   bool
	force   bool

	healthy bool   // no other process is alive
	from    *world // of which an import has a copy
	early   bool   // for an expiry that removes nothing yet
	strict  bool   // its process cannot use the field alien
	limit   int    // the number of messages before its own that it accepts
	note    note
	checked []string // what it has checked, each as checkOf returns it
	seq     uint64   // of the head that it has written last
	applied int      // how often it has taken effect, failovers included
	result  result
	err     error
	dropped []string // by reset
}

type result int

const (
	pending result = iota // under way, or its process has crashed
	made                  // acknowledged
	refused               // certainly without effect
	unsure
)

func (c *call) String() string {
	if c == nil {
		return "nobody's"
	}
	return fmt.Sprintf("%d %s %s", c.n, c.kind, c.id)
}

// ghost observes all writes.
type ghost struct {
	x        *explorer
	world    *world
	texts    map[string]text   // by chain
	accepted map[string]bool   // failovers included
	live     map[string]bool   // blobs to which the head refers
	texted   map[string]string // the contents of blobs
	tickets  map[string]bool
	past     []*world        // all that there were, failovers included
	reader   *Ledger         // reads without faults
	newest   *sight          // the head that was written last
	epochs   map[uint64]bool // all that have begun, failovers included

	holders   map[string]*process // by the ids of their incarnations
	ended     map[string]bool     // incarnations
	abandoned map[string]bool     // leases
}

func newGhost(x *explorer) *ghost {
	g := &ghost{
		x: x, world: &world{}, texts: map[string]text{"": {}}, accepted: map[string]bool{}, live: map[string]bool{},
		texted: map[string]string{}, tickets: map[string]bool{}, epochs: map[uint64]bool{},
		holders: map[string]*process{}, ended: map[string]bool{}, abandoned: map[string]bool{},
	}
	g.reader = g.freshReader()
	return g
}

func (g *ghost) freshReader() *Ledger {
	l := New(calm{port{g.x.store}}, "u", headOf, Options{Sealer: g.x.sealer})
	l.pause = func(context.Context, time.Duration) error { return errLost }
	return l
}

// back returns to an earlier world after a failover.
func (g *ghost) back(w *world) {
	g.world = w
	if e, found := g.x.store.entries[headOf]; found {
		g.refer(g.decode(e.value))
	} else {
		g.live = map[string]bool{}
	}
	g.backHolders()
}

// saw is called after each write.
func (g *ghost) saw(r request) {
	wrote := false
	for _, w := range r.writes {
		switch {
		case w.Key == headOf && w.Delete && g.x.fault != "restarts":
			g.expire(r.call)
		case w.Key == headOf && !w.Delete:
			wrote = true
		}
	}
	if wrote {
		g.wrote(r.call)
	}
	g.checkLists()
	for _, w := range r.writes {
		if !w.Delete || isHolderKey(w.Key) {
			continue
		}
		if g.live[strings.TrimPrefix(w.Key, blobsOf)] {
			g.x.violated("I2: a blob was deleted to which the head refers: %s", short(w.Key))
		}
	}
}

// checkLists requires that a list of busy workspaces has this one exactly as long
// as its head says so.
func (g *ghost) checkLists() {
	h := &sight{}
	if e, found := g.x.store.entries[headOf]; found {
		h = g.decode(e.value)
	}
	for list, want := range map[BusyList]bool{
		Running: h.Run != nil,
		Waiting: h.DeadLetters.Count > 0 || h.Suspended > 0,
	} {
		if _, got := g.x.store.entries[string(list)+"u"]; got != want {
			g.x.violated("the key %su exists: %v, not %v", list, got, want)
		}
		if want {
			g.x.count[string(list)]++
		}
	}
	var expires []string
	for key := range g.x.store.entries {
		if strings.HasPrefix(key, expiring) {
			expires = append(expires, key)
		}
	}
	if want := expiringKey(headOf, h.Expires); len(expires) > 1 || (len(expires) == 1) != (h.Expires > 0) || len(expires) == 1 && expires[0] != want {
		g.x.violated("the keys %q exist, not that of %d", expires, h.Expires)
	}
	if h.Expires > 0 {
		g.x.count[expiring]++
	}
}

// creations are the calls that may create the workspace.
var creations = []string{"submit", "update", "import"}

// wrote checks a head that was written.
func (g *ghost) wrote(c *call) {
	x := g.x
	h := g.decode(x.store.entries[headOf].value)
	old := g.world
	if c == nil {
		x.violated("nobody writes a head")
	}
	if x.variant.shows && old.seq > 0 && h.Seq == old.seq && h.Ops == old.ops { // it is acknowledged by that
		x.store.sign(h)
		x.store.photograph(old)
		x.count["again"]++
		return
	}
	w := *old
	w.seq++
	if c.kind == "accept" && h.Seq > w.seq {
		w.seq = h.Seq
	}
	w.ops, w.chain = h.Ops, h.Chain
	if old.deleted && h.Deleted != "" && slices.Contains(creations, c.kind) { // a creation begins
		x.store.sign(h)
		g.compare(&w, old, h, c)
		g.world = &w
		g.past = append(g.past, &w)
		if x.variant.failover {
			x.store.photograph(g.world)
		}
		x.count["renewed"]++
		return
	}
	w.chain = old.chain
	g.newest = h
	g.step(&w, c)
	w.ops, w.chain = h.Ops, h.Chain
	x.store.sign(h)
	g.compare(&w, old, h, c)
	if slices.Contains(w.calls, c) {
		x.violated("I7: %v has taken effect twice", c)
	}
	w.calls = append(slices.Clip(w.calls), c)
	c.applied++
	c.seq = h.Seq
	g.world = &w
	g.past = append(g.past, &w)
	g.texts[h.Chain] = w.text
	g.read(h, old, c)
	x.count["writes"]++
	x.count[c.kind]++
	if x.variant.failover {
		x.store.photograph(g.world)
	}
}

// number notes which numbers the newest record has given.
func (g *ghost) number(w *world) {
	var r struct {
		Time    time.Time
		Message string `json:"message_id"`
	}
	if err := json.Unmarshal([]byte(g.records(g.newest)[w.version]), &r); err != nil {
		g.x.violated("the record of version %d cannot be read: %v", w.version, err)
	}
	w.text.give(r.Message, r.Time.UnixMilli())
}

// step applies the effect of a call to a world.
func (g *ghost) step(w *world, c *call) {
	need := func(ok bool, format string, args ...any) {
		if !ok {
			g.x.violated("%v has taken effect: "+format, append([]any{c}, args...)...)
		}
	}
	// record notes that a record was written, with or without effects.
	record := func() {
		w.version, w.deleted = w.version+1, false
		g.number(w)
	}
	stand := func(id string, stands bool) {
		w.stands = maps.Clone(w.stands)
		if w.stands == nil {
			w.stands = map[string]bool{}
		}
		w.stands[id] = stands
	}
	join := func(id string, joins bool) {
		w.joins = maps.Clone(w.joins)
		if w.joins == nil {
			w.joins = map[string]bool{}
		}
		w.joins[id] = joins
	}
	other := func(id string, as work.Ending) {
		w.done = append(slices.Clip(w.done), ending{id, string(as)})
	}
	// leaveJoined puts messages that have joined the run back in front of the queue.
	leaveJoined := func(which func(joinedID) bool, stands bool) {
		var back []string
		for _, j := range w.run.joined {
			if !which(j) {
				continue
			}
			if back = append(back, j.id); stands {
				stand(j.id, true)
				join(j.id, false)
			}
			g.x.count["joinedLeft"]++
		}
		w.queue, w.run.joined = append(back, w.queue...), nil
	}
	all := func(joinedID) bool { return true }
	// endJoined ends the messages that have joined the run, except for some.
	endJoined := func(as work.Ending, back func(joinedID) bool, stands bool) {
		for _, j := range w.run.joined {
			if !back(j) {
				stand(j.id, false)
				other(j.id, as)
				g.x.count["joinedEnded"]++
			}
		}
		leaveJoined(back, stands)
	}
	end := func(as work.Ending) {
		stand(w.run.id, false)
		record()
		endJoined(as, func(joinedID) bool { return as == work.EndingRolledBack }, false)
		other(w.run.id, as)
	}
	begin := func(id string) {
		w.token++
		join(id, false)
		lease := c.next
		if g.tickets[id] && c.kind != "submit" {
			lease = lease.Vacant()
		}
		w.run = &period{id: id, lease: lease.ID, holder: lease.holder, ticket: g.tickets[id], token: w.token, base: w.text, from: w.version}
	}
	next := func() {
		w.run = nil
		if len(w.queue) > 0 {
			id := w.queue[0]
			w.queue = slices.Clone(w.queue[1:])
			begin(id)
		}
	}
	mine := func() {
		need(w.run != nil && w.run.lease != "" && w.run.lease == c.lease, "I5: the run is not its own")
	}
	edits := func() {
		need(w.chain == c.at.Chain, "the content is not the one for which its effects were made")
		for _, e := range c.edits {
			w.text = e.on(w.text)
		}
		record()
	}
	purge := func() {
		if c.purge {
			w.purge = w.version
		}
	}
	// back undoes the run. It reports whether there was something to undo.
	back := func() bool {
		base := w.run.base
		base.last, base.given = w.text.last, w.text.given // no number is given again
		if base.edited = w.text.edited; w.text.encode() == base.encode() {
			return false
		}
		w.text = base
		w.text.edited++
		g.x.count["rollbacks"]++
		return true
	}
	// answer answers the calls of the run that are open. It reports whether there
	// was something to do.
	answer := func(cancelled string) (changed bool) {
		if w.text, changed = w.text.answered(w.run.base, cancelled); changed {
			g.x.count["answered"]++
		}
		return changed
	}
	// stop ends the run with a record, which that of a ticket needs only for
	// effects.
	stop := func(as work.Ending, changed bool) {
		if !w.run.ticket {
			end(as)
		} else if changed {
			record()
		}
	}
	// leave ends a run whose message is given up: its calls stay open. It reports
	// whether there was something to do.
	leave := func() (changed bool) {
		w.text, changed = w.text.undecided()
		return changed
	}
	giveUp := func(kept bool) {
		stored := kept
		if w.run.ticket {
			record()
			return
		}
		if stored = stored && w.version > w.run.from; stored {
			stand(w.run.id, true)
		}
		record()
		leaveJoined(all, kept)
		w.dead = append(slices.Clip(w.dead), w.run.id)
		g.x.count["dead"]++
		for len(w.dead) > maxDeadLetters {
			stand(w.dead[0], false)
			other(w.dead[0], work.EndingDropped)
			w.dead = slices.Clone(w.dead[1:])
			g.x.count["dropped"]++
		}
	}
	takeDead := func(id string) bool {
		i := slices.Index(w.dead, id)
		if i >= 0 {
			w.dead = slices.Delete(slices.Clone(w.dead), i, i+1)
		}
		return i >= 0
	}
	takeQueued := func(id string) bool {
		i := slices.Index(w.queue, id)
		if i >= 0 {
			w.queue = slices.Delete(slices.Clone(w.queue), i, i+1)
		}
		return i >= 0
	}
	fits := func() { need(!c.strict || !w.text.isAlien(), "its process cannot use the content") }
	// accept judges whether a message may be accepted, behind others.
	accept := func(others []string) {
		fits()
		if g.tickets[c.id] {
			return
		}
		need(len(others) < c.limit, "it refuses so many messages before it")
		need(slices.Contains(c.checked, g.checkOf(w.text, others)), "it has checked %.300q, not %.300q", c.checked, g.checkOf(w.text, others))
	}
	if w.run != nil {
		run := *w.run
		w.run = &run
	}
	switch c.kind {
	case "submit":
		if !takeDead(c.id) {
			need(g.where(w, c.id) == "", "the message was taken before: %s", g.where(w, c.id))
		}
		w.deleted = false
		delete(g.x.told, c.id) // it was not known, or is handled again
		if g.accepted[c.id] = true; w.forgotten[c.id] {
			w.forgotten = maps.Clone(w.forgotten)
			delete(w.forgotten, c.id)
		}
		switch {
		case w.run == nil:
			accept(nil)
			begin(c.id)
			return
		case c.busy == work.BusyEnqueue, c.busy == work.BusyJoin:
			need(len(w.queue) < g.x.queue, "the queue is full")
			accepted := slices.Clone(w.queue)
			if w.run.from == w.version {
				accepted = slices.Insert(accepted, 0, w.run.id)
			}
			accept(accepted)
			w.queue = append(slices.Clone(w.queue), c.id)
			join(c.id, c.busy == work.BusyJoin)
			return
		case c.busy == work.BusyInterrupt:
			stop(work.EndingInterrupted, answer(""))
		case c.busy == work.BusyRollback:
			stop(work.EndingRolledBack, back())
		default:
			need(false, "it was to be rejected")
		}
		accept(w.queue)
		begin(c.id)
	case "renew":
		mine()
		w.run.beat++
	case "commit":
		mine()
		edits()
		purge()
		w.run.beat++
		w.run.answers = c.answers
		if c.joins == nil || w.run.ticket {
			return
		}
		n := 0
		for n < len(w.queue) && w.joins[w.queue[n]] && len(w.run.joined)+n < maxJoined {
			n++
		}
		need(slices.Equal(c.joins, w.queue[:n]), "%v join, not %v", w.queue[:n], c.joins)
		for _, id := range c.joins {
			w.run.joined = append(slices.Clip(w.run.joined), joinedID{id, c.answers})
			g.x.count["joined"]++
		}
		w.queue = slices.Clone(w.queue[n:])
	case "finish":
		mine()
		need(w.chain == c.at.Chain, "what the run has committed before is lost")
		if w.run.ticket {
			if len(c.edits) > 0 {
				edits()
			}
		} else {
			edits()
			stand(w.run.id, false)
			endJoined(work.EndingFinished, func(j joinedID) bool { return j.answers >= c.answers }, true)
			other(w.run.id, work.EndingFinished)
		}
		purge()
		next()
	case "fail":
		mine()
		need(w.chain == c.at.Chain, "what the run has committed before is lost")
		if !w.run.ticket {
			leave()
			giveUp(true)
		} else if answer("") {
			record()
		}
		next()
	case "again":
		mine()
		need(w.chain == c.at.Chain, "what the run has committed before is lost")
		need(w.run.attempt+1 < g.x.attempts, "the run was begun too often")
		w.run.attempt++
		w.run.beat++
	case "release":
		mine()
		w.run.lease, w.run.holder, w.run.beat = "", "", 0
	case "takeOver":
		if c.own != "" {
			need(w.run != nil && c.own == w.run.lease, "the run has another lease")
		} else {
			need(w.run != nil && c.seen == LeaseState{w.run.token, w.run.beat, w.run.lease}, "the run was alive")
			need(c.healthy || g.isFree(w.run), "I8: the holder %s has not ended", w.run.holder)
		}
		g.x.count["takeovers"]++
		restart, changed, before := c.how == work.TakeoverRestart, false, w.text
		if restart {
			changed = back()
		} else {
			changed = answer("")
		}
		defer func() {
			if w.run != nil && w.run.lease != "" && w.run.lease == c.next.ID {
				fits()
			}
		}()
		if w.run.ticket && w.run.id != c.id {
			if changed {
				record()
			}
			next()
			return
		}
		attempt := w.run.attempt
		if w.run.lease != "" {
			attempt++
		} else {
			g.x.count["vacant"]++
		}
		if attempt >= g.x.attempts {
			if !w.run.ticket {
				if !restart {
					w.text = before
					leave()
				}
				giveUp(!restart)
			} else if changed {
				record()
			}
			next()
			return
		}
		if !restart { // its own calls are left to the holder
			w.text, changed = before, false
		}
		if changed {
			record()
		}
		if restart {
			w.run.base, w.run.from, w.run.answers = w.text, w.version, 0
			leaveJoined(all, false)
		}
		w.token++
		w.run.lease, w.run.token, w.run.beat, w.run.holder = c.next.ID, w.token, 0, c.next.holder
		w.run.attempt = attempt
	case "update":
		need(w.run == nil, "a run was under way")
		need(c.epoch == w.epoch, "I9: it was meant for epoch %d, and not for %d", c.epoch, w.epoch)
		edits()
		purge()
	case "retry":
		need(takeDead(c.id), "there is no such dead letter")
		if w.run == nil {
			begin(c.id)
			w.run.lease, w.run.holder = "", ""
			return
		}
		w.queue = append(slices.Clone(w.queue), c.id)
	case "discard":
		need(takeDead(c.id) || takeQueued(c.id), "there is no such message")
		stand(c.id, false)
		other(c.id, work.EndingDiscarded)
	case "rename", "note":
		need(w.seq > 1 && !w.deleted, "there is no workspace")
		if c.kind == "rename" {
			w.name = c.note.Text
			return
		}
		need(c.epoch == w.epoch, "it was meant for epoch %d, and not for %d", c.epoch, w.epoch)
		w.notes = noted(w.notes, c.note)
	case "withdraw":
		if w.run != nil && w.run.id == c.id {
			need(w.run.lease == "", "the run is held")
			stop("", answer(""))
			next()
			return
		}
		need(takeQueued(c.id), "there is no such ticket")
	case "cancel":
		need(w.run != nil && w.run.runID == c.run, "it is another run")
		stop(work.EndingCancelled, answer(c.run))
		next()
	case "reset", "delete":
		c.dropped = nil
		var ids []string
		if w.run != nil {
			ids = append(ids, w.run.id)
			for _, j := range w.run.joined {
				ids = append(ids, j.id)
			}
		}
		for _, id := range append(append(ids, w.queue...), w.dead...) {
			if !g.tickets[id] {
				c.dropped = append(c.dropped, id)
				other(id, work.EndingReset)
			}
		}
		w.token++
		w.version++
		w.run, w.queue, w.dead, w.stands, w.joins, w.text = nil, nil, nil, nil, nil, text{}
		w.purge, w.gone, w.name, w.notes = 0, w.version, "", nil
		if c.kind == "delete" {
			w.forgotten = maps.Clone(w.forgotten)
			if w.forgotten == nil {
				w.forgotten = map[string]bool{}
			}
			for _, d := range w.done {
				w.forgotten[d.ID] = true
			}
			w.done, w.version, w.deleted, w.gone = nil, 0, true, 0
			g.x.count["deletes"]++
			return
		}
		g.x.count["resets"]++
	case "import":
		need(w.seq == 1 || w.deleted, "there is a workspace")
		g.imports(w, c.from)
		next()
	case "accept":
		g.x.count["accepts"]++
	case "compact":
		g.x.count["compactions"]++
		limit := w.version
		if w.run != nil {
			limit = w.run.from
		}
		if w.purge != 0 && w.purge <= limit {
			w.purge, w.gone = 0, limit
			g.x.count["purges"]++
		}
		if c.force {
			w.gone = limit
		}
	default:
		need(false, "it writes nothing")
	}
}

// where returns the state or outcome of a message.
func (g *ghost) where(w *world, id string) string {
	var places []string
	if w.run != nil && w.run.id == id {
		places = append(places, "run")
	}
	if w.run != nil && slices.ContainsFunc(w.run.joined, func(j joinedID) bool { return j.id == id }) {
		places = append(places, "run")
	}
	for _, q := range w.queue {
		if q == id {
			places = append(places, "queue")
		}
	}
	for _, d := range w.done {
		if d.ID == id {
			places = append(places, d.As)
		}
	}
	for _, d := range w.dead {
		if d == id {
			places = append(places, "dead")
		}
	}
	return strings.Join(places, ", ")
}

// checkOf returns what the Check of a submission is called with.
func (g *ghost) checkOf(t text, before []string) string {
	var b strings.Builder
	b.WriteString(t.encode())
	for _, id := range before {
		if b.WriteString("\n"); !g.tickets[id] {
			b.WriteString(bodyOf(id))
		}
	}
	return b.String()
}

// compare compares a head with the world.
func (g *ghost) compare(w, old *world, h *sight, c *call) {
	if old.seq == 0 || slices.Contains([]string{"reset", "delete", "accept"}, c.kind) {
		if w.epoch = h.Epoch; h.Epoch <= old.epoch || g.epochs[h.Epoch] {
			g.x.violated("I9: epoch %d begins after %d", h.Epoch, old.epoch)
		}
		g.epochs[h.Epoch] = true
	}
	if h.Seq != w.seq || h.Epoch != w.epoch || h.Token != w.token || h.Version != w.version {
		g.x.violated("I1: the head has seq %d, epoch %d, token %d, version %d, not %d, %d, %d, %d",
			h.Seq, h.Epoch, h.Token, h.Version, w.seq, w.epoch, w.token, w.version)
	}
	if want := w.text.expires(); h.Expires != want {
		g.x.violated("the first call expires at %d, not %d", h.Expires, want)
	}
	if len(h.Ops) < nonceLen || strings.Contains(old.ops, h.nonce()) {
		g.x.violated("the head is not signed by its write")
	}
	rest := h.Ops[:len(h.Ops)-nonceLen]
	if c.kind == "accept" || c.kind == "delete" {
		old = &world{}
	}
	if !strings.HasSuffix(old.ops, rest) || len(rest) < min(len(old.ops), (maxOps-1)*nonceLen) {
		g.x.violated("the head does not follow the one that it replaces")
	}
	switch {
	case (h.Run == nil) != (w.run == nil):
		g.x.violated("the head has a run: %v", h.Run != nil)
	case h.Run != nil:
		r := h.Run
		if w.run.runID == "" {
			w.run.runID = r.RunID
		}
		if r.Message.ID != w.run.id || r.LeaseID != w.run.lease || r.Holder != w.run.holder || r.RunID != w.run.runID || r.Token != w.run.token ||
			r.Renewals != w.run.beat || r.Attempt != w.run.attempt || r.Base.Version != w.run.from {
			g.x.violated("the run is %s %q, token %d, beat %d, attempt %d, from %d, not %+v",
				r.Message.ID, r.LeaseID, r.Token, r.Renewals, r.Attempt, r.Base.Version, w.run)
		}
		if r.Message.Stands != w.stands[r.Message.ID] {
			g.x.violated("the conversation has the message of the run: %v, not %v", r.Message.Stands, w.stands[r.Message.ID])
		}
		var joined []joinedID
		for _, j := range r.Joined {
			joined = append(joined, joinedID{j.Message.ID, j.Answers})
		}
		if !slices.Equal(joined, w.run.joined) {
			g.x.violated("%v have joined the run, not %v", joined, w.run.joined)
		}
		if h.start().Version > r.Base.Version {
			g.x.violated("I6: the snapshot is at %d, past the base of the run, %d", h.start().Version, r.Base.Version)
		}
	case h.Queue.Next > h.Queue.First:
		g.x.violated("I3: messages wait, and there is no run")
	}
	w.start = h.start().Version
	if h.Purge != w.purge {
		g.x.violated("version %d is to be purged, not %d", h.Purge, w.purge)
	}
	if h.oldest() < w.gone {
		g.x.violated("version %d is left, although what was before %d is to be gone", h.oldest(), w.gone)
	}
	before := g.live
	got := g.look(h)
	for name := range before {
		if _, found := g.x.store.entries[blobsOf+name]; found && !g.live[name] {
			g.x.violated("a blob was dropped and not deleted: %s", short(blobsOf+name))
		}
	}
	queue := slices.Clone(w.queue)
	for i, id := range queue {
		if w.joins[id] {
			queue[i] += "+"
		}
		if w.stands[id] {
			queue[i] += "!"
		}
	}
	if !slices.Equal(got.queue, queue) {
		g.x.violated("the head has queue %v, not %v", got.queue, queue)
	}
	if !slices.Equal(got.dead, w.dead) {
		g.x.violated("the head has dead letters %v, not %v", got.dead, w.dead)
	}
	if !slices.Equal(got.done, w.done) {
		g.x.violated("the head has endings %v, not %v", got.done, w.done)
	}
	if h.Name != w.name || !slices.Equal(got.notes, w.notes) {
		g.x.violated("the head has the name %q and notes %v, not %q and %v", h.Name, got.notes, w.name, w.notes)
	}
	if (h.Deleted != "") != w.deleted {
		g.x.violated("the head says that it was deleted at %q", h.Deleted)
	}
}

// read compares the content at the head with the world.
func (g *ghost) read(h *sight, old *world, c *call) {
	w := g.world
	if w.version == old.version && c.kind != "compact" {
		return
	}
	if c.kind != "commit" && c.kind != "finish" && c.kind != "update" {
		g.reader = g.freshReader() // with empty caches
	}
	g.check(g.reader, h, h.now(), w.text)
	if c.kind == "compact" || c.kind == "takeOver" {
		if h.Run != nil {
			g.check(g.freshReader(), h, *h.Run.Base, w.run.base)
		}
		g.check(g.freshReader(), h, h.start(), g.texts[h.start().Chain])
		g.checkPast(h)
	}
}
