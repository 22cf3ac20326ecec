package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// page is what a reader of events shows of the text of a message.
type page struct {
	texts map[int]string // by the number of the message
	lines []string       // of all deltas
}

func (p *page) take(t testing.TB, e workspace.Event) {
	if e.Kind != workspace.EventDelta {
		return
	}
	p.lines = append(p.lines, fmt.Sprintf("%d.%d+%d %s", e.Message, e.Attempt, e.Offset, e.Delta))
	if e.Offset == 0 {
		p.texts[e.Message] = ""
	}
	require.Equal(t, len(p.texts[e.Message]), e.Offset, "nothing is missing")
	p.texts[e.Message] += e.Delta
}

// follow reads the events of ann, until the test ends.
func follow(t testing.TB, m *workspace.Manager) *page {
	p := &page{texts: map[int]string{}}
	go func() {
		for e, err := range m.Watch(t.Context(), "ann").AsHost() {
			if err != nil {
				return
			}
			p.take(t, e)
		}
	}()
	synctest.Wait()
	return p
}

// Those who watch get an answer in pieces, without secrets, under the number that
// it has when it is stored.
func TestEmit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late *page
		var m *workspace.Manager
		m = open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			require.NoError(t, token.Set(run.State(), "s3cret-value"))
			emit := func(texts ...string) {
				for _, text := range texts {
					run.Emit(text)
					synctest.Wait()
				}
			}
			say := func(text string) {
				require.NoError(t, state.Messages.Set(run.State(), []state.Message{state.AssistantText(text)}))
			}
			if run.Attempt() == 0 {
				emit("Wai", "")
				return workspace.RetryAfter(errors.New("the stream breaks"), time.Second)
			}
			emit("It ", "is s3c", "ret-val", "ue ")
			late = follow(t, m)
			emit("now.")
			say("It is s3cret-value now.")
			emit("And more.")
			say("And more.")
			emit("Not stored.")
			return nil
		}})
		early := follow(t, m)
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{
			"2.0+0 Wai", "2.1+0 It ", "2.1+3 is ", "2.1+6 [SECRET] ", "2.1+15 now.", "3.1+0 And more.", "4.1+0 Not stored.",
		}, early.lines)
		require.Equal(t, []string{"2.1+0 It is [SECRET] ", "2.1+15 now.", "3.1+0 And more.", "4.1+0 Not stored."}, late.lines)
		for stored := range view(t, m, "ann").Messages(1, -1) {
			text := strings.ReplaceAll(stored.Message.(state.TextMessage).Text(), "s3cret-value", "[SECRET]")
			require.Equal(t, text, early.texts[stored.Number])
		}
		require.NoError(t, m.Close())
	})
}

// Thoughts and the arguments of calls are told as the text is: masked, in order, from
// their beginning to those who come later, and anew when a request is made again.
func TestEmitThoughtsAndInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := func(m *workspace.Manager) *[]string {
			lines := &[]string{}
			go func() {
				for e, err := range m.Watch(t.Context(), "ann").AsHost() {
					switch {
					case err != nil:
						return
					case e.Begun > 0:
						*lines = append(*lines, strings.TrimSpace(fmt.Sprintf("%d %s %d %s+%d %s", e.Begun, e.Kind, e.Call, e.Name, e.Offset, e.Delta)))
					}
				}
			}()
			synctest.Wait()
			return lines
		}
		var late *[]string
		var m *workspace.Manager
		m = open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			require.NoError(t, token.Set(run.State(), "s3cret-value"))
			for _, emit := range []func(){
				func() { run.EmitThought("Look for s3cret-") }, func() { run.EmitThought("value. ") }, func() { run.EmitInput(0, "find", "") },
				func() { run.EmitInput(0, "find", `{"q":`) }, func() { run.EmitInput(1, "s3cret-value", `{}`) },
				func() { run.EmitInput(0, "find", `"s3cret-value"}`) }, func() { run.Emit("Wait") },
			} {
				emit()
				synctest.Wait()
			}
			late = told(m)
			require.NoError(t, state.Messages.Set(run.State(), []state.Message{state.AssistantText("Wait")}))
			run.EmitThought("Anew")
			synctest.Wait()
			return nil
		}})
		early := told(m)
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{
			"1 thought 0 +0 Look for", "1 thought 0 +9 [SECRET].", "1 input 0 find+0", `1 input 0 find+0 {"q":`, "1 input 1 [SECRET]+0 {}",
			`1 input 0 find+5 "[SECRET]"}`, "1 delta 0 +0 Wait", "2 thought 0 +0 Anew",
		}, *early)
		require.Equal(t, []string{
			"1 thought 0 +0 Look for [SECRET].", `1 input 0 find+0 {"q":"[SECRET]"}`, "1 input 1 [SECRET]+0 {}", "1 delta 0 +0 Wait",
			"2 thought 0 +0 Anew",
		}, *late)
		require.NoError(t, m.Close())
	})
}

