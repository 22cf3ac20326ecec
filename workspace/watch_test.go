package workspace_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// watching collects the events of a user as one line each, until ctx ends.
func watching(ctx context.Context, t *testing.T, m *workspace.Manager, user string) func() []string {
	t.Helper()
	var lines []string
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		var failed error
		for e, err := range m.Watch(ctx, user).AsHost() {
			failed = err
			lines = append(lines, line(e))
		}
		ended <- failed
	}()
	synctest.Wait()
	return func() []string {
		t.Helper()
		synctest.Wait()
		cancel()
		require.NoError(t, <-ended)
		return lines
	}
}

// line describes an event.
func line(e workspace.Event) string {
	switch e.Kind {
	case workspace.EventSummary:
		run := "idle"
		if e.Run != nil {
			run = "runs " + e.Run.Message.ID
		}
		return fmt.Sprintf("summary %s, %d wait, %d dead", run, e.Queued, e.DeadLetters)
	case workspace.EventChange:
		var texts []string
		for _, effect := range e.Effects {
			text := effect.Field + " " + string(effect.Value)
			for _, msg := range effect.Messages {
				text += string(msg.Raw())
			}
			texts = append(texts, text)
		}
		return "change " + e.MessageID + ": " + strings.Join(texts, ", ")
	case workspace.EventReply:
		return "reply " + e.MessageID + ": " + e.Reply
	case workspace.EventEnded:
		text := fmt.Sprintf("ended %s: %s %s%s", e.MessageID, e.Outcome.Status, e.Reply, e.Outcome.Reason)
		if e.Err != nil {
			text += fmt.Sprintf(" (%v)", e.Err)
		}
		return text
	}
	return fmt.Sprint(e.Kind, " ", e.MessageID)
}

// A process that holds the run tells what happens in it at once.
func TestWatchOfARunThatIsHeldHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, store.NewMemory(), workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
			if err := notes.Set(run.State(), []string{"the token is s3cret-value"}); err != nil {
				return err
			}
			synctest.Wait() // so that each change is told by itself
			if err := token.Set(run.State(), "s3cret-value"); err != nil {
				return err
			}
			synctest.Wait()
			said := []state.Message{state.AssistantText("It is s3cret-value.")}
			if err := state.Messages.Set(run.State(), said); err != nil {
				return err
			}
			run.SetReply("It is s3cret-value.")
			if run.Message().ID == "bad" {
				return errors.New("cannot use s3cret-value")
			}
			return nil
		}})
		lines := watching(t.Context(), t, m, "ann")
		for _, id := range []string{"1", "bad"} {
			_, _ = m.Handle(t.Context(), "ann", text(id))
		}
		got := lines()
		want := []string{
			"summary idle, 0 wait, 0 dead",
			"started 1",
			`change 1: notes ["the token is s3cret-value"]`, // it is not a secret yet
			`change 1: token "[SECRET]"`,
			`change 1: messages {"type":"text","role":"assistant","content":"It is [SECRET].","stop_reason":"stop"}`,
			"reply 1: It is [SECRET].",
			"ended 1: done It is [SECRET].",
			"started bad",
		}
		require.Equal(t, want, got[:len(want)])
		require.Equal(t, "ended bad: failed cannot use [SECRET] (workspace: message was not handled: cannot use [SECRET])", got[len(got)-1])
		require.NoError(t, m.Close())
	})
}

// Of a run that another process holds, Watch tells summaries and the end, also
// if the store reports no changes.
func TestWatchOfARunThatIsHeldElsewhere(t *testing.T) {
	for name, wrap := range map[string]func(*store.Memory) store.Store{
		"watcher": func(db *store.Memory) store.Store { return db },
		"poll":    func(db *store.Memory) store.Store { return plain{Store: db} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				db := wrap(store.NewMemory())
				holder, m := open(t, db, workspace.Options{Run: slow}), open(t, db, workspace.Options{})
				lines := watching(t.Context(), t, m, "ann")
				for _, id := range []string{"1", "bad"} {
					_, err := holder.Submit(t.Context(), "ann", text(id))
					require.NoError(t, err)
				}
				time.Sleep(5 * time.Second)
				got := lines()
				require.Equal(t, "summary idle, 0 wait, 0 dead", got[0])
				require.Contains(t, got, "summary runs 1, 1 wait, 0 dead")
				require.Contains(t, got, "ended 1: done reply to 1")
				require.Equal(t, "ended bad: failed no good (workspace: message was not handled: no good)", got[len(got)-1])
				require.NoError(t, holder.Close())
				require.NoError(t, m.Close())
			})
		})
	}
}

