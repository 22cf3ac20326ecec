package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/workspacetest"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// In random programs of two Managers on a store that loses requests and replies,
// and to which a third one writes at any time, what is live equals what is
// loaded: each run that begins or continues, each commit, each View and each
// Update has the content that a new Manager, which has cached nothing, loads from
// the store.
func TestLiveIsLoaded(t *testing.T) {
	first, total := effort.Seed(0), map[string]int{}
	for i := range uint64(effort.Runs(10)) {
		synctest.Test(t, func(t *testing.T) {
			p := &loadedProgram{T: t, seed: first + i, random: rand.New(rand.NewPCG(first+i, 2)), db: store.NewMemory(), total: total}
			p.run()
		})
	}
	t.Log(total)
	for _, what := range []string{"begins", "continues", "commits", "views", "updates", "earlier", "overtaken", "lost"} {
		if total[what] == 0 && total["begins"] > 500 {
			t.Errorf("%s never happened", what)
		}
	}
}

// loadedProgram is a random program. Its functions run one at a time.
type loadedProgram struct {
	*testing.T
	seed     uint64
	db       *store.Memory
	managers [2]*workspace.Manager
	kill     [2]func()
	third    *workspace.Manager

	mu     sync.Mutex
	random *rand.Rand
	last   int            // the number of the last generated name
	total  map[string]int // what has happened
}

const loadedUser = "ann"

func (p *loadedProgram) run() {
	p.third = p.open(p.db)
	for i := range p.managers {
		p.start(i)
	}
	for range 12 {
		if p.Failed() {
			break
		}
		p.step(p.intN(len(p.managers)))
		p.settle()
		for _, m := range p.managers {
			p.look(m)
		}
	}
	for i, m := range p.managers {
		p.kill[i]()
		_ = m.Close()
	}
	_ = p.third.Close()
}

func (p *loadedProgram) open(db store.Store) *workspace.Manager {
	opts := workspace.Options{
		Schema: workspacetest.Schema, Run: p.handle, KeepMessages: 6, KeepResults: 3, Attempts: 3,
		Takeover: []workspace.Takeover{workspace.TakeoverResume, workspace.TakeoverRestart}[p.intN(2)],
	}
	if p.seed%4 == 3 {
		opts.Keys = []workspace.Key{{ID: "k", Secret: []byte(strings.Repeat("k", 32))}}
	}
	m, err := workspace.Open(context.Background(), db, &opts)
	p.require(err)
	return m
}

// start starts a process.
func (p *loadedProgram) start(i int) {
	db, kill := workspacetest.AsProcess(workspacetest.WithFaults(p.db, p.fault))
	p.managers[i], p.kill[i] = p.open(db), kill
}

// violated ends the program.
func (p *loadedProgram) violated(format string, args ...any) {
	p.Helper()
	p.Errorf("VIOLATION with STATE_SEED=%d STATE_EFFORT=0: "+format, append([]any{p.seed}, args...)...)
}

func (p *loadedProgram) require(err error) {
	p.Helper()
	if err != nil {
		p.violated("%v", err)
	}
}

func (p *loadedProgram) intN(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(n)
}

func (p *loadedProgram) note(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total[what]++
}

// name returns a name that is new.
func (p *loadedProgram) name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	return fmt.Sprint("n", p.last)
}

// fault loses a request or a reply now and then. Before a lost reply is noticed,
// the third Manager may write.
func (p *loadedProgram) fault(writes []store.Write) (made bool, _ error) {
	head, _ := ledger.HeadKey(loadedUser)
	writesHead := func(w store.Write) bool { return w.Key == head }
	if !slices.ContainsFunc(writes, writesHead) {
		return false, nil
	}
	switch p.intN(12) {
	case 0:
		return false, store.ErrUnknownOutcome
	case 1:
		return true, store.ErrUnknownOutcome
	case 2:
		if _, err := p.db.Batch(context.Background(), writes); err != nil {
			return false, err
		}
		p.note("lost")
		p.overtake()
		return false, store.ErrUnknownOutcome
	}
	return false, nil
}

