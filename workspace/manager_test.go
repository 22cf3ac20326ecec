package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

func TestHandle(t *testing.T) {
	db := store.NewMemory()
	m := open(t, db, workspace.Options{Run: func(ctx context.Context, run *workspace.Run) error {
		again, ok := workspace.FromContext(ctx)
		require.True(t, ok)
		require.Same(t, run, again)
		st, ok := state.FromContext(ctx)
		require.True(t, ok)
		require.Same(t, run.State(), st)
		require.Equal(t, scratch.GetOr(st, "unset"), "unset", "an ephemeral field of the run before")
		require.NoError(t, scratch.Set(st, "x"))
		require.NoError(t, visits.Set(st, 1))
		require.NoError(t, state.Messages.Set(st, []state.Message{state.AssistantText("answer")}))
		run.SetReply("reply to " + run.Message().ID)
		return nil
	}})
	out, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDone, out.Status)
	require.Equal(t, "reply to 1", out.Reply)
	require.NotEmpty(t, out.RunID)

	again, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	require.Equal(t, workspace.Outcome{
		Status: workspace.StatusDuplicate, First: workspace.StatusDone, RunID: out.RunID, Reply: "reply to 1",
	}, again)

	_, err = m.Handle(t.Context(), "ann", workspace.Message{ChatID: "c", Platform: "p", Content: state.UserText("without an id")})
	require.NoError(t, err)

	v := view(t, open(t, db, workspace.Options{}), "ann")
	require.Equal(t, 2, visits.GetOr(v.State(), 0))
	require.False(t, v.State().KV().Has("scratch"))
	require.Equal(t, []string{"text of 1", "answer", "without an id", "answer"}, conversation(t, v))
	require.Equal(t, workspace.Settings{ChatID: "c", Platform: "p"}, v.Settings())
	require.Nil(t, v.Run)
	require.ErrorIs(t, visits.Set(v.State(), 1), state.ErrReadOnly)
	require.ErrorIs(t, v.Memory().Set("a", "b"), state.ErrReadOnly)
	require.ErrorIs(t, v.SetSettings(func(*workspace.Settings) {}), state.ErrReadOnly)
}

func TestHandleInvalid(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	_, err := m.Handle(t.Context(), "ann", text("1"))
	require.ErrorIs(t, err, workspace.ErrInvalid, "there is no Run")
	for _, o := range []workspace.Options{
		{Queue: -1}, {QueueBytes: -1}, {Runs: -1}, {Attempts: -1}, {DeadLetters: -1}, {WhenBusy: 7}, {Takeover: 7},
		{RecordBytes: 1<<30 + 1}, {TTL: 1}, {TTL: math.MaxInt64}, {TTL: math.MaxInt64 / 5}, // with which times cannot be computed
	} {
		_, err := workspace.Open(t.Context(), store.NewMemory(), &o)
		require.ErrorIs(t, err, workspace.ErrInvalid, "%+v", o)
	}
	_, err = workspace.Open(t.Context(), nil, nil)
	require.ErrorIs(t, err, workspace.ErrInvalid)
	require.Empty(t, users(t, m), "nothing was written")
}

// Messages that arrive during a run are handled after it, in their order and
// one at a time.
func TestEnqueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		running := 0
		m := open(t, store.NewMemory(), workspace.Options{Queue: 3, Run: func(ctx context.Context, run *workspace.Run) error {
			mu.Lock()
			running++
			require.Equal(t, 1, running)
			order = append(order, run.Message().ID)
			mu.Unlock()
			time.Sleep(time.Minute) // longer than the TTL
			mu.Lock()
			running--
			mu.Unlock()
			return notes.Set(run.State(), []string{run.Message().ID})
		}})
		go func() {
			out, err := m.Handle(t.Context(), "ann", text("1"))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDone, out.Status)
		}()
		synctest.Wait()
		for _, id := range []string{"2", "3", "4"} {
			out, err := m.Submit(t.Context(), "ann", text(id))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusQueued, out.Status)
		}
		out, err := m.Submit(t.Context(), "ann", text("3"))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDuplicate, out.Status)
		out, err = m.Handle(t.Context(), "ann", text("5"))
		require.ErrorIs(t, err, workspace.ErrQueueFull)
		require.Equal(t, workspace.StatusRejected, out.Status)
		out, err = m.Handle(t.Context(), "ann", whenBusy(workspace.BusyReject, text("5")))
		require.NoError(t, err)
		require.Equal(t, workspace.StatusRejected, out.Status)
		require.ErrorIs(t, m.Update(t.Context(), "ann", func(*workspace.Workspace) error { return nil }), workspace.ErrBusy)

		v := view(t, m, "ann")
		require.Equal(t, "1", v.Run.Message.ID)
		require.Len(t, v.Queue, 3)
		require.Equal(t, "text of 2", v.Queue[0].Content.(state.TextMessage).Text())

		require.NoError(t, m.Wait(t.Context()))
		require.Equal(t, []string{"1", "2", "3", "4"}, order)
		v = view(t, m, "ann")
		require.Nil(t, v.Run)
		require.Equal(t, order, notes.GetOr(v.State(), nil))
		require.NoError(t, m.Close())
	})
}

