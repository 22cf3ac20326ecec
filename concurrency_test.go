package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/redactlog"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/tool"
)

// The tests of this file prove what a State promises to many goroutines: no write
// is lost, readers see whole versions, user code runs without a lock, a
// transaction runs again if what it has read has changed and for no other reason,
// and Join does not depend on timing. They are meant for the race detector.

var (
	concTitle = &state.Field[string]{Name: "title", Owner: "ann", Read: state.Public, Write: state.Public}
	concFirst = &state.Field[int]{Name: "first", Read: state.Public, Write: state.Public}
	concOther = &state.Field[int]{Name: "other", Read: state.Public, Write: state.Public}
	concTotal = &state.Field[int]{Name: "total", Read: state.Public, Write: state.Public, Handler: state.Sum[int]()}
	concLog   = &state.Field[[]string]{Name: "log", Read: state.Public, Write: state.Public}
	concTags  = &state.Field[[]string]{Name: "tags", Owner: "bob", Read: state.Only("ann"), Handler: state.Union[[]string]()}
	concToken = &state.Field[string]{Name: "token", Owner: "ann", Secret: true}
	concDraft = &state.Field[map[string]int]{Name: "draft", Read: state.Public, Write: state.Public, Ephemeral: true, Handler: state.MergeMap[map[string]int]()}
	concGlued = &state.Field[string]{Name: "glued", Read: state.Public, Write: state.Public,
		Handler: state.NewHandler("glue", func(cur string, _ bool, upd string) (string, error) {
			return (cur + upd)[max(0, len(cur)+len(upd)-16):], nil
		}),
		Validate: func(s string) error {
			if s == "x" {
				return errors.New("x is taken")
			}
			return nil
		}}
	concParts = []state.Part{
		concTitle, concFirst, concOther, concTotal, concLog, concTags, concToken, concDraft, concGlued, state.AllowUndeclared,
		state.Team{"ann": {"bob", "cleo"}},
	}
	concSchema = state.MustSchema(append(concParts, state.Limits{Journal: -1})...)
)

// concAtOnce runs fn in n goroutines and waits for them.
func concAtOnce(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

func concSaid(text string) state.InferenceResult {
	return state.InferenceResult{ID: text, Output: []state.Message{state.AssistantText(text)}, CreatedAt: time.Unix(1, 0)}
}

// concMethods are the public methods, each as something to do at random.
var concMethods = []func(st *state.State, r *rand.Rand) error{
	func(st *state.State, r *rand.Rand) error { return concTitle.Set(st, strconv.Itoa(r.IntN(9))) },
	func(st *state.State, r *rand.Rand) error {
		return concTitle.SetWith(st, strconv.Itoa(r.IntN(9)), state.Max[string]())
	},
	func(st *state.State, r *rand.Rand) error { return concLog.Set(st, []string{"a", "b"}) },
	func(st *state.State, r *rand.Rand) error { return concLog.Replace(st, []string{"z"}) },
	func(st *state.State, r *rand.Rand) error { return concTags.Set(st, []string{strconv.Itoa(r.IntN(20))}) },
	func(st *state.State, r *rand.Rand) error { return concToken.Set(st, "tok-123456") },
	func(st *state.State, r *rand.Rand) error {
		return concDraft.Set(st, map[string]int{strconv.Itoa(r.IntN(9)): 1})
	},
	func(st *state.State, r *rand.Rand) error { return concGlued.Set(st, string(rune('a'+r.IntN(26)))) },
	func(st *state.State, r *rand.Rand) error {
		return concTotal.Update(st, func(n int) (int, error) { return n + 1, nil })
	},
	func(st *state.State, r *rand.Rand) error { _, err := concTotal.Delete(st); return err },
	func(st *state.State, r *rand.Rand) error { _, err := concTags.Get(st); return err },
	func(st *state.State, r *rand.Rand) error { concTitle.GetOr(st, ""); concTitle.Has(st); return nil },
	func(st *state.State, r *rand.Rand) error { _, err := state.GetAs[string](st, "title"); return err },
	func(st *state.State, r *rand.Rand) error {
		for range state.ListItems(st, concLog, -5) {
		}
		state.ListLen(st, concLog)
		return nil
	},
	func(st *state.State, r *rand.Rand) error {
		return st.KV().Set("k"+strconv.Itoa(r.IntN(30)), []any{"x"})
	},
	func(st *state.State, r *rand.Rand) error { return st.KV().SetWith("total", 2, state.Max[int]()) },
	func(st *state.State, r *rand.Rand) error { return st.KV().Replace("log", []any{"x"}) },
	func(st *state.State, r *rand.Rand) error {
		_, err := st.KV().Delete("k" + strconv.Itoa(r.IntN(30)))
		return err
	},
	func(st *state.State, r *rand.Rand) error {
		kv := st.KV()
		kv.Get("log")
		kv.Has("k1")
		kv.All()
		kv.Keys()
		kv.Len()
		return nil
	},
	func(st *state.State, r *rand.Rand) error {
		return st.Patch(map[string]any{"first": r.IntN(9), "other": nil, "k3": 1})
	},
	func(st *state.State, r *rand.Rand) error { return st.EndRun() },
	func(st *state.State, r *rand.Rand) error { return st.History().Append(concSaid("hi")) },
	func(st *state.State, r *rand.Rand) error { _, _, err := st.History().Pop(); return err },
	func(st *state.State, r *rand.Rand) error {
		results := st.History().Results()
		return st.History().Reset(results[max(0, len(results)-3):])
	},
	func(st *state.State, r *rand.Rand) error {
		hs := st.History()
		for range hs.All() {
		}
		hs.At(0)
		hs.Last()
		hs.Len()
		hs.Results()
		hs.Format(nil)
		return nil
	},
	func(st *state.State, r *rand.Rand) error {
		return state.Messages.Update(st, func(msgs []state.Message) ([]state.Message, error) {
			return append(msgs[max(0, len(msgs)-10):], state.UserText("go on")), nil
		})
	},
	func(st *state.State, r *rand.Rand) error {
		return st.WithCause("test").Update(func(tx *state.State) error {
			n := concFirst.GetOr(tx, 0)
			if err := concOther.Set(tx, -n); err != nil {
				return err
			}
			return tx.Update(func(tx *state.State) error { return concLog.Set(tx, []string{"tx"}) })
		})
	},
	func(st *state.State, r *rand.Rand) error {
		a, b := st.Fork(), st.Fork()
		concAtOnce(2, func(i int) {
			_ = concLog.Set([]*state.State{a, b}[i], []string{"branch"})
			_ = concTotal.Set([]*state.State{a, b}[i], 1)
		})
		return st.Join(b, a)
	},
	func(st *state.State, r *rand.Rand) error {
		s := st.Snapshot()
		before := fmt.Sprint(s)
		runtime.Gosched()
		if after := fmt.Sprint(s); before != after {
			panic("a snapshot changed: " + before + " is now " + after)
		}
		return nil
	},
	func(st *state.State, r *rand.Rand) error {
		v := st.Version()
		for _, err := range st.Changes(v - min(v, 20)) {
			if err != nil {
				return err
			}
		}
		if now := st.Version(); now < v {
			panic("the version went back")
		}
		return nil
	},
	func(st *state.State, r *rand.Rand) error {
		ctx, cancel := context.WithTimeout(state.NewContext(context.Background(), st), time.Millisecond)
		defer cancel()
		st, _ = state.FromContext(ctx)
		for range st.Watch(ctx, st.Version()) {
		}
		return nil
	},
	func(st *state.State, r *rand.Rand) error {
		v := st.Version()
		past, err := st.At(v - min(v, uint64(r.IntN(10))))
		if err != nil {
			return err
		}
		return st.Revert(past)
	},
	func(st *state.State, r *rand.Rand) error {
		data, err := st.Export()
		if err == nil {
			_, err = state.Import(concSchema, data)
		}
		return err
	},
	func(st *state.State, r *rand.Rand) error {
		st.Fields()
		st.Describe()
		st.Redact("pay with tok-123456")
		_ = fmt.Sprintf("%v %+v %#v %s", st, st, st, st)
		st.LogValue()
		slog.New(slog.DiscardHandler).Info("state", "st", st)
		_, err := json.Marshal(st)
		return err
	},
	func(st *state.State, r *rand.Rand) error { st.Agent(); st.As("cleo").KV().All(); return nil },
}

// Whatever many goroutines do at once, there is no race, nothing hangs, nobody
// gets an error that does not belong to what it did, and the journal accounts
// for every version.
func TestConcurrencyOfAllMethods(t *testing.T) {
	st := state.New(concSchema)
	handles := []*state.State{st, st, st.As("ann"), st.As("bob"), st.As("cleo"), st.As("stranger")}
	rounds := min(effort.Runs(500), 5000)
	concAtOnce(16, func(i int) {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for range rounds {
			err := concMethods[r.IntN(len(concMethods))](handles[r.IntN(len(handles))], r)
			for _, known := range []error{state.ErrNotFound, state.ErrDenied, state.ErrConflict} {
				if errors.Is(err, known) {
					err = nil
				}
			}
			if err != nil {
				t.Errorf("unexpected: %v", err)
			}
		}
	})
	var last uint64
	for c, err := range st.Changes(0) {
		require.NoError(t, err)
		require.LessOrEqual(t, c.Version, last+1)
		last = c.Version
	}
	require.Equal(t, st.Version(), last)
	data, err := st.Export()
	require.NoError(t, err)
	again, err := state.Import(concSchema, data)
	require.NoError(t, err)
	require.Equal(t, st.Version(), again.Version())
}

// Every one of the writes counts, whichever accessor they come through.
func TestConcurrencyLosesNoUpdate(t *testing.T) {
	const writers = 8
	each := min(effort.Runs(2000), 10_000)
	key := func(i, n int) string { return strconv.Itoa(i) + ":" + strconv.Itoa(n) }
	appended := func(st *state.State) []string { return concLog.GetOr(st, nil) }
	counted := func(st *state.State) int { return concTotal.GetOr(st, 0) }
	tests := []struct {
		name  string
		write func(st *state.State, i, n int) error
		list  func(*state.State) []string
	}{
		{"append", func(st *state.State, i, n int) error { return concLog.Set(st, []string{key(i, n)}) }, appended},
		{"append by name", func(st *state.State, i, n int) error { return st.KV().Set("log", key(i, n)) }, appended},
		{"append in Update", func(st *state.State, i, n int) error {
			return st.Update(func(tx *state.State) error { return concLog.Set(tx, []string{key(i, n)}) })
		}, appended},
		{"history", func(st *state.State, i, n int) error { return st.History().Append(concSaid(key(i, n))) }, func(st *state.State) []string {
			var ids, said []string
			for _, r := range st.History().All() {
				ids = append(ids, r.ID)
			}
			for _, m := range state.Messages.GetOr(st, nil) {
				said = append(said, m.(state.TextMessage).Text())
			}
			require.True(t, slices.Equal(ids, said), "results and messages are in one order")
			return ids
		}},
		{"sum", func(st *state.State, i, n int) error { return concTotal.Set(st, 1) }, nil},
		{"sum by name", func(st *state.State, i, n int) error { return st.KV().Set("total", 1) }, nil},
		{"update", func(st *state.State, i, n int) error {
			return concTotal.Update(st, func(n int) (int, error) { return n + 1, nil })
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := state.New(concSchema)
			concAtOnce(writers, func(i int) {
				for n := range each {
					if err := tt.write(st, i, n); err != nil {
						t.Errorf("write %d of writer %d: %v", n, i, err)
						return
					}
				}
			})
			require.EqualValues(t, writers*each, st.Version())
			if tt.list == nil {
				require.Equal(t, writers*each, counted(st))
				return
			}
			next := make([]int, writers)
			list := tt.list(st)
			require.Len(t, list, writers*each)
			for _, s := range list {
				var i, n int
				_, err := fmt.Sscanf(s, "%d:%d", &i, &n)
				require.NoError(t, err)
				require.Equal(t, next[i], n, "the writes of one writer stay in order")
				next[i]++
			}
		})
	}
}

// Nobody sees a version before it is whole, or an older one after a newer.
func TestConcurrencyShowsWholeVersions(t *testing.T) {
	get := func(f *state.Field[int]) func(*state.State) int {
		return func(st *state.State) int { return f.GetOr(st, 0) }
	}
	count := func(st *state.State) int { return st.History().Len() }
	talk := func(st *state.State) int { return state.ListLen(st, state.Messages) }
	both := func(st *state.State, n int) error {
		return errors.Join(concFirst.Set(st, n), concOther.Set(st, n))
	}
	tests := []struct {
		name        string
		write       func(st *state.State, n int) error // makes both n
		one, second func(*state.State) int
	}{
		{"Update", func(st *state.State, n int) error {
			return st.Update(func(tx *state.State) error { return both(tx, n) })
		}, get(concFirst), get(concOther)},
		{"Patch", func(st *state.State, n int) error {
			return st.Patch(map[string]any{"first": n, "other": n})
		}, get(concFirst), get(concOther)},
		{"Join", func(st *state.State, n int) error {
			a, b := st.Fork(), st.Fork()
			return errors.Join(concFirst.Set(a, n), concOther.Set(b, n), st.Join(a, b))
		}, get(concFirst), get(concOther)},
		{"Revert", func(st *state.State, n int) error {
			f := st.Fork()
			return errors.Join(both(f, n), st.Revert(f.Snapshot()))
		}, get(concFirst), get(concOther)},
		{"History.Append", func(st *state.State, n int) error {
			return st.History().Append(concSaid(strconv.Itoa(n)))
		}, count, talk},
		{"undeclared keys", func(st *state.State, n int) error {
			return st.Patch(map[string]any{"a": n, "b": n})
		}, func(st *state.State) int { n, _ := state.GetAs[int](st, "a"); return n }, func(st *state.State) int { n, _ := state.GetAs[int](st, "b"); return n }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := state.New(concSchema)
			var done atomic.Bool
			var readers sync.WaitGroup
			for i := range 3 {
				readers.Go(func() {
					for reads := 0; !done.Load() || reads == 0; reads++ {
						switch i {
						case 0:
							s := st.Snapshot()
							if a, b := tt.one(s), tt.second(s); a != b {
								t.Errorf("a snapshot has %d and %d", a, b)
								return
							}
						case 1:
							if a, b := tt.one(st), tt.second(st); b < a {
								t.Errorf("read %d, and then %d of the same or a later version", a, b)
								return
							}
						case 2:
							if b, a := tt.second(st), tt.one(st); a < b {
								t.Errorf("read %d, and then %d of the same or a later version", b, a)
								return
							}
						}
					}
				})
			}
			for n := 1; n <= 3000; n++ {
				require.NoError(t, tt.write(st, n))
			}
			done.Store(true)
			readers.Wait()
		})
	}
}

