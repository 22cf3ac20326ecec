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
