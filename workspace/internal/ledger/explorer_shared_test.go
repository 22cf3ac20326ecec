package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/work"
)

// The explorer of this file runs two threads of a user and what they share. Runs
// write names to what is shared, each once. What has become of them is compared
// after each write: a name is in the user part exactly if the run that has
// written it is finished. In some schedules the user is deleted: then no thread is
// made any more, and nothing is applied.

var familyIDs = []string{"u/1", "u/2", "u/"} // the last one is that of the user part

const (
	part      = 2
	fieldLog  = "log"     // of the user part: all names, in the order in which they were applied
	fieldDone = "applied" // of a thread: the names of its finished runs
)

// family is one schedule.
type family struct {
	schedule
	names int
	lives int

	deleteFrom int // the step from which on the user may be deleted

	retry, inTurn bool

	store   *familyStore
	members []*member
	running *member

	readers [3]*Ledger         // without faults
	pending [2]map[string]bool // what the runs have stored and not applied
	applied map[string]string  // by whom, "" for an update of the user part
	ever    map[string]bool    // names that were applied once
	closed  bool               // the user was deleted
	exists  [2]bool            // the threads
	dead    map[string]bool    // names of runs that did not finish
	refused map[string]bool    // names of finishes that had no effect
}

type familyStore struct {
	x         *family
	entries   map[string]revised
	old       map[string][]revised
	revisions int
	late      []familyRequest
}

type familyRequest struct {
	writes []store.Write
	kind   string
	thread int
	names  []string
}

// member performs operations one by one, as a coroutine. Those of one process
// share its ledgers.
type member struct {
	x       *family
	name    string
	process *familyProcess
	yield   func(struct{}) bool
	next    func() (struct{}, bool)
	stop    func()
	healthy bool
	stale   int
	request familyRequest // of the call that is under way
	run     *familyRun
}

type familyProcess struct {
	ledgers [3]*Ledger
	dead    bool
}

type familyRun struct {
	thread    int
	by        Holder
	stored    []string // names that its commits have stored
	hasDone   bool     // the thread has the field
	committed bool
}

func newFamily(seed uint64, tracing bool) *family {
	x := &family{
		schedule: newSchedule(seed, 2, tracing),
		applied:  map[string]string{}, ever: map[string]bool{}, dead: map[string]bool{}, refused: map[string]bool{},
	}
	r := func(rate float64) float64 { return rate * []float64{0, 1, 1, 3}[x.rng.IntN(4)] }
	x.rates = rates{crash: r(0.006), lostReply: r(0.04), drop: r(0.02), late: r(0.04), stale: r(0.04), lostRead: r(0.01)}
	x.retry, x.inTurn, x.steps = x.chance(0.5), x.chance(0.3), 100+x.rng.IntN(300)
	x.deleteFrom = x.steps
	if seed%3 == 0 {
		x.deleteFrom = x.steps / 2
	}
	x.store = &familyStore{x: x, entries: map[string]revised{}, old: map[string][]revised{}}
	for i, id := range familyIDs {
		x.readers[i] = New(calmFamily{x.store}, id, headPrefix+EncodeUser(id), Options{})
	}
	x.pending[0], x.pending[1] = map[string]bool{}, map[string]bool{}
	return x
}

func (x *family) process() *familyProcess {
	p := &familyProcess{}
	for i, id := range familyIDs {
		opts := Options{TTL: time.Second, RecordBytes: 500}
		if x.retry {
			opts.Retry = passes
		}
		if x.inTurn {
			opts.Turns = &familyTurns{x: x}
		}
		if i != part {
			opts.UserPart = func() (*Ledger, error) { return p.ledgers[part], nil }
		}
		l := New(x.store, id, headPrefix+EncodeUser(id), opts)
		l.minHistory = 0
		l.now = func() time.Time { return time.Unix(1e9, 0).UTC().Add(time.Duration(x.step) * time.Millisecond) }
		l.pause = func(ctx context.Context, _ time.Duration) error {
			x.running.point()
			return context.Cause(ctx)
		}
		p.ledgers[i] = l
	}
	return p
}

