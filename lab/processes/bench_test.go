//go:build linux

package processes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// BenchmarkGoal measures the speed goals of package workspace.
func BenchmarkGoal(b *testing.B) {
	b.Run("workspace-handle", func(b *testing.B) { b.Run("subject", handleAgainstSyncs) })
	b.Run("workspace-run", func(b *testing.B) { b.Run("subject", runAgainstSyncs) })
	b.Run("workspace-warm", warm)
	b.Run("workspace-load", load)
	b.Run("workspace-unlimited", func(b *testing.B) { b.Run("subject", unlimited) })
}

// warm measures a view and an update of a workspace of 5 000 messages that the
// Manager has read before.
func warm(b *testing.B) {
	m, err := workspace.Open(b.Context(), store.NewMemory(), &workspace.Options{KeepMessages: -1})
	require.NoError(b, err)
	defer func() { require.NoError(b, m.Close()) }()
	require.NoError(b, m.Update(b.Context(), "ann", func(w *workspace.Workspace) error {
		return state.Messages.Set(w.State(), manyMessages(5000))
	}))
	b.Run("subject", func(b *testing.B) {
		b.Run("view", func(b *testing.B) {
			for b.Loop() {
				_, err := m.View(b.Context(), "ann")
				require.NoError(b, err)
			}
		})
		b.Run("update", func(b *testing.B) {
			for n := 0; b.Loop(); n++ {
				require.NoError(b, m.Update(b.Context(), "ann", func(w *workspace.Workspace) error {
					return w.State().KV().Set("mood", n)
				}))
			}
		})
	})
}

// appender measures the minimal cost of a write to disk: an append and a sync.
type appender struct{ f *os.File }

func newAppender(b *testing.B, folder string) appender {
	f, err := os.Create(filepath.Join(folder, "log"))
	require.NoError(b, err)
	b.Cleanup(func() { _ = f.Close() })
	return appender{f}
}

// append makes writes with the given total of bytes, and returns the time they took.
func (a appender) append(b *testing.B, writes int, bytes int64) time.Duration {
	value := make([]byte, bytes/int64(writes))
	began := time.Now()
	for range writes {
		_, err := a.f.Write(value)
		require.NoError(b, err)
		require.NoError(b, syscall.Fdatasync(int(a.f.Fd())))
	}
	return time.Since(began)
}

// onSQLite opens a Manager on a file and an appender in the same folder. The counter
// counts the bytes that the Manager writes.
func onSQLite(b *testing.B, run func(ctx context.Context, r *workspace.Run) error) (*workspace.Manager, *counter, appender) {
	folder := b.TempDir()
	s, err := openAddress("sqlite - " + filepath.Join(folder, "state.db"))
	require.NoError(b, err)
	c := &counter{Store: s}
	m, err := workspace.Open(b.Context(), c, &workspace.Options{Run: run})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, m.Close())
		require.NoError(b, s.Close())
	})
	return m, c, newAppender(b, folder)
}

// handleAgainstSyncs measures the median time of handling a message, which makes two
// writes, and of two appends of the same size with a sync each. It takes turns,
// because the speed of disks changes from second to second. The conversation has
// its maximal length.
func handleAgainstSyncs(b *testing.B) {
	m, c, a := onSQLite(b, func(_ context.Context, r *workspace.Run) error {
		r.SetReply("Good evening, Ann.")
		if err := r.State().KV().Set("mood", r.ID()); err != nil {
			return err
		}
		return r.State().History().Append(state.InferenceResult{
			Agent: "porter", Prompt: prompt, History: state.Messages.GetOr(r.State(), nil),
			Output: []state.Message{state.AssistantText("Good evening, Ann. What can I do for you?")},
		})
	})
	handle := func() {
		out, err := m.Handle(b.Context(), "ann", workspace.Message{Content: state.UserText("Good evening! I have lost my key.")})
		require.NoError(b, err)
		require.Equal(b, workspace.StatusDone, out.Status)
	}
	for range 60 {
		handle()
	}
	var handles, syncs []time.Duration
	bytes, reads := c.bytes.Load(), c.reads.Load()
	for b.Loop() {
		before, began := c.bytes.Load(), time.Now()
		handle()
		handles = append(handles, time.Since(began))
		syncs = append(syncs, a.append(b, 2, c.bytes.Load()-before))
	}
	report(b, "handle", median(handles), "syncs", median(syncs))
	b.ReportMetric(float64(c.bytes.Load()-bytes)/float64(len(handles)), "bytes/message")
	b.ReportMetric(float64(c.reads.Load()-reads)/float64(len(handles)), "reads/message")
}