// The result of a Join depends on the order of its arguments, not on timing.
func TestConcurrencyJoinDoesNotDependOnTiming(t *testing.T) {
	run := func(seed uint64) string {
		st := state.New(concSchema)
		require.NoError(t, concLog.Set(st, []string{"start"}))
		branches := make([]*state.State, 8)
		for i := range branches {
			branches[i] = st.Fork()
		}
		r := rand.New(rand.NewPCG(seed, 0))
		order := r.Perm(len(branches))
		concAtOnce(len(branches), func(at int) {
			i := order[at]
			b := branches[i]
			for n := range 20 {
				text := fmt.Sprint(i, "-", n)
				err := errors.Join(
					concLog.Set(b, []string{text}), concTags.Set(b, []string{strconv.Itoa(n / 2)}), concTotal.Set(b, i),
					concGlued.Set(b, text), concDraft.Set(b, map[string]int{text: i}), b.KV().Set("k"+strconv.Itoa(i), n),
					b.History().Append(concSaid(text)),
				)
				if err != nil {
					t.Error(err)
				}
				if n%5 == i%5 {
					runtime.Gosched()
				}
			}
		})
		require.NoError(t, st.Join(branches[:5]...))
		require.NoError(t, st.Join(branches[5:]...))
		require.EqualValues(t, 3, st.Version())
		data, err := st.Export()
		require.NoError(t, err)
		return string(data)
	}
	want := run(0)
	for seed := range uint64(effort.Runs(10)) {
		require.Equal(t, want, run(seed+1))
	}
}

// A branch can be joined once, even if many goroutines try at the same time.
func TestConcurrencyJoinsABranchOnce(t *testing.T) {
	for range 200 {
		st := state.New(concSchema)
		b := st.Fork()
		require.NoError(t, concTotal.Set(b, 1))
		var joined, late atomic.Int32
		concAtOnce(4, func(i int) {
			if i == 3 {
				if err := concTotal.Set(b, 1); err != nil {
					late.Add(1)
				}
				return
			}
			if err := st.Join(b); err == nil {
				joined.Add(1)
			} else if !errors.Is(err, state.ErrReadOnly) {
				t.Error(err)
			}
		})
		require.EqualValues(t, 1, joined.Load())
		require.Equal(t, int(2-late.Load()), concTotal.GetOr(st, 0), "a write that was accepted is joined")
	}
}