// overtake lets the third Manager write, unless there is a run.
func (p *loadedProgram) overtake() {
	err := p.third.Update(context.Background(), loadedUser, func(w *workspace.Workspace) error { p.edit(w); return nil })
	if err == nil {
		p.note("overtaken")
	} else if !errors.Is(err, workspace.ErrBusy) {
		p.violated("%v", err)
	}
}

// step makes a Manager do something.
func (p *loadedProgram) step(i int) {
	ctx, m := context.Background(), p.managers[i]
	switch p.intN(12) {
	default:
		_, _ = m.Handle(ctx, loadedUser, p.message()) // it may fail
	case 0, 1, 2:
		p.update(m)
	case 3:
		p.require(m.Compact(ctx, loadedUser))
	case 4:
		if p.intN(4) == 0 {
			_, err := m.Reset(ctx, loadedUser)
			p.require(err)
		}
	case 5: // dies, and another process begins
		p.kill[i]()
		_ = m.Close()
		p.start(i)
	}
}

// settle lets all messages be handled.
func (p *loadedProgram) settle() {
	for range 3 {
		for _, m := range p.managers {
			p.require(workspacetest.Settle(context.Background(), m))
		}
		time.Sleep(20 * time.Second) // leases of the dead end
	}
}

func (p *loadedProgram) message() workspace.Message {
	msg := workspacetest.Text(p.name())
	msg.ChatID = []string{"", "a", "b"}[p.intN(3)]
	return msg
}

// update checks the content that fn gets. Sometimes the third Manager writes
// meanwhile, so that fn is called again.
func (p *loadedProgram) update(m *workspace.Manager) {
	overtaken := p.intN(2)
	err := m.Update(context.Background(), loadedUser, func(w *workspace.Workspace) error {
		if v := p.loaded(nil); v.Run == nil {
			p.same("update", w, &v.Workspace)
			p.note("updates")
		}
		p.edit(w)
		if overtaken--; overtaken == 0 {
			p.overtake()
		}
		return nil
	})
	if err != nil && !errors.Is(err, workspace.ErrBusy) {
		p.violated("update: %v", err)
	}
}

// handle is the Options.Run of all Managers.
func (p *loadedProgram) handle(ctx context.Context, r *workspace.Run) error {
	if r.Step() > 0 || r.Attempt() > 0 {
		p.note("continues")
	}
	p.note("begins")
	p.checkRun(r)
	for range p.intN(4) {
		p.edit(&r.Workspace)
		if pending := transcript.Pending(state.Messages.GetOr(r.State(), nil)); len(pending) > 0 && p.intN(2) == 0 {
			_ = r.Suspend(pending[0].Key)
		}
		if p.intN(2) == 0 {
			if err := r.Commit(ctx); err != nil {
				return err
			}
			p.note("commits")
			p.checkRun(r)
		}
	}
	switch other := p.managers[p.intN(len(p.managers))]; p.intN(10) {
	case 0:
		return errors.New("as it was told")
	case 1:
		return workspace.RetryAfter(errors.New("again"), time.Second)
	case 2:
		_, _ = other.Submit(context.Background(), loadedUser, p.message())
	case 3:
		busy := []workspace.WhenBusy{workspace.BusyInterrupt, workspace.BusyRollback}[p.intN(2)]
		_, _ = p.third.Submit(context.Background(), loadedUser, workspacetest.WhenBusy(busy, p.message()))
	case 4:
		p.look(other)
	}
	return nil
}

// loaded returns what a Manager that has cached nothing loads from the store: the
// newest version, or another one.
func (p *loadedProgram) loaded(version *uint64) *workspace.View {
	m := p.open(p.db)
	defer m.Close()
	v, err := m.View(context.Background(), loadedUser)
	if version != nil {
		v, err = m.ViewAt(context.Background(), loadedUser, *version)
	}
	p.require(err)
	return v
}

// checkRun compares what a run takes for the stored content with what is loaded.
func (p *loadedProgram) checkRun(r *workspace.Run) {
	live, err := workspace.Stored(r)
	v := p.loaded(nil)
	if v.Run == nil || v.Run.ID != r.ID() || v.Run.Attempt != r.Attempt() || r.Context().Err() != nil {
		return // it is over
	}
	p.require(err)
	p.same("run", live, &v.Workspace)
}

