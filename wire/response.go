package wire

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/provider"
)

// call is one request to a model, until its answer is recorded.
type call struct {
	ctx     context.Context // of the request
	run     runctx.Run      // of a workspace that is told what is streamed, or nil
	st      *state.State
	format  *provider.Format
	refused runctx.Refused // what the request does not have
	asked   []byte         // the body of the program's request
	body    []byte         // of the request
	sent    sent
	add     func(state.InferenceResult) error // to the history
	started time.Time
	limit   int // of what an answer has, as in Transport
}

// record records an answer.
func (c *call) record(r state.InferenceResult) error {
	if hasFailed(r.Output) {
		err := notRecorded(errors.New("the provider reports that the response failed"))
		if r.Stop == state.StopFailed { // not one that somebody has cancelled
			noteFailure(c.ctx, nil, err)
		}
		return err
	}
	r.Prompt, r.History = c.sent.prompt, c.sent.history
	r.Output = c.sent.names.Restore(r.Output)
	r.StartedAt, r.CreatedAt = c.started, time.Now()       // a provider's time has seconds, and is that of the beginning
	if withheld := c.refused.Withheld; len(withheld) > 0 { // it was accepted without that, and may store the State
		if err := inside.Windows().Set(c.st, map[string]internal.Window{"": {Withheld: withheld}}); err != nil {
			return notRecorded(err)
		}
	}
	if err := c.add(r); err != nil {
		return notRecorded(err)
	}
	return nil
}

// hasFailed reports whether the output is what had come when the response
// failed, or was cancelled, as in the Responses API.
func hasFailed(output []state.Message) bool {
	if len(output) == 0 {
		return false
	}
	reason := origin.StopReason(output[len(output)-1])
	return reason == "failed" || reason == "cancelled"
}

func notRecorded(err error) error { return fmt.Errorf("wire: answer not recorded: %w", err) }

// receive records a response, or sees to it that it is recorded when its body
// has been read.
func (c *call) receive(resp *http.Response) {
	encoding := strings.ToLower(resp.Header.Get("Content-Encoding"))
	switch {
	case c.sent.later:
	case encoding != "" && encoding != "identity" && encoding != "gzip":
		fail(resp, nil, notRecorded(fmt.Errorf("the response has the content encoding %s", fault.Quote(encoding))))
	case c.sent.streams || isEventStream(resp.Header):
		stream := c.format.Stream()
		stream.MaxBytes = c.limit
		if c.run != nil {
			c.run.RestartText()
			stream.OnDelta = func(d provider.Delta) {
				switch d.Kind {
				case provider.DeltaText:
					c.run.Emit(d.Text)
				case provider.DeltaThinking:
					c.run.EmitThought(d.Text)
				case provider.DeltaInput:
					c.run.EmitInput(d.Call, cmp.Or(c.sent.names[d.Name], d.Name), d.Text)
				}
			}
		}
		resp.Body = &streamBody{ReadCloser: resp.Body, call: c, compressed: encoding == "gzip", stream: stream}
	default:
		c.receiveWhole(resp, encoding == "gzip")
	}
}

func isEventStream(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "text/event-stream")
}

// limitEncodings makes sure that the response can be read. A client that
// accepts several encodings looks at the header of the response.
func limitEncodings(h http.Header) {
	switch strings.ToLower(h.Get("Accept-Encoding")) {
	case "", "gzip", "identity":
	default:
		h.Del("Accept-Encoding") // then the base asks for gzip, and unpacks it
	}
}

// receiveWhole reads and records a response. If that fails, the reader has it all
// the same, and the error at its end.
func (c *call) receiveWhole(resp *http.Response, compressed bool) {
	body, err := c.readAll(resp.Body)
	if errors.Is(err, state.ErrLimitExceeded) {
		fail(resp, body, notRecorded(err))
		return
	}
	if err != nil { // whether to repeat the call is up to the SDK
		noteFailure(c.ctx, nil, err)
		resp.Body = &failedBody{bytes.NewReader(body), resp.Body, notRecorded(err)}
		return
	}
	if err := c.recordWhole(body, compressed); err != nil {
		c.noteLost(err)
		fail(resp, body, err)
		return
	}
	resp.Body = &wholeBody{bytes.NewReader(body), resp.Body}
}

// fail makes err the error of a response that has come. SDKs must not repeat
// the call, which has been paid for. Most would after an error of RoundTrip, and
// anthropic-sdk-go does after an error of the body, unless the header forbids it.
// body is what has been read.
func fail(resp *http.Response, body []byte, err error) {
	resp.Header.Set("X-Should-Retry", "false")
	resp.Body = &failedBody{bytes.NewReader(body), resp.Body, err}
}

