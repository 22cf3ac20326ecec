package processes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// A random program has the same effect on a workspace as on a model of it. After
// each step, a new Manager on a new handle on the store reads the workspace.
func TestModel(t *testing.T) {
	n := effort.Runs(10)
	seed := effort.LogSeed(t)
	t.Run("memory", func(t *testing.T) {
		for i := range n {
			synctest.Test(t, func(t *testing.T) {
				db := store.NewMemory()
				newProgram(t, seed, i, func() store.Store { return &shared{Batcher: db} }).run()
			})
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		for i := range (n + 4) / 5 {
			synctest.Test(t, func(t *testing.T) {
				address := "sqlite - " + filepath.Join(t.TempDir(), "state.db")
				newProgram(t, seed, i, func() store.Store {
					s, err := openAddress(address)
					require.NoError(t, err)
					return s
				}).run()
			})
		}
	})
}

// shared is a handle on a store that other handles use too.
type shared struct {
	store.Batcher
	closed atomic.Bool
}

func (s *shared) Close() error {
	s.closed.Store(true)
	return nil
}

func (s *shared) check(op string) error {
	if s.closed.Load() {
		return &store.Error{Op: op, Err: store.ErrClosed}
	}
	return nil
}

func (s *shared) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := s.check("get"); err != nil {
		return store.Entry{}, err
	}
	return s.Batcher.Get(ctx, key)
}

func (s *shared) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if err := s.check("batch"); err != nil {
		return nil, err
	}
	return s.Batcher.Batch(ctx, writes)
}

// Options of the programs.
const (
	keptMessages = 6
	keptResults  = 3
	attempts     = 2
)

// content is the model of the content of a workspace.
type content struct {
	Keys     map[string]any
	Messages []state.Message
	Results  []string          // ids
	Memory   map[string]string // secrets begin with a !
	ChatID   string
	Debug    bool
}

func empty() content { return content{Keys: map[string]any{}, Memory: map[string]string{}} }

func (c content) clone() content {
	c.Keys, c.Memory = maps.Clone(c.Keys), maps.Clone(c.Memory)
	c.Messages, c.Results = slices.Clip(c.Messages), slices.Clip(c.Results)
	return c
}

// contentOf returns the content of a workspace.
func contentOf(w *workspace.Workspace) content {
	c := content{Keys: w.State().KV().All(), Memory: map[string]string{}}
	delete(c.Keys, state.Messages.Name)
	c.Messages = state.Messages.Or(w.State(), nil)
	for _, r := range w.State().History().All() {
		c.Results = append(c.Results, r.ID)
	}
	for key, e := range w.Memory().All() {
		c.Memory[key] = e.Value
		if e.Secret {
			c.Memory[key] = "!" + e.Value
		}
	}
	set := w.Settings()
	c.ChatID, c.Debug = set.ChatID, set.DebugMode
	return c
}

// edit is a change of the content and of the model.
type edit struct {
	name  string
	make  func(w *workspace.Workspace) error
	model func(c *content)
}

// program is a random program, with its model.
type program struct {
	*testing.T
	ctx    context.Context
	random *rand.Rand
	open   func() store.Store
	last   int // number of the last generated name
	trace  []string

	now   content // the stored content
	base  content // the content when the run began
	first *turn   // the run
	queue []workspace.Message
	dead  []workspace.Message
	old   *holder // a run that has ended
}

// turn is a run in the model.
type turn struct {
	message   workspace.Message
	attempt   int
	committed bool
	holder    *holder // nil if its Manager was closed
	vacant    bool    // its Manager has released it
}

// holder is a run that the program holds, with its content.
type holder struct {
	run  *workspace.Run
	m    *manager
	work content
	end  error // the error of a commit after its end
}

func newProgram(t *testing.T, seed uint64, i int, open func() store.Store) *program {
	return &program{T: t, ctx: t.Context(), random: rand.New(rand.NewPCG(seed, uint64(i))), open: open, now: empty()}
}

const ann = "ann/ü"

func (p *program) run() {
	defer func() {
		if p.Failed() {
			p.Logf("steps: %q", p.trace)
		}
	}()
	for range 25 {
		p.step()
		p.look()
	}
}

// manager is a Manager with a handle of its own on the store.
type manager struct {
	*workspace.Manager
	p    *program
	db   store.Store
	ends bool
}

