package state_test

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/agentstate/state"
)

// BenchmarkGoal measures the speed goals of lab/goals: in each row a
// baseline, which is what one would write without this package, and the subject.
// scripts/bench runs it and prints the table.
func BenchmarkGoal(b *testing.B) {
	b.Run("get-scalar", benchGetScalar)
	b.Run("get-scalar-2cpu", benchGetParallel)
	b.Run("get-by-name", benchGetByName)
	b.Run("set-scalar", benchSetScalar)
	b.Run("fork", func(b *testing.B) { benchBranch(b, (*state.State).Fork) })
	b.Run("snapshot", func(b *testing.B) { benchBranch(b, (*state.State).Snapshot) })
	b.Run("fork-write", benchForkWrite)
	b.Run("append", benchAppend)
	b.Run("step", benchStep)
	b.Run("access-check", benchAccessCheck)
	b.Run("export", benchExport)
	b.Run("get-undeclared", benchGetUndeclared)
	b.Run("set-undeclared", benchSetUndeclared)
	b.Run("append-text", benchAppendText)
	b.Run("append-snapshot", benchAppendSnapshot)
	b.Run("all", benchAll)
	b.Run("export-keys", benchExportKeys)
	b.Run("import-keys", benchImportKeys)
	b.Run("history-append", benchHistoryAppend)
	b.Run("redact", benchRedact)
}

var (
	benchOrder  = &state.Field[string]{Name: "order_id", Owner: "support", Read: state.Public, Write: state.Public}
	benchStatus = &state.Field[string]{Name: "status", Owner: "support", Read: state.Public, Write: state.Public}
	benchTotal  = &state.Field[int]{Name: "total", Owner: "support", Read: state.Only("billing"), Write: state.Only("billing")}
	benchDocs   = &state.Field[[]benchDocument]{Name: "documents", Read: state.Public, Write: state.Public}
	benchTeam   = state.Team{"support": {"billing", "retriever"}}
	benchSchema = state.MustSchema(benchTeam, benchOrder, benchStatus, benchTotal, benchDocs)
)

// benchDocument has the fields of a document that a retriever returns.
type benchDocument struct {
	ID      string            `json:"id"`
	Content string            `json:"content"`
	Meta    map[string]string `json:"meta"`
	Score   float64           `json:"score"`
}

func newDocument(i int) benchDocument {
	return benchDocument{
		ID: "doc-" + strconv.Itoa(i), Content: "Items can be returned within thirty days.",
		Meta: map[string]string{"source": "returns.md", "lang": "en"}, Score: 0.5,
	}
}

func (d benchDocument) clone() benchDocument {
	d.Meta = maps.Clone(d.Meta)
	return d
}

// benchMap is the baseline: a map under a lock.
type benchMap struct {
	mu     sync.RWMutex
	values map[string]any
}

func newBenchMap(n int) *benchMap {
	m := &benchMap{values: map[string]any{}}
	for i := range n {
		m.values["key-"+strconv.Itoa(i)] = "value"
	}
	return m
}

func (m *benchMap) get(key string) (any, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.values[key]
	return v, ok
}

func (m *benchMap) set(key string, v any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = v
}

func benchGetScalar(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		m := newBenchMap(100)
		m.set("order_id", "#W2378156")
		b.ReportAllocs()
		for b.Loop() {
			v, _ := m.get("order_id")
			if v.(string) == "" {
				b.Fatal("empty")
			}
		}
	})
	b.Run("subject", func(b *testing.B) {
		st := benchState(b).As("billing")
		b.ReportAllocs()
		for b.Loop() {
			if v, err := benchOrder.Get(st); err != nil || v == "" {
				b.Fatal(err)
			}
		}
	})
}

func benchState(b *testing.B) *state.State {
	st := state.New(benchSchema)
	for _, err := range []error{benchOrder.Set(st, "#W2378156"), benchStatus.Set(st, "open"), benchTotal.Set(st, 7)} {
		if err != nil {
			b.Fatal(err)
		}
	}
	return st
}

func benchGetParallel(b *testing.B) {
	b.Run("subject-par", func(b *testing.B) {
		st := benchState(b).As("billing")
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if v, err := benchOrder.Get(st); err != nil || v == "" {
					b.Error(err)
				}
			}
		})
	})
}

func benchGetByName(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		m := newBenchMap(100)
		m.set("order_id", "#W2378156")
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := m.get("order_id"); !ok {
				b.Fatal("missing")
			}
		}
	})
	b.Run("subject", func(b *testing.B) {
		kv := benchState(b).As("billing").KV()
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := kv.Get("order_id"); !ok {
				b.Fatal("missing")
			}
		}
	})
}