// Submit returns when a message is stored, and Wait when all messages are
// handled.
func TestSubmitAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, store.NewMemory(), workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
			time.Sleep(time.Minute)
			run.SetReply("reply")
			return notes.Set(run.State(), []string{run.Message().ID})
		}})
		require.NoError(t, m.Wait(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		for i, want := range []workspace.Status{workspace.StatusStarted, workspace.StatusQueued, workspace.StatusQueued} {
			out, err := m.Submit(ctx, "ann", text(fmt.Sprint(i)))
			require.NoError(t, err)
			require.Equal(t, want, out.Status)
		}
		cancel() // the runs do not end with it
		began := time.Now()
		hurried, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, m.Wait(hurried), context.DeadlineExceeded)
		require.NoError(t, m.Wait(t.Context()))
		require.InDelta(t, 180, time.Since(began).Seconds(), 1)
		require.Equal(t, []string{"0", "1", "2"}, notes.GetOr(view(t, m, "ann").State(), nil))
		require.NoError(t, m.Close())
		_, err := m.Submit(t.Context(), "ann", text("4"))
		require.ErrorIs(t, err, workspace.ErrClosed)
	})
}

// A message's own WhenBusy goes before that of Options, and is not stored.
func TestBusyOfMessageAndOptions(t *testing.T) {
	for _, test := range []struct {
		options, message workspace.WhenBusy
		want             workspace.Status
	}{
		{workspace.BusyDefault, workspace.BusyDefault, workspace.StatusQueued},
		{workspace.BusyReject, workspace.BusyDefault, workspace.StatusRejected},
		{workspace.BusyReject, workspace.BusyEnqueue, workspace.StatusQueued},
		{workspace.BusyEnqueue, workspace.BusyReject, workspace.StatusRejected},
	} {
		m, runs := hold(t, store.NewMemory(), workspace.Options{WhenBusy: test.options})
		run := runs.Begin(t, "ann", whenBusy(workspace.BusyInterrupt, text("1")))
		require.Equal(t, text("1"), run.Message())
		out, err := m.Submit(t.Context(), "ann", whenBusy(test.message, text("2")))
		require.NoError(t, err)
		require.Equal(t, test.want, out.Status, test)
		if test.want == workspace.StatusQueued {
			require.Equal(t, []workspace.Message{text("2")}, view(t, m, "ann").Queue)
		}
	}
}

func TestInterruptAndRollback(t *testing.T) {
	for _, busy := range []workspace.WhenBusy{workspace.BusyInterrupt, workspace.BusyRollback} {
		synctest.Test(t, func(t *testing.T) {
			db := store.NewMemory()
			m, runs := hold(t, db, workspace.Options{})
			_, others := hold(t, db, workspace.Options{})
			before := runs.Begin(t, "ann", text("0"))
			require.NoError(t, notes.Set(before.State(), []string{"before"}))
			before.Finish(t)

			run := runs.Begin(t, "ann", text("1"))
			require.NoError(t, notes.Set(run.State(), []string{"first"}))
			require.NoError(t, run.Memory().Set("k", "v"))
			call := state.ToolCalls(state.ToolCall{ID: "c", Name: "search", Input: "{}"})
			require.NoError(t, state.Messages.Set(run.State(), []state.Message{call}))
			require.NoError(t, run.Commit(t.Context()))
			require.Equal(t, 1, run.Step())

			next := others.Begin(t, "ann", whenBusy(busy, text("2")))
			require.ErrorIs(t, run.Commit(t.Context()), nil, "there is nothing to commit")
			require.NoError(t, notes.Set(run.State(), []string{"late"}))
			err := run.Commit(t.Context())
			require.ErrorIs(t, err, workspace.ErrInterrupted)
			require.ErrorIs(t, err, workspace.ErrFenced)
			<-run.Context().Done()
			require.ErrorIs(t, context.Cause(run.Context()), workspace.ErrInterrupted)
			_, err = run.End(nil)
			require.ErrorIs(t, err, workspace.ErrInterrupted)
			require.ErrorIs(t, run.Memory().Set("x", "y"), workspace.ErrInterrupted)

			msgs := state.Messages.GetOr(next.State(), nil)
			require.Empty(t, transcript.Check(msgs, transcript.OpenAI))
			_, remembered := next.Memory().Get("k")
			if busy == workspace.BusyInterrupt {
				require.Equal(t, []string{"before", "first"}, notes.GetOr(next.State(), nil))
				require.Len(t, msgs, 5, "two messages, call, result, message")
				require.True(t, remembered)
			} else {
				require.Equal(t, []string{"before"}, notes.GetOr(next.State(), nil))
				require.Len(t, msgs, 2)
				require.False(t, remembered)
			}
			next.Finish(t)
			out, err := m.Submit(t.Context(), "ann", text("1"))
			require.NoError(t, err)
			require.Equal(t, workspace.StatusDuplicate, out.Status, "an interrupted message is done")
			view(t, m, "ann")
		})
	}
}

