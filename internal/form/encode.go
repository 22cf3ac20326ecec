package form

import (
	"bytes"
	"strconv"
	"time"

	"github.com/agentstate/state/internal/jsontext"
)

// AppendJSON appends the form as JSON, byte for byte as encoding/json writes it
// without escapes for HTML. The values and messages must be checked, compact
// JSON: they are appended as they are.
func (s *State) AppendJSON(dst []byte) []byte {
	w := writer{dst: append(dst, '{')}
	w.name("format")
	w.dst = strconv.AppendInt(w.dst, int64(s.Format), 10)
	w.name("version")
	w.dst = strconv.AppendUint(w.dst, s.Version, 10)
	if len(s.Fields) > 0 {
		w.name("fields")
		appendList(&w, s.Fields, (*writer).field)
	}
	if len(s.Keys) > 0 {
		w.name("keys")
		appendList(&w, s.Keys, (*writer).field)
	}
	if s.Conversation != nil {
		w.name("conversation")
		appendList(&w, *s.Conversation, (*writer).run)
	}
	if len(s.Results) > 0 {
		w.name("results")
		appendList(&w, s.Results, (*writer).result)
	}
	if len(s.Messages) > 0 {
		w.name("messages")
		w.dst = append(w.dst, '[')
		for i, text := range s.Messages {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = append(w.dst, text...)
		}
		w.dst = append(w.dst, ']')
	}
	return append(w.dst, '}')
}

// AppendJSON appends the result as JSON, as [State.AppendJSON] writes it.
func (r *Result) AppendJSON(dst []byte) []byte {
	w := writer{dst: dst}
	w.result(r)
	return w.dst
}

// A writer appends to one text.
type writer struct{ dst []byte }

// name begins a member. Names of members need no escapes.
func (w *writer) name(name string) {
	if w.dst[len(w.dst)-1] != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, '"', ':')
}

func appendList[T any](w *writer, list []T, write func(*writer, *T)) {
	w.dst = append(w.dst, '[')
	for i := range list {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		write(w, &list[i])
	}
	w.dst = append(w.dst, ']')
}

// The characters that encoding/json escapes in strings, because they end a line
// in JavaScript.
const (
	lineSeparator      = "\u2028"
	paragraphSeparator = "\u2029"
)

func (w *writer) text(text string) {
	from := len(w.dst)
	w.dst = jsontext.AppendQuote(w.dst, text)
	if quoted := w.dst[from:]; bytes.Contains(quoted, []byte(lineSeparator)) ||
		bytes.Contains(quoted, []byte(paragraphSeparator)) {
		quoted = bytes.ReplaceAll(quoted, []byte(lineSeparator), []byte(`\u2028`))
		quoted = bytes.ReplaceAll(quoted, []byte(paragraphSeparator), []byte(`\u2029`))
		w.dst = append(w.dst[:from], quoted...)
	}
}

// optional appends a member unless its text is empty.
func (w *writer) optional(name, text string) {
	if text != "" {
		w.name(name)
		w.text(text)
	}
}

func (w *writer) field(f *Field) {
	w.dst = append(w.dst, '{')
	w.name("name")
	w.text(f.Name)
	w.name("value")
	w.dst = append(w.dst, f.Value...)
	w.dst = append(w.dst, '}')
}

func (w *writer) run(r *Run) {
	w.dst = strconv.AppendInt(append(w.dst, '['), int64(r.From), 10)
	w.dst = strconv.AppendInt(append(w.dst, ','), int64(r.To), 10)
	w.dst = append(w.dst, ']')
}

func (w *writer) runs(name string, runs []Run) {
	if len(runs) > 0 {
		w.name(name)
		appendList(w, runs, (*writer).run)
	}
}

func (w *writer) result(r *Result) {
	w.dst = append(w.dst, '{')
	w.optional("id", r.ID)
	w.optional("agent", r.Agent)
	w.optional("input", r.Input)
	w.runs("prompt", r.Prompt)
	w.runs("history", r.History)
	w.runs("output", r.Output)
	w.runs("tool_calls", r.ToolCalls)
	w.optional("raw", r.Raw)
	w.optional("raw_base64", r.RawBytes)
	w.optional("stop", r.Stop)
	w.optional("stop_word", r.StopWord)
	if r.Usage != (Usage{}) {
		w.name("usage")
		w.usage(r.Usage)
	}
	if !r.StartedAt.IsZero() {
		w.time("started_at", r.StartedAt)
	}
	w.time("created_at", r.CreatedAt)
	w.dst = append(w.dst, '}')
}

func (w *writer) usage(u Usage) {
	w.dst = append(w.dst, '{')
	for _, c := range []struct {
		name  string
		count int
	}{
		{"input", u.Input}, {"output", u.Output},
		{"cache_read", u.CacheRead}, {"cache_write", u.CacheWrite}, {"reasoning", u.Reasoning},
	} {
		if c.count != 0 {
			w.name(c.name)
			w.dst = strconv.AppendInt(w.dst, int64(c.count), 10)
		}
	}
	w.dst = append(w.dst, '}')
}

func (w *writer) time(name string, t time.Time) {
	w.name(name)
	w.dst = t.AppendFormat(append(w.dst, '"'), time.RFC3339Nano)
	w.dst = append(w.dst, '"')
}