func benchSetScalar(b *testing.B) {
	words := [...]string{"open", "waiting", "closed"}
	b.Run("baseline", func(b *testing.B) {
		m := newBenchMap(100)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			m.set("status", words[i%3])
		}
	})
	b.Run("subject", func(b *testing.B) {
		st := benchState(b).As("billing")
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := benchStatus.Set(st, words[i%3]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func openState(b *testing.B, n int) *state.State {
	st := state.New(nil)
	for i := range n {
		if err := st.KV().Set("key-"+strconv.Itoa(i), "value"); err != nil {
			b.Fatal(err)
		}
	}
	return st
}

func benchBranch(b *testing.B, branch func(*state.State) *state.State) {
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		b.Run("n="+strconv.Itoa(n), func(b *testing.B) {
			st := openState(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if branch(st) == nil {
					b.Fatal("no branch")
				}
			}
		})
	}
}

func benchForkWrite(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		m := newBenchMap(1000)
		b.ReportAllocs()
		for b.Loop() {
			fork := maps.Clone(m.values)
			fork["key-500"] = "changed"
		}
	})
	b.Run("subject", func(b *testing.B) {
		st := openState(b, 1000)
		b.ReportAllocs()
		for b.Loop() {
			if err := st.Fork().KV().Set("key-500", "changed"); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchAppend builds a list of n elements, over and over: what is measured is
// one append.
func benchAppend(b *testing.B) {
	b.Run("baseline/n=1000", func(b *testing.B) {
		m := newBenchMap(100)
		docs := make([]benchDocument, 1000)
		for i := range docs {
			docs[i] = newDocument(i)
		}
		one := newDocument(0)
		b.ReportAllocs()
		for b.Loop() {
			// This is the cost of isolation if values are copied whole: a copy
			// out, the append, a copy in.
			m.set("documents", append(cloneDocuments(cloneDocuments(docs)), one.clone()))
		}
	})
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		b.Run("subject/n="+strconv.Itoa(n), func(b *testing.B) {
			st := state.New(benchSchema)
			one := []benchDocument{newDocument(0)}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == n {
					i = 0
					if err := benchDocs.Replace(st, nil); err != nil {
						b.Fatal(err)
					}
				}
				if err := benchDocs.Set(st, one); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func cloneDocuments(docs []benchDocument) []benchDocument {
	out := make([]benchDocument, len(docs), len(docs)+1)
	for i, d := range docs {
		out[i] = d.clone()
	}
	return out
}

// benchStep plays runs of n steps; what is reported is one step.
func benchStep(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000, 100_000} {
		b.Run("n="+strconv.Itoa(n), func(b *testing.B) {
			b.ReportAllocs()
			runs := 0
			for b.Loop() {
				st := state.New(benchSchema)
				kept := make([]*state.State, 0, n)
				for i := range n {
					err := state.Messages.Set(st, []state.Message{state.UserText("Where is my order?")})
					for j := 0; j < 3 && err == nil; j++ {
						err = benchTotal.Set(st, 3*i+j)
					}
					if err != nil {
						b.Fatal(err)
					}
					kept = append(kept, st.Snapshot())
				}
				runs++
				if len(kept) != n {
					b.Fatal("lost a snapshot")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(runs*n), "ns/op")
		})
	}
}

func benchAccessCheck(b *testing.B) {
	st := benchState(b)
	for _, variant := range []struct {
		name string
		st   *state.State
	}{{"baseline", st}, {"subject", st.As("billing")}} {
		b.Run(variant.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v, err := benchTotal.Get(variant.st); err != nil || v == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchExport exports n results, each with its prompt and the whole
// conversation before it.
func benchExport(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run("n="+strconv.Itoa(n), func(b *testing.B) {
			st := state.New(benchSchema)
			for i := range n {
				history, err := state.Messages.Get(st)
				if err != nil && i > 0 {
					b.Fatal(err)
				}
				err = st.History().Append(state.InferenceResult{
					Agent: "support", Prompt: []state.Message{state.SystemText("You are the support desk.")}, History: history,
					Output: []state.Message{state.AssistantText("Answer number " + strconv.Itoa(100_000+i))}, Raw: `{"ok":true}`,
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				data, err := st.Export()
				if err != nil {
					b.Fatal(err)
				}
				size = len(data)
			}
			b.ReportMetric(float64(size)/float64(n), "bytes/result")
		})
	}
}

// The rows of BenchmarkGoal for undeclared keys, lists, the content as a whole,
// the history and redaction.

// keyCount is the number of undeclared keys of the rows that have some.
const keyCount = 1000

// keyedValues returns scalars under keyCount keys.
func keyedValues() map[string]any {
	values := make(map[string]any, keyCount)
	for i := range keyCount {
		key := "key-" + strconv.Itoa(i)
		switch i % 4 {
		case 0:
			values[key] = "value " + key
		case 1:
			values[key] = int64(i)
		case 2:
			values[key] = float64(i) + 0.5
		case 3:
			values[key] = i%8 == 3
		}
	}
	return values
}

func keyedState(b *testing.B) *state.State {
	st := state.New(nil)
	if err := st.Patch(keyedValues()); err != nil {
		b.Fatal(err)
	}
	return st
}

func benchGetUndeclared(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		m := &benchMap{values: keyedValues()}
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := m.get("key-500"); !ok {
				b.Fatal("missing")
			}
		}
	})
	b.Run("subject", func(b *testing.B) {
		kv := keyedState(b).KV()
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := kv.Get("key-500"); !ok {
				b.Fatal("missing")
			}
		}
	})
}

func benchSetUndeclared(b *testing.B) {
	words := [...]string{"open", "waiting", "closed"}
	keys := make([]string, keyCount)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	b.Run("baseline", func(b *testing.B) {
		m := &benchMap{values: keyedValues()}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			m.set(keys[i%keyCount], words[i%3])
		}
	})
	b.Run("subject", func(b *testing.B) {
		kv := keyedState(b).KV()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := kv.Set(keys[i%keyCount], words[i%3]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

var (
	benchLog       = &state.Field[[]string]{Name: "log", Read: state.Public, Write: state.Public}
	benchLogSchema = state.MustSchema(benchTeam, benchLog)
)

// benchList is the baseline: a list under a lock.
type benchList struct {
	mu    sync.Mutex
	lines []string
}

func (l *benchList) append(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

// benchAppendText builds a list of n strings, over and over: what is measured is
// one append.
func benchAppendText(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 10_000} {
		b.Run("baseline/n="+strconv.Itoa(n), func(b *testing.B) {
			list := &benchList{}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == n {
					i, list = 0, &benchList{}
				}
				list.append("a line of the log")
			}
		})
		b.Run("subject/n="+strconv.Itoa(n), func(b *testing.B) {
			st := state.New(benchLogSchema)
			line := []string{"a line of the log"}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i == n {
					i, st = 0, state.New(benchLogSchema)
				}
				if err := benchLog.Set(st, line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// benchAppendSnapshot appends 1 000 strings to an empty list. The subject keeps a
// snapshot after each.
func benchAppendSnapshot(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list := &benchList{}
			for range 1000 {
				list.append("a line of the log")
			}
		}
	})
	b.Run("subject", func(b *testing.B) {
		line := []string{"a line of the log"}
		kept := make([]*state.State, 1000)
		b.ReportAllocs()
		for b.Loop() {
			st := state.New(benchLogSchema)
			for i := range kept {
				if err := benchLog.Set(st, line); err != nil {
					b.Fatal(err)
				}
				kept[i] = st.Snapshot()
			}
		}
	})
}

func benchAll(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		values := keyedValues()
		b.ReportAllocs()
		for b.Loop() {
			if all := maps.Clone(values); len(all) != keyCount {
				b.Fatal(len(all))
			}
		}
	})
	b.Run("subject", func(b *testing.B) {
		kv := keyedState(b).KV()
		b.ReportAllocs()
		for b.Loop() {
			if all := kv.All(); len(all) != keyCount {
				b.Fatal(len(all))
			}
		}
	})
}

func benchExportKeys(b *testing.B) {
	b.Run("baseline", func(b *testing.B) {
		values := keyedValues()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(values); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("subject", func(b *testing.B) {
		st := keyedState(b)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := st.Export(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchImportKeys(b *testing.B) {
	st := keyedState(b)
	b.Run("baseline", func(b *testing.B) {
		data, err := json.Marshal(st.KV().All())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			values := map[string]any{}
			if err := json.Unmarshal(data, &values); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("subject", func(b *testing.B) {
		data, err := st.Export()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := state.Import(nil, data); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchHistoryAppend appends results with one message to a history that begins
// anew after 1 000.
func benchHistoryAppend(b *testing.B) {
	b.Run("subject", func(b *testing.B) {
		results := make([]state.InferenceResult, 1000)
		for i := range results {
			answer := state.AssistantText("Answer number " + strconv.Itoa(i))
			results[i] = state.InferenceResult{Agent: "support", Output: []state.Message{answer}}
		}
		var st *state.State
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if i%len(results) == 0 {
				st = state.New(benchSchema)
			}
			if err := st.History().Append(results[i%len(results)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchRedact masks one of 10 secrets in a line of 200 bytes.
func benchRedact(b *testing.B) {
	secrets := make([]string, 10)
	for i := range secrets {
		secrets[i] = "sk-live-4eC39HqLyjWDarjtT1zdp7d" + strconv.Itoa(i)
	}
	line := "time=2026-11-22T10:00:00Z level=INFO msg=\"charged the card\" key=" + secrets[7] + " order=W2378156 amount=119.90 "
	line += strings.Repeat("the customer agreed to the refund ", 3)
	line = line[:200]
	b.Run("baseline", func(b *testing.B) {
		var pairs []string
		for _, secret := range secrets {
			pairs = append(pairs, secret, "[SECRET]")
		}
		replacer := strings.NewReplacer(pairs...)
		b.ReportAllocs()
		for b.Loop() {
			if len(replacer.Replace(line)) >= len(line) {
				b.Fatal("not masked")
			}
		}
	})
	b.Run("subject", func(b *testing.B) {
		field := &state.Field[[]string]{Name: "keys", Secret: true}
		st := state.New(state.MustSchema(field))
		if err := field.Set(st, secrets); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if len(st.Redact(line)) >= len(line) {
				b.Fatal("not masked")
			}
		}
	})
}