func TestConcurrencyWatchSeesEveryVersionOnceInOrder(t *testing.T) {
	const writers, each = 4, 500
	synctest.Test(t, func(t *testing.T) {
		st := state.New(concSchema)
		ctx, cancel := context.WithCancel(t.Context())
		watch := func(h *state.State, names ...string) func() (seen []string) {
			var seen []string
			done := make(chan struct{})
			go func() {
				defer close(done)
				var last uint64
				for c, err := range h.Watch(ctx, 0, names...) {
					if err != nil || len(names) == 0 && c.Version != last+1 || c.Version <= last {
						t.Errorf("version %d after %d: %v", c.Version, last, err)
						return
					}
					last = c.Version
					seen = append(seen, c.Value.([]string)[0])
				}
			}()
			return func() []string { <-done; return seen }
		}
		host, bob, named := watch(st), watch(st.As("bob")), watch(st, "log")
		concAtOnce(writers, func(i int) {
			for n := range each {
				if err := concLog.Set(st, []string{fmt.Sprint(i, " ", n)}); err != nil {
					t.Error(err)
				}
			}
		})
		synctest.Wait() // the watchers have seen all, and wait
		cancel()
		want := concLog.GetOr(st, nil)
		require.Len(t, want, writers*each)
		for _, seen := range []func() []string{host, bob, named} {
			require.Equal(t, want, seen())
		}
	}) // which fails if a goroutine is left
}

// A branch that is joined changes no more.
func TestConcurrencyWatchEndsWithItsBranch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := state.New(concSchema)
		b := st.Fork()
		go func() {
			time.Sleep(time.Second)
			require.NoError(t, st.Join(b))
		}()
		start := time.Now()
		for range b.Watch(t.Context(), 0) {
			t.Error("nothing was written")
		}
		require.Equal(t, time.Second, time.Since(start))
	})
}

// While a Join is at work the branch is not over: it may yet fail.
func TestConcurrencyWatchOutlivesAJoinThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := errors.New("no")
		var joining bool
		slow := &state.Field[string]{Name: "slow", Handler: state.NewHandler("slow", func(_ string, _ bool, upd string) (string, error) {
			if joining {
				time.Sleep(time.Second)
				return "", refuse
			}
			return upd, nil
		})}
		st := state.New(state.MustSchema(slow))
		b := st.Fork()
		require.NoError(t, slow.Set(b, "x"))
		require.NoError(t, slow.Set(st, "y"))
		joining = true
		done := make(chan error)
		go func() { done <- st.Join(b) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		seen := 0
		go func() {
			require.ErrorIs(t, <-done, refuse)
			require.NoError(t, slow.Replace(b, "z"))
		}()
		for _, err := range b.Watch(ctx, b.Version()) {
			require.NoError(t, err)
			seen++
			cancel()
		}
		require.Equal(t, 1, seen)
	})
}

// A value that Revert leaves as it is is one of the reads that it depends on.
func TestConcurrencyRevertInUpdateRunsAgain(t *testing.T) {
	st := state.New(concSchema)
	require.NoError(t, concFirst.Set(st, 1))
	past := st.Snapshot()
	require.NoError(t, concOther.Set(st, 1))
	runs := 0
	require.NoError(t, st.Update(func(tx *state.State) error {
		if runs++; runs == 1 {
			require.NoError(t, concFirst.Set(st, 2))
		}
		return tx.Revert(past)
	}))
	require.Equal(t, past.KV().All(), st.KV().All())
}

func TestConcurrencySlowWatchIsCompactedAndBounded(t *testing.T) {
	st := state.New(state.MustSchema(append(concParts, state.Limits{Journal: 50})...))
	text := string(make([]byte, 10_000))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	require.NoError(t, concTitle.Set(st, "start"))
	var last error
	seen := 0
	for c, err := range st.Watch(t.Context(), 0) {
		if last = err; err != nil {
			require.Zero(t, c)
			continue
		}
		seen++
		before := heap()
		for n := range 10_000 { // 100 MB in all
			require.NoError(t, concTitle.Set(st, text[:9000]+strconv.Itoa(n)))
		}
		if after := heap(); after > before+16<<20 {
			t.Fatalf("a watch that waits keeps %d bytes", after-before)
		}
	}
	require.ErrorIs(t, last, state.ErrCompacted)
	require.Equal(t, 1, seen)
}

// Update runs fn again if, and only if, what fn has seen or overwritten changed.
func TestConcurrencyUpdateRunsAgain(t *testing.T) {
	set := func(name string) func(*state.State) error {
		return func(st *state.State) error { return st.KV().Set(name, "new") }
	}
	tests := []struct {
		name  string
		inner func(tx *state.State) error
		outer func(st *state.State) error // between the first run's inner and its end
		runs  int
	}{
		{"read and changed", func(tx *state.State) error { concTitle.GetOr(tx, ""); return nil }, set("title"), 2},
		{"read by name and changed", func(tx *state.State) error { tx.KV().Get("title"); return nil }, set("title"), 2},
		{"asked for and appeared", func(tx *state.State) error { tx.KV().Has("k"); return nil }, set("k"), 2},
		{"length read and appended", func(tx *state.State) error { state.ListLen(tx, concLog); return nil }, set("log"), 2},
		{"overwritten and changed", func(tx *state.State) error { return concTitle.Set(tx, "mine") }, set("title"), 2},
		{"deleted and changed", func(tx *state.State) error { _, err := tx.KV().Delete("old"); return err }, set("old"), 2},
		{"found nothing to delete, and appeared", func(tx *state.State) error { _, err := tx.KV().Delete("k"); return err }, set("k"), 2},
		{"found nothing to patch away, and appeared", func(tx *state.State) error { return tx.Patch(map[string]any{"k": nil}) }, set("k"), 2},
		{"found no run to end, and one began", func(tx *state.State) error { return tx.EndRun() },
			func(st *state.State) error { return concDraft.Set(st, map[string]int{"a": 1}) }, 2},
		{"updated and changed", func(tx *state.State) error {
			return concTitle.Update(tx, func(s string) (string, error) { return s + "!", nil })
		}, set("title"), 2},
		{"read in a nested Update", func(tx *state.State) error {
			return tx.Update(func(tx *state.State) error { concTitle.GetOr(tx, ""); return nil })
		}, set("title"), 2},
		{"read in a branch", func(tx *state.State) error { concTitle.GetOr(tx.Fork(), ""); return nil }, set("title"), 2},
		{"read in a snapshot", func(tx *state.State) error { concTitle.GetOr(tx.Snapshot(), ""); return nil }, set("title"), 2},
		{"history read and grown", func(tx *state.State) error { tx.History().Len(); return nil },
			func(st *state.State) error { return st.History().Append(concSaid("hi")) }, 2},
		{"popped and grown", func(tx *state.State) error { _, _, err := tx.History().Pop(); return err },
			func(st *state.State) error { return st.History().Append(concSaid("hi")) }, 2},
		{"all read, one changed", func(tx *state.State) error { tx.KV().All(); return nil }, set("title"), 2},
		{"described, one changed", func(tx *state.State) error { tx.Describe(); return nil }, set("title"), 2},
		{"exported, one changed", func(tx *state.State) error { _, err := tx.Export(); return err }, set("title"), 2},
		{"printed, one changed", func(tx *state.State) error { _ = fmt.Sprintf("%+v", tx); return nil }, set("title"), 2},
		{"keys listed, one appeared", func(tx *state.State) error { tx.KV().Keys(); return nil }, set("k"), 2},
		{"keys counted, one appeared", func(tx *state.State) error { tx.KV().Len(); return nil }, set("k"), 2},
		{"keys listed, one went", func(tx *state.State) error { tx.KV().Keys(); return nil },
			func(st *state.State) error { _, err := st.KV().Delete("old"); return err }, 2},

		{"keys listed, one changed", func(tx *state.State) error { tx.KV().Keys(); return nil }, set("title"), 1},
		{"not listed, one appeared", func(tx *state.State) error { tx.KV().Get("old"); return nil }, set("k"), 1},
		{"another changed", func(tx *state.State) error { concTitle.GetOr(tx, ""); return nil }, set("old"), 1},
		{"merged blindly and merged", func(tx *state.State) error { return concLog.Set(tx, []string{"mine"}) }, set("log"), 1},
		{"merged blindly and overwritten", func(tx *state.State) error { return concLog.Set(tx, []string{"mine"}) },
			func(st *state.State) error { return concLog.Replace(st, []string{"other"}) }, 1},
		{"merged blindly and deleted", func(tx *state.State) error { return concLog.Set(tx, []string{"mine"}) },
			func(st *state.State) error { _, err := concLog.Delete(st); return err }, 1},
		{"results appended on both sides", func(tx *state.State) error { return tx.History().Append(concSaid("mine")) },
			func(st *state.State) error { return st.History().Append(concSaid("hi")) }, 1},
		{"own handler on both sides", func(tx *state.State) error { return concGlued.Set(tx, "mine") }, set("glued"), 1},
		{"written and read back", func(tx *state.State) error {
			err := concTitle.Set(tx, "mine")
			concTitle.GetOr(tx, "")
			return err
		}, set("old"), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := state.New(concSchema)
			require.NoError(t, st.Patch(map[string]any{"title": "old", "old": "old", "log": []string{"old"}}))
			require.NoError(t, st.History().Append(concSaid("old")))
			data, err := st.Export()
			require.NoError(t, err)
			serial, err := state.Import(concSchema, data)
			require.NoError(t, err)
			runs := 0
			fn := func(tx *state.State) error {
				runs++
				if err := tt.inner(tx); err != nil {
					return err
				}
				return concTotal.Set(tx, 1) // so that there is something to commit
			}
			require.NoError(t, st.Update(func(tx *state.State) error {
				err := fn(tx)
				if runs == 1 {
					require.NoError(t, tt.outer(st), "the handle outside works")
				}
				return err
			}))
			require.Equal(t, tt.runs, runs)
			require.EqualValues(t, 4, st.Version(), "one version each")
			// It is as if the one had come after the other.
			require.NoError(t, tt.outer(serial))
			require.NoError(t, serial.Update(fn))
			require.Equal(t, serial.KV().All(), st.KV().All())
			require.Equal(t, serial.History().Results(), st.History().Results())
		})
	}
}

