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
	out     http.ResponseWriter
	control *http.ResponseController
	batch   bytes.Buffer // of what was sent since the last flush
	err     error
}

// NewWriter returns a Writer for an answer.
func NewWriter(w http.ResponseWriter) *Writer {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	return &Writer{out: w, control: http.NewResponseController(w)}
}

// Send sends an event with data and an id, or "" for none, which must have no line
// breaks.
func (w *Writer) Send(id string, data []byte) {
	if id = strings.Map(visible, id); id != "" {
		w.batch.WriteString("id: " + id + "\n")
	}
	w.batch.WriteString("data: ")
	w.batch.Write(data)
	w.batch.WriteString("\n\n")
}

// visible leaves out what would end a line.
func visible(r rune) rune {
	if r < ' ' {
		return -1
	}
	return r
}

// SendJSON sends an event whose data is the JSON of a value that has one.
func (w *Writer) SendJSON(id string, v any) {
	data, err := json.Marshal(v)
	if err != nil { // no value of these packages
		w.err = err
		return
	}
	w.Send(id, data)
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

// Serve calls send with what each yields in a context, and flushes what it sends,
// until send reports that there is no more, the client has gone, or ctx ends.
func Serve[T any](ctx context.Context, w *Writer, each func(context.Context) iter.Seq2[T, error], send func(T, error) (more bool)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := pulse{w: w, lost: cancel}
	p.start()
	defer p.stop()
	for v, err := range each(ctx) {
		if more := p.tell(func() bool { return send(v, err) && err == nil }); !more {
			return
		}
	}
}

// pulse shares the Writer of a stream with a timer, which writes while nothing is
// told. A timer in place of a goroutine saves the stack of one for each stream.
type pulse struct {
	mu    sync.Mutex
	w     *Writer
	lost  func() // is called when the client has gone
	timer *time.Timer
	ended bool
}

func (p *pulse) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(aliveInterval, p.beat)
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
	case p.w.Alive() != nil:
		p.lost()
	default:
		p.timer.Reset(aliveInterval)
	}
}

// tell calls send, and flushes what it sends. It reports whether there is more.
func (p *pulse) tell(send func() (more bool)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	more := send()
	return p.w.Flush() == nil && more
}

// stop waits until the timer writes nothing any more.
func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.timer.Stop()
}