// Summaries come at most four times a second, and the last one is true.
func TestWatchLimitsSummaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs := hold(t, store.NewMemory(), workspace.Options{TTL: time.Hour})
		runs.Begin(t, "ann", text("1"))
		lines := watching(t.Context(), t, m, "ann")
		for i := range 30 {
			_, err := m.Submit(t.Context(), "ann", text(fmt.Sprint("w", i)))
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		got := lines()
		require.InDelta(t, 13, len(got), 2)
		require.Equal(t, "summary runs 1, 30 wait, 0 dead", got[len(got)-1])
		closeEarly(t, m)
	})
}

// A slow reader gets one summary for what it missed, and the end.
func TestWatchBySlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, store.NewMemory(), workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
			for i := range 1000 {
				if err := visits.Set(run.State(), 1); err != nil {
					return err
				}
				if i%2 == 0 {
					synctest.Wait()
				}
			}
			run.SetReply("at last")
			return nil
		}})
		resume := make(chan bool)
		var got []workspace.EventKind
		ended := make(chan bool)
		go func() {
			defer close(ended)
			for e, err := range m.Watch(t.Context(), "ann").AsHost() {
				require.NoError(t, err)
				if len(got) == 0 {
					<-resume
				}
				if got = append(got, e.Kind); e.Kind == workspace.EventEnded {
					require.Equal(t, "at last", e.Reply)
					return
				}
			}
		}()
		synctest.Wait()
		_, err := m.Handle(t.Context(), "ann", text("1"))
		require.NoError(t, err)
		close(resume)
		<-ended
		require.LessOrEqual(t, len(got), 100)
		require.Equal(t, workspace.EventSummary, got[1], "for what it missed")
		require.NoError(t, m.Close())
	})
}

// Watch begins in the middle of a run, and ends with the Manager.
func TestWatchFromTheMiddleOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, runs := hold(t, store.NewMemory(), workspace.Options{})
		run := runs.Begin(t, "ann", text("1"))
		require.NoError(t, notes.Set(run.State(), []string{"before"}))
		lines := watching(t.Context(), t, m, "ann")
		require.NoError(t, notes.Set(run.State(), []string{"after"}))
		synctest.Wait()
		run.Finish(t)
		require.Equal(t, []string{
			"summary runs 1, 0 wait, 0 dead", `change 1: notes ["after"]`, "ended 1: done ",
		}, lines())

		var last error
		ended := make(chan bool)
		go func() {
			for _, last = range m.Watch(t.Context(), "ann").AsHost() {
			}
			close(ended)
		}()
		synctest.Wait()
		require.NoError(t, m.Close())
		<-ended
		require.ErrorIs(t, last, workspace.ErrClosed)
	})
}

// A watch goes on after the workspace has expired, although the writes of a new
// one are counted anew.
func TestWatchSeesTheNextWorkspace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, store.NewMemory(), workspace.Options{Run: nothing})
		var seen []workspace.Summary
		stop := make(chan bool)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(stop)
			for e, err := range m.Watch(ctx, "ann").AsHost() {
				if err == nil {
					seen = append(seen, e.Summary)
				}
			}
		}()
		settle := func() { time.Sleep(time.Minute); synctest.Wait() }
		for _, n := range []int{5, 1} {
			for i := range n {
				_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint(i)))
				require.NoError(t, err)
			}
			settle()
			s, err := m.Summary(t.Context(), "ann")
			require.NoError(t, err)
			require.Equal(t, s, seen[len(seen)-1])
			require.NoError(t, m.Delete(t.Context(), "ann"))
			settle()
			require.Equal(t, workspace.Summary{UserID: "ann"}, seen[len(seen)-1])
			_, err = m.Expire(t.Context(), 0)
			require.NoError(t, err)
		}
		cancel()
		<-stop
		require.NoError(t, m.Close())
	})
}

// gate is a store whose calls of Get wait, once it is closed, until it is opened.
type gate struct {
	store.Store
	closed atomic.Bool
	open   chan struct{}
}

func (g *gate) Unwrap() store.Store { return g.Store }

func (g *gate) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	if g.closed.Load() {
		<-g.open
	}
	return g.Store.Get(ctx, keys...)
}