func TestReset(t *testing.T) {
	db := store.NewMemory()
	m, runs := hold(t, db, workspace.Options{})
	dropped, err := m.Reset(t.Context(), "ann")
	require.NoError(t, err)
	require.Empty(t, dropped)
	run := runs.Begin(t, "ann", text("1"))
	require.NoError(t, notes.Set(run.State(), []string{string(make([]byte, 9000))}))
	require.NoError(t, run.Memory().SetSecret("password", "hunter2hunter2"))
	require.NoError(t, run.Commit(t.Context()))
	_, err = m.Submit(t.Context(), "ann", text("2"))
	require.NoError(t, err)
	dropped, err = m.Reset(t.Context(), "ann")
	require.NoError(t, err)
	require.Equal(t, []string{"1", "2"}, dropped)
	require.NoError(t, notes.Set(run.State(), []string{"resurrected"}))
	require.ErrorIs(t, run.Commit(t.Context()), workspace.ErrInterrupted)
	v := view(t, m, "ann")
	require.Zero(t, v.State().KV().Len())
	require.Empty(t, v.Memory().List())
	keys := entries(t, db)
	require.Len(t, keys, 2, "only the head and the ids of the messages are left")
	for _, value := range keys {
		require.NotContains(t, value, "hunter2")
	}
	out, err := m.Submit(t.Context(), "ann", text("2"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusDuplicate, out.Status)
	out, err = m.Submit(t.Context(), "ann", text("3"))
	require.NoError(t, err)
	require.Equal(t, workspace.StatusStarted, out.Status)
}

func TestUpdate(t *testing.T) {
	db := store.NewMemory()
	a, b := open(t, db, workspace.Options{}), open(t, db, workspace.Options{})
	var wg sync.WaitGroup
	for _, m := range []*workspace.Manager{a, b} {
		for range 4 {
			wg.Go(func() {
				for range 5 {
					if err := m.Update(context.Background(), "ann", func(w *workspace.Workspace) error {
						return visits.Replace(w.State(), visits.GetOr(w.State(), 0)+1)
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, 40, visits.GetOr(view(t, a, "ann").State(), 0))
	refused := errors.New("refused")
	require.ErrorIs(t, a.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		require.NoError(t, visits.Replace(w.State(), 0))
		return refused
	}), refused)
	require.Equal(t, 40, visits.GetOr(view(t, b, "ann").State(), 0))
	version := view(t, b, "ann").Version
	require.NoError(t, a.Update(t.Context(), "ann", func(*workspace.Workspace) error { return nil }))
	require.Equal(t, version, view(t, b, "ann").Version, "nothing was changed")
}

func TestHistory(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{KeepMessages: 6, KeepResults: 2, Run: func(_ context.Context, run *workspace.Run) error {
		return run.State().As("support").History().Append(state.InferenceResult{
			Prompt: []state.Message{state.SystemText("Be kind.")}, History: state.Messages.GetOr(run.State(), nil),
			Output: []state.Message{state.AssistantText("answer to " + run.Message().ID)}, Raw: "{}",
		})
	}})
	for i := range 10 {
		_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint(i)))
		require.NoError(t, err)
	}
	v := view(t, m, "ann")
	require.Equal(t, []string{"text of 7", "answer to 7", "text of 8", "answer to 8", "text of 9", "answer to 9"}, conversation(t, v))
	require.Equal(t, 2, v.State().History().Len())
	last, ok := v.State().History().Last()
	require.True(t, ok)
	require.Len(t, last.History, 7, "as it was sent")
	require.Equal(t, "support", last.Agent)
}

// A field is treated as secret from the moment on that the schema declares it
// so.
func TestSecretsThatWereNone(t *testing.T) {
	db := store.NewMemory()
	before := open(t, db, workspace.Options{Schema: state.MustSchema(state.AllowUndeclared)})
	require.NoError(t, before.Update(t.Context(), "ann", func(w *workspace.Workspace) error { return w.State().KV().Set("token", "old-token") }))
	m := open(t, db, workspace.Options{})
	for r, err := range m.Records(t.Context(), "ann", 0) {
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprint(r), "old-token")
	}
	require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
		require.Equal(t, "old-token", token.GetOr(w.State(), ""))
		return token.Set(w.State(), "new-token")
	}))
	for key, value := range entries(t, db) {
		require.NotContains(t, value, "old-token", key)
	}
	for r, err := range before.Records(t.Context(), "ann", view(t, before, "ann").Oldest) {
		require.NoError(t, err)
		require.NotContains(t, fmt.Sprint(r), "new-token", "who does not know the field does not know that it is secret")
	}
}

