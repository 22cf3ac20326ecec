package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// The explorer runs the operations on a workspace in a few processes on a
// faulty store, in an order that depends only on a seed. A ghost observes all
// writes.

// headOf is the key of the workspace.
const (
	headOf  = headPrefix + "u"
	blobsOf = blobPrefix + "u/"
)

// variant is a kind of store.
type variant struct {
	name             string
	failover, sealed bool
	// shows is a store that shows what it has not acknowledged. A failover, which it
	// has, loses nothing else.
	shows bool
}

var variants = []variant{
	{name: "batch"},
	{name: "failover", failover: true},
	{name: "sealed", sealed: true},
	{name: "batch"},
	{name: "shows", failover: true, shows: true},
}

// rates are the probabilities of faults.
type rates struct {
	crash, lostReply, drop, late, stale, pause, lostRead, missed float64
	failover                                                     float64
	big, last                                                    float64 // the probability that a value is large, and that a finish adds a record
	stop                                                         float64 // the probability that the context of a call may end
	calls, alien                                                 float64 // of edits of the conversation, and of the field that strict processes do not know
}

type act struct {
	do     func(*actor)
	weight int
}

// explorer is one schedule.
type explorer struct {
	schedule
	variant variant
	acts    []act // of an actor without a run
	acts2   []act // of an actor with a run
	fault   string

	told            map[string]bool // the ids of messages that were called duplicates
	kept            map[string]bool // the ids of messages in heads that the store has acknowledged, if it shows others
	queue, attempts int
	history         int
	ttl             time.Duration
	busies          []work.WhenBusy
	takeovers       []work.Takeover
	staleReads      bool
	retry, inTurn   bool  // whether the processes have Options.Retry and Turns
	crowds          []int // how many messages before its own a submission accepts

	sealer  *Sealer
	store   *faultyStore
	ghost   *ghost
	actors  []*actor
	awake   []*actor
	running *actor
	calls   []*call
	sent    []string
	values  int
	tickets int
	copies  []imported
	lives   int
}

// happenings are the events that must occur in the first hundreds of schedules,
// and in some thousands of any others:
// without them, the test has tested nothing.
var happenings = []string{
	"steps", "writes", "views", "crashes", "takeovers", "rollbacks", "resets", "compactions", "dead", "conflicts", "unknown", "unsure",
	"duplicates", "stale", "landed", "failovers", "rolledBack",
	"submit", "commit", "finish", "fail", "renew", "takeOver", "update", "reset", "compact",
	"again", "release", "retry", "discard", "rename", "note", "cancel", "delete", "accept", "withdraw", "vacant", "dropped", "answered", "alien", "crowd", "stopped", "waited",
	"vacated", "beat", "replaced", "evidence", "silence",
	"joined", "joinedEnded", "joinedLeft", "copies", "import", "fates", "expired", "loaded", "pasts", "purges", "looks",
}

var explorerSealer, _ = NewSealer([]Key{{ID: "k", Secret: []byte(strings.Repeat("k", 32))}})

