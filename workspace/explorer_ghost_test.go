package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// world is the expected state of a workspace in the plainest form. It is
// compared with each head that is written. It never changes; each write makes
// the next one.
type world struct {
	seq, epoch, token, version uint64
	run                        *period
	queue                      []string
	done                       []struct{ ID, As string }
	dead                       []string
	text                       text
	nonce, chain               string
	ops                        []appliedOp
	calls                      []*call // that have taken effect
}

// period is the run of a world.
type period struct {
	id, lease string
	token     uint64
	beat      uint64
	attempt   int
	base      text
	from      uint64 // the version of base
}

// text is the content of a world: lists and values by field. It does not
// change.
type text struct {
	lists  map[string][]string
	values map[string]string
	undone int // the number of rollbacks, each of which is a version of the state
}

func (t text) encode() string {
	fields := map[string]string{}
	maps.Copy(fields, t.values)
	for name, list := range t.lists {
		fields[name] = "[" + strings.Join(list, ",") + "]"
	}
	var b strings.Builder
	b.WriteString("{")
	if t.undone > 0 {
		fmt.Fprintf(&b, `"conversation":{"version":%d}`, t.undone)
		if len(fields) > 0 {
			b.WriteString(",")
		}
	}
	if len(fields) > 0 {
		b.WriteString(`"key":{`)
	}
	for i, name := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + name + `":` + fields[name])
	}
	if len(fields) > 0 {
		b.WriteString("}")
	}
	b.WriteString("}")
	return b.String()
}

// edit is an effect on a text.
type edit struct {
	do    state.EffectKind
	field string
	n     int
	more  []string
}

func (e edit) effect() state.Effect {
	x := state.Effect{Part: document.PartKey, Field: e.field, Kind: e.do, N: e.n}
	switch {
	case e.do == state.EffectSet && e.n == 0:
		x.Value = state.JSON(e.more[0])
	case e.do == state.EffectSet || e.do == state.EffectAppend || e.do == state.EffectInsert:
		x.Value = state.JSON("[" + strings.Join(e.more, ",") + "]")
	}
	if e.do == state.EffectSet {
		x.N = 0
	}
	return x
}

// on returns the text after the edit. A set whose n is 1 sets a list.
func (e edit) on(t text) text {
	t = text{maps.Clone(t.lists), maps.Clone(t.values), t.undone}
	if t.lists == nil {
		t.lists, t.values = map[string][]string{}, map[string]string{}
	}
	list := slices.Clone(t.lists[e.field])
	switch e.do {
	case state.EffectSet:
		if e.n == 0 {
			t.values[e.field] = e.more[0]
			return t
		}
		list = slices.Clone(e.more)
	case state.EffectDelete:
		delete(t.values, e.field)
		delete(t.lists, e.field)
		return t
	case state.EffectAppend:
		list = append(list, e.more...)
	case state.EffectInsert:
		list = slices.Insert(list, e.n, e.more...)
	case state.EffectDropFirst:
		list = list[e.n:]
	case state.EffectTruncate:
		list = list[:e.n]
	case state.EffectRemoveAt:
		list = slices.Delete(list, e.n, e.n+1)
	}
	t.lists[e.field] = list
	return t
}

// call is one call of a method of a ledger by an actor, with its result.
type call struct {
	n    int
	by   string
	kind string

	id    string // of the message
	busy  Busy
	lease string
	next  runLease
	seen  leaseState
	how   Takeover
	at    position
	edits []edit
	purge bool

	applied int // how often it has taken effect, failovers included
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
	texts    map[string]text // by chain
	accepted map[string]bool // failovers included
	live     map[string]bool // blobs to which the head refers
	lists    map[string][]sightRef
	reader   *ledger // reads without faults
}

func newGhost(x *explorer) *ghost {
	g := &ghost{
		x: x, world: &world{}, texts: map[string]text{"": {}}, accepted: map[string]bool{}, live: map[string]bool{},
		lists: map[string][]sightRef{},
	}
	g.reader = g.freshReader()
	return g
}

