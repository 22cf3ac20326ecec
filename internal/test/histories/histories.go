// Package histories generates conversations for tests: valid ones of every
// shape that providers accept, and invalid ones. Only tests import it.
package histories

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/test/effort"
)

// Everyone stands for all formats at once. Every format accepts its histories.
const Everyone = ""

// Formats are the formats of histories, by their names in package origin.
var Formats = []string{origin.OpenAI, origin.OpenAIResponses, origin.Anthropic, origin.Gemini}

// Valid returns a history that the provider with the format accepts. Its
// messages come from that format, from other formats, or from none.
func Valid(rng *rand.Rand, format string) []state.Message {
	w := &writer{Rand: rng, format: format}
	w.systems()
	turns := w.IntN(4)
	switch w.IntN(200) {
	case 0:
		turns = 60
	case 1, 2, 3, 4:
		turns = 12
	}
	if w.may(origin.OpenAI, origin.OpenAIResponses, origin.Anthropic) && w.one(8) {
		w.assistant()
	}
	for range turns {
		w.user()
		w.assistant()
	}
	if w.may(origin.Anthropic) && turns > 0 && w.one(20) {
		// Only the last message may be empty.
		w.add(w.said("assistant", origin.Anthropic, []byte("[]")))
	}
	return w.msgs
}

// writer writes a history.
type writer struct {
	*rand.Rand
	format string
	msgs   []state.Message
	count  int // of ids
}

// one returns true with a probability of 1/n.
func (w *writer) one(n int) bool { return w.IntN(n) == 0 }

