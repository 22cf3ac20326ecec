package cost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/cost"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/redactlog"
)

// What costs in proportion to a text that others write. Sorting may take longer,
// so that package slices is not counted.
func TestWorkIsLinear(t *testing.T) {
	effort.Cost(t)
	list := func(n int, format string) string {
		return strings.Join(names(n, func(i int) string { return fmt.Sprintf(format, i) }), ",")
	}
	schema := func(format string, parts ...string) func(*testing.T, int) {
		return func(t *testing.T, n int) {
			args := make([]any, len(parts))
			for i, part := range parts {
				args[i] = list(n, part)
			}
			s, err := state.ParseSchema(fmt.Appendf(nil, format, args...))
			require.NoError(t, err)
			text, err := json.Marshal(s)
			require.NoError(t, err)
			_, err = state.ParseSchema(text)
			require.NoError(t, err)
		}
	}
	refused := func(format string, part string) func(*testing.T, int) {
		return func(t *testing.T, n int) {
			_, err := state.ParseSchema(fmt.Appendf(nil, format, list(n, part)))
			require.Error(t, err)
		}
	}
	// results yields results with n calls in all.
	results := func(n, each int) iter.Seq[state.InferenceResult] {
		return func(yield func(state.InferenceResult) bool) {
			calls := slices.Repeat([]state.ToolCall{{Name: "f"}}, n)
			for calls := range slices.Chunk(calls, each) {
				if !yield(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}) {
					return
				}
			}
		}
	}
	testkit.Work{
		Of:       "github.com/agentstate/state",
		Packages: "deps,strings,bytes",
		Size:     500, More: 16,
		Cases: map[string]func(*testing.T, int){
			"a scope of many agents":     schema(`{"fields":[{"name":"f","type":"string","owner":"a0","read":[%s],"write":["a1"]}],"team":{"a":[%s]}}`, `"a%d"`, `"a%d"`),
			"a team of many leaders":     schema(`{"fields":[],"team":{%s}}`, `"a%[1]d":["b%[1]d"]`),
			"a team of many agents":      schema(`{"fields":[],"team":{"a":[%s]}}`, `"b%d"`),
			"a field of many names":      schema(`{"fields":[{"name":"f","type":"string","was":[%s]}]}`, `"a%d"`),
			"many fields":                schema(`{"fields":[%s],"limits":{"keys":100000}}`, `{"name":"f%d","type":"string"}`),
			"a schema of other members":  refused(`{"fields":[],%s}`, `"a%d":1`),
			"a field of other members":   refused(`{"fields":[{"name":"f","type":"string",%s}]}`, `"a%d":1`),
			"fields of unknown types":    refused(`{"fields":[%s]}`, `{"name":"f%[1]d","type":"t%[1]d"}`),
			"fields of unknown handlers": refused(`{"fields":[%s]}`, `{"name":"f%[1]d","type":"string","handler":"h%[1]d"}`),
			"pending calls of one name": func(t *testing.T, n int) {
				st := state.New(nil)
				for r := range results(n, 250) {
					require.NoError(t, st.History().Append(r))
					require.NoError(t, st.History().AppendOutside(r))
				}
				require.Len(t, st.History().Pending(), 2*n)
				require.Len(t, st.History().Pending(state.ToolCall{Name: "f"}), 2*n-1)
			},
			"suspended calls of one name": func(t *testing.T, n int) {
				st := state.New(nil)
				for r := range results(n, 1) {
					require.NoError(t, st.History().AppendOutside(r))
				}
				suspended := slices.Repeat([]state.ToolCall{{Name: "f"}}, n-1)
				require.Len(t, st.History().Pending(suspended...), 1)
			},
			"results of few calls that are answered as they come": func(t *testing.T, n int) {
				st := state.New(nil)
				for r := range results(n, 2) {
					require.NoError(t, st.History().Append(r))
					for range 2 {
						require.NoError(t, st.History().Answer(state.ToolResult(state.ToolCall{Name: "f"}, "1")))
					}
				}
				require.Empty(t, st.History().Pending())
			},
		},
	}.Linear(t)
}

