package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// holding is what a run waits for that handles the message "hold".
var holding = make(chan bool)

// windowed opens a Manager whose runs reply what their model would be shown.
func windowed(t *testing.T, db store.Store, summarize func(context.Context, transcript.Past) (string, error)) *workspace.Manager {
	window := &transcript.Window{Target: 4, Keep: 3, Tokens: func(state.Message) int { return 1 }, Summarize: summarize}
	m, err := workspace.Open(t.Context(), db, &workspace.Options{Window: window, Run: func(ctx context.Context, run *workspace.Run) error {
		msgs, err := window.Messages(ctx, run.State().As("bot"), 0)
		if err != nil {
			return err
		}
		var shown []string
		for _, m := range msgs {
			text := m.(state.TextMessage).Text()
			shown = append(shown, text[strings.LastIndex(strings.TrimSuffix(text, "\n</summary>"), "\n")+1:])
		}
		if text := run.Message().Content.(state.TextMessage).Text(); text == "hold" {
			<-holding
			<-holding
		}
		run.SetReply(strings.ReplaceAll(strings.Join(shown, " "), "\n</summary>", ""))
		return nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func say(t *testing.T, m *workspace.Manager, text string) string {
	t.Helper()
	out, err := m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText(text)})
	require.NoError(t, err)
	return out.Reply
}

// A summary is made after the run. Its sender has the reply, and others are
// handled, before it is there.
func TestSummariesAreMadeAfterRuns(t *testing.T) {
	began, finish := make(chan bool), make(chan bool)
	var made atomic.Int64
	m := windowed(t, store.NewMemory(), func(_ context.Context, p transcript.Past) (string, error) {
		began <- true
		<-finish
		return fmt.Sprintf("s%d", made.Add(int64(len(p.Messages)))), nil
	})
	for i, want := range []string{"1", "1 2", "1 2 3", "1 2 3 4"} {
		require.Equal(t, want, say(t, m, fmt.Sprint(i+1)))
	}
	require.Equal(t, "1 2 3 4 5", say(t, m, "5"))
	<-began
	require.Equal(t, "1 2 3 4 5 6", say(t, m, "6"))
	finish <- true
	require.Eventually(t, func() bool {
		v, err := m.View(t.Context(), "ann")
		require.NoError(t, err)
		require.Equal(t, 6, state.ListLen(v.State(), state.Messages))
		export, err := m.Export(t.Context(), "ann")
		require.NoError(t, err)
		return strings.Contains(string(export), `"s2"`)
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, "s2 3 4 5 6 7", say(t, m, "7"))
	begins := func() bool {
		select {
		case <-began:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	}
	for i := 8; !begins(); i++ { // while the one before it ends, a summary waits for the next message
		require.Less(t, i, 20, "no second summary")
		say(t, m, fmt.Sprint(i))
	}
	finish <- true
}

// A summary that is there while a run is under way is stored after it, and not
// made again.
func TestSummariesThatMeetARun(t *testing.T) {
	began, finish := make(chan bool), make(chan bool)
	var made atomic.Int64
	m := windowed(t, store.NewMemory(), func(context.Context, transcript.Past) (string, error) {
		if made.Add(1) == 1 {
			close(began)
			<-finish
		}
		return fmt.Sprint("s", made.Load()), nil
	})
	for i := range 5 {
		say(t, m, fmt.Sprint(i+1))
	}
	<-began
	held := make(chan string)
	go func() { held <- say(t, m, "hold") }()
	holding <- false // the run is under way
	close(finish)
	time.Sleep(50 * time.Millisecond) // the summary finds the workspace busy
	holding <- true
	require.Equal(t, "1 2 3 4 5 hold", <-held)
	require.Eventually(t, func() bool {
		export, err := m.Export(t.Context(), "ann")
		require.NoError(t, err)
		return strings.Contains(string(export), `"s1"`)
	}, 5*time.Second, time.Millisecond)
	require.Equal(t, int64(1), made.Load())
}

// What goes wrong with a summary is logged without the secrets that it names.
func TestSummariesThatFailAreLogged(t *testing.T) {
	log, logged := newLog(slog.LevelWarn)
	window := &transcript.Window{
		Target: 4, Keep: 3, Tokens: func(state.Message) int { return 1 },
		Summarize: func(context.Context, transcript.Past) (string, error) { return "", errors.New("no quota for s3cret") },
	}
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Window: window, Logger: log, Run: func(ctx context.Context, run *workspace.Run) error {
		require.NoError(t, run.Memory().SetSecret("pin", "s3cret"))
		if _, err := window.Messages(ctx, run.State().As("bot"), 0); err != nil {
			return err
		}
		return state.Messages.Set(run.State(), []state.Message{state.AssistantText("a"), state.AssistantText("b")})
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	for i := range 3 { // the third summary is due, and has too much to leave out
		say(t, m, fmt.Sprint(i))
	}
	require.Eventually(t, func() bool { return strings.Contains(logged(), "no quota for [SECRET]") }, 5*time.Second, time.Millisecond)
	require.NotContains(t, logged(), "s3cret")
}

// A Manager that is closed leaves the summary to the next one.
func TestSummariesOfAManagerThatIsClosed(t *testing.T) {
	db, began := store.NewMemory(), make(chan bool)
	m := windowed(t, db, func(ctx context.Context, _ transcript.Past) (string, error) {
		close(began)
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	for i := range 5 {
		say(t, m, fmt.Sprint(i+1))
	}
	<-began
	require.NoError(t, m.Close())
	m = windowed(t, db, func(context.Context, transcript.Past) (string, error) { return "again", nil })
	require.Equal(t, "1 2 3 4 5 6", say(t, m, "6"))
	require.Eventually(t, func() bool { return strings.HasPrefix(say(t, m, "more"), "again") }, 5*time.Second, 10*time.Millisecond)
}

// A run waits for the summary only if the request would be too long without.
func TestSummariesThatARunNeeds(t *testing.T) {
	var works atomic.Bool
	broken := errors.New("overloaded")
	m := windowed(t, store.NewMemory(), func(ctx context.Context, _ transcript.Past) (string, error) {
		// One that is due after an earlier run may be asked for at any time.
		if _, within := workspace.FromContext(ctx); !within || !works.Load() {
			return "", broken
		}
		return "s", nil
	})
	for i := range 7 {
		say(t, m, fmt.Sprint(i+1))
	}
	require.NoError(t, m.Wait(t.Context()))
	_, err := m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("8")})
	require.ErrorIs(t, err, transcript.ErrWindow)
	works.Store(true)
	require.Equal(t, "s 6 7 9", say(t, m, "9"))
}

// To roll back a run in which a window has moved hides no version: a window is
// no secret.
func TestRollBackOfAMovedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		committed := make(chan bool)
		window := &transcript.Window{Target: 4, Keep: 3, Tokens: func(state.Message) int { return 1 }}
		m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{RecordBytes: 1 << 20, Run: func(ctx context.Context, run *workspace.Run) error {
			if _, err := window.Messages(ctx, run.State().As("bot"), 0); err != nil {
				return err
			}
			if run.Message().Content.(state.TextMessage).Text() != "hold" {
				return nil
			}
			if err := run.Commit(ctx); err != nil {
				return err
			}
			committed <- true
			<-ctx.Done()
			return ctx.Err()
		}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, m.Close()) })
		for i := range 10 {
			say(t, m, fmt.Sprint(i))
		}
		before, err := m.View(t.Context(), "ann")
		require.NoError(t, err)
		_, err = m.Submit(t.Context(), "ann", workspace.Message{Content: state.UserText("hold")})
		require.NoError(t, err)
		<-committed
		_, err = m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("anew"), WhenBusy: workspace.BusyRollback})
		require.NoError(t, err)
		synctest.Wait() // for the compaction that a secret would ask for
		past, err := m.ViewAt(t.Context(), "ann", before.Version)
		require.NoError(t, err)
		require.Equal(t, 10, state.ListLen(past.State(), state.Messages))
	})
}