// A slow handler delays no other caller.
func TestConcurrencyHandlerHoldsNoLock(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	slow := &state.Field[int]{Name: "slow", Handler: state.NewHandler("slow", func(cur int, _ bool, upd int) (int, error) {
		if upd == 1 {
			entered <- struct{}{}
			<-leave
		}
		return cur + upd, nil
	})}
	plain := &state.Field[string]{Name: "plain"}
	st := state.New(state.MustSchema(slow, plain))
	done := make(chan error)
	go func() { done <- slow.Set(st, 1) }()
	<-entered
	require.NoError(t, plain.Set(st, "x"))
	require.NoError(t, slow.Replace(st, 10), "the same field, without its handler")
	require.NoError(t, st.Update(func(tx *state.State) error { return plain.Set(tx, "y") }))
	require.NoError(t, st.History().Append(concSaid("hi")))
	require.Equal(t, 10, slow.GetOr(st, 0))
	f := st.Fork()
	require.NoError(t, plain.Set(f, "z"))
	require.NoError(t, st.Join(f))
	go func() { <-entered }() // it runs again, for slow has changed
	close(leave)
	require.NoError(t, <-done)
	require.Equal(t, 11, slow.GetOr(st, 0))
}

// The tests below prove that a write whose own code overtakes it fails
// soon with an error that names the fields it writes, and that a write which
// others overtake succeeds however slow it is. They run in bubbles, where
// waiting takes no time but is counted.

var (
	ownCount  = &state.Field[int]{Name: "count"}
	ownOther  = &state.Field[int]{Name: "other"}
	ownLog    = &state.Field[[]string]{Name: "log"}
	ownSchema = state.MustSchema(ownCount, ownOther, ownLog, state.AllowUndeclared)
)

func ownInc(n int) (int, error) { return n + 1, nil }

func TestAWriteThroughTheOuterHandleIsFoundWithinASecond(t *testing.T) {
	n := 0
	for _, tt := range []struct {
		name   string
		inside func(st, tx *state.State) error // also reads through tx what it writes through st
		fields []string
	}{
		{"set", func(st, tx *state.State) error { ownLog.GetOr(tx, nil); return ownLog.Set(st, []string{"x"}) }, []string{"log"}},
		{"update", func(st, tx *state.State) error { ownCount.GetOr(tx, 0); return ownCount.Update(st, ownInc) }, []string{"count"}},
		{"overwritten on both sides", func(st, tx *state.State) error {
			return errors.Join(ownCount.Set(tx, 1), ownCount.Set(st, 2))
		}, []string{"count"}},
		{"by name", func(st, tx *state.State) error { tx.KV().Has("k"); return st.KV().Set("k", 1) }, []string{"k"}},
		{"delete", func(st, tx *state.State) error {
			tx.KV().Has("k")
			_, err := st.KV().Delete("k")
			return errors.Join(st.KV().Set("k", 1), err)
		}, []string{"k"}},
		{"patch", func(st, tx *state.State) error {
			ownCount.GetOr(tx, 0)
			ownLog.GetOr(tx, nil)
			n++
			return st.Patch(map[string]any{"count": n, "log": []string{}})
		}, []string{"count", "log"}},
		{"another transaction", func(st, tx *state.State) error {
			ownCount.GetOr(tx, 0)
			return st.Update(func(tx *state.State) error { return ownCount.Set(tx, ownCount.GetOr(tx, 0)+1) })
		}, []string{"count"}},
		{"join", func(st, tx *state.State) error {
			ownLog.GetOr(tx, nil)
			f := st.Fork()
			return errors.Join(ownLog.Set(f, []string{"x"}), st.Join(f))
		}, []string{"log"}},
		{"results", func(st, tx *state.State) error {
			tx.History().Len()
			return st.History().Append(state.InferenceResult{})
		}, []string{"history"}},
		{"from a goroutine that it waits for", func(st, tx *state.State) error {
			ownCount.GetOr(tx, 0)
			done := make(chan error)
			go func() { done <- ownCount.Update(st, ownInc) }()
			return <-done
		}, []string{"count"}},
		{"in a nested transaction", func(st, tx *state.State) error {
			return tx.Update(func(inner *state.State) error {
				ownCount.GetOr(inner, 0)
				return errors.Join(ownOther.Set(inner, 2), ownCount.Update(st, ownInc))
			})
		}, []string{"count"}},
		{"keys that it has listed", func(st, tx *state.State) error {
			n++
			tx.KV().Len()
			return st.KV().Set(fmt.Sprint("key ", n%2), 1+len(st.KV().Keys()))
		}, nil},
		{"the version", func(st, tx *state.State) error { tx.Version(); return ownLog.Set(st, []string{"x"}) }, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := state.New(ownSchema)
				start := time.Now()
				err := st.Update(func(tx *state.State) error {
					return errors.Join(ownOther.Set(tx, 1), tt.inside(st, tx))
				})
				if tt.fields == nil { // it wrote a new key twice and then was right
					require.NoError(t, err)
					return
				}
				require.LessOrEqual(t, time.Since(start), time.Second)
				var conflict *state.ConflictError
				require.ErrorAs(t, err, &conflict)
				require.Equal(t, tt.fields, conflict.Fields)
				require.ErrorContains(t, err, "another handle than tx")
				require.Less(t, st.Version(), uint64(40), "few writes")
				require.False(t, ownOther.Has(st))
			})
		})
	}
}

// Others wait only in proportion to how long the function takes by itself.
func TestASlowWriteThroughTheOuterHandleIsFoundAfterAFewRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 300 * time.Millisecond
		st := state.New(ownSchema)
		start := time.Now()
		require.ErrorIs(t, st.Update(func(tx *state.State) error {
			time.Sleep(took)
			return errors.Join(ownCount.Set(tx, 1), ownCount.Set(st, 2))
		}), state.ErrConflict)
		require.LessOrEqual(t, time.Since(start), 8*took)
	})
}

// A write that waits for one that goes first goes on when that is done.
func TestAWriteWaitsNoLongerThanAnotherOneTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 10 * time.Millisecond
		st := state.New(ownSchema)
		runs := 0
		waited := make(chan time.Duration, 1)
		require.NoError(t, st.Update(func(tx *state.State) error {
			if runs++; runs <= 8 {
				return errors.Join(ownCount.Set(tx, 1), ownCount.Set(st, 2))
			}
			go func() {
				start := time.Now()
				require.NoError(t, ownCount.Set(st, 3))
				waited <- time.Since(start)
			}()
			time.Sleep(took)
			return ownCount.Set(tx, 1)
		}))
		require.Equal(t, 9, runs)
		require.Equal(t, took, <-waited)
		require.Equal(t, 3, ownCount.GetOr(st, 0))
	})
}

