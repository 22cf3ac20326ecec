//go:build linux

package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

const (
	workspaces = 100_000
	records    = 10_000
	messages   = 1_000
	fields     = 200
	enormous   = 16 << 20
)

// counting is a store that counts the calls that read.
type counting struct {
	store.Store
	calls atomic.Int64
}

func (s *counting) Unwrap() store.Store { return s.Store }

func (s *counting) Get(ctx context.Context, key string) (store.Entry, error) {
	s.calls.Add(1)
	return s.Store.Get(ctx, key)
}

func (s *counting) GetMulti(ctx context.Context, keys ...string) ([]store.Entry, error) {
	s.calls.Add(1)
	list, _ := store.As[store.MultiGetter](s.Store)
	return list.GetMulti(ctx, keys...)
}

func (s *counting) Scan(ctx context.Context, prefix, after string) iter.Seq2[store.Entry, error] {
	s.calls.Add(1)
	return s.Store.Scan(ctx, prefix, after)
}

func (s *counting) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	s.calls.Add(1)
	list, _ := store.As[store.Lister](s.Store)
	return list.List(ctx, prefix, after)
}

// site serves the pages of a store.
type site struct {
	db     *counting
	server *httptest.Server
}

// newSite fills a store in memory, copies it to SQLite, and serves its pages, as
// another process does that has cached nothing.
func newSite(b *testing.B, opts workspace.Options, fill func(m *workspace.Manager)) *site {
	b.Helper()
	ctx := context.Background()
	memory := store.NewMemory()
	m, err := workspace.Open(ctx, memory, &opts)
	require.NoError(b, err)
	fill(m)
	require.NoError(b, m.Close())
	db, err := sqlitestore.Open(ctx, filepath.Join(b.TempDir(), "desk.db"), nil)
	require.NoError(b, err)
	batcher, ok := store.As[store.Batcher](db)
	require.True(b, ok)
	var batch []store.Write
	flush := func() {
		_, err := batcher.Batch(ctx, batch)
		require.NoError(b, err)
		batch = batch[:0]
	}
	for e, err := range memory.Scan(ctx, "", "") {
		require.NoError(b, err)
		if batch = append(batch, store.Write{Key: e.Key, Value: e.Value, Cond: store.Always}); len(batch) == 500 {
			flush()
		}
	}
	flush()
	s := &site{db: &counting{Store: db}}
	shown, err := workspace.Open(ctx, s.db, &opts)
	require.NoError(b, err)
	h, err := inspect.New(shown, &inspect.Options{Authorize: inspect.Trusted(inspect.Access{Read: true})})
	require.NoError(b, err)
	s.server = httptest.NewServer(h)
	b.Cleanup(func() {
		h.Close()
		s.server.Close()
		require.NoError(b, shown.Close())
		require.NoError(b, db.Close())
	})
	return s
}

// get returns the length of a page.
func (s *site) get(b *testing.B, target string) int64 {
	b.Helper()
	r, err := http.Get(s.server.URL + target)
	require.NoError(b, err)
	defer r.Body.Close()
	require.Equal(b, http.StatusOK, r.StatusCode, target)
	n, err := io.Copy(io.Discard, r.Body)
	require.NoError(b, err)
	return n
}

// measure reports what the pages of target cost, at most, and the 95th percentile
// of the time.
func (s *site) measure(b *testing.B, name string, target func(i int) string) {
	b.Run(name, func(b *testing.B) {
		s.get(b, target(0))
		var times, used []time.Duration
		var calls, bytes int64
		for i := 1; b.Loop(); i++ {
			before, start, cpu := s.db.calls.Load(), time.Now(), cpuTime(b)
			n := s.get(b, target(i))
			times, used = append(times, time.Since(start)), append(used, cpuTime(b)-cpu)
			calls, bytes = max(calls, s.db.calls.Load()-before), max(bytes, n)
		}
		b.ReportMetric(p95(times), "p95-ms")
		b.ReportMetric(p95(used), "p95-cpu-ms")
		b.ReportMetric(float64(calls), "calls")
		b.ReportMetric(float64(bytes)/1024, "KiB")
	})
}

// p95 returns the 95th percentile in milliseconds.
func p95(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)*95/100]) / 1e6
}

// cpuTime returns how long the process has run on a processor, which depends less
// on what else the machine does.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func always(target string) func(int) string { return func(int) string { return target } }

// BenchmarkList has 100 000 workspaces with blobs.
func BenchmarkList(b *testing.B) {
	s := newSite(b, workspace.Options{}, func(m *workspace.Manager) {
		for i := range workspaces {
			for range 2 { // which are too long for the head
				require.NoError(b, m.Update(b.Context(), userName(i), func(w *workspace.Workspace) error {
					return w.State().KV().Set("text", strings.Repeat("x", 600))
				}))
			}
		}
	})
	s.measure(b, "first", always("/"))
	s.measure(b, "page-2000", always("/?after="+s.next(b, "/?q="+userName(workspaces - 100)[:20])))
	s.measure(b, "search", always("/?q="+userName(4711)[:10]))
	b.Run("sweep", func(b *testing.B) {
		for b.Loop() {
			s.sweep(b)
		}
	})
}

func userName(i int) string { return fmt.Sprintf("user-with-an-id-%06d", i) }