// manager returns a new Manager on a new handle. The end of the test closes it, if
// nothing has before.
func (p *program) manager(run func(ctx context.Context, r *workspace.Run) error) *manager {
	db := p.open()
	m, err := workspace.Open(p.ctx, db, &workspace.Options{
		Run: run, Queue: 3, Attempts: attempts, Messages: keptMessages, Results: keptResults,
	})
	require.NoError(p, err)
	mm := &manager{Manager: m, p: p, db: db}
	p.Cleanup(mm.end)
	return mm
}

// end closes the Manager, which releases its runs.
func (m *manager) end() { m.close(m.Close, m.db.Close) }

// die ends the Manager as the death of its process does: it can release nothing.
func (m *manager) die() { m.close(m.db.Close, m.Close) }

func (m *manager) close(first, then func() error) {
	if !m.ends {
		m.ends = true
		require.NoError(m.p, first())
		require.NoError(m.p, then())
	}
}

// look compares the stored content and the content of the run with the model.
func (p *program) look() {
	m := p.manager(nil)
	defer m.end()
	v, err := m.View(p.ctx, ann)
	require.NoError(p, err)
	p.same(p.now, contentOf(&v.Workspace))
	var queue, dead []string
	for _, msg := range v.Queue {
		queue = append(queue, msg.ID)
	}
	for _, d := range v.DeadLetters {
		dead = append(dead, d.Message.ID)
	}
	require.Equal(p, idsOf(p.queue), queue)
	require.Equal(p, idsOf(p.dead), dead)
	require.Equal(p, p.first == nil, v.Run == nil)
	if p.first != nil {
		require.Equal(p, p.first.message.ID, v.Run.Message.ID)
		require.Equal(p, p.first.attempt, v.Run.Attempt)
		if h := p.first.holder; h != nil {
			p.same(h.work, contentOf(&h.run.Workspace))
		}
	}
	_, err = m.Verify(p.ctx, ann)
	require.NoError(p, err)
}

func (p *program) same(want, got content) {
	p.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		p.Fatalf("it is not what the model has (-want +got):\n%s", diff)
	}
}

func idsOf(msgs []workspace.Message) []string {
	var ids []string
	for _, msg := range msgs {
		ids = append(ids, msg.ID)
	}
	return ids
}

// step executes a random operation.
func (p *program) step() {
	steps := []struct {
		name string
		do   func()
	}{
		{"begin", p.begin}, {"begin", p.begin}, {"commit", p.commit}, {"commit", p.commit}, {"finish", p.finish},
		{"fail", p.fail}, {"crash", p.crash}, {"release", p.release}, {"recover", p.recover}, {"handle", p.handle}, {"update", p.update},
		{"stale", p.stale}, {"reset", p.reset},
	}
	n := p.random.IntN(len(steps))
	if n == len(steps)-1 && p.random.IntN(3) > 0 {
		n = 0
	}
	p.trace = append(p.trace, steps[n].name)
	steps[n].do()
}

// message returns a new message, or sometimes a dead letter.
func (p *program) message() workspace.Message {
	if len(p.dead) > 0 && p.random.IntN(4) == 0 {
		p.trace = append(p.trace, "again")
		return p.dead[p.random.IntN(len(p.dead))]
	}
	p.last++
	msg := workspace.Message{ID: fmt.Sprint("m", p.last), Content: state.UserText(fmt.Sprint("This is message ", p.last, "."))}
	if p.random.IntN(3) == 0 {
		msg.ChatID = fmt.Sprint("chat ", p.random.IntN(3))
	}
	if p.random.IntN(5) == 0 {
		msg.Content = state.UserText(strings.Repeat(fmt.Sprint("A long message ", p.last, ". "), 100))
	}
	return msg
}

// edits returns random changes.
func (p *program) edits() []edit {
	edits := make([]edit, p.random.IntN(4))
	for i := range edits {
		edits[i] = p.edit()
		p.trace = append(p.trace, edits[i].name)
	}
	return edits
}