func (g *ghost) freshReader() *ledger {
	l := newLedger(calm{port{g.x.store}}, "u", headOf, g.x.sealer)
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
}

// sight is a head that is decoded without the code under test, and faster.
type sight struct {
	Nonce, Chain               string
	Epoch, Seq, Token, Version uint64
	Run                        *struct {
		LeaseID  string `json:"lease_id"`
		Token    uint64
		Renewals uint64
		Attempt  int
		Message  sightMessage
		Base     position
	}
	Queue       []sightMessage
	Finished    []struct{ ID, As string }
	DeadLetters []struct{ Message sightMessage } `json:"dead_letters"`
	Ops         []appliedOp
	Snapshot    *struct {
		Version uint64
		Chain   string
		Parts   []sightRef
	}
	Segments []sightRef
	Tail     []storedRecord
}

type sightMessage struct {
	ID   string
	Body *sightRef `json:"body_blob"`
}

type sightRef struct {
	Name     string
	Hash     string `json:"sha256"`
	Level    int
	From, To uint64
}

func (g *ghost) decode(value []byte) *sight {
	data, err := g.x.sealer.open(headOf, headOf, value)
	if err != nil {
		g.x.violated("the head cannot be opened: %v", err)
	}
	s := &sight{}
	if err := json.Unmarshal(data, s); err != nil {
		g.x.violated("the head cannot be read: %v", err)
	}
	return s
}

func (s *sight) now() position { return position{s.Version, s.Chain} }

// start returns the position after which there are records.
func (s *sight) start() position {
	if s.Snapshot == nil {
		return position{}
	}
	return position{s.Snapshot.Version, s.Snapshot.Chain}
}

// head returns the part of the head that is needed to read the content.
func (s *sight) head() *head {
	h := &head{Version: s.Version, Chain: s.Chain, Tail: s.Tail}
	refs := func(list []sightRef) (refs []blobRef) {
		for _, r := range list {
			refs = append(refs, blobRef{Name: r.Name, Hash: r.Hash, Level: r.Level, From: r.From, To: r.To})
		}
		return refs
	}
	if h.Segments = refs(s.Segments); s.Snapshot != nil {
		h.Snapshot = &snapshot{position: s.start(), Parts: refs(s.Snapshot.Parts)}
	}
	return h
}

// refs returns the refs in the head itself.
func (s *sight) refs() []sightRef {
	refs := slices.Clone(s.Segments)
	if s.Snapshot != nil {
		refs = append(refs, s.Snapshot.Parts...)
	}
	items := slices.Clone(s.Queue)
	if s.Run != nil {
		items = append(items, s.Run.Message)
	}
	for _, d := range s.DeadLetters {
		items = append(items, d.Message)
	}
	for _, i := range items {
		if i.Body != nil {
			refs = append(refs, *i.Body)
		}
	}
	return refs
}

// saw is called after each write.
func (g *ghost) saw(r request) {
	wrote := false
	for _, w := range r.writes {
		switch {
		case w.Key == headOf && w.Delete && g.x.fault != "restarts":
			g.x.violated("the head was deleted")
		case w.Key == headOf && !w.Delete:
			wrote = true
		}
	}
	if wrote {
		g.wrote(r.call)
	}
	for _, w := range r.writes {
		if !w.Delete {
			continue
		}
		if g.live[strings.TrimPrefix(w.Key, headOf+blobInfix)] {
			g.x.violated("I2: a blob was deleted to which the head refers: %s", short(w.Key))
		}
		if r.call.kind == "collect" {
			g.x.count["collected"]++
		}
	}
}

// wrote checks a head that was written.
func (g *ghost) wrote(c *call) {
	x := g.x
	h := g.decode(x.store.entries[headOf].value)
	old := g.world
	if c == nil {
		x.violated("nobody writes a head")
	}
	w := *old
	w.seq++
	w.nonce, w.ops = h.Nonce, h.Ops
	g.step(&w, c)
	w.chain = h.Chain
	x.store.sign(w.seq, w.nonce)
	g.compare(&w, old, h)
	if slices.Contains(w.calls, c) {
		x.violated("I7: %v has taken effect twice", c)
	}
	w.calls = append(slices.Clip(w.calls), c)
	c.applied++
	g.world = &w
	g.texts[h.Chain] = w.text
	g.refer(h)
	g.read(h, old, c)
	x.count["writes"]++
	x.count[c.kind]++
	if x.variant.failover {
		x.store.photograph(g.world)
	}
}

