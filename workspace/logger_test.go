package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// newLog returns a Logger without times, and what it has written with the random
// ids replaced.
func newLog(level slog.Level) (*slog.Logger, func() string) {
	var b testkit.Buffer
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "took":
			return slog.Attr{}
		case "stack":
			return slog.String("stack", "STACK")
		}
		return a
	}}
	ids := regexp.MustCompile(`run=\S+`)
	return slog.New(slog.NewTextHandler(&b, opts)), func() string { return ids.ReplaceAllString(b.String(), "run=ID") }
}

// sorted returns the different lines of a text in order: goroutines log at the
// same time.
func sorted(text string) string {
	return strings.Join(slices.Compact(slices.Sorted(strings.Lines(text))), "")
}

// What happens to workspaces is logged, each at its level, and counted.
func TestLogger(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		log, logged := newLog(slog.LevelDebug)
		process, kill := asProcess(db)
		desk := func(ctx context.Context, run *workspace.Run) error {
			switch id := run.Message().ID; {
			case id == "fails":
				return errors.New("the " + token.GetOr(run.State(), "") + " is wrong")
			case id == "panics":
				panic("no " + token.GetOr(run.State(), ""))
			case id == "waits", id == "dies" && run.Attempt() == 0:
				<-ctx.Done()
				return context.Cause(ctx)
			case id == "retries" && run.Attempt() == 0:
				return workspace.RetryAfter(errors.New("busy"), time.Millisecond)
			}
			return nil
		}
		m := open(t, process, workspace.Options{TTL: ttl, Run: desk, Logger: log, Queue: 1, Hooks: workspace.Hooks{
			OnRunComplete: func(_ context.Context, _ *workspace.Run, err error) {
				if err != nil {
					time.Sleep(ttl / 5)
				}
			},
		}})
		ctx := t.Context()
		require.NoError(t, m.Update(ctx, "ann", func(w *workspace.Workspace) error { return token.Set(w.State(), "s3cret") }))
		require.Error(t, m.Update(ctx, "ann", func(w *workspace.Workspace) error { return errors.New("not s3cret") }))
		for _, id := range []string{"done", "done", "retries", "fails", "panics"} {
			_, _ = m.Handle(ctx, "ann", text(id))
		}
		submit := func(msg workspace.Message) {
			_, _ = m.Submit(ctx, "ann", msg)
			synctest.Wait()
		}
		submit(text("waits"))
		require.Equal(t, 1, m.Stats().Held)
		for _, id := range []string{"queued", "full", "full"} {
			submit(text(id))
		}
		submit(whenBusy(workspace.BusyReject, text("rejected")))
		submit(whenBusy(workspace.BusyInterrupt, text("interrupts")))
		require.NoError(t, m.Wait(ctx))
		submit(text("waits 2"))
		require.NoError(t, m.Retry(ctx, "ann", "fails"))
		require.NoError(t, m.Wait(ctx))
		require.NoError(t, m.Discard(ctx, "ann", "fails"))
		submit(text("dies"))
		kill()

		second, took := newLog(slog.LevelInfo)
		other := open(t, db, workspace.Options{TTL: ttl, Run: desk, Logger: second})
		require.NoError(t, settle(ctx, other))
		_, err := other.Reset(ctx, "ann")
		require.NoError(t, err)
		require.NoError(t, other.Delete(ctx, "ann"))
		time.Sleep(2 * ttl)
		_ = m.Close()
		require.NotContains(t, logged()+took(), "s3cret")
		requireText(t, firstLog, sorted(logged()))
		requireText(t, secondLog, sorted(took()))

		counted := m.Stats()
		require.GreaterOrEqual(t, counted.Heartbeats, int64(1))
		require.Greater(t, counted.BytesWritten, int64(1000))
		uneven := cmpopts.IgnoreFields(work.Stats{}, "Heartbeats", "LateHeartbeats", "BytesWritten")
		require.Empty(t, cmp.Diff(work.Stats{
			Workspaces: 1, Started: 11, Done: 5, Failed: 3, Interrupted: 1, Fenced: 1, DeadLetters: 3,
			Queued: 1, Rejected: 3, Duplicates: 1, Commits: 8,
		}, counted, uneven))
		require.Empty(t, cmp.Diff(work.Stats{Workspaces: 1, Started: 1, Done: 1, TakenOver: 1, Commits: 1}, other.Stats(), uneven))
	})
}

