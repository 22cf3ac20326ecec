package inspect_test

import (
	"context"
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/internal/test/fakestore"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

// countingStore counts the calls that read.
type countingStore struct{ *fakestore.Counter }

// reads returns the number of calls so far.
func (s countingStore) reads() int { return s.Calls("Get", "List") }

// costs asks for a page and returns the calls of the store and the bytes.
func (s countingStore) costs(t testing.TB, h *inspect.Handler, target string) (calls, bytes int) {
	t.Helper()
	before := s.reads()
	p := get(t, h, target)
	require.Equal(t, 200, p.code, target)
	return s.reads() - before, len(p.body)
}

func newCounted(t testing.TB, opts *workspace.Options) (countingStore, *workspace.Manager, *inspect.Handler) {
	t.Helper()
	db := countingStore{fakestore.Count(store.NewMemory())}
	m, err := workspace.Open(context.Background(), db, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	// The pages are those of another process, which has cached nothing.
	other, err := workspace.Open(context.Background(), db, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	return db, m, newHandler(t, other, nil)
}

// requireCosts asks for a page and checks what it costs.
func requireCosts(t testing.TB, db countingStore, h *inspect.Handler, target string, maxCalls, maxBytes int) {
	t.Helper()
	calls, bytes := db.costs(t, h, target)
	t.Logf("%s: %d calls, %d bytes", target, calls, bytes)
	require.LessOrEqual(t, calls, maxCalls, "calls for %s", target)
	require.LessOrEqual(t, bytes, maxBytes, "bytes of %s", target)
}

func TestCostOfTheListDoesNotDependOnItsLength(t *testing.T) {
	db, m, h := newCounted(t, &workspace.Options{Schema: desk})
	f := &fixture{manager: m}
	for i := range 2000 {
		f.visit(t, "user-with-a-long-name-"+numbered(i))
	}
	requireCosts(t, db, h, "/", 60, 48<<10)
	requireCosts(t, db, h, nextPage(t, h, "/users?q=user-with-a-long-name-18"), 60, 48<<10)
	requireCosts(t, db, h, "/users?q=user-with-a-long-name-"+numbered(1)[:2], 60, 48<<10)
}

// nextPage returns the page of the list that follows another.
func nextPage(t testing.TB, h http.Handler, target string) string {
	t.Helper()
	_, rest, found := strings.Cut(get(t, h, target).body, `rel="next" href="`)
	require.True(t, found, target)
	link, _, _ := strings.Cut(rest, `"`)
	return resolve(t, target, html.UnescapeString(link))
}

func numbered(i int) string {
	return string([]byte{byte('0' + i/1000%10), byte('0' + i/100%10), byte('0' + i/10%10), byte('0' + i%10)})
}

// requireTimelineCosts opens the timeline of 3000 records and the states along it,
// of which the present one may read stateBytes.
func requireTimelineCosts(t testing.TB, db countingStore, h *inspect.Handler, stateBytes int) {
	t.Helper()
	get(t, h, "/workspace/state?user=ann") // which reads the content
	for _, target := range []string{
		"/workspace/history?user=ann", "/workspace/history?user=ann&before=1500", "/workspace/history?user=ann&before=60",
	} {
		// The head twice, the lists or the past that find the records, and the records.
		requireCosts(t, db, h, target, 6, 64<<10)
	}
	requireCosts(t, db, h, "/workspace/state?user=ann", 2, stateBytes)
	get(t, h, "/workspace/state?user=ann&at=1500")
	requireCosts(t, db, h, "/workspace/state?user=ann&at=1500", 2, 96<<10)
}

func TestCostOfTheTimelineDoesNotDependOnItsLength(t *testing.T) {
	db, m, h := newCounted(t, &workspace.Options{Schema: desk})
	// Nothing is compacted during a run.
	require.NoError(t, m.Do(t.Context(), "ann", func(ctx context.Context, run *workspace.Run) error {
		for i := range 3000 {
			st := run.State().As("support").WithCause("call_" + numbered(i))
			require.NoError(t, orderID.Set(st, "#W"+numbered(i)))
			require.NoError(t, run.Commit(ctx))
		}
		requireTimelineCosts(t, db, h, 128<<10)
		return nil
	}))
}

func TestCostOfManyFieldsAndOfAnEnormousValue(t *testing.T) {
	parts := []state.Part{state.Team{"support": nil}, state.Limits{ValueBytes: 32 << 20}}
	var fields []*state.Field[string]
	for i := range 200 {
		fields = append(fields, &state.Field[string]{Name: "field_" + numbered(i), Read: state.Public, Write: state.Public})
		parts = append(parts, fields[i])
	}
	db, m, h := newCounted(t, &workspace.Options{Schema: state.MustSchema(parts...)})
	f := &fixture{manager: m}
	f.update(t, "ann", func(st *state.State) error {
		for i, field := range fields {
			if err := field.Set(st, "the value of a field that has some length, number "+numbered(i)); err != nil {
				return err
			}
		}
		return nil
	})
	get(t, h, "/workspace/state?user=ann")
	requireCosts(t, db, h, "/workspace/state?user=ann", 2, 128<<10)

	f.update(t, "bob", func(st *state.State) error { return fields[0].Set(st, strings.Repeat("<&\u202e>", 16<<20/6)) })
	get(t, h, "/workspace/state?user=bob")
	for _, page := range []string{"", "/state", "/conversation", "/results"} {
		requireCosts(t, db, h, "/workspace"+page+"?user=bob", 4, 128<<10) // the overview lists the threads
	}
	require.Contains(t, get(t, h, "/workspace/state?user=bob&open=field_0000").body, `&lt;&amp;\u202e&gt;`)
	requireCosts(t, db, h, "/workspace/state?user=bob&open=field_0000", 3, 128<<10)
	// The record of an enormous change is stored in parts.
	requireCosts(t, db, h, "/workspace/history?user=bob", 3, 128<<10)
	requireCosts(t, db, h, "/workspace/diff?user=bob", 6, 128<<10)
}

func TestTimelineOfRecordsThatWereCompacted(t *testing.T) {
	db, m, h := newCounted(t, &workspace.Options{Schema: desk, RecordBytes: 64 << 20})
	f := &fixture{manager: m}
	for range 3000 {
		f.visit(t, "ann")
	}
	requireTimelineCosts(t, db, h, 64<<10)
}