func newExplorer(seed uint64, tracing bool) *explorer {
	x := &explorer{schedule: newSchedule(seed, 1, tracing), told: map[string]bool{}, kept: map[string]bool{}, fault: os.Getenv("STATE_FAULT")}
	list := variants
	if only := os.Getenv("STATE_VARIANT"); only != "" {
		list = slices.DeleteFunc(slices.Clone(variants), func(v variant) bool { return v.name != only })
	}
	x.variant = list[seed%uint64(len(list))]
	if x.variant.sealed {
		x.sealer = explorerSealer
	}
	// Each schedule has different rates, so that combinations of rare events
	// are frequent in some of them.
	r := func(rate float64) float64 { return rate * []float64{0, 1, 1, 3}[x.rng.IntN(4)] }
	x.rates = rates{
		crash: r(0.006), lostReply: r(0.03), drop: r(0.02), late: r(0.03), stale: r(0.05), pause: r(0.01),
		lostRead: r(0.02), missed: r(0.05), failover: []float64{0.01, 0.03}[x.rng.IntN(2)],
		big: []float64{0, 0.2, 0.7}[x.rng.IntN(3)], last: []float64{0.1, 0.8}[x.rng.IntN(2)],
		stop:  []float64{0, 0, 0.3}[x.rng.IntN(3)],
		calls: []float64{0, 0, 0.2, 0.6}[x.rng.IntN(4)], alien: []float64{0, 0, 0, 0.1}[x.rng.IntN(4)],
	}
	x.staleReads = x.rates.stale > 0
	x.queue, x.attempts = []int{1, 2, 3, 4, 10_000}[x.rng.IntN(5)], 1+x.rng.IntN(4)
	x.ttl = time.Duration(5+x.rng.IntN(60)) * time.Millisecond
	x.steps = 60 + x.rng.IntN(200)
	w := func(weight int) int { return weight * []int{0, 1, 1, 2}[x.rng.IntN(4)] }
	// Some schedules copy workspaces, and delete them so that they expire or are
	// imported.
	copies, expiries := []int{0, 0, 0, 5}[x.rng.IntN(4)], []int{0, 0, 0, 6}[x.rng.IntN(4)]
	x.acts = []act{
		{(*actor).submit, 8}, {(*actor).resend, w(4)}, {(*actor).watch, 4 + w(8)}, {(*actor).view, w(3)}, {(*actor).update, w(4)}, {(*actor).look, w(2)},
		{(*actor).compact, w(4)}, {(*actor).reset, w(1)},
		{(*actor).retry, w(5)}, {(*actor).discard, w(2)}, {(*actor).cancel, w(1)}, {(*actor).delete, w(1) / 2}, {(*actor).accept, 1 + w(2)},
		{(*actor).ticket, w(2)}, {(*actor).withdraw, w(1)}, {(*actor).beat, 2 + w(3)}, {(*actor).ask, w(1)}, {(*actor).vacate, w(3)},
		{(*actor).copy, copies}, {(*actor).imports, 2 * copies}, {(*actor).delete, (copies + expiries) / 2}, {(*actor).expire, 3 * expiries},
		{(*actor).rename, w(1)}, {(*actor).note, w(3)},
	}
	x.acts2 = []act{
		{(*actor).commit, 4 + w(8)}, {(*actor).finish, 2 + w(6)}, {(*actor).fail, w(5)}, {(*actor).renew, w(3)}, {(*actor).forget, w(1)},
		{(*actor).again, w(1)}, {(*actor).release, w(2)}, {(*actor).cancel, w(1) / 2}, {(*actor).discard, w(1)}, {(*actor).retry, w(1)},
		{(*actor).beat, 2 + w(3)}, {(*actor).retire, w(1) / 2},
		{(*actor).submit, w(1)}, {(*actor).compact, w(3)}, {(*actor).view, w(1)},
	}
	x.busies = [][]work.WhenBusy{{work.BusyEnqueue, work.BusyEnqueue, work.BusyReject, work.BusyInterrupt, work.BusyRollback}, {work.BusyEnqueue},
		{work.BusyEnqueue, work.BusyInterrupt, work.BusyRollback}, {work.BusyJoin, work.BusyJoin, work.BusyEnqueue, work.BusyInterrupt, work.BusyRollback}}[x.rng.IntN(4)]
	x.crowds = [][]int{{100}, {100}, {0, 1, 2, 3, 100}}[x.rng.IntN(3)]
	x.takeovers = []work.Takeover{work.TakeoverResume, work.TakeoverRestart}
	x.retry, x.inTurn = x.chance(0.5), x.chance(0.3)
	x.history = []int{0, 500, 3000, 20_000, 1 << 20}[x.rng.IntN(5)]
	x.store = newFaultyStore(x)
	x.ghost = newGhost(x)
	x.logf("store %s", x.variant.name)
	if x.variant.failover {
		x.store.photograph(x.ghost.world)
	}
	return x
}

func (x *explorer) logf(format string, args ...any) {
	if x.tracing {
		x.trace = append(x.trace, fmt.Sprintf("%4d seq %d: ", x.step, x.ghost.world.seq)+fmt.Sprintf(format, args...))
	}
}