// next returns where the page of the list behind another begins.
func (s *site) next(b *testing.B, target string) string {
	b.Helper()
	r, err := http.Get(s.server.URL + target + "&format=json")
	require.NoError(b, err)
	defer r.Body.Close()
	var page struct{ Data struct{ Next string } }
	require.NoError(b, json.NewDecoder(r.Body).Decode(&page))
	require.NotEmpty(b, page.Data.Next)
	return page.Data.Next
}

// sweep lets the handler read all workspaces, and reports the calls and how much
// the heap has grown, at most.
func (s *site) sweep(b *testing.B) {
	b.Helper()
	heap := func() float64 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	runtime.GC()
	calls, began, most := s.db.calls.Load(), heap(), 0.0
	r, err := http.PostForm(s.server.URL+"/sweep", url.Values{"do": {"start"}})
	require.NoError(b, err)
	require.NoError(b, r.Body.Close())
	for {
		r, err := http.Get(s.server.URL + "/sweep?format=json")
		require.NoError(b, err)
		body, err := io.ReadAll(r.Body)
		require.NoError(b, err)
		require.NoError(b, r.Body.Close())
		most = max(most, heap()-began)
		if strings.Contains(string(body), `"running":false`) {
			require.Contains(b, string(body), fmt.Sprintf(`"read":%d`, workspaces))
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.ReportMetric(float64(s.db.calls.Load()-calls), "calls")
	b.ReportMetric(most/(1<<20), "heap-MiB")
}

// BenchmarkRecords has 10 000 records in the past of a workspace, and as many of a
// run that has not ended.
func BenchmarkRecords(b *testing.B) {
	order := &state.Field[string]{Name: "order", Owner: "support", Read: state.Public}
	notes := &state.Field[int]{Name: "notes", Read: state.Public, Write: state.Public}
	old := &state.Field[string]{Name: "old", Read: state.Public, Write: state.Public}
	schema := state.MustSchema(state.Team{"support": {"search"}}, order, notes, old)
	opts := workspace.Options{Schema: schema, History: 1 << 30}
	change := func(st *state.State, i int) error {
		if i == 0 {
			return old.Set(st, "set once")
		}
		st = st.As("support").WithCause(fmt.Sprint("call_", i))
		if i%10 == 0 {
			return order.Set(st, fmt.Sprint("#W", i))
		}
		return notes.Set(st, i)
	}
	s := newSite(b, opts, func(m *workspace.Manager) {
		for i := range records {
			require.NoError(b, m.Update(b.Context(), "past", func(w *workspace.Workspace) error { return change(w.State(), i) }))
		}
		run, _, err := m.Begin(b.Context(), "run", workspace.Message{Content: state.UserText("Hello!")})
		require.NoError(b, err)
		for i := range records {
			require.NoError(b, change(run.State(), i))
			require.NoError(b, run.Commit(b.Context()))
		}
	})
	for _, user := range []string{"past", "run"} {
		b.Run(user, func(b *testing.B) {
			timeline := "/workspace/timeline?user=" + user
			s.measure(b, "timeline-first", always(timeline))
			s.measure(b, "timeline-middle", func(i int) string { return fmt.Sprint(timeline, "&before=", 5000+i%1000) })
			s.measure(b, "timeline-last", always(timeline+"&before=60"))
			s.measure(b, "state-middle", func(i int) string { return fmt.Sprint("/workspace?user=", user, "&at=", 5000+i%1000) })
			s.measure(b, "diff-middle", func(i int) string { return fmt.Sprint("/workspace/diff?user=", user, "&to=", 5000+i%1000) })
		})
	}
}

// BenchmarkContent has a workspace with 200 fields and 1 000 messages, and one with
// a value of 16 MiB.
func BenchmarkContent(b *testing.B) {
	parts := []state.Part{state.Team{"support": {"search"}}, state.Limits{ValueBytes: 2 * enormous}}
	var list []*state.Field[string]
	for i := range fields {
		list = append(list, &state.Field[string]{Name: fmt.Sprintf("field_%03d", i), Read: state.Public, Write: state.Public})
		parts = append(parts, list[i])
	}
	opts := workspace.Options{Schema: state.MustSchema(parts...), Messages: -1}
	s := newSite(b, opts, func(m *workspace.Manager) {
		require.NoError(b, m.Update(b.Context(), "ann", func(w *workspace.Workspace) error {
			for i, f := range list {
				if err := f.Set(w.State().As("support"), fmt.Sprint("the value of a field that has some length, number ", i)); err != nil {
					return err
				}
			}
			var said []state.Message
			for i := range messages / 2 {
				said = append(said, state.UserText(fmt.Sprint("Where is my order #W", i, "?")), state.AssistantText("It is on its way, and you will have it tomorrow."))
			}
			return state.Messages.Set(w.State().As("support"), said)
		}))
		require.NoError(b, m.Update(b.Context(), "bob", func(w *workspace.Workspace) error {
			return list[0].Set(w.State(), strings.Repeat("<&\u202e>", enormous/6))
		}))
	})
	s.measure(b, "state", always("/workspace?user=ann"))
	s.measure(b, "conversation-last", always("/workspace/conversation?user=ann"))
	s.measure(b, "conversation-middle", always("/workspace/conversation?before=500&user=ann"))
	s.measure(b, "enormous-state", always("/workspace?user=bob"))
	s.measure(b, "enormous-open", always("/workspace?open=field_000&user=bob"))
	s.measure(b, "enormous-timeline", always("/workspace/timeline?user=bob"))
	s.measure(b, "enormous-queue", always("/workspace/queue?user=bob"))
	s.measure(b, "enormous-diff", always("/workspace/diff?user=bob"))
}