// A handler of the messages that changes the results overtakes Append.
func TestAHandlerThatOvertakesItsOwnAppendIsTold(t *testing.T) {
	for name, do := range map[string]func(*state.State) error{
		"reset": func(st *state.State) error { return st.History().Reset([]state.InferenceResult{{Agent: "x"}}) },
		"append and pop": func(st *state.State) error {
			_, _, err := st.History().Pop()
			return errors.Join(st.History().Append(state.InferenceResult{}), err)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			var st *state.State
			messages := &state.Field[[]state.Message]{Name: "messages", Handler: state.NewHandler("talks",
				func(cur []state.Message, _ bool, upd []state.Message) ([]state.Message, error) {
					return append(cur, upd...), do(st)
				})}
			st = state.New(state.MustSchema(messages))
			start := time.Now()
			var conflict *state.ConflictError
			err := st.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText("hi")}})
			require.ErrorAs(t, err, &conflict, name)
			require.Equal(t, []string{"history"}, conflict.Fields)
			require.LessOrEqual(t, time.Since(start), time.Second)
			require.Less(t, st.Version(), uint64(60))
		})
	}
}

// Writes of others do not make a write fail.
func TestAWriteThatOthersOvertakeSucceeds(t *testing.T) {
	for _, took := range []time.Duration{0, time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second} {
		for name, write := range map[string]func(st *state.State) error{
			"transaction": func(st *state.State) error {
				return st.Update(func(tx *state.State) error {
					n := ownCount.GetOr(tx, 0)
					time.Sleep(took)
					return ownOther.Set(tx, n)
				})
			},
			"Field.Update": func(st *state.State) error {
				return ownCount.Update(st, func(n int) (int, error) {
					time.Sleep(took)
					return n + 1, nil
				})
			},
			"transaction that lists": func(st *state.State) error {
				return st.Update(func(tx *state.State) error {
					n := tx.KV().Len()
					time.Sleep(took)
					return ownOther.Set(tx, n)
				})
			},
		} {
			t.Run(fmt.Sprint(name, " of ", took), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := state.New(ownSchema)
					done := make(chan struct{})
					var wg sync.WaitGroup
					for i := range 3 {
						wg.Go(func() {
							for n := 0; ; n++ {
								select {
								case <-done:
									return
								case <-time.After(time.Duration(1+i) * 100 * time.Microsecond):
								}
								require.NoError(t, ownCount.Set(st, n))
								_, err := st.KV().Delete("k")
								require.NoError(t, errors.Join(st.KV().Set("k", n), err))
							}
						})
					}
					start := time.Now()
					for range 3 {
						require.NoError(t, write(st))
					}
					require.Less(t, time.Since(start), 3*(4*took+500*time.Millisecond))
					close(done)
					wg.Wait()
				})
			})
		}
	}
}

func TestSlowTransactionsOfOneFieldAllSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := state.New(ownSchema)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				require.NoError(t, st.Update(func(tx *state.State) error {
					n := ownCount.GetOr(tx, 0)
					time.Sleep(time.Duration(20+10*i) * time.Millisecond)
					return ownCount.Set(tx, n+1)
				}))
			})
		}
		wg.Wait()
		require.Equal(t, 8, ownCount.GetOr(st, 0))
	})
}

// Handlers that write the fields of each other, and try again, end: none of them
// waits for a field more than once.
func TestAChainOfHandlersThatWaitForEachOtherEnds(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			var st *state.State
			fields := make([]*state.Field[int], n)
			var parts []state.Part
			for i := range fields {
				fields[i] = &state.Field[int]{Name: fmt.Sprint("f", i), Handler: state.NewHandler("next", func(_ int, _ bool, update int) (int, error) {
					for range 3 {
						_ = fields[(i+1)%n].Set(st, update)
					}
					return update, nil
				})}
				parts = append(parts, fields[i])
			}
			st = state.New(state.MustSchema(parts...))
			start := time.Now()
			var wg sync.WaitGroup
			for _, f := range fields {
				wg.Go(func() { _ = f.Set(st, 1) })
			}
			wg.Wait()
			require.LessOrEqual(t, time.Since(start), time.Duration(n)*time.Second, "%d handlers", n)
		})
	}
}

// The tests below prove that no code of users runs under a lock: every
// method of a value, and every function that a user gives, calls the State that
// is at work on it, and returns.

// reentry is what the code of users does in these tests.
type reentry struct {
	mu     sync.Mutex
	states []*state.State // that are called
	writes int            // left in this operation: each may overtake what called it
	called map[string]int // by the name of the method or function
	nested atomic.Int32   // a read of a value would call its methods again
}

// reenters is the present test's. Methods of values have no other way to it.
var reenters atomic.Pointer[reentry]

// reenter is called by all code of users.
func reenter(from string) {
	r := reenters.Load()
	if r == nil {
		return
	}
	if r.nested.Add(1) > 1 {
		r.nested.Add(-1)
		return
	}
	defer r.nested.Add(-1)
	r.mu.Lock()
	r.called[from]++
	states, write := r.states, r.writes > 0
	r.writes--
	r.mu.Unlock()
	for _, st := range states {
		st.Version()
		st.KV().Len()
		_, _ = st.KV().Get("other")
		_, _ = st.KV().Get("x")
		st.Snapshot().KV().Keys()
		_ = st.Fork().KV().Set("other", 1)
		if write {
			_ = st.KV().Set("other", from)
		}
	}
}

// reentryJSON codes itself as JSON, and has every other method that a library
// might call.
type reentryJSON struct{ s string }

func (v reentryJSON) MarshalJSON() ([]byte, error) {
	reenter("MarshalJSON")
	return json.Marshal(v.s)
}

func (v *reentryJSON) UnmarshalJSON(data []byte) error {
	reenter("UnmarshalJSON")
	return json.Unmarshal(data, &v.s)
}

func (v reentryJSON) String() string               { reenter("String"); return v.s }
func (v reentryJSON) GoString() string             { reenter("GoString"); return v.s }
func (v reentryJSON) Format(f fmt.State, _ rune)   { reenter("Format"); fmt.Fprint(f, v.s) }
func (v reentryJSON) Error() string                { reenter("Error"); return v.s }
func (v reentryJSON) Equal(other reentryJSON) bool { reenter("Equal"); return v == other }
func (v reentryJSON) IsZero() bool                 { reenter("IsZero"); return v.s == "" }

// reentryText codes itself as text.
type reentryText struct{ s string }

func (v reentryText) MarshalText() ([]byte, error) { reenter("MarshalText"); return []byte(v.s), nil }
func (v *reentryText) UnmarshalText(data []byte) error {
	reenter("UnmarshalText")
	v.s = string(data)
	return nil
}

// reentryClone has a pointer, and copies itself.
type reentryClone struct{ s *string }

func (v reentryClone) MarshalText() ([]byte, error) {
	reenter("MarshalText")
	return []byte(*v.s), nil
}

func (v *reentryClone) UnmarshalText(data []byte) error {
	reenter("UnmarshalText")
	s := string(data)
	v.s = &s
	return nil
}

func (v *reentryClone) Clone() *reentryClone {
	reenter("Clone")
	s := *v.s
	return &reentryClone{&s}
}

type reentryParts struct {
	JSON  reentryJSON          `json:"json,omitzero"`
	Text  *reentryText         `json:"text"`
	Clone []reentryClone       `json:"clone"`
	Any   any                  `json:"any"`
	Map   map[reentryText]bool `json:"map"`
}

// reentryAny is dynamic, but no type of it has methods.
type reentryAny struct {
	Any any `json:"any"`
}

// reentryTree contains itself, and methods behind that.
type reentryTree struct {
	Kids []reentryTree `json:"kids"`
	JSON reentryJSON   `json:"json"`
}

func reentryCloneOf(s string) reentryClone { return reentryClone{&s} }

func reentryPartsOf(s string) reentryParts {
	return reentryParts{
		JSON: reentryJSON{s}, Text: &reentryText{s}, Clone: []reentryClone{reentryCloneOf(s)},
		Any: []any{reentryJSON{s}}, Map: map[reentryText]bool{{s}: true},
	}
}

// reentryShape is one type of field with all operations on it.
type reentryShape struct {
	name  string
	setup func() (*state.State, []reentryOperation)
}