// start starts a process with some actors, which share its ledger.
func (x *explorer) start(actors int) {
	x.lives++
	p := &process{name: fmt.Sprint("P", x.lives), rate: 0.5 + 1.5*x.rng.Float64()}
	p.skew = time.Duration(x.rng.IntN(3)-1) * time.Duration(x.rng.IntN(200)) * time.Millisecond
	p.strict = x.rates.alien > 0 && x.chance(0.4)
	p.ledger, p.holders = x.ledger(p), x.newHolders()
	p.holder = []string{"", "H1", "H2/a"}[x.rng.IntN(3)]
	for i := range actors {
		a := &actor{x: x, name: string(rune('a' + i)), process: p, wake: x.step + x.rng.IntN(20)}
		a.next, a.stop = iter.Pull(iter.Seq[struct{}](a.live))
		x.actors = append(x.actors, a)
	}
}

func (x *explorer) ledger(p *process) *Ledger {
	l := New(port{x.store}, "u", headOf, p.options(x))
	l.minHistory = 0
	l.now = func() time.Time {
		return time.Unix(1e9, 0).UTC().Add(p.skew + time.Duration(x.step)*time.Millisecond).Truncate(time.Millisecond)
	}
	l.pause = func(ctx context.Context, _ time.Duration) error {
		x.running.point()
		return context.Cause(ctx)
	}
	return l
}

// clock returns the time by the clock of a process.
func (x *explorer) clock(p *process) time.Duration {
	return time.Duration(float64(x.step)*p.rate) * time.Millisecond
}