func (p *program) edit() edit {
	p.last++
	n := p.last
	key := fmt.Sprint("key ", p.random.IntN(4))
	switch p.random.IntN(8) {
	case 0, 1:
		value := []any{int64(n), fmt.Sprint("text ", n), nil, []any{int64(n), "x"}, map[string]any{"n": int64(n)}}[p.random.IntN(5)]
		return edit{fmt.Sprint("set ", key, value),
			func(w *workspace.Workspace) error { return w.State().KV().Set(key, value) },
			func(c *content) { c.Keys[key] = value }}
	case 2:
		return edit{"delete " + key,
			func(w *workspace.Workspace) error { _, err := w.State().KV().Delete(key); return err },
			func(c *content) { delete(c.Keys, key) }}
	case 3:
		r := state.InferenceResult{ID: fmt.Sprint("r", n), Agent: "a", Output: []state.Message{state.AssistantText(fmt.Sprint("answer ", n))}}
		return edit{"result",
			func(w *workspace.Workspace) error {
				r.History = state.Messages.Or(w.State(), nil)
				return w.State().History().Append(r)
			},
			func(c *content) {
				c.Results = append(c.Results, r.ID)
				c.Messages = append(c.Messages, r.Output...)
			}}
	case 4:
		add := []state.Message{state.UserText("Again."), state.AssistantText(fmt.Sprint("word ", n))}
		return edit{"messages",
			func(w *workspace.Workspace) error { return state.Messages.Set(w.State(), add) },
			func(c *content) { c.Messages = append(c.Messages, add...) }}
	case 5:
		trim := transcript.KeepLast(1 + p.random.IntN(4))
		return edit{"trim",
			func(w *workspace.Workspace) error {
				return state.Messages.Replace(w.State(), trim(state.Messages.Or(w.State(), nil)))
			},
			func(c *content) { c.Messages = trim(c.Messages) }}
	case 6:
		value, secret := fmt.Sprint("value ", n), p.random.IntN(3) == 0
		return edit{fmt.Sprint("remember ", key, secret),
			func(w *workspace.Workspace) error {
				if secret {
					return w.Memory().SetSecret(key, value)
				}
				return w.Memory().Set(key, value)
			},
			func(c *content) {
				if secret || strings.HasPrefix(c.Memory[key], "!") {
					c.Memory[key] = "!" + value
					return
				}
				c.Memory[key] = value
			}}
	default:
		return edit{"forget " + key,
			func(w *workspace.Workspace) error {
				_, err := w.Memory().Delete(key)
				return errors.Join(err, w.SetSettings(func(s *workspace.Settings) { s.DebugMode = !s.DebugMode }))
			},
			func(c *content) {
				delete(c.Memory, key)
				c.Debug = !c.Debug
			}}
	}
}

// change makes random changes in the run.
func (p *program) change(h *holder) {
	for _, e := range p.edits() {
		require.NoError(p, e.make(&h.run.Workspace))
		e.model(&h.work)
	}
}

// working returns the content of a run when it begins or is taken over.
func (p *program) working() content {
	c := p.now.clone()
	if t := p.first; !t.committed {
		c.Messages = append(c.Messages, t.message.Content)
		if t.message.ChatID != "" {
			c.ChatID = t.message.ChatID
		}
	}
	return c
}

// giveUp makes the message of the run a dead letter.
func (p *program) giveUp() { p.dead = append(p.dead, p.first.message) }

// revive removes a message that is accepted from the dead letters.
func (p *program) revive(msg workspace.Message) {
	p.dead = slices.DeleteFunc(slices.Clone(p.dead), func(d workspace.Message) bool { return d.ID == msg.ID })
}

// start makes a message the run.
func (p *program) start(msg workspace.Message) {
	p.first = &turn{message: msg}
	p.base = p.now.clone()
}

// next ends the run and makes the first of the queue the run.
func (p *program) next(end error) {
	if h := p.first.holder; h != nil {
		h.end = end
		p.old = h
	}
	p.first = nil
	if len(p.queue) > 0 {
		p.start(p.queue[0])
		p.queue = p.queue[1:]
	}
}

// stored notes that a run has stored its content.
func (p *program) stored(c content, finished bool) {
	c = c.clone()
	if finished {
		c.Messages = transcript.KeepLast(keptMessages)(c.Messages)
		c.Results = c.Results[max(0, len(c.Results)-keptResults):]
	}
	p.now = c
	p.first.committed = true
}

// offer returns the expected status of a message and applies it to the model.
func (p *program) offer(msg workspace.Message, busy workspace.Busy) (workspace.Status, error) {
	switch {
	case p.first == nil:
		p.revive(msg)
		p.start(msg)
		return workspace.StatusStarted, nil
	case busy == workspace.BusyReject:
		return workspace.StatusRejected, nil
	case busy == workspace.BusyEnqueue && len(p.queue) == 3:
		return workspace.StatusRejected, workspace.ErrQueueFull
	case busy == workspace.BusyEnqueue:
		p.revive(msg)
		p.queue = append(p.queue, msg)
		return workspace.StatusQueued, nil
	case busy == workspace.BusyRollback:
		p.now = p.base
	}
	queue := p.queue
	p.queue = nil
	p.next(workspace.ErrInterrupted)
	p.queue = queue
	p.revive(msg)
	p.start(msg)
	return workspace.StatusStarted, nil
}