const firstLog = `level=DEBUG msg="message accepted" user=ann message="waits 2"
level=DEBUG msg="message accepted" user=ann message=dies
level=DEBUG msg="message accepted" user=ann message=done
level=DEBUG msg="message accepted" user=ann message=fails
level=DEBUG msg="message accepted" user=ann message=interrupts
level=DEBUG msg="message accepted" user=ann message=panics
level=DEBUG msg="message accepted" user=ann message=retries
level=DEBUG msg="message accepted" user=ann message=waits
level=DEBUG msg="message duplicate" user=ann message=done
level=DEBUG msg="message queued" user=ann message=queued
level=DEBUG msg="message rejected" user=ann message=rejected
level=DEBUG msg="run began" user=ann run=ID message="waits 2" attempt=0
level=DEBUG msg="run began" user=ann run=ID message=dies attempt=0
level=DEBUG msg="run began" user=ann run=ID message=done attempt=0
level=DEBUG msg="run began" user=ann run=ID message=fails attempt=0
level=DEBUG msg="run began" user=ann run=ID message=interrupts attempt=0
level=DEBUG msg="run began" user=ann run=ID message=panics attempt=0
level=DEBUG msg="run began" user=ann run=ID message=queued attempt=0
level=DEBUG msg="run began" user=ann run=ID message=retries attempt=0
level=DEBUG msg="run began" user=ann run=ID message=retries attempt=1
level=DEBUG msg="run began" user=ann run=ID message=waits attempt=0
level=DEBUG msg="run failed" user=ann run=ID message=fails attempt=0 version=10 err.class=*errors.errorString err.text="the [SECRET] is wrong"
level=DEBUG msg="run failed" user=ann run=ID message=fails attempt=0 version=4 err.class=*errors.errorString err.text="the [SECRET] is wrong"
level=DEBUG msg="run failed" user=ann run=ID message=panics attempt=0 version=5 err.class=panic err.text="workspace: run panicked: no [SECRET]" err.stack=STACK
level=DEBUG msg="run finished" user=ann run=ID message="waits 2" attempt=0 version=9
level=DEBUG msg="run finished" user=ann run=ID message=done attempt=0 version=2
level=DEBUG msg="run finished" user=ann run=ID message=interrupts attempt=0 version=7
level=DEBUG msg="run finished" user=ann run=ID message=queued attempt=0 version=8
level=DEBUG msg="run finished" user=ann run=ID message=retries attempt=1 version=3
level=DEBUG msg="run waits for another attempt" user=ann run=ID message=retries attempt=0 version=2 err.class=*errors.errorString err.text=busy
level=DEBUG msg=commit user=ann run=ID message="waits 2" version=9
level=DEBUG msg=commit user=ann run=ID message=done version=2
level=DEBUG msg=commit user=ann run=ID message=fails version=10
level=DEBUG msg=commit user=ann run=ID message=fails version=4
level=DEBUG msg=commit user=ann run=ID message=interrupts version=7
level=DEBUG msg=commit user=ann run=ID message=panics version=5
level=DEBUG msg=commit user=ann run=ID message=queued version=8
level=DEBUG msg=commit user=ann run=ID message=retries version=3
level=DEBUG msg=heartbeat
level=DEBUG msg=heartbeat err.class=*errors.errorString err.text="store: faulty: test: store: closed"
level=DEBUG msg=update user=ann version=1
level=ERROR msg="run panicked" user=ann run=ID message=panics attempt=0 version=5 err.class=panic err.text="workspace: run panicked: no [SECRET]" err.stack=STACK
level=INFO msg="message discarded" user=ann message=fails
level=INFO msg="message retried" user=ann message=fails
level=INFO msg="run interrupted" user=ann run=ID message=waits attempt=0 version=5 err.class=interrupted err.text="workspace: run has lost its lease: workspace: run was interrupted"
level=WARN msg="dead letter" user=ann message=fails run=ID err.class=*errors.errorString err.text="the [SECRET] is wrong"
level=WARN msg="holder record was lost" err.class=fenced err.text="workspace: run has lost its lease: store: faulty: test: store: closed"
level=WARN msg="hook OnRunComplete took long" user=ann err.class=*errors.errorString err.text="workspace: it took 6s"
level=WARN msg="queue full" user=ann message=full err.class=queue_full err.text="workspace: queue is full: 1 messages wait; send it again later"
level=WARN msg="run fenced" user=ann run=ID message=dies attempt=0 version=10 err.class=fenced err.text="workspace: run has lost its lease: store: faulty: test: store: closed"
`