// step applies the effect of a call to a world.
func (g *ghost) step(w *world, c *call) {
	need := func(ok bool, format string, args ...any) {
		if !ok {
			g.x.violated("%v has taken effect: "+format, append([]any{c}, args...)...)
		}
	}
	end := func(as string) {
		w.done = append(slices.Clip(w.done), struct{ ID, As string }{w.run.id, as})
	}
	begin := func(id string) {
		w.token++
		w.run = &period{id: id, lease: c.next.leaseID, token: w.token, base: w.text, from: w.version}
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
		need(w.run != nil && w.run.lease == c.lease, "I5: the run is not its own")
	}
	edits := func() {
		need(w.chain == c.at.Chain, "the content is not the one for which its effects were made")
		w.version++
		for _, e := range c.edits {
			w.text = e.on(w.text)
		}
	}
	back := func() {
		base := w.run.base
		if base.undone = w.text.undone; w.text.encode() != base.encode() {
			w.version++
			w.text = base
			w.text.undone++
			g.x.count["rollbacks"]++
		}
	}
	if w.run != nil {
		run := *w.run
		w.run = &run
	}
	switch c.kind {
	case "submit":
		need(g.where(w, c.id) == "", "the message was taken before: %s", g.where(w, c.id))
		g.accepted[c.id] = true
		switch {
		case w.run == nil:
			begin(c.id)
			return
		case c.busy == BusyEnqueue:
			need(len(w.queue) < g.x.queue, "the queue is full")
			w.queue = append(slices.Clone(w.queue), c.id)
			return
		case c.busy == BusyInterrupt:
			end(finishedInterrupted)
		case c.busy == BusyRollback:
			back()
			end(finishedRolledBack)
		default:
			need(false, "it was to be rejected")
		}
		begin(c.id)
	case "renew":
		mine()
		w.run.beat++
	case "commit":
		mine()
		edits()
		w.run.beat++
	case "finish":
		mine()
		need(w.chain == c.at.Chain, "what the run has committed before is lost")
		if len(c.edits) > 0 {
			edits()
		}
		end(finishedHandled)
		next()
	case "fail":
		mine()
		need(w.chain == c.at.Chain, "what the run has committed before is lost")
		end(finishedFailed)
		next()
	case "takeOver":
		need(w.run != nil && c.seen == leaseState{w.run.lease, w.run.beat}, "the run was alive")
		g.x.count["takeovers"]++
		if c.how == TakeoverRestart {
			back()
			w.run.base, w.run.from = w.text, w.version
		}
		if w.run.attempt+1 >= g.x.attempts {
			w.dead = append(slices.Clip(w.dead), w.run.id)
			g.x.count["dead"]++
			next()
			return
		}
		w.token++
		w.run.lease, w.run.token, w.run.beat = c.next.leaseID, w.token, 0
		w.run.attempt++
	case "update":
		need(w.run == nil, "a run was under way")
		edits()
	case "reset":
		c.dropped = nil
		if w.run != nil {
			c.dropped = append(c.dropped, w.run.id)
		}
		c.dropped = append(append(c.dropped, w.queue...), w.dead...)
		for _, id := range c.dropped {
			w.done = append(slices.Clip(w.done), struct{ ID, As string }{id, finishedReset})
		}
		w.epoch++
		w.token++
		w.version++
		w.run, w.queue, w.dead, w.text = nil, nil, nil, text{}
		g.x.count["resets"]++
	case "compact":
		g.x.count["compactions"]++
	case "collect":
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

// compare compares a head with the world.
func (g *ghost) compare(w, old *world, h *sight) {
	equal := func(what string, want, got any) {
		if fmt.Sprint(want) != fmt.Sprint(got) {
			g.x.violated("the head has %s %v, not %v", what, got, want)
		}
	}
	if h.Seq != w.seq || h.Epoch != w.epoch || h.Token != w.token || h.Version != w.version {
		g.x.violated("I1: the head has seq %d, epoch %d, token %d, version %d, not %d, %d, %d, %d",
			h.Seq, h.Epoch, h.Token, h.Version, w.seq, w.epoch, w.token, w.version)
	}
	if h.Nonce == old.nonce || len(h.Ops) == 0 || h.Ops[len(h.Ops)-1].Seq != w.seq {
		g.x.violated("the head is not signed by its write")
	}
	rest := h.Ops[:len(h.Ops)-1]
	if len(rest) > len(old.ops) || !slices.Equal(rest, old.ops[len(old.ops)-len(rest):]) || len(rest) < min(len(old.ops), maxOps-1) {
		g.x.violated("the head does not follow the one that it replaces")
	}
	switch {
	case (h.Run == nil) != (w.run == nil):
		g.x.violated("the head has a run: %v", h.Run != nil)
	case h.Run != nil:
		r := h.Run
		if r.Message.ID != w.run.id || r.LeaseID != w.run.lease || r.Token != w.run.token || r.Renewals != w.run.beat ||
			r.Attempt != w.run.attempt || r.Base.Version != w.run.from {
			g.x.violated("the run is %s %s, token %d, beat %d, attempt %d, from %d, not %+v",
				r.Message.ID, r.LeaseID, r.Token, r.Renewals, r.Attempt, r.Base.Version, w.run)
		}
		if h.start().Version > r.Base.Version {
			g.x.violated("I6: the snapshot is at %d, past the base of the run, %d", h.start().Version, r.Base.Version)
		}
	case len(h.Queue) > 0:
		g.x.violated("I3: messages wait, and there is no run")
	}
	ids := make([]string, 0, 8)
	for _, i := range h.Queue {
		ids = append(ids, i.ID)
	}
	if !slices.Equal(ids, w.queue) {
		equal("queue", w.queue, ids)
	}
	ids = ids[:0]
	for _, d := range h.DeadLetters {
		ids = append(ids, d.Message.ID)
	}
	if !slices.Equal(ids, w.dead) {
		equal("dead", w.dead, ids)
	}
	if !slices.Equal(h.Finished, w.done) {
		equal("done", w.done, h.Finished)
	}
}

// refer notes the blobs to which a head refers, and checks that they exist.
func (g *ghost) refer(h *sight) {
	g.live = map[string]bool{}
	var walk func(refs []sightRef)
	walk = func(refs []sightRef) {
		for _, r := range refs {
			g.live[r.Name] = true
			key := headOf + blobInfix + r.Name
			e, found := g.x.store.entries[key]
			if !found {
				g.x.violated("I2: the head refers to a blob that is not there: %s", short(key))
			}
			if r.Level == 0 {
				continue
			}
			list, known := g.lists[r.Name]
			if !known {
				data, err := g.x.sealer.open(headOf, key, e.value)
				if err == nil {
					err = json.Unmarshal(data, &list)
				}
				if err != nil {
					g.x.violated("%s: %v", short(key), err)
				}
				g.lists[r.Name] = list
			}
			walk(list)
		}
	}
	walk(h.refs())
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
			g.check(g.freshReader(), h, h.Run.Base, w.run.base)
		}
		g.check(g.freshReader(), h, h.start(), g.texts[h.start().Chain])
	}
}

func (g *ghost) check(l *ledger, h *sight, at position, want text) {
	doc, err := l.content(context.Background(), h.head(), at)
	if err != nil {
		g.x.violated("the content at version %d cannot be read: %v", at.Version, err)
	}
	if got := string(doc.Encode()); got != want.encode() {
		g.x.violated("the content at version %d is %s, not %s", at.Version, brief(got), brief(want.encode()))
	}
}

func brief(text string) string {
	return strings.ReplaceAll(text, strings.Repeat("x", 100), "")
}