func (c *call) recordWhole(body []byte, compressed bool) error {
	if compressed {
		packed, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return notRecorded(err)
		}
		if body, err = c.readAll(packed); err != nil {
			return notRecorded(err)
		}
	}
	r, err := c.format.DecodeResponse(body)
	if err != nil {
		return notRecorded(err)
	}
	return c.record(r)
}

// wholeBody is a body that has been read.
type wholeBody struct {
	*bytes.Reader
	io.Closer
}

// failedBody is a body that is not recorded. The error comes with its last bytes.
type failedBody struct {
	read *bytes.Reader
	io.Closer
	err error
}

func (b *failedBody) Read(p []byte) (int, error) {
	n, _ := b.read.Read(p)
	if b.read.Len() > 0 {
		return n, nil
	}
	return n, b.err
}

// streamBody is the body of a stream. It records the answer as soon as that is
// complete. A client may close it while it reads.
type streamBody struct {
	io.ReadCloser
	call       *call
	compressed bool

	mu       sync.Mutex
	stream   *provider.Stream
	packed   []byte // what has come, if it is compressed
	ended    bool   // the answer is recorded, or never will be
	recorded bool
	left     bool  // by the reader, before the end of the body
	err      error // of each Read from now on, nil before the end
}

// Read passes on what has come. An answer that cannot be recorded is an error that
// comes with its last bytes.
func (b *streamBody) Read(p []byte) (int, error) {
	if err := b.failure(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		full := b.take(p[:n])
		if full || b.stream.Done() || b.stream.Failed() || errors.Is(err, io.EOF) {
			if failed := b.end(); failed != nil {
				b.err = failed
				b.call.noteLost(failed)
				return n, failed
			}
		}
	}
	if err != nil {
		if b.recorded {
			err = io.EOF // the answer is complete, however the body ends
		} else if !errors.Is(err, io.EOF) {
			noteFailure(b.call.ctx, nil, err)
		}
		b.ended, b.err = true, err
	}
	return n, err
}

func (b *streamBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// noteLost tells the turn that an answer is not recorded: a reader that stops at the
// last event of a stream, or at the end of the JSON, does not see the error.
func (c *call) noteLost(err error) {
	if isReported(err) {
		noteFailure(c.ctx, nil, err)
	} else if c.ctx.Err() == nil {
		runctx.NoteFailure(c.ctx, err, -1)
	}
}

// isReported reports whether the provider reports the error, or has cut the stream.
// The same request may succeed later.
func isReported(err error) bool {
	var reported *provider.ResponseError
	return errors.As(err, &reported) || errors.Is(err, provider.ErrIncomplete)
}

// take takes what has come. It returns true if that is too much: Result reports
// it.
func (b *streamBody) take(p []byte) (full bool) {
	if !b.compressed {
		_, err := b.stream.Write(p)
		return err != nil
	}
	b.packed = append(b.packed, p...)
	return b.isOver()
}

// isOver reports whether a compressed body is too long as it is.
func (b *streamBody) isOver() bool { return b.call.limit > 0 && len(b.packed) > b.call.limit }

// end records the answer.
func (b *streamBody) end() error {
	b.ended = true
	r, err := b.result()
	if err != nil {
		return notRecorded(err)
	}
	err = b.call.record(r)
	b.recorded = err == nil
	return err
}

func (b *streamBody) result() (state.InferenceResult, error) {
	if !b.compressed {
		return b.stream.Result()
	}
	if b.isOver() {
		return state.InferenceResult{}, b.call.overLimit(len(b.packed))
	}
	broken := b.unpack() // as far as it has come
	r, err := b.stream.Result()
	if err == nil && broken != nil && !b.left && !b.stream.Done() {
		err = fmt.Errorf("%w: %w", provider.ErrIncomplete, broken)
	}
	return r, err
}

// Close closes the body. If the answer is complete, it is recorded. Otherwise
// the reader has broken it off, and it is not.
func (b *streamBody) Close() error {
	err := b.ReadCloser.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return err
	}
	b.ended, b.left = true, true
	if r, incomplete := b.result(); incomplete == nil {
		err = errors.Join(err, b.call.record(r))
	}
	return err
}

// unpack writes what a compressed body contains to the stream. If it is broken
// off, that is what can be unpacked, and the error. A stream that is full takes
// no more.
func (b *streamBody) unpack() error {
	r, err := gzip.NewReader(bytes.NewReader(b.packed))
	if err != nil {
		return err
	}
	_, err = io.Copy(b.stream, r)
	return err
}

// readAll reads a body that is limited.
func (c *call) readAll(r io.Reader) ([]byte, error) {
	if c.limit < 0 {
		return io.ReadAll(r)
	}
	body, err := io.ReadAll(io.LimitReader(r, int64(c.limit)+1))
	if err == nil && len(body) > c.limit {
		return nil, c.overLimit(len(body))
	}
	return body, err
}

func (c *call) overLimit(got int) error {
	return &state.LimitError{Name: "MaxBytes", Limit: c.limit, Got: got}
}
