package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	func(st *state.State, r *rand.Rand) error { concTitle.Or(st, ""); concTitle.Has(st); return nil },
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
			n := concFirst.Or(tx, 0)
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
	appended := func(st *state.State) []string { return concLog.Or(st, nil) }
	counted := func(st *state.State) int { return concTotal.Or(st, 0) }
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
			for _, m := range state.Messages.Or(st, nil) {
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

func TestConcurrencyContentionAloneNeverFails(t *testing.T) {
	st := state.New(concSchema)
	concAtOnce(64, func(int) {
		for range 1000 {
			if err := concTotal.Update(st, func(n int) (int, error) { return n + 1, nil }); err != nil {
				t.Error(err)
				return
			}
		}
	})
	require.Equal(t, 64_000, concTotal.Or(st, 0))
	require.EqualValues(t, 64_000, st.Version())
}

// Nobody sees a version before it is whole, or an older one after a newer.
func TestConcurrencyShowsWholeVersions(t *testing.T) {
	get := func(f *state.Field[int]) func(*state.State) int {
		return func(st *state.State) int { return f.Or(st, 0) }
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
		require.Equal(t, int(2-late.Load()), concTotal.Or(st, 0), "a write that was accepted is joined")
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
		want := concLog.Or(st, nil)
		require.Len(t, want, writers*each)
		for _, seen := range []func() []string{host, bob, named} {
			require.Equal(t, want, seen())
		}
	}) // which fails if a goroutine is left
}

func TestConcurrencyWatchEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := state.New(concSchema)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		for range st.Watch(ctx, 0) {
			t.Error("nothing was written")
		}
		require.Equal(t, time.Hour, time.Since(start), "it waits, and no longer")
		for range st.Watch(ctx, 0) {
			t.Error("the context has ended")
		}
		// A branch that is joined, and a transaction that is over, change no more.
		b := st.Fork()
		go func() {
			time.Sleep(time.Second)
			require.NoError(t, st.Join(b))
		}()
		start = time.Now()
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
		{"read and changed", func(tx *state.State) error { concTitle.Or(tx, ""); return nil }, set("title"), 2},
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
			return tx.Update(func(tx *state.State) error { concTitle.Or(tx, ""); return nil })
		}, set("title"), 2},
		{"read in a branch", func(tx *state.State) error { concTitle.Or(tx.Fork(), ""); return nil }, set("title"), 2},
		{"read in a snapshot", func(tx *state.State) error { concTitle.Or(tx.Snapshot(), ""); return nil }, set("title"), 2},
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
		{"another changed", func(tx *state.State) error { concTitle.Or(tx, ""); return nil }, set("old"), 1},
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
			concTitle.Or(tx, "")
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
	require.Equal(t, 10, slow.Or(st, 0))
	f := st.Fork()
	require.NoError(t, plain.Set(f, "z"))
	require.NoError(t, st.Join(f))
	go func() { <-entered }() // it runs again, for slow has changed
	close(leave)
	require.NoError(t, <-done)
	require.Equal(t, 11, slow.Or(st, 0))
}