func names(n int, name func(i int) string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	return all
}

// chain returns a team in which each agent is below the one before.
func chain(n int, agent func(i int) string) state.Team {
	team := state.Team{}
	for i := range n - 1 {
		team[agent(i)] = []string{agent(i + 1)}
	}
	return team
}

// Popped results are released by bytes, not only by number.
func TestPoppedResultsAreReleased(t *testing.T) {
	effort.Cost(t)
	grew := cost.Grew(func() any {
		st := state.New(state.MustSchema(state.Limits{Journal: 1}))
		for i := range 100 {
			require.NoError(t, st.History().Append(state.InferenceResult{ID: fmt.Sprint(i)}))
		}
		for i := range 90 {
			large := state.SystemText(fmt.Sprint(i, strings.Repeat("x", 1<<20)))
			require.NoError(t, st.History().Append(state.InferenceResult{Prompt: []state.Message{large}, Raw: strings.Repeat("y", 1<<20)}))
			_, _, err := st.History().Pop()
			require.NoError(t, err)
		}
		require.Equal(t, 100, st.History().Len())
		return st
	})
	require.Less(t, grew, 12<<20, "91 MB were kept; the journal keeps 8 MB")
}

func TestJournalsOfAllAgentsHaveOneBudget(t *testing.T) {
	effort.Cost(t)
	for name, tt := range map[string]struct {
		value  func(i int) any
		writes int
		limit  int
	}{
		"small values": {func(i int) any { return map[string]any{"n": i} }, 4096, 16 << 20},
		"large values": {func(i int) any { return string(make([]byte, 100_000+i)) }, 40, 64 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			names := names(100, func(i int) string { return fmt.Sprint("agent", i) })
			parts := []state.Part{state.Team{"lead": names}}
			for _, name := range names {
				parts = append(parts, &state.Field[any]{Name: name, Owner: name})
			}
			st := state.New(state.MustSchema(parts...))
			grew := cost.Grew(func() any {
				for i := range tt.writes {
					for _, name := range names {
						require.NoError(t, st.KV().Set(name, tt.value(i)))
					}
				}
				return st
			})
			require.Less(t, grew, tt.limit)
		})
	}
}

// A schema with many agents or fields is made in linear time. Quadratic time
// showed as allocations: a set for each walk up the hierarchy, and a list of
// names for each question whether it has one.
func TestSchemaOfManyAgentsIsMadeInLinearTime(t *testing.T) {
	effort.Cost(t)
	agent := func(i int) string { return fmt.Sprint("a", i) }
	for name, parts := range map[string]func(n int) []state.Part{
		"flat": func(n int) []state.Part {
			return []state.Part{state.Team{"lead": names(n, agent)}, &state.Field[int]{Name: "x", Read: state.Public}}
		},
		"chain": func(n int) []state.Part {
			return []state.Part{chain(n, agent), &state.Field[int]{Name: "x", Read: state.Public}}
		},
		"a private field each": func(n int) []state.Part {
			parts := []state.Part{state.Team{"lead": names(n, agent)}}
			for i := range n {
				parts = append(parts, &state.Field[int]{Name: fmt.Sprint("f", i), Owner: agent(i), Read: state.Only("lead")})
			}
			return parts
		},
	} {
		t.Run(name, func(t *testing.T) {
			allocs := func(n int) float64 {
				p := parts(n)
				return testing.AllocsPerRun(1, func() { state.MustSchema(p...) })
			}
			require.Less(t, allocs(4000), 5*allocs(1000))
		})
	}
}