// A reader that is slow misses no piece: they come together.
func TestEmitToASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := make(chan struct{})
		m := open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			<-begun
			for i := range 1000 {
				run.Emit("word ")
				if i%10 == 0 {
					require.NoError(t, visits.Set(run.State(), 1))
					synctest.Wait()
				}
			}
			return nil
		}})
		p, orders := &page{texts: map[int]string{}}, []uint64(nil)
		read, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for e, err := range m.Watch(t.Context(), "ann").AsHost() {
				if err != nil {
					return
				}
				p.take(t, e)
				orders = append(orders, e.Order)
				if e.Kind == workspace.EventStarted {
					close(begun)
					<-read
				}
			}
		}()
		synctest.Wait()
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		close(read)
		synctest.Wait()
		require.Equal(t, strings.Repeat("word ", 1000), p.texts[2])
		require.Less(t, len(orders), 70)
		require.EqualValues(t, 1, orders[0])
		require.IsIncreasing(t, orders)
		require.Greater(t, orders[len(orders)-1], uint64(len(orders)), "events were dropped")
		require.NoError(t, m.Close())
		<-done
	})
}

// A long text is kept for those who begin to watch, but for its beginning.
func TestEmitOfALongText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := false
		var m *workspace.Manager
		m = open(t, store.NewMemory(), workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			for range 100 {
				run.Emit(strings.Repeat("x", 10_000))
			}
			for e, err := range m.Watch(ctx, "ann").AsHost() {
				require.NoError(t, err)
				if e.Kind == workspace.EventDelta {
					require.Equal(t, 1_000_000-64<<10, e.Offset)
					require.Len(t, e.Delta, 64<<10)
					seen = true
					break
				}
			}
			return nil
		}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.True(t, seen)
		require.NoError(t, m.Close())
	})
}

// When the run has ended, nothing is told.
func TestEmitAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs := hold(t, store.NewMemory(), workspace.Options{})
		run := runs.Begin(t, "ann", text("1"))
		p := follow(t, m)
		run.Finish(t)
		run.Emit("late")
		synctest.Wait()
		require.Empty(t, p.lines)
		require.NoError(t, m.Close())
	})
}

// With Live, another process is told the text, about a second late, without
// secrets. When the run has ended, nothing of it is left.
func TestLive(t *testing.T) {
	for name, keys := range map[string][]workspace.Key{"open": nil, "sealed": {key("a")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := fakestore.Count(store.NewMemory())
				opts := workspace.Options{Live: true, Keys: keys, Run: func(ctx context.Context, run *workspace.Run) error {
					require.NoError(t, token.Set(run.State(), "s3cret-value"))
					for i := range 100 {
						run.Emit(fmt.Sprintf("%d s3cret-value ", i))
						time.Sleep(100 * time.Millisecond)
					}
					if run.Attempt() == 0 {
						return workspace.RetryAfter(errors.New("again"), time.Second)
					}
					return state.Messages.Set(run.State(), []state.Message{state.AssistantText("done")})
				}}
				holder := open(t, db, opts)
				opts.Run = nil
				m := open(t, store.ReadOnly(db), opts)
				early := follow(t, m)
				_, err := holder.Submit(t.Context(), "ann", text("1"))
				require.NoError(t, err)
				time.Sleep(5 * time.Second)
				local, late := follow(t, holder), follow(t, m)
				time.Sleep(time.Second)
				synctest.Wait()
				said := local.texts[2]
				behind := strings.Count(said, "[SECRET]") - strings.Count(early.texts[2], "[SECRET]")
				require.LessOrEqual(t, behind, 10, "a second")
				require.True(t, strings.HasPrefix(said, early.texts[2]))
				require.Equal(t, early.texts[2], late.texts[2])
				before := db.Calls("Batch")
				time.Sleep(2 * time.Second)
				require.LessOrEqual(t, db.Calls("Batch")-before, 4+2, "two writes a second, and heartbeats")
				stored := fmt.Sprint(entries(t, db))
				require.NotContains(t, stored, "4 s3cret-value")
				require.Equal(t, keys == nil, strings.Contains(stored, "4 [SECRET]"))
				time.Sleep(time.Minute)
				synctest.Wait()
				for _, p := range []*page{early, late} {
					require.True(t, strings.HasPrefix(local.texts[2], p.texts[2]))
					require.Greater(t, len(p.texts[2]), len(local.texts[2])*9/10, "what is not told is stored")
					require.Contains(t, fmt.Sprint(p.lines), "2.1+0 0 [SECRET]", "the next attempt has begun anew")
				}
				for key := range entries(t, db) {
					require.NotContains(t, key, "agent:busy:")
				}
				require.NoError(t, holder.Close())
				require.NoError(t, m.Close())
			})
		})
	}
}

// Without Live, streaming writes nothing.
func TestWithoutLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := fakestore.Count(store.NewMemory())
		m := open(t, db, workspace.Options{TTL: time.Hour, Run: func(ctx context.Context, run *workspace.Run) error {
			before := db.Calls("Batch")
			for range 100 {
				run.Emit("word ")
				time.Sleep(100 * time.Millisecond)
			}
			require.Equal(t, before, db.Calls("Batch"))
			return nil
		}})
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		require.NoError(t, m.Close())
	})
}