func (x *family) start(members int) {
	x.lives++
	p := x.process()
	for i := range members {
		m := &member{x: x, name: fmt.Sprintf("P%d%c", x.lives, 'a'+i), process: p}
		m.next, m.stop = iter.Pull(iter.Seq[struct{}](m.live))
		x.members = append(x.members, m)
	}
}

func (x *family) run() (problem string) {
	defer func() {
		if p := recover(); p != nil && p != (violated{}) {
			x.problem = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
		x.halt(func(*member) bool { return true })
		x.count["steps"] += x.step
		problem = x.problem
	}()
	for range 2 + x.rng.IntN(2) {
		x.start(1 + x.rng.IntN(2))
	}
	for x.step < x.steps {
		x.step++
		if len(x.store.late) > 0 && x.chance(0.05) {
			x.store.land()
		}
		m := x.members[x.rng.IntN(len(x.members))]
		x.running = m
		if _, lives := m.next(); !lives {
			before := len(x.members)
			x.halt(func(b *member) bool { return b.process == m.process })
			x.start(before - len(x.members))
			x.count["crashes"]++
		}
	}
	x.halt(func(*member) bool { return true })
	x.drain()
	return ""
}

func (x *family) halt(who func(*member) bool) {
	x.members = slices.DeleteFunc(x.members, func(m *member) bool {
		if !who(m) {
			return false
		}
		m.process.dead = true
		x.running = m
		m.stop()
		return true
	})
}

// drain lets one process without faults finish all runs.
func (x *family) drain() {
	x.rates = rates{}
	m := &member{x: x, name: "last", process: x.process(), healthy: true}
	x.running = m
	for range 60 {
		busy := len(x.store.late) > 0
		if busy {
			x.store.land()
		}
		if x.closed && !m.deleteUser() {
			x.violated("the user is not deleted in the end")
		}
		for thread := range 2 {
			m.takeOver(thread, work.TakeoverResume)
			for m.run != nil {
				busy = true
				m.finish()
			}
		}
		if !busy {
			x.check(familyRequest{})
			return
		}
	}
	x.violated("the last one does not come to an end")
}

func (m *member) live(yield func(struct{}) bool) {
	m.yield = yield
	defer func() {
		if p := recover(); p != nil && p != (crashed{}) && p != (violated{}) {
			m.x.problem = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	for m.yield(struct{}{}) && !m.process.dead {
		m.act()
	}
}

func (m *member) point() {
	if m.healthy {
		m.x.step++
		return
	}
	if !m.yield(struct{}{}) || m.process.dead || m.x.problem != "" {
		panic(crashed{})
	}
}

func (m *member) act() {
	x := m.x
	if x.step > x.deleteFrom && x.chance(0.05) {
		m.deleteUser()
		return
	}
	thread := x.rng.IntN(2)
	switch n := x.rng.IntN(24); {
	case m.run != nil && n < 8:
		m.commit()
	case m.run != nil && n < 18:
		m.finish()
	case m.run != nil && n < 20:
		m.restart()
	case m.run != nil && n < 21:
		m.fail()
	case m.run != nil && n < 22:
		m.run = nil // it is forgotten, as by a function that hangs
	case n < 12:
		m.submit(thread)
	case n < 18:
		m.takeOver(thread, []work.Takeover{work.TakeoverResume, work.TakeoverResume, work.TakeoverRestart}[x.rng.IntN(3)])
	case n < 22:
		m.update()
	default:
		_ = m.process.ledgers[x.rng.IntN(3)].Compact(context.Background(), false)
	}
}

// judge checks that who has the lease has not lost what it has committed: nobody
// else undoes it.
func (m *member) judge(err error) {
	if err != nil && errors.Is(err, work.ErrRolledBack) && strings.Contains(err.Error(), "records of the run are lost") {
		m.x.violated("%s: %s: %v", m.name, m.request.kind, err)
	}
}

// write returns names that were not written before.
func (m *member) write() []string {
	var names []string
	for range m.x.rng.IntN(3) {
		m.x.names++
		names = append(names, fmt.Sprint("n", m.x.names))
	}
	return names
}

func (m *member) call(kind string, thread int, names []string) {
	m.stale = 0
	m.request = familyRequest{kind: kind, thread: thread, names: names}
}

func (m *member) hold(thread int, h *Head, lease string) {
	if h == nil || h.Run == nil || h.Run.LeaseID != lease {
		return
	}
	l := m.process.ledgers[thread]
	doc, err := l.Content(context.Background(), h, h.Position())
	if err != nil {
		return
	}
	m.run = &familyRun{
		thread: thread, by: Holder{LeaseID: lease, MessageID: h.Run.Message.ID, At: h.Position()},
		stored: namesIn(doc, document.PartShared, fieldLog), hasDone: doc.Has(document.PartField, fieldDone),
		committed: h.Position() != h.Run.Base,
	}
}

func namesIn(doc *document.Document, p, field string) (names []string) {
	if text, ok := doc.Fields(p)[field]; ok {
		if json.Unmarshal(text, &names) != nil {
			panic("not a list of names")
		}
	}
	return names
}

func appendNames(has bool, p, field string, names []string) (effects []state.Effect) {
	if len(names) == 0 {
		return nil
	}
	if !has {
		effects = append(effects, state.Effect{Part: p, Field: field, Kind: state.EffectSet, Value: "[]"})
	}
	text, _ := json.Marshal(names)
	return append(effects, state.Effect{Part: p, Field: field, Kind: state.EffectAppend, Value: state.JSON(text)})
}

func (m *member) submit(thread int) {
	x, l := m.x, m.process.ledgers[thread]
	x.names++
	m.call("submit", thread, nil)
	lease := l.NewLease()
	h, status, _, err := l.Submit(context.Background(), Submission{
		Message: Message{ID: fmt.Sprint("m", x.names), At: l.now(), Body: []byte(`{}`)},
		Busy:    []work.WhenBusy{work.BusyEnqueue, work.BusyEnqueue, work.BusyInterrupt, work.BusyRollback}[x.rng.IntN(4)], MaxQueue: 3, Lease: lease,
	})
	x.logf("%s: submit to %d: %s %v", m.name, thread, status, err)
	if err == nil && status == work.StatusStarted {
		m.hold(thread, h, lease.ID)
	}
}

func (m *member) takeOver(thread int, how work.Takeover) {
	l := m.process.ledgers[thread]
	m.call("takeOver", thread, nil)
	h, err := l.ReadHead(context.Background())
	if err != nil || h.Run == nil {
		return
	}
	lease := l.NewLease()
	m.point()
	h, _, err = l.TakeOver(context.Background(), Contender{Observed: h.LeaseState(), How: how, MaxAttempts: 100, Lease: lease})
	m.x.logf("%s: take over %d: %v", m.name, thread, err)
	if err == nil {
		m.x.count["takeovers"]++
		m.hold(thread, h, lease.ID)
	}
}

func (m *member) commit() {
	r := m.run
	names := m.write()
	m.call("commit", r.thread, nil)
	effects := appendNames(len(r.stored) > 0, document.PartShared, fieldLog, names)
	at, err := m.process.ledgers[r.thread].Commit(context.Background(), r.by, Change{Effects: effects, Time: m.process.ledgers[0].now()}, nil)
	m.x.logf("%s: commit %v to %d: %v", m.name, names, r.thread, err)
	m.judge(err)
	if err != nil {
		m.run = nil
		return
	}
	r.by.At, r.committed, r.stored = at, true, append(r.stored, names...)
}

func (m *member) finish() {
	x, r := m.x, m.run
	l := m.process.ledgers[r.thread]
	fresh := m.write()
	all := append(slices.Clone(r.stored), fresh...)
	m.call("finish", r.thread, all)
	effects := appendNames(r.hasDone, document.PartField, fieldDone, all)
	if len(r.stored) > 0 {
		effects = append(effects, state.Effect{Part: document.PartShared, Field: fieldLog, Kind: state.EffectDelete})
	}
	var shared *SharedChange
	if len(all) > 0 || x.chance(0.3) {
		shared = &SharedChange{Part: m.process.ledgers[part], Make: func(doc *document.Document) (Change, error) {
			has := doc.Has(document.PartField, fieldLog)
			return Change{Effects: appendNames(has, document.PartField, fieldLog, all), Time: l.now()}, nil
		}}
	}
	next := l.NewLease()
	h, _, err := l.Finish(context.Background(), r.by, Change{Effects: effects, Time: l.now()}, "", next, shared)
	x.logf("%s: finish %d with %v: %v", m.name, r.thread, all, err)
	m.judge(err)
	m.run = nil
	switch {
	case err == nil:
		x.count["finishes"]++
		if len(all) > 0 {
			x.count["applied"]++
		}
		for _, name := range all {
			if !x.ever[name] {
				x.violated("%s: a finish was acknowledged, and %s is not applied", m.name, name)
			}
		}
		m.hold(r.thread, h, next.ID)
	case !errors.Is(err, store.ErrUnknownOutcome):
		for _, name := range fresh { // others may apply what is stored
			x.refused[name] = true
			if x.ever[name] {
				x.violated("%s: a finish has failed (%v), and %s is applied", m.name, err, name)
			}
		}
	default:
		x.count["unsure"]++
	}
}

func (m *member) restart() {
	r, l := m.run, m.process.ledgers[m.run.thread]
	m.call("restart", r.thread, nil)
	h, err := l.Restart(context.Background(), r.by)
	m.x.logf("%s: restart %d: %v", m.name, r.thread, err)
	m.run = nil
	if err == nil {
		m.x.count["restarts"]++
		if m.hold(r.thread, h, r.by.LeaseID); m.run != nil && (m.run.committed || len(m.run.stored) > 0) {
			m.x.violated("%s: a run that has begun anew has stored %v", m.name, m.run.stored)
		}
	}
}

func (m *member) fail() {
	r, l := m.run, m.process.ledgers[m.run.thread]
	m.call("fail", r.thread, nil)
	next := l.NewLease()
	h, _, err := l.Fail(context.Background(), r.by, "no", next)
	m.x.logf("%s: fail %d: %v", m.name, r.thread, err)
	m.run = nil
	if err == nil {
		m.x.count["failures"]++
		m.hold(r.thread, h, next.ID)
	}
}

// update changes the user part at once.
func (m *member) update() {
	l := m.process.ledgers[part]
	m.x.names++
	names := []string{fmt.Sprint("d", m.x.names)}
	m.call("update", part, names)
	h, doc, err := l.ReadPresent(context.Background())
	if err != nil {
		return
	}
	effects := appendNames(doc.Has(document.PartField, fieldLog), document.PartField, fieldLog, names)
	_, err = l.Update(context.Background(), KindUpdate, h.Position(), Change{Effects: effects, Time: l.now()}, nil)
	m.x.logf("%s: update with %v: %v", m.name, names, err)
	switch applied := m.x.ever[names[0]]; {
	case err == nil && !applied:
		m.x.violated("%s: an update was acknowledged, and is not applied", m.name)
	case err == nil:
		m.x.count["updates"]++
	case !errors.Is(err, store.ErrUnknownOutcome):
		m.x.refused[names[0]] = true
		if applied {
			m.x.violated("%s: an update has failed, and is applied: %v", m.name, err)
		}
	}
}

// deleteUser deletes the user, and reports whether nothing is left to do.
func (m *member) deleteUser() bool {
	ctx, l := context.Background(), m.process.ledgers[part]
	m.call("delete", part, nil)
	_, err := l.Close(ctx, true)
	for thread := 0; err == nil && thread < 2; thread++ {
		_, err = m.process.ledgers[thread].Delete(ctx)
	}
	if err == nil {
		err = l.Swept(ctx)
	}
	m.x.logf("%s: delete the user: %v", m.name, err)
	if err != nil {
		return false
	}
	m.x.count["deletions"]++
	if !m.x.closed || m.x.exists != [2]bool{} {
		m.x.violated("%s: the user was deleted, and has threads", m.name)
	}
	return true
}

// checkDeleted checks that nothing of a user who was deleted is made.
func (x *family) checkDeleted(heads [3]*Head) {
	x.closed, x.applied = true, map[string]string{}
	if h := heads[part]; !h.Closed || h.Exists() {
		x.violated("what threads share is there after the user was deleted")
	}
	for thread := range 2 {
		if heads[thread].Exists() && !x.exists[thread] {
			x.violated("%s is made after the user was deleted", familyIDs[thread])
		}
		x.exists[thread] = heads[thread].Exists()
	}
}

// check compares what all have after a request that has taken effect.
func (x *family) check(r familyRequest) {
	ctx := context.Background()
	var docs [3]*document.Document
	var heads [3]*Head
	for i, l := range x.readers {
		h, doc, err := l.ReadPresent(ctx)
		if err != nil {
			x.violated("%s cannot be read: %v", familyIDs[i], err)
		}
		docs[i], heads[i] = doc, h
		if i != part && h.Run == nil && len(doc.DropShared()) > 0 {
			x.violated("%s has no run, and names that wait for its end", familyIDs[i])
		}
	}
	if x.closed || heads[part].Closed {
		x.checkDeleted(heads)
		return
	}
	x.exists = [2]bool{heads[0].Exists(), heads[1].Exists()}
	log := namesIn(docs[part], document.PartField, fieldLog)
	now := map[string]string{}
	for _, name := range log {
		if now[name] != "" {
			x.violated("%s is applied twice", name)
		}
		now[name], x.ever[name] = "update", true
		if x.dead[name] || x.refused[name] {
			x.violated("%s is applied, although its run has not finished", name)
		}
	}
	for name := range x.applied {
		if now[name] == "" {
			x.violated("%s was applied, and is lost", name)
		}
	}
	for thread := range 2 {
		for _, name := range namesIn(docs[thread], document.PartField, fieldDone) {
			if now[name] != "update" {
				x.violated("%s is finished in %s, and applied by %q", name, familyIDs[thread], now[name])
			}
			now[name] = familyIDs[thread]
		}
	}
	for name, by := range now {
		if by == "update" && name[0] != 'd' {
			x.violated("%s is applied, and its run is not finished", name)
		}
	}
	for thread := range 2 {
		pending := map[string]bool{}
		for _, name := range namesIn(docs[thread], document.PartShared, fieldLog) {
			pending[name] = true
			if now[name] != "" {
				x.violated("%s waits, and is applied", name)
			}
		}
		for name := range x.pending[thread] {
			switch {
			case pending[name] || now[name] != "":
			case r.kind == "finish" && r.thread == thread:
				x.violated("a finish has lost %s", name)
			default:
				x.dead[name] = true
			}
		}
		x.pending[thread] = pending
	}
	x.applied = now
}

// familyTurns are the Turns of a workspace in a process.
type familyTurns struct {
	x      *family
	holder *member
}

func (t *familyTurns) Enter(ctx context.Context) error {
	for t.holder != nil {
		t.x.count["waited"]++
		t.x.running.point()
	}
	t.holder = t.x.running
	return nil
}

func (t *familyTurns) Leave() {
	if t.holder != t.x.running {
		t.x.violated("%s leaves a turn that it does not have", t.x.running.name)
	}
	t.holder = nil
}

func (s *familyStore) make(r familyRequest) error {
	for _, w := range r.writes {
		if e, found := s.entries[w.Key]; !w.Cond.Holds(e.revision, found) {
			s.x.count["conflicts"]++
			return &store.Error{Op: "write", Key: w.Key, Err: store.ErrConflict}
		}
	}
	for _, w := range r.writes {
		if e, found := s.entries[w.Key]; found && strings.HasPrefix(w.Key, headPrefix) {
			s.old[w.Key] = append(s.old[w.Key], e)
		}
		if w.Delete {
			delete(s.entries, w.Key)
			continue
		}
		s.revisions++
		s.entries[w.Key] = revised{value: slices.Clone(w.Value), revision: store.Revision(fmt.Sprint(s.revisions))}
	}
	s.x.check(r)
	return nil
}

func (s *familyStore) land() {
	i := s.x.rng.IntN(len(s.late))
	r := s.late[i]
	s.late = slices.Delete(s.late, i, i+1)
	err := s.make(r)
	s.x.logf("late %s of %d: %v", r.kind, r.thread, err)
	if err == nil {
		s.x.count["landed"]++
	}
}

func (s *familyStore) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	m := s.x.running
	m.point()
	if s.x.chance(s.x.rates.lostRead) {
		return nil, errLost
	}
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		e := s.entries[key]
		if old := s.old[key]; len(old) > 0 && m.stale < maxStale && s.x.chance(s.x.rates.stale) {
			m.stale++
			e = old[len(old)-1-s.x.rng.IntN(min(len(old), 4))]
			s.x.count["stale"]++
		}
		entries[i] = store.Entry{Key: key, Value: slices.Clone(e.value), Revision: e.revision}
	}
	return entries, nil
}

func (s *familyStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	x, m := s.x, s.x.running
	m.stale = 0
	r := m.request
	r.writes = slices.Clone(writes)
	m.point()
	switch {
	case x.chance(x.rates.drop):
		x.count["unknown"]++
		return nil, errUnknown
	case x.chance(x.rates.late):
		x.count["unknown"]++
		s.late = append(s.late, r)
		return nil, errUnknown
	}
	err := s.make(r)
	if x.chance(x.rates.crash) {
		m.process.dead = true
		panic(crashed{})
	}
	if x.chance(x.rates.lostReply) {
		x.count["unknown"]++
		return nil, errUnknown
	}
	if err != nil {
		return nil, err
	}
	revisions := make([]store.Revision, len(writes))
	for i, w := range writes {
		revisions[i] = s.entries[w.Key].revision
	}
	return revisions, nil
}

func (s *familyStore) List(_ context.Context, prefix, after string, _ bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		var keys []string
		for key := range s.entries {
			if strings.HasPrefix(key, prefix) && key > after {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			if e, found := s.entries[key]; found && !yield(store.Entry{Key: key, Value: e.value, Revision: e.revision}, nil) {
				return
			}
		}
	}
}

func (s *familyStore) Durability() store.Durability { return store.DurabilityProcess }
func (s *familyStore) Close() error                 { return nil }

// calmFamily is the store without faults.
type calmFamily struct{ *familyStore }

func (c calmFamily) Get(_ context.Context, keys ...string) ([]store.Entry, error) {
	entries := make([]store.Entry, len(keys))
	for i, key := range keys {
		e := c.entries[key]
		entries[i] = store.Entry{Key: key, Value: e.value, Revision: e.revision}
	}
	return entries, nil
}

// TestSharedExplorer runs 500 schedules, multiplied by STATE_EFFORT, from
// STATE_SEED on.
func TestSharedExplorer(t *testing.T) {
	before := maxOps
	maxOps = 5
	t.Cleanup(func() { maxOps = before })
	explore(t, func(seed uint64, tracing bool) scheduled { return newFamily(seed, tracing) }, []string{
		"finishes", "applied", "updates", "takeovers", "restarts", "failures", "crashes", "conflicts", "unknown", "unsure", "landed", "stale", "waited", "deletions",
	})
}