// may reports whether the history is for one of these formats.
func (w *writer) may(formats ...string) bool {
	for _, format := range formats {
		if format == w.format {
			return true
		}
	}
	return false
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// add adds a message. It panics on an error, which is a fault of this package.
func (w *writer) add(o jsontext.Object) {
	m, err := state.DecodeMessage(o.JSON())
	if err != nil {
		panic(fmt.Sprintf("histories: %v: %s", err, o.JSON()))
	}
	w.msgs = append(w.msgs, m)
}

// mark returns the format that a message comes from, "" for none.
func (w *writer) mark() string {
	switch {
	case w.one(2):
		return ""
	case w.format != Everyone && w.IntN(3) > 0:
		return w.format
	}
	return pick(w.Rand, Formats...)
}

// marked sets the member of a message that belongs to a format.
func marked(o jsontext.Object, mark, held string) jsontext.Object {
	if mark == "" {
		return o
	}
	return o.With(mark, []byte(held))
}

var texts = []string{
	"Hi", "What is the weather in Paris?", "299.0", "true", "null", `{"a":1}`, "[]", "…", "日本語のテキスト",
	"👩‍🚀 e\u0301 \u202eabc",
	"line\r\nline\ttab", "<b>&amp;</b>", "\x1b[31mred", `quote " and \ backslash`, "Continue.",
	strings.Repeat("long ", 300),
}

func (w *writer) quoted() []byte { return jsontext.AppendQuote(nil, pick(w.Rand, texts...)) }

func textPart(text []byte) []byte {
	return jsontext.Object{}.WithString("type", "text").With("text", text).JSON()
}

// said returns a text message that comes from a format.
func (w *writer) said(role, mark string, content []byte) jsontext.Object {
	o := jsontext.Object{}.WithString("type", "text").WithString("role", role).With("content", content)
	if role == "assistant" && w.one(2) {
		o = o.WithString("stop_reason", "stop")
	}
	if content[0] == '"' && w.one(2) {
		return o
	}
	return marked(o, mark, "{}")
}

// systems begins the history.
func (w *writer) systems() {
	for range pick(w.Rand, 0, 0, 1, 1, 2) {
		content := w.quoted()
		if w.one(4) {
			content = jsontext.Array([][]byte{textPart(content), textPart(w.quoted())})
		}
		w.add(w.said(pick(w.Rand, "system", "system", "developer"), "", content))
	}
}

// user adds one or several messages of the user.
func (w *writer) user() {
	for range pick(w.Rand, 1, 1, 1, 2, 3) {
		mark := w.mark()
		content := w.quoted()
		if w.one(3) {
			content = w.parts(mark)
		}
		w.add(w.said("user", mark, content))
		if w.one(12) {
			w.foreign()
		}
	}
	switch {
	case w.may(origin.OpenAI, origin.OpenAIResponses) && w.one(6):
		w.add(w.said(pick(w.Rand, "system", "developer"), "", w.quoted()))
	case w.may(origin.Anthropic) && w.one(8):
		for range pick(w.Rand, 1, 1, 2) {
			w.own(origin.Anthropic, "system", string(w.quoted()), "{}")
		}
		w.answer() // the user must not go on
	}
}

// parts returns content in the form of one format, or in the common form.
func (w *writer) parts(mark string) []byte {
	images := map[string]string{
		origin.OpenAI:          `{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}`,
		origin.OpenAIResponses: `{"type":"input_image","image_url":"data:image/png;base64,aGk="}`,
		origin.Anthropic:       `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`,
		origin.Gemini:          `{"inlineData":{"mimeType":"image/png","data":"aGk="}}`,
	}
	others := map[string]string{
		origin.OpenAI:          `{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}`,
		origin.OpenAIResponses: `{"type":"input_file","file_url":"https://example.org/a.pdf"}`,
		origin.Anthropic:       `{"type":"document","source":{"type":"url","url":"https://example.org/a.pdf"},"title":"a"}`,
		origin.Gemini:          `{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.org/a.pdf"}}`,
	}
	if mark == "" {
		mark = pick(w.Rand, Formats...)
	}
	image, other := []byte(images[mark]), []byte(others[mark])
	switch w.IntN(4) {
	case 0:
		return jsontext.Array([][]byte{image})
	case 1:
		return jsontext.Array([][]byte{textPart(w.quoted())})
	case 2:
		return jsontext.Array([][]byte{textPart(w.quoted()), image, textPart(w.quoted())})
	}
	return jsontext.Array([][]byte{other, textPart(w.quoted())})
}

// foreign adds a message of a type that the format does not have and omits.
func (w *writer) foreign() {
	if w.may(origin.OpenAIResponses, Everyone) || w.one(3) {
		w.add(jsontext.Object{}.WithString("type", "note").WithString("role", pick(w.Rand, "user", "assistant")).WithString("text", "x"))
		return
	}
	w.items()
}

// assistant adds steps of the assistant, with or without an answer at the end.
func (w *writer) assistant() {
	for range pick(w.Rand, 0, 0, 1, 1, 2, 4) {
		w.step()
	}
	if w.may(origin.OpenAIResponses) && w.one(4) {
		w.items()
	}
	for range pick(w.Rand, 0, 1, 1, 1, 2) {
		w.answer()
	}
}

// answer adds a text of the assistant.
func (w *writer) answer() {
	mark := w.mark()
	if w.may(origin.OpenAIResponses) && w.one(4) {
		w.reasoning()
		w.output()
		return
	}
	content := w.quoted()
	switch {
	case w.may(origin.OpenAI) && w.one(10):
		w.own(origin.OpenAI, "assistant", "null", `{"more":{"refusal":"I cannot."}}`)
		return
	case w.may(origin.Gemini) && w.one(10): // it takes back what it has sent
		w.own(origin.Gemini, "assistant", pick(w.Rand, `""`, `[]`,
			`[{"type":"text","text":"","thoughtSignature":"c2ln"}]`), "{}")
		return
	case mark == origin.Anthropic && w.one(3):
		content = w.served()
	case w.one(5):
		content = jsontext.Array([][]byte{textPart(w.quoted()), textPart(w.quoted())})
	}
	w.add(w.said("assistant", mark, content))
}

func (w *writer) id(prefix string) string {
	w.count++
	return prefix + strconv.Itoa(w.count)
}

// Law is a property of histories. Each history is made and judged for one of
// the cases in turn, such as a provider or a policy.
type Law[C any] struct {
	Cases   []C
	History func(*rand.Rand, C) []state.Message
	Obeys   func(C, []state.Message) error // nil if it obeys

	// Parts says that every part of a history obeys. Hold then shrinks a
	// history that does not obey to a smallest part that does not.
	Parts bool
}

// Hold makes 500 histories, multiplied by STATE_EFFORT, and judges them. It
// reports the shortest that breaks the law, with the STATE_SEED that makes it
// again.
func (l Law[C]) Hold(t *testing.T) {
	t.Helper()
	n := effort.Runs(500)
	seed := effort.Seed(1)
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // little live data and much garbage
	var next atomic.Int64
	var mu sync.Mutex
	var worst []state.Message
	failures, at := 0, -1
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				of := l.Cases[i%len(l.Cases)]
				msgs := l.History(rand.New(rand.NewPCG(seed, uint64(i))), of)
				if l.broken(of, msgs) == nil {
					continue
				}
				mu.Lock()
				if failures++; at < 0 || len(msgs) < len(worst) {
					worst, at = msgs, i
				}
				enough := failures >= 50
				mu.Unlock()
				if enough {
					return
				}
			}
		})
	}
	workers.Wait()
	if failures == 0 {
		return
	}
	of := l.Cases[at%len(l.Cases)]
	if l.Parts {
		worst = l.shrink(of, worst)
	}
	t.Errorf("%d of %d histories break the law; STATE_SEED=%d, history %d, case %v:\n%v\n%s",
		failures, n, seed, at, of, l.broken(of, worst), Render(worst))
}

// broken returns why the history breaks the law. A panic breaks it.
func (l Law[C]) broken(of C, msgs []state.Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			stack := make([]byte, 4<<10)
			err = fmt.Errorf("panic: %v\n%s", p, stack[:runtime.Stack(stack, false)])
		}
	}()
	return l.Obeys(of, msgs)
}

// shrink returns the history without the messages that are not needed to break
// the law.
func (l Law[C]) shrink(of C, msgs []state.Message) []state.Message {
	for size := (len(msgs) + 1) / 2; size > 0; {
		removed := false
		for i := 0; i+size <= len(msgs); {
			without := slices.Concat(msgs[:i], msgs[i+size:])
			if l.broken(of, without) != nil {
				msgs, removed = without, true
			} else {
				i++
			}
		}
		if !removed {
			size /= 2
		}
	}
	return msgs
}

// Render returns a history with one message per line.
func Render(msgs []state.Message) string {
	var b strings.Builder
	for i, m := range msgs {
		shown := "nil"
		if m != nil {
			shown = m.String()
			if raw := string(m.Raw()); len(raw) < 600 {
				shown = raw
			}
		}
		fmt.Fprintf(&b, "%4d %s\n", i, shown)
	}
	return b.String()
}