// Runs that begin and end while a follower reads its first summary are in that. Events
// of them do not come behind it, by which a page would show that they are under way.
func TestWatchGoesNotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := &gate{Store: store.NewMemory(), open: make(chan struct{})}
		last := make(chan bool)
		m := open(t, db, workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
			if run.Message().ID == "last" {
				<-last
			}
			return nil
		}})
		handle := func(texts ...string) {
			for _, s := range texts {
				_, err := m.Handle(t.Context(), "ann", text(s))
				require.NoError(t, err)
			}
		}
		handle("first")
		var events []workspace.Event
		stop := make(chan bool)
		ctx, cancel := context.WithCancel(t.Context())
		db.closed.Store(true)
		go func() {
			defer close(stop)
			for e, err := range m.Watch(ctx, "ann").AsHost() {
				require.NoError(t, err)
				events = append(events, e)
			}
		}()
		synctest.Wait()
		handle("second", "third")
		out, err := m.Submit(t.Context(), "ann", text("last"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusStarted, out.Status)
		synctest.Wait()
		close(db.open)
		synctest.Wait()
		var kinds []workspace.EventKind
		for i, e := range events {
			kinds = append(kinds, e.Kind)
			require.LessOrEqual(t, events[max(0, i-1)].Seq, e.Seq)
		}
		require.Equal(t, []workspace.EventKind{workspace.EventSummary, workspace.EventStarted}, kinds)
		require.Equal(t, events[1].Run.Message.ID, events[1].MessageID)
		close(last)
		require.NoError(t, m.Wait(t.Context()))
		cancel()
		<-stop
		require.NoError(t, m.Close())
	})
}

// Events are JSON for browsers.
func TestEventJSON(t *testing.T) {
	e := workspace.Event{
		Summary: workspace.Summary{UserID: "ann", Version: 3, Seq: 7, Run: &workspace.RunInfo{UserID: "ann", ID: "next"}},
		Kind:    workspace.EventEnded, Order: 4, MessageID: "1", Reply: "Hi!",
		Outcome: workspace.Outcome{Status: workspace.StatusDone, RunID: "r"},
	}
	data, err := json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind": "ended", "seq": 4, "user_id": "ann", "version": 3, "run_id": "r", "message_id": "1",
		"reply": "Hi!", "outcome": {"status": "done", "run_id": "r"}}`, string(data))

	e.Kind, e.Outcome, e.Reply, e.Queued, e.DeadLetters, e.Suspended = workspace.EventDelta, workspace.Outcome{}, "", 1, 2, 3
	e.Message, e.Attempt, e.Delta = 12, 1, "Hel"
	data, err = json.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind": "delta", "seq": 4, "user_id": "ann", "version": 3, "run_id": "next", "queued": 1,
		"dead_letters": 2, "suspended": 3, "message_id": "1", "message": 12, "attempt": 1, "offset": 0, "delta": "Hel"}`, string(data))

	e.Kind, e.Begun, e.Name = workspace.EventInput, 2, "pay"
	data, err = json.Marshal(e)
	require.NoError(t, err)
	require.Contains(t, string(data), `"attempt":1,"begun":2,"offset":0,"call":0,"name":"pay","delta":"Hel"`)

	e.Kind, e.Outcome = workspace.EventChange, workspace.Outcome{}
	data, err = json.Marshal(e)
	require.NoError(t, err)
	require.Contains(t, string(data), `"run_id":"next"`)
}

func TestSummary(t *testing.T) {
	db := store.NewMemory()
	m, runs := hold(t, db, workspace.Options{})
	s, err := m.Summary(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, workspace.Summary{UserID: "ann"}, s)

	run := runs.Begin(t, "ann", text("1"))
	_, err = m.Submit(t.Context(), "ann", text("2"))
	require.NoError(t, err)
	s, err = m.Summary(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, run.ID(), s.Run.ID)
	require.Equal(t, "1", s.Run.Message.ID)
	require.Equal(t, 1, s.Queued)
	require.EqualValues(t, 2, s.Seq)
	require.WithinDuration(t, time.Now(), s.LastActive, time.Minute)

	run.Fail(t, errors.New("no good"))
	runs.Next(t).Finish(t)
	s, err = m.Summary(t.Context(), "ann")
	require.NoError(t, err)
	require.Nil(t, s.Run)
	require.Equal(t, 1, s.DeadLetters)
	require.EqualValues(t, 2, s.Version)
	require.NotZero(t, s.Bytes)
}
