package main

import (
	"fmt"
	"strconv"
)

// A goal is a line of the table: a figure of the benchmarks
// BenchmarkGoal/<row>/… and its limit. Several goals may share a row.
type goal struct {
	row     string
	what    string
	limit   limit
	measure measure
}

// goals is the table of speed goals. "The same" is the subject of the line
// above.
var goals = []goal{
	{"get-scalar", "typed get through an agent's handle / get from a map under RWMutex", atMost(0.35, "×"), ratio("subject", "baseline")},
	{"get-scalar", "the same, allocations", atMost(0, "allocs"), worst("allocs/op", "subject")},
	{"get-scalar-2cpu", "typed get in parallel, two cores / one", atMost(1.1, "×"), secondCore("subject-par")},
	{"get-by-name", "get by name / get from a map under RWMutex", atMost(1.5, "×"), ratio("subject", "baseline")},
	{"set-scalar", "set of a scalar / set in a map under Mutex", atMost(3, "×"), ratio("subject", "baseline")},
	{"fork", "Fork, 10 … 100 000 keys", atMost(200, "ns"), worst("ns/op", sizes(10, 100_000)...)},
	{"fork", "the same, growth exponent", atMost(0.05, ""), growth(sizes(10, 100_000)...)},
	{"snapshot", "Snapshot, 10 … 100 000 keys", atMost(200, "ns"), worst("ns/op", sizes(10, 100_000)...)},
	{"snapshot", "the same, growth exponent", atMost(0.05, ""), growth(sizes(10, 100_000)...)},
	{"fork-write", "clone of a map of 1 000 keys / fork and first write", atLeast(25, "×"), ratio("baseline", "subject")},
	{"append", "append to a list of 10 … 100 000, slowest / fastest", atMost(2, "×"), spread("ns/op", sizes(10, 100_000)...)},
	{"append", "copy-on-set / append, at 1 000", atLeast(300, "×"), ratio("baseline/n=1000", "subject/n=1000")},
	{"step", "a step after 10 … 100 000 steps, slowest / fastest", atMost(1.5, "×"), spread("ns/op", sizes(10, 100_000)...)},
	{"access-check", "typed get with rights to check - without", atMost(1, "ns"), difference("subject", "baseline")},
	{"get-undeclared", "get by name, 1 000 undeclared keys / get from a map under RWMutex", atMost(1.5, "×"), ratio("subject", "baseline")},
	{"set-undeclared", "set by name, 1 000 undeclared keys / set in a map under Mutex", atMost(5, "×"), ratio("subject", "baseline")},
	{"append-text", "append to a list of 10 … 10 000 strings / to a slice under Mutex, worst", atMost(5, "×"), worstRatio("subject", "baseline", 10, 100, 1000, 10_000)},
	{"append-text", "the same, slowest / fastest", atMost(1.5, "×"), spread("ns/op", sizes(10, 10_000)...)},
	{"append-snapshot", "1 000 appends with a snapshot after each / to a slice under Mutex", atMost(10, "×"), ratio("subject", "baseline")},
	{"all", "All of 1 000 keys / clone of a map", atMost(2, "×"), ratio("subject", "baseline")},
	{"export-keys", "Export of 1 000 keys / json.Marshal", atMost(1.2, "×"), ratio("subject", "baseline")},
	{"import-keys", "Import of 1 000 keys / json.Unmarshal", atMost(2, "×"), ratio("subject", "baseline")},
	{"history-append", "History.Append of a result with one message", atMost(1500, "ns"), worst("ns/op", "subject")},
	{"history-append", "the same, allocations", atMost(12, "allocs"), worst("allocs/op", "subject")},
	{"redact", "Redact of 200 bytes, 10 secrets / strings.Replacer", atMost(3, "×"), ratio("subject", "baseline")},
	{"redact", "the same, allocations", atMost(1, "allocs"), worst("allocs/op", "subject")},
	{"tool-call", "Call with an input and an output / the function and its JSON", atMost(2, "×"), ratio("subject", "baseline")},
	{"tool-plan", "Plan of 32 calls", atMost(20_000, "ns"), worst("ns/op", "subject")},
	{"export", "bytes per result, 10 … 1 000 results, most / least", atMost(1.5, "×"), spread("bytes/result", sizes(10, 1000)...)},
	{"sqlite-put", "p50 of a Put of 1 KB / of an append and fdatasync", atMost(1.5, "×"), worst("put/sync", "subject")},
	{"sqlite-writers", "puts of 16 writers / one fdatasync each", atLeast(2, "×"), worst("puts/syncs", "subject")},
	{"workspace-handle", "p50 of handling a message on SQLite / of its two writes as append and fdatasync", atMost(2, "×"), worst("handle/syncs", "subject")},
	{"workspace-handle", "the same, allocations", atMost(550, "allocs"), worst("allocs/op", "subject")},
	{"workspace-handle", "the same, reads of the store", atMost(0.1, "reads"), worst("reads/message", "subject")},
	{"workspace-handle", "the same, bytes written", atMost(3700, "B"), worst("bytes/message", "subject")},
	{"workspace-warm", "View and Update of a workspace of 5 000 messages", atMost(500_000, "ns"), worst("ns/op", "subject/view", "subject/update")},
	{"workspace-load", "the first view of a workspace of 10 000 messages, memory and SQLite", atMost(25e6, "ns"), worst("ns/op", "subject/memory", "subject/sqlite")},
	{"workspace-unlimited", "a message after 10 000 others, no limits / one of the first", atMost(1.5, "×"), worst("last/first", "subject")},
	{"workspace-run", "a run of 200 steps on SQLite / as many appends with fdatasync", atMost(2, "×"), worst("run/syncs", "subject")},
	{"transcript-check", "Check, 10 × messages / messages, 100 … 100 000", atMost(11, "×"), stride(sizes(100, 100_000)...)},
	{"transcript-check", "the same of 100 000 messages", atMost(100e6, "ns"), worst("ns/op", "subject/n=100000")},
	{"transcript-keep-last", "KeepLast, 10 × messages / messages, 100 … 100 000", atMost(11, "×"), stride(sizes(100, 100_000)...)},
	{"transcript-keep-last", "the same of 100 000 messages", atMost(100e6, "ns"), worst("ns/op", "subject/n=100000")},
	{"stream-deltas", "a stream of 10 000 events with its deltas / json.Unmarshal of each event", atMost(1.5, "×"), ratio("subject", "baseline")},
	{"decode-openai", "DecodeRequest of a Chat Completions request / json.Unmarshal into any", atMost(2, "×"), ratio("subject", "baseline")},
	{"decode-openairesponses", "the same of a Responses request", atMost(2, "×"), ratio("subject", "baseline")},
	{"decode-anthropic", "the same of a Messages request", atMost(2, "×"), ratio("subject", "baseline")},
	{"decode-gemini", "the same of a generateContent request", atMost(2, "×"), ratio("subject", "baseline")},
	{"transcript-own-keep-last", "KeepLast of 2 000 messages of another type / of state.Message", atMost(2, "×"), ratio("subject", "baseline")},
	{"transcript-mirror", "Mirror with one of 2 000 messages new, and Check / Check", atMost(1.2, "×"), ratio("subject", "baseline")},
	{"transcript-repair", "Repair of a valid history, 10 × messages / messages, 100 … 100 000", atMost(12, "×"), stride(sizes(100, 100_000)...)},
	{"mcp-serve", "a step of two calls of served tools, 10, 50 and 200 steps / of the SDK's own, worst", atMost(1.5, "×"), worstRatio("subject", "baseline", 10, 50, 200)},
	{"mcp-import", "a step of two calls of imported tools, 10, 50 and 200 steps / of the SDK's own, worst", atMost(1.5, "×"), worstRatio("subject", "baseline", 10, 50, 200)},
	{"genkit-step", "a step of two calls with a state, 10, 50 and 200 steps / with Genkit's session, worst", atMost(1.5, "×"), worstRatio("subject", "baseline", 10, 50, 200)},
	{"eino-step", "a step of two calls of an agent of eino, 10, 50 and 200 steps / with session values, worst", atMost(2, "×"), worstRatio("subject", "baseline", 10, 50, 200)},
	{"otel-span", "a recorded span of otelstate / one of the SDK with its attributes", atMost(1.5, "×"), ratio("subject", "baseline")},
	{"otel-span", "the same", atMost(5000, "ns"), worst("ns/op", "subject")},
	{"otel-commit", "p50 of a durable commit, everything recorded / without a Tracer", atMost(1.03, "×"), worst("traced/plain", "subject")},
	{"wire-event", "an event of a stream through wire.Transport, 100 … 10 000 events", atMost(50_000, "ns"), worst("ns/event", sizes(100, 10_000)...)},
	{"wire-request", "Chat Completions with one of 1 000 messages new / encoded afresh", atMost(0.5, "×"), ratio("subject/OpenAI/n=1000", "baseline/OpenAI/n=1000")},
	{"wire-request", "the same of the Messages API", atMost(0.6, "×"), ratio("subject/Anthropic/n=1000", "baseline/Anthropic/n=1000")},
}