// run runs the schedule and returns the violation, or "".
func (x *explorer) run() (problem string) {
	defer func() {
		if p := recover(); p != nil && p != (violated{}) {
			x.problem = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
		x.halt(func(*actor) bool { return true })
		x.count["steps"] = x.step
		problem = x.problem
	}()
	for actors := 3 + x.rng.IntN(3); actors > 0; {
		n := min(actors, 1+x.rng.IntN(3)/2)
		x.start(n)
		actors -= n
	}
	for x.step < x.steps {
		x.next()
	}
	x.halt(func(*actor) bool { return true })
	x.drain()
	x.final()
	return ""
}

// next makes one step.
func (x *explorer) next() {
	x.step++
	if len(x.store.late) > 0 && x.chance(0.03) {
		x.store.land()
	}
	if x.variant.failover && x.chance(x.rates.failover) {
		x.store.failOver()
	}
	awake := x.awake[:0]
	for _, a := range x.actors {
		if a.wake <= x.step {
			awake = append(awake, a)
		}
	}
	x.awake = awake
	if len(awake) == 0 {
		return
	}
	a := awake[x.rng.IntN(len(awake))]
	x.running = a
	if _, lives := a.next(); lives {
		return
	}
	// All actors of a process die together, and a new process starts.
	before := len(x.actors)
	x.halt(func(b *actor) bool { return b.process == a.process })
	x.start(before - len(x.actors))
}

// halt ends actors.
func (x *explorer) halt(who func(*actor) bool) {
	x.actors = slices.DeleteFunc(x.actors, func(a *actor) bool {
		if !who(a) {
			return false
		}
		a.process.dead = true
		x.running = a
		a.stop()
		return true
	})
}

// drain lets one process without faults finish all work.
func (x *explorer) drain() {
	x.logf("the others are gone")
	x.rates = rates{}
	x.lives++
	p := &process{name: fmt.Sprint("P", x.lives), rate: 1}
	p.ledger, p.holders = x.ledger(p), x.newHolders()
	a := &actor{x: x, process: p, healthy: true}
	x.running = a
	for range 100 {
		late := len(x.store.late)
		h, _, err := p.ledger.readHead(context.Background())
		switch {
		case errors.Is(err, work.ErrRolledBack) && x.mayRollBack():
			a.accept()
			continue
		case errors.As(err, new(*absentHeadError)) && x.store.expiredLate: // an operator has to delete what is left
			return
		case err != nil:
			x.violated("the last one cannot read: %v", err)
		case h.Run == nil && len(x.store.late) > 0:
			x.store.land()
			continue
		case late > 0 && len(x.store.late) == 0: // one may have landed after the head was read
			continue
		case h.Run == nil:
			a.compact()
			a.view()
			return
		}
		a.takeOver(h.LeaseState())
		for a.run != nil {
			a.finish()
		}
	}
	x.violated("the last one does not come to an end")
}

// judge compares the result of a call with what was written.
func (x *explorer) judge(c *call) {
	switch now := slices.Contains(x.ghost.world.calls, c); {
	case c.result == made && c.applied == 0 && c.kind != "compact":
		x.violated("%v was acknowledged, and was not made", c)
	case c.result == refused && now:
		x.violated("%v was refused (%v), and was made", c, c.err)
	}
}

// judgeRefusal checks that there was a reason for a refusal at some moment of the
// call. If reads may be stale, the reason may be gone by then.
func (x *explorer) judgeRefusal(c *call) {
	var hasReason func(w *world) bool
	switch {
	case c.result != refused || x.variant.failover || x.staleReads:
		return
	case errors.Is(c.err, work.ErrQueueFull):
		hasReason = func(w *world) bool { return len(w.queue) >= x.queue }
	case errors.Is(c.err, work.ErrBusy):
		hasReason = func(w *world) bool { return w.run != nil }
	case errors.Is(c.err, ErrContentChanged):
		hasReason = func(w *world) bool { return w.chain != c.at.Chain || w.epoch != c.epoch }
	default:
		return
	}
	if !slices.ContainsFunc(x.ghost.past[max(0, c.worlds-1):], hasReason) {
		x.violated("%v was refused without a reason: %v", c, c.err)
	}
}

// final checks the final state.
func (x *explorer) final() {
	for _, c := range x.calls {
		x.judge(c)
	}
	g := x.ghost
	w := g.world
	if w.run != nil || len(w.queue) > 0 {
		x.violated("something is left to do")
	}
	sent := map[string]bool{}
	for _, c := range w.calls {
		switch c.kind {
		case "submit":
			sent[c.id] = true
		case "import":
			for _, id := range g.heldBy(c.from) {
				sent[id] = true
			}
		}
	}
	for _, id := range x.sent {
		if place := g.where(w, id); sent[id] != (place != "" || w.forgotten[id]) || strings.Contains(place, ",") {
			x.violated("I4: message %s, accepted %v, is in %q", id, sent[id], place)
		}
	}
	if w.seq == 0 {
		return
	}
	h := g.decode(x.store.entries[headOf].value)
	g.check(g.freshReader(), h, h.now(), w.text)
	g.checkPast(h)
	for key := range x.store.entries {
		name, blob := strings.CutPrefix(key, blobsOf)
		if blob && !g.live[name] {
			x.violated("a blob is left to which the head does not refer: %s", short(key))
		}
	}
}

// TestExplorer runs 500 schedules, multiplied by STATE_EFFORT, from STATE_SEED
// on. A STATE_EFFORT of 0 leaves the first one.
func TestExplorer(t *testing.T) {
	// Small limits are reached with few writes.
	document.SweepAfter = 0
	maxOps, listFanout, maxEnded, maxDeadLetters, maxInlineBody, maxNoteBytes = 5, 2, 3, 2, 12, 320
	snapshotPartBytes, recordPartBytes, firstRecords, segmentPart = 1<<10, 1<<10, 2, 2
	t.Cleanup(func() {
		maxOps, listFanout, maxEnded, maxDeadLetters, maxInlineBody, maxNoteBytes = 16, 4, 16, 64, 256, 64<<10
		snapshotPartBytes, recordPartBytes, firstRecords, segmentPart = 256<<10, 256<<10, 64, 2048
	})
	wanted := happenings
	if os.Getenv("STATE_VARIANT") != "" {
		wanted = nil
	}
	explore(t, func(seed uint64, tracing bool) scheduled { return newExplorer(seed, tracing) }, wanted)
}

// calm is the store without faults.
type calm struct{ port }

func (c calm) Get(_ context.Context, keys ...string) ([]store.Entry, error) {
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		e := c.entries[key] // without a revision if it is missing
		entries[i] = store.Entry{Key: key, Value: e.value, Revision: e.revision}
	}
	return entries, nil
}