func TestHooks(t *testing.T) {
	db := store.NewMemory()
	var heard []string
	say := func(format string, args ...any) { heard = append(heard, fmt.Sprintf(format, args...)) }
	m := open(t, db, workspace.Options{
		Run: func(ctx context.Context, run *workspace.Run) error {
			say("run %s", run.Message().ID)
			if run.Message().ID == "2" {
				return errors.New("broken")
			}
			_ = run.Memory().SetSecret("b", "value")
			_ = run.Memory().Set("a", "value")
			if err := run.Commit(ctx); err != nil {
				return err
			}
			_, _ = run.Memory().Delete("a")
			return run.Store().Set(ctx, "k", "v")
		},
		Hooks: workspace.Hooks{
			OnRunStart:    func(_ context.Context, run *workspace.Run) { say("start %s", run.Message().ID) },
			OnRunComplete: func(_ context.Context, run *workspace.Run, err error) { say("complete %s %v", run.Message().ID, err) },
		},
	})
	_, err := m.Handle(t.Context(), "ann", text("1"))
	require.NoError(t, err)
	_, err = m.Handle(t.Context(), "ann", text("2"))
	require.Error(t, err)
	require.Equal(t, []string{
		"start 1", "run 1", "complete 1 <nil>", "start 2", "run 2", "complete 2 broken",
	}, heard)
	value, ok, err := m.Store("ann").Get(t.Context(), "k")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "v", value)
	for key := range entries(t, db) {
		require.Regexp(t, `^agent:(workspace:ann|busy:wait:ann|blob:ann/|data:ann:k)`, key)
	}
}

func TestList(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	users := []string{"bob", "bob-2", "bob\u2215b", "bob0", "ann", "b", "é", "bob b", "bob."}
	for _, user := range append(users, "gone") {
		require.NoError(t, m.Update(t.Context(), user, func(w *workspace.Workspace) error {
			return notes.Set(w.State(), []string{string(make([]byte, 9000))}) // so that there are blobs
		}))
	}
	require.NoError(t, m.Delete(t.Context(), "gone"))
	var got []string
	for user, err := range m.List(t.Context()) {
		require.NoError(t, err)
		got = append(got, user)
	}
	require.ElementsMatch(t, users, got)
}

// List and Expire read the heads with one listing, and nothing else.
func TestListingReadsHeadsOnce(t *testing.T) {
	db := fakestore.Count(store.NewMemory())
	m := open(t, db, workspace.Options{})
	const users = 300
	for i := range users {
		require.NoError(t, m.Update(t.Context(), fmt.Sprint("user", i), func(w *workspace.Workspace) error {
			return notes.Set(w.State(), []string{string(make([]byte, 9000))})
		}))
	}
	m = open(t, db, workspace.Options{}) // has not seen them
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"List", func() error {
			for _, err := range m.List(t.Context()) {
				require.NoError(t, err)
			}
			return nil
		}},
		{"Expire", func() error {
			_, err := m.Expire(t.Context(), 0)
			return err
		}},
	} {
		read, lists := db.Read(), db.Calls("List")
		require.NoError(t, c.call())
		require.Equal(t, read, db.Read(), c.name)
		require.Equal(t, 1, db.Calls("List")-lists, c.name)
	}
}