// Old secrets must not stay in memory with their Redactors.
func TestRedactorsAreForgotten(t *testing.T) {
	effort.Cost(t)
	key := &state.Field[[]byte]{Name: "key", Secret: true}
	st := state.New(state.MustSchema(key, state.Limits{Journal: 1}))
	grew := cost.Grew(func() any {
		for i := range 200 {
			require.NoError(t, key.Set(st, bytes.Repeat([]byte{byte(i)}, 1<<18)))
			st.Redact("text")
		}
		return st
	})
	require.Less(t, grew, 32<<20)
}

func TestRedactAllocates(t *testing.T) {
	effort.Cost(t)
	keys := &state.Field[[]string]{Name: "keys", Secret: true}
	st := state.New(state.MustSchema(keys))
	for i := range 100 {
		require.NoError(t, keys.Set(st, []string{fmt.Sprintf("sk-live-%032d", i)}))
	}
	line := strings.Repeat("the customer agreed to the refund ", 6)
	found := line + "sk-live-" + strings.Repeat("0", 31) + "7"
	require.Equal(t, line+"[SECRET]", st.Redact(found))
	requireAllocs(t, 0, func() { st.Redact(line) })
	requireAllocs(t, 1, func() { st.Redact(found) })
}

// keptBlob is 1 MB that is not shared with its copies.
type keptBlob struct {
	Text string `json:"text"`
}

// A field that keeps its last elements must not keep the others alive, whatever
// its snapshots and forks show.
func TestKeepLastReleasesWhatItDrops(t *testing.T) {
	effort.Cost(t)
	blobs := &state.Field[[]keptBlob]{Name: "blobs", Handler: state.KeepLast[[]keptBlob](2)}
	texts := &state.Field[[]string]{Name: "texts", Handler: state.KeepLast[[]string](2)}
	schema := state.MustSchema(blobs, texts, state.Limits{Journal: 1})
	for name, write := range map[string]func(st *state.State, n int) error{
		"structs": func(st *state.State, n int) error {
			return blobs.Set(st, []keptBlob{{strings.Repeat(string(rune('a'+n%26)), 1<<20)}})
		},
		"strings": func(st *state.State, n int) error {
			return texts.Set(st, []string{strings.Repeat(string(rune('a'+n%26)), 1<<20)})
		},
		"several at once": func(st *state.State, n int) error {
			return texts.Set(st, []string{"small", strings.Repeat(string(rune('a'+n%26)), 1<<20), "small", ""})
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(schema)
			before := cost.Live()
			live := func() int { return int(cost.Live()-before) >> 20 }
			for n := range 255 {
				require.NoError(t, write(st, n))
			}
			require.LessOrEqual(t, live(), 8, "MB of a state that shows 2, with its journal")
			snapshot := st.Snapshot()
			for n := range 255 {
				require.NoError(t, write(st, n))
			}
			require.LessOrEqual(t, live(), 16, "MB with a snapshot")
			for range 20 {
				fork := st.Fork()
				for n := range 5 { // a fork keeps its writes until it is joined
					require.NoError(t, write(fork, n))
				}
				require.NoError(t, st.Join(fork))
			}
			require.NoError(t, write(st, 0))
			require.LessOrEqual(t, live(), 32, "MB with what the last join left in the journal")
			runtime.KeepAlive(snapshot)
			runtime.KeepAlive(st)
		})
	}
}