type reentryOperation struct {
	name string
	run  func(st *state.State) error
}

// reentryShapeOf returns the shape of a type. The handlers are tried besides
// those that every type has.
func reentryShapeOf[T any](name string, make func(s string) T, handlers ...state.Handler[T]) reentryShape {
	handlers = append(handlers, state.Handler[T]{}, state.Replace[T](), state.FirstWins[T](), state.LastWins[T](),
		state.NewHandler("own", func(_ T, _ bool, update T) (T, error) { reenter("handler"); return update, nil }))
	return reentryShape{name, func() (*state.State, []reentryOperation) {
		plain := &state.Field[T]{Name: "x"}
		shared := &state.Field[T]{Name: "shared", NoCopy: true}
		secret := &state.Field[T]{Name: "secret", Secret: true}
		valid := &state.Field[T]{Name: "valid", Validate: func(T) error { reenter("Validate"); return nil }}
		fields := []*state.Field[T]{plain, shared, secret, valid}
		parts := []state.Part{plain, shared, secret, valid, &state.Field[any]{Name: "other"}, state.AllowUndeclared}
		for i, h := range handlers {
			f := &state.Field[T]{Name: fmt.Sprintf("handler %d:%s", i, h.Name()), Handler: h}
			noCopy := &state.Field[T]{Name: f.Name + " shared", Handler: h, NoCopy: true}
			fields = append(fields, f, noCopy)
			parts = append(parts, f, noCopy)
		}
		st := state.New(state.MustSchema(parts...))
		n := 0
		value := func() T { n++; return make(fmt.Sprint(n % 3)) }

		var ops []reentryOperation
		add := func(name string, run func(*state.State) error) {
			ops = append(ops, reentryOperation{name, run})
		}
		for _, f := range fields {
			add("Set "+f.Name, func(st *state.State) error { return f.Set(st, value()) })
			add("Replace "+f.Name, func(st *state.State) error { return f.Replace(st, value()) })
			add("Update "+f.Name, func(st *state.State) error {
				return f.Update(st, func(T) (T, error) { reenter("Update"); return value(), nil })
			})
			add("KV.Set "+f.Name, func(st *state.State) error { return st.KV().Set(f.Name, value()) })
			add("Get "+f.Name, func(st *state.State) error { f.GetOr(st, value()); st.KV().Get(f.Name); return nil })
			add("Delete "+f.Name, func(st *state.State) error { _, err := f.Delete(st); return err })
			add("a transaction "+f.Name, func(st *state.State) error {
				return st.Update(func(tx *state.State) error {
					f.GetOr(tx, value())
					reenter("transaction")
					return f.Set(tx, value())
				})
			})
			add("a join "+f.Name, func(st *state.State) error {
				a, b := st.Fork(), st.Fork()
				err := errors.Join(f.Set(a, value()), f.Set(b, value()), f.Set(st, value()))
				var conflict *state.ConflictError
				if joined := st.Join(a, b); !errors.As(joined, &conflict) {
					err = errors.Join(err, joined)
				}
				return err
			})
		}
		for _, h := range handlers {
			add("SetWith "+h.Name(), func(st *state.State) error { return plain.SetWith(st, value(), h) })
			add("SetWith shared "+h.Name(), func(st *state.State) error { return shared.SetWith(st, value(), h) })
			add("KV.SetWith undeclared "+h.Name(), func(st *state.State) error {
				return st.KV().SetWith("key:"+h.Name(), value(), h)
			})
		}
		add("KV.Set undeclared", func(st *state.State) error { return st.KV().Set("key", value()) })
		add("Get undeclared as T", func(st *state.State) error { _, _ = state.GetAs[T](st, "key"); return nil })
		add("Patch", func(st *state.State) error {
			return st.Patch(map[string]any{"x": value(), "shared": value(), "valid": value(), "key": value()})
		})
		add("Revert", func(st *state.State) error {
			past := st.Snapshot()
			if err := st.Patch(map[string]any{"x": value(), "shared": value(), "key": value()}); err != nil {
				return err
			}
			return st.Revert(past)
		})
		add("Effects", func(st *state.State) error {
			past := st.Snapshot()
			if err := plain.Set(st, value()); err != nil {
				return err
			}
			_, err := st.Effects(past)
			return err
		})
		add("At", func(st *state.State) error {
			past, err := st.At(st.Version())
			if err == nil {
				past.KV().All()
			}
			return err
		})
		add("Export and Import", func(st *state.State) error { _, err := st.Export(); return err })
		add("rendered", func(st *state.State) error {
			_ = fmt.Sprintf("%+v %v %s", st, st, st.Describe()) + st.Redact("text")
			_, err := st.MarshalJSON()
			st.KV().All()
			return err
		})
		add("Changes", func(st *state.State) error {
			for range st.Changes(0) {
				reenter("Changes")
			}
			return nil
		})
		add("Watch", func(st *state.State) error {
			if err := plain.Set(st, value()); err != nil {
				return err
			}
			for _, err := range st.Watch(context.Background(), st.Version()-1) {
				reenter("Watch")
				return err
			}
			return nil
		})
		return st, ops
	}}
}

func reentryShapes() []reentryShape {
	parts, text := reentryPartsOf, func(s string) reentryText { return reentryText{s} }
	value := func(s string) reentryJSON { return reentryJSON{s} }
	own := state.MergeByID[[]reentryParts](func(v reentryParts) string { reenter("key"); return v.JSON.s })
	id := state.MergeByID[[]reentryParts](func(v reentryParts) string { reenter("id"); return v.JSON.s })
	return []reentryShape{
		reentryShapeOf("JSON", value),
		reentryShapeOf("text", text),
		reentryShapeOf("clone", reentryCloneOf),
		reentryShapeOf("a pointer", func(s string) *reentryJSON { return &reentryJSON{s} }),
		reentryShapeOf("parts", parts),
		reentryShapeOf("an array", func(s string) [2]reentryText { return [2]reentryText{{s}, {s}} }),
		reentryShapeOf("a list of JSON", func(s string) []reentryJSON { return []reentryJSON{{s}} },
			state.Append[[]reentryJSON](), state.KeepLast[[]reentryJSON](1), state.Union[[]reentryJSON]()),
		reentryShapeOf("a list of parts", func(s string) []reentryParts { return []reentryParts{parts(s)} },
			state.Append[[]reentryParts](), state.KeepLast[[]reentryParts](1), state.Union[[]reentryParts](), own, id),
		reentryShapeOf("a list of pointers", func(s string) []*reentryClone { v := reentryCloneOf(s); return []*reentryClone{&v} },
			state.Append[[]*reentryClone](), state.KeepLast[[]*reentryClone](1)),
		reentryShapeOf("a map", func(s string) map[string]reentryJSON { return map[string]reentryJSON{"a": {s}} },
			state.MergeMap[map[string]reentryJSON]()),
		reentryShapeOf("a map with keys of text", func(s string) map[reentryText]string { return map[reentryText]string{{s}: s} },
			state.MergeMap[map[reentryText]string]()),
		reentryShapeOf("any", func(s string) any { return value(s) }),
		reentryShapeOf("a list in any", func(s string) any { return []any{value(s), map[string]any{"a": text(s)}} }),
		reentryShapeOf("a list of any", func(s string) []any { return []any{value(s), parts(s)} },
			state.Append[[]any](), state.KeepLast[[]any](1), state.Union[[]any]()),
		reentryShapeOf("a map of any", func(s string) map[string]any { return map[string]any{"a": value(s)} },
			state.MergeMap[map[string]any]()),
		reentryShapeOf("a list of maps of any", func(s string) []map[string]any { return []map[string]any{{"a": []any{value(s)}}} },
			state.Append[[]map[string]any](), state.KeepLast[[]map[string]any](1), state.Union[[]map[string]any]()),
		reentryShapeOf("a list of structs of any", func(s string) []reentryAny { return []reentryAny{{value(s)}} },
			state.Append[[]reentryAny](), state.KeepLast[[]reentryAny](1), state.Union[[]reentryAny]()),
		reentryShapeOf("a tree", func(s string) reentryTree { return reentryTree{[]reentryTree{{JSON: reentryJSON{s}}}, reentryJSON{s}} }),
		reentryShapeOf("a list of trees", func(s string) []reentryTree {
			return []reentryTree{{[]reentryTree{{JSON: reentryJSON{s}}}, reentryJSON{s}}}
		},
			state.Append[[]reentryTree](), state.KeepLast[[]reentryTree](1), state.Union[[]reentryTree]()),
		reentryShapeOf("a list of lists of any", func(s string) [][]any { return [][]any{{value(s)}} },
			state.Append[[][]any](), state.KeepLast[[][]any](1)),
		reentryShapeOf("an array of any", func(s string) [2]any { return [2]any{value(s), text(s)} }),
		reentryShapeOf("a list of pointers to JSON", func(s string) []*reentryJSON { return []*reentryJSON{{s}} },
			state.Append[[]*reentryJSON](), state.KeepLast[[]*reentryJSON](1)),
	}
}