// Changes of the settings by concurrent goroutines are all kept, and a change
// may read the settings.
func TestSettingsAreNotLostToConcurrentChanges(t *testing.T) {
	_, runs := hold(t, store.NewMemory(), workspace.Options{})
	run := runs.Begin(t, "ann", text("1"))
	const writers, each = 8, 50
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for j := range each {
				err := run.SetSettings(func(s *workspace.Settings) {
					if s.MCPServers == nil {
						s.MCPServers = map[string]state.JSON{}
					}
					_ = run.Settings().ChatID
					runtime.Gosched()
					s.MCPServers[fmt.Sprint(i, "/", j)] = "{}"
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, run.Settings().MCPServers, writers*each)
}

// The user in an error is shortened between runes.
func TestErrorShortensTheUser(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	user := "a" + strings.Repeat("é", 50)
	_, err := m.ViewAt(t.Context(), user, 1)
	require.ErrorContains(t, err, "é…")
	require.NotContains(t, err.Error(), `\x`)
}

// An error names the method that was called, not one that it uses.
func TestErrorNamesTheOperation(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{Run: func(context.Context, *workspace.Run) error { return nil }})
	bad := workspace.Message{Content: state.UserText("x"), WhenBusy: 77}
	_, err := m.Handle(t.Context(), "ann", bad)
	require.ErrorContains(t, err, "workspace: handle for ")
	_, err = m.Submit(t.Context(), "ann", bad)
	require.ErrorContains(t, err, "workspace: submit for ")
}

// A Manager that cannot handle messages says what it lacks.
func TestManagerWithoutRun(t *testing.T) {
	m := open(t, store.NewMemory(), workspace.Options{})
	for name, send := range map[string]func(context.Context, string, workspace.Message) (workspace.Outcome, error){
		"Handle": m.Handle, "Submit": m.Submit,
	} {
		out, err := send(t.Context(), "ann", text("1"))
		require.ErrorIs(t, err, workspace.ErrInvalid, name)
		require.ErrorContains(t, err, "Options has no Run", name)
		require.Empty(t, out, name)
	}
}

func TestFailure(t *testing.T) {
	onStore(t, func(t *testing.T, db store.Store, ttl time.Duration) {
		broken := errors.New("broken")
		m := open(t, db, workspace.Options{TTL: ttl, Run: func(ctx context.Context, run *workspace.Run) error {
			if err := notes.Set(run.State(), []string{"committed"}); err != nil {
				return err
			}
			call := state.ToolCalls(state.ToolCall{ID: "c", Name: "search", Input: "{}"})
			if err := state.Messages.Set(run.State(), []state.Message{call}); err != nil {
				return err
			}
			if err := run.Commit(ctx); err != nil {
				return err
			}
			if err := notes.Set(run.State(), []string{"not committed"}); err != nil {
				return err
			}
			if run.Message().ID == "panic" {
				panic(token.GetOr(run.State(), ""))
			}
			return broken
		}})
		require.NoError(t, m.Update(t.Context(), "ann", func(w *workspace.Workspace) error {
			return token.Set(w.State(), "s3cret-value")
		}))
		out, err := m.Handle(t.Context(), "ann", text("1"))
		require.ErrorIs(t, err, broken)
		require.Equal(t, workspace.StatusFailed, out.Status)
		out, err = m.Handle(t.Context(), "ann", text("panic"))
		require.ErrorContains(t, err, "panicked")
		require.NotContains(t, err.Error(), "s3cret")
		require.Equal(t, workspace.StatusFailed, out.Status)
		v := view(t, m, "ann")
		require.Equal(t, []string{"committed", "committed"}, notes.GetOr(v.State(), nil))
		msgs := state.Messages.GetOr(v.State(), nil)
		require.Len(t, transcript.Pending(msgs), 1, "that of the last message, until another one begins")
		require.Empty(t, transcript.Check(msgs[:len(msgs)-1], transcript.OpenAI))
		require.Len(t, v.DeadLetters, 2)
		require.Equal(t, "1", v.DeadLetters[0].Message.ID)
		require.Equal(t, "broken", v.DeadLetters[0].Reason)
		require.NotContains(t, v.DeadLetters[1].Reason, "s3cret")

		out, err = m.Handle(t.Context(), "ann", text("1"))
		require.ErrorIs(t, err, broken, "a dead letter that is sent again is handled again")
		require.Equal(t, workspace.StatusFailed, out.Status)
		v = view(t, m, "ann")
		require.Len(t, v.DeadLetters, 2)
		require.Equal(t, "1", v.DeadLetters[1].Message.ID)
	})
}