const secondLog = `level=INFO msg="run taken over" user=ann run=ID message=dies version=10
level=INFO msg="workspace deleted" user=ann
level=INFO msg="workspace reset" user=ann version=12
`

// From LevelWarn on, an event is logged once a minute for each user, with the
// number of those that were held back.
func TestLoggerHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, logged := newLog(slog.LevelWarn)
		m := open(t, store.NewMemory(), workspace.Options{
			Logger: log, Run: func(context.Context, *workspace.Run) error { return errors.New("broken") },
		})
		for i := range 130 {
			for _, user := range []string{"ann", "bob"} {
				_, _ = m.Handle(t.Context(), user, text(fmt.Sprint(i)))
			}
			time.Sleep(time.Second)
		}
		for _, user := range []string{"ann", "bob"} {
			var lines []string
			for line := range strings.Lines(logged()) {
				if strings.Contains(line, `msg="dead letter" user=`+user) {
					lines = append(lines, line)
				}
			}
			require.Len(t, lines, 3)
			require.NotContains(t, lines[0], "held_back")
			for _, line := range lines[1:] {
				require.Contains(t, line, "held_back=59")
			}
		}
	})
}

// callingHandler is a slog.Handler that calls a function.
type callingHandler struct {
	slog.Handler
	call func()
}

func (h callingHandler) Handle(context.Context, slog.Record) error {
	h.call()
	return nil
}

// The Logger is called without a lock: it may use the run.
func TestLoggerUsesRun(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		process, kill := asProcess(db)
		var mu sync.Mutex
		var run *workspace.Run
		calls := 0
		log := callingHandler{slog.NewTextHandler(&testkit.Buffer{}, &slog.HandlerOptions{Level: slog.LevelDebug}), func() {
			mu.Lock()
			defer mu.Unlock()
			calls++
			if run != nil {
				_ = run.Step()
			}
		}}
		m := open(t, process, workspace.Options{
			TTL: ttl, Logger: slog.New(log),
			Run: func(ctx context.Context, r *workspace.Run) error {
				mu.Lock()
				run = r
				mu.Unlock()
				require.NoError(t, visits.Set(r.State(), 1))
				require.NoError(t, r.Commit(ctx))
				kill()
				<-ctx.Done()
				return context.Cause(ctx)
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(ttl/10, cancel) // the run cannot be released
		_, err := m.Handle(ctx, "ann", text("1"))
		require.Error(t, err)
		mu.Lock() // the Manager goes on until its end
		defer mu.Unlock()
		require.Greater(t, calls, 3)
	})
}

// No record holds a secret, whatever fails with a text that has it.
func TestLoggerMasks(t *testing.T) {
	const secret = "pa55-w0rd"
	synctest.Test(t, func(t *testing.T) {
		var b testkit.Buffer
		log := slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
		broken := errors.New("wrong: " + secret)
		m := open(t, store.NewMemory(), workspace.Options{
			TTL: time.Second, Logger: log, Attempts: 2,
			Run: func(ctx context.Context, run *workspace.Run) error {
				switch run.Message().ID {
				case "fails":
					return broken
				case "changes":
					require.NoError(t, token.Set(run.State(), "other"))
					return broken
				case "panics":
					panic(broken)
				case "retries":
					return workspace.RetryAfter(broken, time.Millisecond)
				case "memory":
					require.NoError(t, run.Memory().SetSecret("key", secret+"2"))
					return errors.New("wrong: " + secret + "2")
				}
				return nil
			},
			Tracer: &recorder{in: func(work.Operation) { panic(broken) }},
			Hooks: workspace.Hooks{
				OnRunStart:    func(context.Context, *workspace.Run) { panic(broken) },
				OnRunComplete: func(context.Context, *workspace.Run, error) { panic(broken) },
			},
		})
		ctx := t.Context()
		require.NoError(t, m.Update(ctx, "ann", func(w *workspace.Workspace) error { return token.Set(w.State(), secret) }))
		for _, id := range []string{"fails", "changes", "panics", "retries", "memory"} {
			_, err := m.Handle(ctx, "ann", text(id))
			require.Error(t, err)
		}
		require.Error(t, m.Update(ctx, "ann", func(*workspace.Workspace) error { return broken }))
		require.Error(t, m.Do(ctx, "ann", func(context.Context, *workspace.Run) error { return broken }))
		_ = m.Close()
		require.NotContains(t, b.String(), secret)
		require.Contains(t, b.String(), "[SECRET]")
	})
}