func TestJournalIsBoundedByBytes(t *testing.T) {
	effort.Cost(t)
	const mib = 1 << 20
	grown := &state.Field[map[string]string]{Name: "grown", Handler: state.MergeMap[map[string]string]()}
	joined := &state.Field[[]string]{Name: "joined", Handler: state.Union[[]string]()}
	appended := &state.Field[string]{Name: "own", Handler: state.NewHandler("own", func(_ string, _ bool, update string) (string, error) {
		return update, nil
	})}
	secret := &state.Field[string]{Name: "secret", Secret: true}
	text := &state.Field[string]{Name: "text"}
	schema := state.MustSchema(text, grown, joined, appended, secret, state.AllowUndeclared)
	big := func(i int) string { return fmt.Sprint(i, strings.Repeat("x", mib)) }
	for name, write := range map[string]func(st *state.State, i int) error{
		"replaced values":   func(st *state.State, i int) error { return text.Set(st, big(i)) },
		"undeclared values": func(st *state.State, i int) error { return st.KV().Set("key", []string{big(i)}) },
		"deleted values": func(st *state.State, i int) error {
			_ = st.KV().Set("key", big(i))
			_, err := st.KV().Delete("key")
			return err
		},
		"patches":             func(st *state.State, i int) error { return st.Patch(map[string]any{"text": big(i), "key": big(i)}) },
		"what a handler made": func(st *state.State, i int) error { return appended.Set(st, big(i)[:1+i%2*mib]) },
		"secrets":             func(st *state.State, i int) error { return secret.Set(st, big(i)) },
		"maps that are merged": func(st *state.State, i int) error {
			return grown.Set(st, map[string]string{fmt.Sprint(i % 10): big(i)[:mib/20], "k": fmt.Sprint(i)})
		},
		"lists that are united": func(st *state.State, i int) error {
			if i == 0 {
				return joined.Set(st, make([]string, 1))
			}
			list := make([]string, 0, 1000)
			for j := range 1000 {
				list = append(list, fmt.Sprint(j%900, strings.Repeat("x", 300)))
			}
			return joined.Set(st, list)
		},
	} {
		t.Run(name, func(t *testing.T) {
			grew := cost.Grew(func() any {
				st := state.New(schema)
				for i := range 150 {
					require.NoError(t, write(st, i))
				}
				require.Equal(t, st.Version(), st.Snapshot().Version())
				return st
			})
			require.Less(t, grew, 32*mib)
		})
	}
}

// A merge makes a new map each time: the maps before it are held too.
func TestJournalCountsTheValuesThatMergesReplaced(t *testing.T) {
	effort.Cost(t)
	grown := &state.Field[map[string]string]{Name: "grown", Handler: state.MergeMap[map[string]string]()}
	schema := state.MustSchema(grown)
	grew := cost.Grew(func() any {
		st := state.New(schema)
		all := map[string]string{}
		for i := range 10_000 {
			all[fmt.Sprint(i)] = "x"
		}
		require.NoError(t, grown.Set(st, all))
		for i := range 500 {
			require.NoError(t, grown.Set(st, map[string]string{"k": fmt.Sprint(i)}))
		}
		return st
	})
	require.Less(t, grew, 100<<20, "500 maps of half a MiB each")
}

// requireAllocs measures the least of some runs, because the collector and the
// race detector empty pools.
func requireAllocs(t *testing.T, want float64, f func()) {
	t.Helper()
	least := testing.AllocsPerRun(1, f)
	for range 20 {
		least = min(least, testing.AllocsPerRun(1, f))
	}
	require.LessOrEqual(t, least, want)
}

// discardHandler handles records without an allocation.
type discardHandler struct{}