// reentryWait is the time after which a call that does nothing slow is taken
// for a deadlock.
const reentryWait = 30 * time.Second

// reentryReturns fails the test if fn does not return.
func reentryReturns(t testing.TB, what func() string, fn func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- fn() }()
	select {
	case err := <-done:
		require.NoError(t, err, "%s", what())
	case <-time.After(reentryWait):
		stacks := make([]byte, 1<<16)
		t.Fatalf("%s does not return\n%s", what(), stacks[:runtime.Stack(stacks, true)])
	}
}

// reentryBegin lets code of users call states until the test ends.
func reentryBegin(t testing.TB) *reentry {
	r := &reentry{called: map[string]int{}}
	reenters.Store(r)
	t.Cleanup(func() { reenters.Store(nil) })
	return r
}

// next begins an operation in which code of users calls the given states.
func (r *reentry) next(states ...*state.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states, r.writes = states, 3
}

func TestCodeOfUsersMayCallTheState(t *testing.T) {
	r := reentryBegin(t)
	for _, shape := range reentryShapes() {
		t.Run(shape.name, func(t *testing.T) {
			st, ops := shape.setup()
			for _, branch := range []*state.State{st, st, st.Fork()} { // the first time most fields are unset
				for _, op := range ops {
					reentryReturns(t, func() string { return op.name }, func() error {
						r.next(st, branch)
						return op.run(branch)
					})
				}
			}
		})
	}
	for _, name := range []string{
		"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "Clone", "IsZero", "handler", "key", "id", "Validate",
		"Update", "transaction", "Changes", "Watch",
	} {
		require.NotZero(t, r.called[name], "%s was called", name)
	}
	for _, name := range []string{"String", "GoString", "Format", "Error", "Equal"} {
		require.Zero(t, r.called[name], "%s is never called", name)
	}
}

// reentryBlock is a value that takes a long time to code.
type reentryBlock struct{ begun, end chan struct{} }

func (v reentryBlock) MarshalJSON() ([]byte, error) {
	select {
	case v.begun <- struct{}{}:
	default:
	}
	<-v.end
	return []byte("1"), nil
}

func TestASlowMethodBlocksNoOtherWriter(t *testing.T) {
	list := &state.Field[[]any]{Name: "list"}
	shared := &state.Field[[]any]{Name: "shared", NoCopy: true, Handler: state.KeepLast[[]any](1)}
	maps := &state.Field[[]map[string]any]{Name: "maps"}
	other := &state.Field[int]{Name: "other"}
	for name, write := range map[string]func(*state.State, any) error{
		"Set":       func(st *state.State, v any) error { return list.Set(st, []any{v}) },
		"Replace":   func(st *state.State, v any) error { return list.Replace(st, []any{v}) },
		"KeepLast":  func(st *state.State, v any) error { return shared.Set(st, []any{v}) },
		"maps":      func(st *state.State, v any) error { return maps.Set(st, []map[string]any{{"a": v}}) },
		"KV.Set":    func(st *state.State, v any) error { return st.KV().Set("list", []any{v}) },
		"Patch":     func(st *state.State, v any) error { return st.Patch(map[string]any{"list": []any{v}}) },
		"FirstWins": func(st *state.State, v any) error { return st.KV().SetWith("key", v, state.FirstWins[any]()) },
	} {
		st := state.New(state.MustSchema(list, shared, maps, other, state.AllowUndeclared))
		require.NoError(t, list.Set(st, []any{1}))
		require.NoError(t, shared.Set(st, []any{1}))
		v := reentryBlock{make(chan struct{}, 1), make(chan struct{})}
		written := make(chan error, 1)
		go func() { written <- write(st, v) }()
		<-v.begun
		reentryReturns(t, func() string { return name }, func() error { return other.Set(st, 1) })
		close(v.end)
		require.NoError(t, <-written, name)
	}
}

// The tests below prove that code of users may call runtime.Goexit, as
// t.FailNow does, wherever the State calls it: what the goroutine was about to
// do is not done, and everybody else can go on.

// exitPlace is where code of users ends its goroutine at present.
var exitPlace atomic.Pointer[string]

// exitHere is called by the code of users of these tests.
func exitHere(place string) {
	if p := exitPlace.Load(); p != nil && *p == place {
		runtime.Goexit()
	}
}

// exitAt lets code of users end its goroutine at a place, until it is called
// with "".
func exitAt(place string) { exitPlace.Store(&place) }

type exitJSON struct{ N int }

func (v exitJSON) MarshalJSON() ([]byte, error) {
	exitHere("MarshalJSON")
	return json.Marshal(v.N)
}

func (v *exitJSON) UnmarshalJSON(data []byte) error {
	exitHere("UnmarshalJSON")
	return json.Unmarshal(data, &v.N)
}

// exitLog is a writer, a handler of package slog, and a value that is logged.
type exitLog struct{ slog.Handler }

func (exitLog) Write(p []byte) (int, error)                { exitHere("Write"); return len(p), nil }
func (exitLog) Enabled(context.Context, slog.Level) bool   { exitHere("Enabled"); return true }
func (exitLog) Handle(context.Context, slog.Record) error  { exitHere("Handle"); return nil }
func (l exitLog) WithAttrs(attrs []slog.Attr) slog.Handler { exitHere("WithAttrs"); return l }
func (exitLog) LogValue() slog.Value                       { exitHere("LogValue"); return slog.IntValue(1) }

// exitFields are the fields that the rows of the test use.
type exitFields struct {
	sum, valid, convert, other *state.Field[int]
	list                       *state.Field[[]int]
	value                      *state.Field[exitJSON]
	any                        *state.Field[any]
	secret                     *state.Field[string]
	messages                   *state.Field[[]state.Message]
}

func exitSchema() (*exitFields, *state.Schema) {
	f := &exitFields{
		sum: &state.Field[int]{Name: "sum", Handler: state.NewHandler("add", func(current int, _ bool, update int) (int, error) {
			exitHere("handler")
			return current + update, nil
		})},
		valid:   &state.Field[int]{Name: "valid", Handler: state.Sum[int](), Validate: func(int) error { exitHere("Validate"); return nil }},
		convert: &state.Field[int]{Name: "convert", Convert: func(state.JSON) (int, error) { exitHere("Convert"); return 1, nil }},
		other:   &state.Field[int]{Name: "other"},
		list:    &state.Field[[]int]{Name: "list", Handler: state.MergeByID[[]int](func(n int) string { exitHere("key"); return strconv.Itoa(n) })},
		value:   &state.Field[exitJSON]{Name: "value"},
		any:     &state.Field[any]{Name: "any"},
		secret:  &state.Field[string]{Name: "secret", Secret: true},
		messages: &state.Field[[]state.Message]{Name: "messages", Read: state.Public, Write: state.Public, Validate: func([]state.Message) error {
			exitHere("Validate of messages")
			return nil
		}},
	}
	return f, state.MustSchema(f.sum, f.valid, f.convert, f.other, f.list, f.value, f.any, f.secret, f.messages, state.AllowUndeclared)
}

// add writes n to what merges: in the state itself, and in each of its branches.
func (f *exitFields) add(t testing.TB, st *state.State, n int) {
	t.Helper()
	require.NoError(t, f.sum.Set(st, n))
	require.NoError(t, f.valid.Set(st, n))
	require.NoError(t, f.list.Set(st, []int{n}))
	require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText("said")}}))
}

// ended runs fn in a goroutine of its own, and reports whether fn returned.
func ended(t testing.TB, what string, fn func()) (returned bool) {
	reentryReturns(t, func() string { return what }, func() error {
		var wg sync.WaitGroup
		wg.Go(func() {
			fn()
			returned = true
		})
		wg.Wait()
		return nil
	})
	return returned
}

