package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams is the number of streams of one Handler.
	maxStreams = 64
	// commentInterval is the time after which a stream without events says that
	// it is still there.
	commentInterval = 15 * time.Second
	// streamTimeout is the time that a reader has to take what is written.
	streamTimeout = 30 * time.Second
	// reconnectDelay is the time after which a browser comes back.
	reconnectDelay = 2 * time.Second
)

// events answers with a stream of server-sent events: one for each change of the
// workspace. A request with the header Last-Event-ID, or with the parameter
// after, gets none for the write that it names.
func (h *Handler) events(c *call) (*page, error) {
	if _, err := c.summary(); err != nil {
		return nil, err
	}
	f, err := h.feeds.follow(h, c.user)
	if err != nil {
		c.w.Header().Set("Retry-After", "30")
		return nil, err
	}
	defer f.leave()
	answerStream(c, f.pulses)
	return nil, nil
}

// signal is what a stream says. Its id tells it from others.
type signal interface{ id() string }

// answerStream answers with a stream of signals, until it is closed.
func answerStream[S signal](c *call, signals <-chan S) {
	seen := c.r.Header.Get("Last-Event-ID")
	if seen == "" {
		seen = c.query.Get("after")
	}
	header := c.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // or nginx waits for more
	if c.r.Method == http.MethodHead {
		return
	}
	s := &stream{w: c.w, control: http.NewResponseController(c.w), ctx: c.h.ctx}
	defer s.end()
	// A reader that takes nothing does not delay Close.
	defer context.AfterFunc(c.h.ctx, func() { s.control.SetWriteDeadline(time.Now()) })()
	runStream(c.ctx(), s, signals, seen)
}

// stream is the answer to a request for events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context // of the Handler
}

// runStream writes events until ctx or the Handler ends, or the reader is gone.
func runStream[S signal](ctx context.Context, s *stream, signals <-chan S, seen string) {
	if !s.write("retry: %d\n\n", reconnectDelay.Milliseconds()) {
		return
	}
	comment := time.NewTicker(commentInterval)
	defer comment.Stop()
	for {
		ok := true
		select {
		case p, more := <-signals:
			if !more {
				return
			}
			id := p.id()
			if id == seen {
				continue
			}
			seen = ""
			data, err := json.Marshal(p)
			ok = err == nil && s.write("id: %s\ndata: %s\n\n", id, data)
		case <-comment.C:
			ok = s.write(": here\n\n")
		case <-ctx.Done():
			return
		case <-s.ctx.Done():
			return
		}
		if !ok {
			return
		}
	}
}

// write writes to the reader, and reports whether that went well. The deadline
// of the server for the whole answer is replaced by one for each write. A
// ResponseWriter without deadlines has no effect on that.
func (s *stream) write(format string, args ...any) bool {
	s.control.SetWriteDeadline(time.Now().Add(streamTimeout))
	if s.ctx.Err() != nil {
		return false
	}
	if _, err := fmt.Fprintf(s.w, format, args...); err != nil {
		return false
	}
	return s.control.Flush() == nil
}

// end lifts the deadline for the next answer of the connection.
func (s *stream) end() { s.control.SetWriteDeadline(time.Time{}) }