// begin sends a message and holds its run, if one has begun. Sometimes the message
// was sent before.
func (p *program) begin() {
	m := p.manager(nil)
	if p.first != nil && p.random.IntN(5) == 0 {
		defer m.end()
		again := p.first.message
		again.Busy = workspace.BusyInterrupt
		run, out, err := m.Begin(p.ctx, ann, again)
		require.NoError(p, err)
		require.Equal(p, workspace.StatusDuplicate, out.Status)
		require.Equal(p, workspace.StatusStarted, out.First)
		require.Nil(p, run)
		return
	}
	msg, busy := p.message(), workspace.BusyEnqueue+workspace.Busy(p.random.IntN(4))
	status, fails := p.offer(msg, busy)
	sent := msg
	sent.Busy = busy
	run, out, err := m.Begin(p.ctx, ann, sent)
	require.ErrorIs(p, err, fails)
	require.Equal(p, status, out.Status)
	if status != workspace.StatusStarted {
		require.Nil(p, run)
		m.end()
		return
	}
	p.hold(run, m)
}

// hold notes that a Manager holds the run, until it is closed.
func (p *program) hold(run *workspace.Run, m *manager) {
	p.first.holder = &holder{run: run, m: m, work: p.working()}
}

func (p *program) commit() {
	if p.first == nil || p.first.holder == nil {
		return
	}
	h := p.first.holder
	p.change(h)
	step := h.run.Step()
	require.NoError(p, h.run.Commit(p.ctx))
	if h.run.Step() > step {
		p.stored(h.work, false)
	}
	p.same(h.work, p.now)
}

func (p *program) finish() {
	if p.first == nil || p.first.holder == nil {
		return
	}
	h := p.first.holder
	p.change(h)
	run, err := h.run.Finish(p.ctx)
	require.NoError(p, err)
	p.stored(h.work, true)
	p.next(workspace.ErrRunEnded)
	p.goOn(run, h.m)
}

func (p *program) fail() {
	if p.first == nil || p.first.holder == nil {
		return
	}
	h := p.first.holder
	p.change(h)
	run, err := h.run.Fail(p.ctx, errors.New("as it was told"))
	require.NoError(p, err)
	p.giveUp()
	p.next(workspace.ErrRunEnded)
	p.goOn(run, h.m)
}

// goOn holds the next run, if any.
func (p *program) goOn(run *workspace.Run, m *manager) {
	require.Equal(p, p.first == nil, run == nil)
	if run != nil {
		require.Equal(p, p.first.message.ID, run.Message().ID)
		p.hold(run, m)
	}
}

// crash kills the holder of the run.
func (p *program) crash() {
	if p.first == nil || p.first.holder == nil {
		return
	}
	p.first.holder.m.die()
	p.first.holder = nil
}

// release closes the Manager that holds the run.
func (p *program) release() {
	if p.first == nil || p.first.holder == nil {
		return
	}
	p.first.holder.m.end()
	p.first.holder, p.first.vacant = nil, true
}

// recover lets a new Manager take over a run without a holder and handle all waiting
// messages. Sometimes it dies in the first run, or is closed.
func (p *program) recover() {
	if p.first == nil || p.first.holder != nil {
		m := p.manager(p.unexpected)
		defer m.end()
		require.NoError(p, m.Recover(p.ctx))
		return
	}
	p.takeOver()
	if p.first != nil {
		switch p.random.IntN(6) {
		case 0, 1:
			p.trace = append(p.trace, "and die")
			p.entered().die()
			return
		case 2:
			p.trace = append(p.trace, "and release")
			p.entered().end()
			p.first.vacant = true
			return
		}
	}
	m := p.manager(p.script())
	defer m.end()
	require.NoError(p, m.Recover(p.ctx))
	require.NoError(p, m.Wait(p.ctx))
}

// takeOver applies a takeover to the model.
func (p *program) takeOver() {
	switch {
	case p.first.vacant:
		p.first.vacant = false
	case p.first.attempt+1 >= attempts:
		p.giveUp()
		p.next(nil)
	default:
		p.first.attempt++
	}
}