func TestCodeOfUsersMayEndItsGoroutine(t *testing.T) {
	call := state.ToolCall{ID: "open", Name: "exit", Input: "{}"}
	answer := state.ToolResult(call, `1`)
	exit := tool.Must(tool.New("exit", "", func(context.Context, struct{}) (int, error) { exitHere("tool"); return 1, nil }))
	router := route.Must(route.New(route.When(route.Func("exit", func(*state.State) bool { exitHere("route"); return true }), "next")))
	for _, tt := range []struct {
		place string
		name  string
		// do is given the state, two branches of it that it may join, and
		// what Export has returned.
		do func(f *exitFields, st, a, b *state.State, exported []byte)
		// returns is whether do returns: the code runs in another goroutine.
		returns bool
	}{
		{place: "handler", name: "Set", do: func(f *exitFields, st, _, _ *state.State, _ []byte) { _ = f.sum.Set(st, 1) }},
		{place: "handler", name: "KV.SetWith of an undeclared name", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.KV().SetWith("key", 1, f.sum.Handler)
		}},
		{place: "handler", name: "Join", do: func(_ *exitFields, st, a, b *state.State, _ []byte) { _ = st.Join(a, b) }},
		{place: "handler", name: "Join in a transaction", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Update(func(tx *state.State) error {
				a, b := tx.Fork(), tx.Fork()
				exitAt("")
				_, _ = f.sum.Set(a, 1), f.sum.Set(b, 1)
				exitAt("handler")
				return tx.Join(a, b)
			})
		}},
		{place: "handler", name: "the commit of a transaction", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Update(func(tx *state.State) error {
				exitAt("")
				_, _ = f.sum.Set(tx, 1), f.sum.Set(st, 0)
				exitAt("handler")
				return nil
			})
		}},
		{place: "key", name: "Join", do: func(_ *exitFields, st, a, b *state.State, _ []byte) { _ = st.Join(a, b) }},
		{place: "Validate", name: "Set", do: func(f *exitFields, st, _, _ *state.State, _ []byte) { _ = f.valid.Set(st, 1) }},
		{place: "Validate", name: "Patch", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Patch(map[string]any{"other": 1, "sum": 1, "valid": 1, "value": 1})
		}},
		{place: "Validate", name: "Join", do: func(_ *exitFields, st, a, b *state.State, _ []byte) { _ = st.Join(a, b) }},
		{place: "Validate of messages", name: "History.Append", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.History().Append(state.InferenceResult{Output: []state.Message{state.AssistantText("x")}})
		}},
		{place: "Validate of messages", name: "History.Answer", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) { _ = st.History().Answer(answer) }},
		{place: "function", name: "Update", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Update(func(tx *state.State) error {
				_ = f.other.Set(tx, 1)
				exitHere("function")
				return nil
			})
		}},
		{place: "function", name: "Field.Update", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			_ = f.sum.Update(st, func(n int) (int, error) { exitHere("function"); return n + 1, nil })
		}},
		{place: "body", name: "Watch", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			for range st.Watch(context.Background(), 0) {
				exitHere("body")
			}
		}},
		{place: "Convert", name: "Import", do: func(f *exitFields, st, _, _ *state.State, _ []byte) {
			former := state.New(state.MustSchema(&state.Field[string]{Name: "convert"}))
			_ = former.KV().Set("convert", "former")
			data, _ := former.Export()
			_, _ = state.Import(state.MustSchema(f.convert), data)
		}},
		{place: "MarshalJSON", name: "Set", do: func(f *exitFields, st, _, _ *state.State, _ []byte) { _ = f.value.Set(st, exitJSON{2}) }},
		{place: "MarshalJSON", name: "Patch", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			_ = st.Patch(map[string]any{"other": 1, "value": exitJSON{2}, "valid": 1})
		}},
		{place: "MarshalJSON", name: "Export", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) { _, _ = st.Export() }},
		{place: "UnmarshalJSON", name: "Set", do: func(f *exitFields, st, _, _ *state.State, _ []byte) { _ = f.value.Set(st, exitJSON{2}) }},
		{place: "UnmarshalJSON", name: "Import", do: func(_ *exitFields, st, _, _ *state.State, exported []byte) {
			_, schema := exitSchema()
			_, _ = state.Import(schema, exported)
		}},
		{place: "tool", name: "Call", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) { _, _ = exit.Call(context.Background(), st, "{}") }},
		{place: "tool", name: "Run", returns: true, do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			must(tool.Run(context.Background(), st, []*tool.Tool{exit}, []state.ToolCall{call, call}))
		}},
		{place: "route", name: "Next", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) { router.Next(st) }},
		{place: "Write", name: "Redactor.Writer", do: func(_ *exitFields, st, _, _ *state.State, _ []byte) {
			_, _ = io.WriteString(st.Redactor().Writer(exitLog{}), "some text that is passed on at once, hidden-secret.")
		}},
		{place: "Handle", name: "redactlog", do: logExit},
		{place: "LogValue", name: "redactlog", do: logExit},
	} {
		t.Run(tt.place+" in "+tt.name, func(t *testing.T) {
			t.Cleanup(func() { exitAt("") })
			f, schema := exitSchema()
			st := state.New(schema)
			require.NoError(t, st.Patch(map[string]any{"value": 1, "any": 1, "other": 1, "key": 1, "secret": "hidden-secret"}))
			require.NoError(t, st.History().Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}))
			a, b := st.Fork(), st.Fork()
			for i, s := range []*state.State{st, a, b} {
				f.add(t, s, i+1)
			}
			exported, err := st.Export()
			require.NoError(t, err)

			exitAt(tt.place)
			require.Equal(t, tt.returns, ended(t, tt.name, func() { tt.do(f, st, a, b, exported) }))
			exitAt("")

			require.True(t, ended(t, "what follows", func() {
				after, err := st.Export()
				require.NoError(t, err)
				require.JSONEq(t, withoutVersion(t, exported), withoutVersion(t, after), "nothing was written")
				past := st.Snapshot()
				require.NoError(t, st.Join(a, b))
				require.Equal(t, 6, f.sum.GetOr(st, 0))
				require.Equal(t, 6, f.valid.GetOr(st, 0))
				require.Equal(t, []int{1, 2, 3}, f.list.GetOr(st, nil))
				require.ErrorIs(t, st.Join(a), state.ErrReadOnly)
				for _, info := range st.Fields() {
					v, ok := st.KV().Get(info.Name)
					if !ok {
						require.Equal(t, "convert", info.Name)
						v = 1
					}
					require.NoError(t, st.KV().Replace(info.Name, v), info.Name)
					require.NoError(t, st.Patch(map[string]any{info.Name: v}), info.Name)
				}
				require.NoError(t, st.Update(func(tx *state.State) error {
					f.add(t, tx, 4)
					return f.other.Update(tx, func(n int) (int, error) { return n + 1, nil })
				}))
				require.Equal(t, 10, f.sum.GetOr(st, 0))
				require.NoError(t, st.History().Answer(answer))
				_, err = st.Effects(past)
				require.NoError(t, err)
				require.NoError(t, st.Revert(past))
				require.Equal(t, 1, f.sum.GetOr(st, 0))
				_, err = state.Import(schema, after)
				require.NoError(t, err)
			}))
		})
	}
}

func logExit(_ *exitFields, st, _, _ *state.State, _ []byte) {
	log := slog.New(redactlog.New(exitLog{}, st))
	log.With("a", "b").Info("text", "value", exitLog{}, "secret", "hidden-secret")
}

// withoutVersion returns an export without its number of versions.
func withoutVersion(t testing.TB, exported []byte) string {
	var members map[string]any
	require.NoError(t, json.Unmarshal(exported, &members))
	delete(members, "version")
	data, err := json.Marshal(members)
	require.NoError(t, err)
	return string(data)
}

// A writer that waits for its turn gets it when the goroutine of the holder
// ends, long before it would give up.
func TestTheEndOfAGoroutineGivesItsTurnAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, leave := make(chan struct{}), make(chan struct{})
		f := &state.Field[int]{Name: "x", Validate: func(n int) error {
			if n == 1 {
				close(begun)
				<-leave
				runtime.Goexit()
			}
			return nil
		}}
		st := state.New(state.MustSchema(f))
		go func() { _ = f.Set(st, 1) }()
		<-begun
		written := make(chan error, 3)
		go func() { written <- f.Set(st, 2) }()
		go func() { written <- st.Patch(map[string]any{"x": 2}) }()
		go func() { written <- f.Update(st, func(int) (int, error) { return 2, nil }) }()
		synctest.Wait()
		require.Empty(t, written)
		close(leave)
		synctest.Wait()
		require.Len(t, written, 3)
		for range 3 {
			require.NoError(t, <-written)
		}
		require.EqualValues(t, 3, st.Version())
	})
}