// look compares what a Manager shows with what is loaded.
func (p *loadedProgram) look(m *workspace.Manager) {
	ctx := context.Background()
	v, err := m.View(ctx, loadedUser)
	p.require(err)
	if loaded := p.loaded(nil); loaded.Version == v.Version {
		p.same("view", &v.Workspace, &loaded.Workspace)
		p.note("views")
	}
	if v.Version > v.Oldest {
		at := v.Oldest + uint64(p.intN(int(v.Version-v.Oldest)))
		if v, err = m.ViewAt(ctx, loadedUser, at); err == nil {
			p.same("earlier view", &v.Workspace, &p.loaded(&at).Workspace)
			p.note("earlier")
		}
	}
}

func (p *loadedProgram) same(what string, live, loaded *workspace.Workspace) {
	p.Helper()
	if err := sameState(live.State(), loaded.State()); err != nil {
		p.violated("%s: %v", what, err)
	}
	for _, diff := range []struct {
		of           string
		live, loaded any
	}{
		{"memory", maps.Collect(live.Memory().All()), maps.Collect(loaded.Memory().All())},
		{"settings", live.Settings(), loaded.Settings()},
		{"suspended", live.Suspended(), loaded.Suspended()},
	} {
		if !reflect.DeepEqual(diff.live, diff.loaded) {
			p.violated("%s: %s: live %v, stored %v", what, diff.of, diff.live, diff.loaded)
		}
	}
}

// edit changes a workspace at random. Texts are repeated.
func (p *loadedProgram) edit(w *workspace.Workspace) {
	st, name := w.State(), p.name()
	text := state.AssistantText([]string{"ok", "yes", name}[p.intN(3)])
	key := string(rune('a' + p.intN(3)))
	var err error
	switch p.intN(14) {
	case 0:
		err = workspacetest.Notes.Set(st, []string{name})
	case 1:
		err = workspacetest.Visits.Set(st, 1)
	case 2:
		err = workspacetest.Token.Set(st, strings.Repeat(name, 3))
	case 3, 4:
		err = state.Messages.Set(st, []state.Message{state.UserText("ok"), text})
	case 5:
		err = state.Messages.Set(st, []state.Message{state.ToolCalls(state.ToolCall{ID: name, Name: "f", Input: "{}"})})
	case 6:
		err = state.Messages.Replace(st, transcript.KeepLast(p.intN(4))(state.Messages.GetOr(st, nil)))
	case 7, 8, 9:
		err = st.History().Append(state.InferenceResult{ID: name, History: state.Messages.GetOr(st, nil), Output: []state.Message{text}})
	case 10:
		_, _, err = st.History().Pop()
	case 11:
		err = w.Memory().Set(key, name)
	case 12:
		_, err = w.Memory().Delete(key)
	case 13:
		err = w.SetSettings(func(s *workspace.Settings) { s.DebugMode = !s.DebugMode })
	}
	if err != nil && !errors.Is(err, workspace.ErrFenced) && !errors.Is(err, workspace.ErrRunEnded) {
		p.violated("an edit: %v", err)
	}
}

// sameState returns an error if a State that was made of what was live is not
// the one that was loaded.
func sameState(live, loaded *state.State) error {
	live, loaded = live.Snapshot(), loaded.Snapshot()
	changes, err := live.Effects(loaded)
	if err != nil {
		return err
	}
	if len(changes) > 0 || live.Version() != loaded.Version() {
		return fmt.Errorf("version %d is live, and version %d stored; differences: %v", live.Version(), loaded.Version(), changes)
	}
	if a, b := live.History().Results(), loaded.History().Results(); fmt.Sprint(a) != fmt.Sprint(b) {
		return fmt.Errorf("live %v, stored %v", a, b)
	}
	other := loaded.KV().All()
	for key, a := range live.KV().All() {
		if b := other[key]; fmt.Sprintf("%T %v", a, a) != fmt.Sprintf("%T %v", b, b) {
			return fmt.Errorf("%s: live %v, stored %v", key, a, b)
		}
	}
	return nil
}