// runAgainstSyncs measures the time of a run with 200 commits, and of as many appends
// of the same size with a sync, in turns.
func runAgainstSyncs(b *testing.B) {
	const commits = 200
	var written []int64 // by each commit of a run
	var c *counter
	m, c, a := onSQLite(b, func(ctx context.Context, run *workspace.Run) error {
		for i := range commits {
			before := c.bytes.Load()
			if err := errors.Join(step(run.State(), i), run.Commit(ctx)); err != nil {
				return err
			}
			written = append(written, c.bytes.Load()-before)
		}
		return nil
	})
	var runs, syncs time.Duration
	for n := 0; b.Loop(); n++ {
		began := time.Now()
		_, err := m.Handle(b.Context(), fmt.Sprint("user ", n), workspace.Message{Content: state.UserText("Write a book, please.")})
		require.NoError(b, err)
		runs += time.Since(began)
		for _, bytes := range written {
			syncs += a.append(b, 1, bytes)
		}
		written = written[:0]
	}
	n := time.Duration(b.N)
	report(b, "run", runs/n, "syncs", syncs/n)
}

func report(b *testing.B, name string, of time.Duration, unit string, than time.Duration) {
	b.ReportMetric(float64(of), name+"-ns")
	b.ReportMetric(float64(than), unit+"-ns")
	b.ReportMetric(float64(of)/float64(than), name+"/"+unit)
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// load measures the first view of a workspace of 10 000 messages by a Manager
// that has never read it.
func load(b *testing.B) {
	opts := &workspace.Options{KeepMessages: -1}
	for name, open := range map[string]func(b *testing.B) store.Store{
		"memory": func(*testing.B) store.Store { return store.NewMemory() },
		"sqlite": func(b *testing.B) store.Store {
			s, err := openAddress("sqlite - " + filepath.Join(b.TempDir(), "state.db"))
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Close()) })
			return s
		},
	} {
		b.Run("subject/"+name, func(b *testing.B) {
			db := open(b)
			m, err := workspace.Open(b.Context(), db, opts)
			require.NoError(b, err)
			require.NoError(b, m.Update(b.Context(), "ann", func(w *workspace.Workspace) error {
				return state.Messages.Set(w.State(), manyMessages(10_000))
			}))
			require.NoError(b, m.Close())
			for b.Loop() {
				m, err := workspace.Open(b.Context(), db, opts)
				require.NoError(b, err)
				v, err := m.View(b.Context(), "ann")
				require.NoError(b, err)
				require.Equal(b, 10_000, state.ListLen(v.State(), state.Messages))
				require.NoError(b, m.Close())
			}
		})
	}
}

// unlimited measures how much longer a message takes after 10 000 others, if
// the workspace keeps all messages and results.
func unlimited(b *testing.B) {
	growth := make([]float64, 0, b.N)
	for b.Loop() {
		handle, closeAll := endless(b, store.NewMemory(), false)
		times := make([]time.Duration, 10_000)
		for i := range times {
			began := time.Now()
			handle()
			times[i] = time.Since(began)
		}
		closeAll()
		first, last := median(times[:100]), median(times[len(times)-100:])
		growth = append(growth, float64(last)/float64(first))
	}
	slices.Sort(growth)
	b.ReportMetric(growth[len(growth)/2], "last/first")
}