// sizes returns the variants of a subject that is measured at the sizes first,
// 10 × first, … last.
func sizes(first, last int) []string {
	var variants []string
	for n := first; n <= last; n *= 10 {
		variants = append(variants, "subject/n="+strconv.Itoa(n))
	}
	return variants
}

// A limit is the largest figure that meets a goal, or the smallest.
type limit struct {
	value float64
	unit  string
	least bool
}

func atMost(value float64, unit string) limit { return limit{value: value, unit: unit} }

func atLeast(value float64, unit string) limit { return limit{value: value, unit: unit, least: true} }

func (l limit) met(figure float64) bool {
	if l.least {
		return figure >= l.value
	}
	return figure <= l.value
}

func (l limit) String() string {
	sign := "≤ "
	if l.least {
		sign = "≥ "
	}
	return sign + l.withUnit(strconv.FormatFloat(l.value, 'g', -1, 64))
}

// show formats a figure with about three digits. It never rounds a missed goal
// to a met one.
func (l limit) show(figure float64) string {
	digits := 0
	for _, below := range []float64{100, 10, 0.1} {
		if figure != 0 && max(figure, -figure) < below {
			digits++
		}
	}
	text := strconv.FormatFloat(figure, 'f', digits, 64)
	if rounded, err := strconv.ParseFloat(text, 64); err == nil && l.met(rounded) != l.met(figure) {
		text = fmt.Sprint(figure)
	}
	return l.withUnit(text)
}

func (l limit) withUnit(text string) string {
	if l.unit == "" {
		return text
	}
	return text + " " + l.unit
}
