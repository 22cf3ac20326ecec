package pagehttp

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
	"sync"
	"time"
)

// maxBatch is what a stream keeps of its buffer.
const maxBatch = 64 << 10

// aliveInterval is the time after which a stream tells that it is in use.
const aliveInterval = 15 * time.Second

// Writer sends server-sent events to one client. After an error, it sends nothing.
type Writer struct {
	// Context ends with the request, with the Writer, and when the client has gone.
	Context context.Context
	lost    context.CancelFunc
	out     http.ResponseWriter
	control *http.ResponseController
	end     func() // is called by End

	mu    sync.Mutex   // a timer writes while nothing is told
	batch bytes.Buffer // of what was sent since the last flush
	err   error
	timer *time.Timer // of Each
}

// NewWriter returns a Writer for an answer. End calls end.
func NewWriter(ctx context.Context, w http.ResponseWriter, end func()) *Writer {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	made := &Writer{out: w, control: http.NewResponseController(w), end: end}
	made.Context, made.lost = context.WithCancel(ctx)
	return made
}

// Send sends an event with data, which must have no line breaks, and an id, or "" for
// none.
func (w *Writer) Send(id string, data []byte) {
	w.begin(id)
	w.batch.Write(data)
	w.batch.WriteString("\n\n")
}

// begin begins an event. What would end a line is left out of its id.
func (w *Writer) begin(id string) {
	visible := func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}
	if id = strings.Map(visible, id); id != "" {
		w.batch.WriteString("id: " + id + "\n")
	}
	w.batch.WriteString("data: ")
}

// SendJSON sends an event whose data is the JSON of a value that has one.
func (w *Writer) SendJSON(id string, v any) {
	w.begin(id)
	enc := json.NewEncoder(&w.batch)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // no value of these packages
		w.err = err
	}
	w.batch.WriteByte('\n') // behind that of the encoder
}

// Flush passes on what was sent. A client that does not take it in time is given
// up.
func (w *Writer) Flush() error {
	if w.err == nil && w.batch.Len() > 0 {
		_ = w.control.SetWriteDeadline(time.Now().Add(patience)) // not each server has one
		if _, w.err = w.out.Write(w.batch.Bytes()); w.err == nil {
			w.err = w.control.Flush()
		}
	}
	if w.batch.Reset(); w.batch.Cap() > maxBatch {
		w.batch = bytes.Buffer{}
	}
	return w.err
}

// Alive tells proxies and the server that the stream is in use. It is no event.
func (w *Writer) Alive() error {
	w.batch.WriteString(":\n\n")
	return w.Flush()
}

// Each yields what a source yields in the Context of a Writer, and flushes what is sent
// for it, until the loop is left, or behind an error. Meanwhile, a timer tells that the
// stream is in use: a goroutine in its place would take the stack of one for each stream.
func Each[T any](w *Writer, source iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		w.start()
		for v, err := range source {
			if !w.tell(func() bool { return yield(v, err) && err == nil }) {
				return
			}
		}
	}
}

// tell calls send, and flushes what it sends. It reports whether there is more.
func (w *Writer) tell(send func() (more bool)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := send()
	return w.Flush() == nil && more
}

func (w *Writer) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(aliveInterval, w.beat)
}

// beat tells that the stream is in use, until it ends.
func (w *Writer) beat() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.Context.Err() != nil:
	case w.Alive() != nil:
		w.lost()
	default:
		w.timer.Reset(aliveInterval)
	}
}

// End ends the Writer. It waits until nothing is written any more.
func (w *Writer) End() {
	w.lost()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.end()
}