// entered returns a Manager that has taken over the run, in which it waits.
func (p *program) entered() *manager {
	entered := make(chan struct{})
	m := p.manager(func(ctx context.Context, _ *workspace.Run) error {
		close(entered)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	go func() { _ = m.Recover(p.ctx) }()
	<-entered
	return m
}

func (p *program) unexpected(_ context.Context, r *workspace.Run) error {
	return fmt.Errorf("message %s was handled", r.Message().ID)
}

// script returns random handlers for the run and all waiting messages, and applies
// them to the model.
func (p *program) script() func(ctx context.Context, r *workspace.Run) error {
	type part struct {
		before, after []edit
		err           error
		work          content
	}
	parts := map[string]part{}
	for p.first != nil {
		x := part{before: p.edits(), after: p.edits(), work: p.working()}
		work := p.working()
		for _, e := range x.before {
			e.model(&work)
		}
		p.stored(work, false) // at least the message
		for _, e := range x.after {
			e.model(&work)
		}
		if p.random.IntN(4) == 0 {
			x.err = errors.New("as it was told")
			p.giveUp()
		} else {
			p.stored(work, true)
		}
		parts[p.first.message.ID] = x
		p.next(nil)
	}
	return func(ctx context.Context, r *workspace.Run) error {
		x, ok := parts[r.Message().ID]
		if !ok {
			p.Errorf("message %s is handled", r.Message().ID)
		}
		delete(parts, r.Message().ID)
		if diff := cmp.Diff(x.work, contentOf(&r.Workspace), cmpopts.EquateEmpty()); diff != "" {
			p.Errorf("a run begins with something else (-want +got):\n%s", diff)
		}
		for _, e := range x.before {
			if err := e.make(&r.Workspace); err != nil {
				p.Error(err)
			}
		}
		if err := r.Commit(ctx); err != nil {
			p.Error(err)
		}
		for _, e := range x.after {
			if err := e.make(&r.Workspace); err != nil {
				p.Error(err)
			}
		}
		return x.err
	}
}

// handle handles a message.
func (p *program) handle() {
	if p.first != nil && p.first.vacant {
		p.recover() // any Manager that looks does it
		return
	}
	msg := p.message()
	if p.first != nil {
		m := p.manager(p.unexpected)
		defer m.end()
		status, fails := p.offer(msg, workspace.BusyEnqueue)
		out, err := m.Submit(p.ctx, ann, msg)
		require.ErrorIs(p, err, fails)
		require.Equal(p, status, out.Status)
		return
	}
	p.revive(msg)
	p.start(msg)
	m := p.manager(p.script())
	defer m.end()
	out, err := m.Handle(p.ctx, ann, msg)
	require.Equal(p, err == nil, out.Status == workspace.StatusDone)
	require.Equal(p, err != nil, out.Status == workspace.StatusFailed)
}

func (p *program) update() {
	m := p.manager(nil)
	defer m.end()
	edits := p.edits()
	err := m.Update(p.ctx, ann, func(w *workspace.Workspace) error {
		for _, e := range edits {
			if err := e.make(w); err != nil {
				return err
			}
		}
		return nil
	})
	if p.first != nil {
		require.ErrorIs(p, err, workspace.ErrBusy)
		return
	}
	require.NoError(p, err)
	for _, e := range edits {
		e.model(&p.now)
	}
}

// stale writes with a run that has ended.
func (p *program) stale() {
	if p.old == nil {
		return
	}
	if errors.Is(p.old.end, workspace.ErrInterrupted) {
		_ = p.old.run.State().KV().Set("stale", "it is")
	}
	require.ErrorIs(p, p.old.run.Commit(p.ctx), p.old.end)
	_, err := p.old.run.Finish(p.ctx)
	require.Error(p, err)
}

func (p *program) reset() {
	m := p.manager(nil)
	defer m.end()
	var want []string
	if p.first != nil {
		want = append(want, p.first.message.ID)
	}
	want = append(append(want, idsOf(p.queue)...), idsOf(p.dead)...)
	ids, err := m.Reset(p.ctx, ann)
	require.NoError(p, err)
	require.Equal(p, want, ids)
	p.queue, p.dead, p.now = nil, nil, empty()
	if p.first != nil {
		p.next(workspace.ErrInterrupted)
	}
}