func (discardHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (discardHandler) Handle(context.Context, slog.Record) error { return nil }
func (h discardHandler) WithAttrs([]slog.Attr) slog.Handler      { return h }
func (h discardHandler) WithGroup(string) slog.Handler           { return h }

// logRecord returns a record of about 200 bytes.
func logRecord(run string) slog.Record {
	r := slog.NewRecord(time.Unix(1790000000, 0), slog.LevelInfo, "charged the card of the customer who asked for it", 0)
	r.AddAttrs(slog.String("order", "W2378156"), slog.Float64("amount", 119.90), slog.Int("items", 3),
		slog.String("reason", "the customer agreed to the refund of the second pair of shoes"), slog.String("run", run))
	return r
}

var logRuns = map[string]string{"plain": "of 7 steps, each of which ended well", "runs": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}

func secretKeys(t testing.TB, n int) *state.State {
	keys := &state.Field[[]string]{Name: "keys", Secret: true}
	st := state.New(state.MustSchema(keys))
	for i := range n {
		require.NoError(t, keys.Set(st, []string{fmt.Sprintf("sk-live-4eC39HqLyjWDarjtT1zdp7d%d", i)}))
	}
	return st
}

func TestRedactedLogsDoNotAllocate(t *testing.T) {
	effort.Cost(t)
	for _, n := range []int{1, 10, 100} {
		for _, run := range logRuns {
			st := secretKeys(t, n)
			h := redactlog.New(discardHandler{}, st).WithAttrs([]slog.Attr{slog.String("host", "a")})
			r, ctx := logRecord(run), state.NewContext(context.Background(), st)
			requireAllocs(t, 0, func() { _ = h.Handle(ctx, r) })
		}
	}
}

func TestDescribeCostsWhatItPrints(t *testing.T) {
	effort.Cost(t)
	measure := func(messages int) float64 {
		st := state.New(nil)
		require.NoError(t, st.KV().Set("title", "A title"))
		require.NoError(t, state.Messages.Set(st, slices.Repeat([]state.Message{state.UserText("hello")}, messages)))
		return testing.AllocsPerRun(20, func() { _ = st.Describe() })
	}
	few := measure(10)
	for _, messages := range []int{100, 1_000, 10_000} {
		require.InDelta(t, few, measure(messages), 2, "%d messages", messages)
	}
}

func TestReadersOfListsCopyNothingElse(t *testing.T) {
	effort.Cost(t)
	tags := &state.Field[[]string]{Name: "tags"}
	st := state.New(state.MustSchema(tags))
	require.NoError(t, tags.Set(st, make([]string, 100_000)))
	require.Zero(t, testing.AllocsPerRun(100, func() { state.ListLen(st, tags) }))
	require.Less(t, testing.AllocsPerRun(100, func() {
		for range state.ListItems(st, tags, -3) {
			continue
		}
	}), 20.0)
	require.Less(t, testing.AllocsPerRun(10, func() { _, _ = st.KV().JSON("tags") }), 100.0)
}

func TestALongCauseIsNotKept(t *testing.T) {
	effort.Cost(t)
	held := cost.Grew(func() any {
		st := state.New(nil)
		for i := range 64 {
			require.NoError(t, st.WithCause(fmt.Sprint(i, strings.Repeat("x", 1<<20))).KV().Set("key", i))
		}
		return st
	})
	require.Less(t, held, 4<<20)
}

func TestEffectsCostWhatWasChanged(t *testing.T) {
	effort.Cost(t)
	hi := []state.Message{state.UserText("hi")}
	numbers := &state.Field[[]int]{Name: "numbers"}
	result := state.InferenceResult{CreatedAt: time.Unix(1, 0)}
	long := make([]state.Message, 10_000)
	for i := range long {
		long[i] = state.UserText(fmt.Sprint(i))
	}
	bytes := func(held int) uint64 {
		st := state.New(state.MustSchema(numbers))
		require.NoError(t, state.Messages.Set(st, long[:held]))
		require.NoError(t, numbers.Set(st, make([]int, held)))
		for range held / 10 {
			require.NoError(t, st.History().Append(result))
		}
		before := st.Snapshot()
		require.NoError(t, state.Messages.Set(st, hi))
		require.NoError(t, numbers.SetWith(st, []int{1}, state.KeepLast[[]int](held)))
		require.NoError(t, st.History().Append(result))
		return cost.Allocated(func() {
			for range 20 {
				effects, err := st.Effects(before)
				require.NoError(t, err)
				require.Len(t, effects, 4)
			}
		}) / 20
	}
	few, many := bytes(300), bytes(len(long))
	require.Less(t, many, 2*few+1000)
	require.Less(t, many, uint64(20_000))
}
