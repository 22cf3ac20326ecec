package statetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
)

// player answers requests from a file.
type player struct {
	*cassette
	recordings []*recording
	broken     bool            // the file was not read, which is reported
	missed     map[string]bool // keys of the requests that were reported
}

// recording is an exchange that answers one request.
type recording struct {
	*exchange
	request *cassetteRequest
	used    bool
}

func newPlayer(c *cassette) *player {
	c.t.Helper()
	p := &player{cassette: c, missed: map[string]bool{}}
	file, err := readCassette(c.path)
	if err != nil {
		p.broken = true
		if errors.Is(err, fs.ErrNotExist) {
			c.errorf("%s is missing: %s", c.path, c.recordAgain())
		} else {
			c.errorf("%s cannot be read: %v", c.path, err)
		}
	}
	if p.broken {
		return p
	}
	for i, x := range file.Exchanges {
		request := c.match(x.Request)
		request.number = i + 1
		p.recordings = append(p.recordings, &recording{exchange: x, request: request})
	}
	return p
}

func (p *player) answer(r *http.Request, _ []byte, req *cassetteRequest) (*http.Response, error) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, fmt.Errorf("statetest: a request after the end of %s", p.t.Name())
	}
	recorded := 0
	for _, candidate := range p.recordings {
		if candidate.request.key != req.key {
			continue
		}
		if !candidate.used {
			candidate.used = true
			return candidate.Response.response(r), nil
		}
		recorded++
	}
	if !p.broken && !p.missed[req.key] {
		p.missed[req.key] = true
		p.reportMiss(req, recorded)
	}
	return refusal(p.path).response(r), nil
}

func (p *player) reportMiss(req *cassetteRequest, recorded int) {
	p.t.Helper()
	if recorded > 0 {
		p.errorf("%s, is in %s %d times, and this is one more\n    %s", req, p.path, recorded, p.recordAgain())
		return
	}
	near, diff := nearest(p.recordings, req)
	p.errorf("%s, is not in %s; the nearest is recording %d of %d:\n%s\n    %s",
		req, p.path, near.request.number, len(p.recordings), diff, p.recordAgain())
}

// refusal is the answer to a request that is not recorded. Its body has the form
// of an error of each provider.
func refusal(path string) recordedResponse {
	return recordedResponse{
		Status: http.StatusBadRequest,
		Header: map[string]string{"Content-Type": "application/json"},
		recordedBody: recordedBody{JSON: fmt.Appendf(nil, `{"type":"error","error":{"type":"invalid_request_error",`+
			`"code":400,"status":"INVALID_ARGUMENT","message":%q}}`, "statetest: the request is not in "+path)},
	}
}

// finish reports what no request has used, also if the test has failed: a
// recording that is left shows what the program did not do or did otherwise. A
// test that was skipped did not come to all of it.
func (p *player) finish() {
	p.t.Helper()
	if p.t.Skipped() {
		return
	}
	var left []string
	for _, r := range p.recordings {
		if !r.used {
			left = append(left, fmt.Sprintf("      %d  %s %s%s", r.request.number, r.request.Method, r.request.Host, r.request.Path))
		}
	}
	if len(left) > 0 {
		p.errorf("%d of %d recordings of %s were not asked for:\n%s\n    %s",
			len(left), len(p.recordings), p.path, strings.Join(left, "\n"), p.recordAgain())
	}
}

// response returns the answer to a request.
func (x recordedResponse) response(r *http.Request) *http.Response {
	pieces := x.pieces()
	if r.Method == http.MethodHead {
		pieces = nil
	}
	body := &replayBody{ctx: r.Context()}
	length := int64(0)
	for _, piece := range pieces {
		body.pieces = append(body.pieces, bytes.NewReader(piece))
		length += int64(len(piece))
	}
	header := http.Header{}
	for name, value := range x.Header {
		header.Set(name, value)
	}
	if x.Events != nil {
		length = -1
	}
	return &http.Response{
		Status:     strings.TrimSpace(fmt.Sprintf("%d %s", x.Status, http.StatusText(x.Status))),
		StatusCode: x.Status,
		Proto:      "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: length, Request: r,
	}
}

// replayBody is read in the pieces that were sent, until the context of the
// request ends.
type replayBody struct {
	ctx    context.Context
	pieces []*bytes.Reader
	closed bool
}

func (b *replayBody) Read(p []byte) (int, error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	for len(b.pieces) > 0 {
		if err := b.ctx.Err(); err != nil {
			return 0, err
		}
		if n, err := b.pieces[0].Read(p); err == nil {
			return n, nil
		}
		b.pieces = b.pieces[1:]
	}
	return 0, io.EOF
}

func (b *replayBody) Close() error {
	b.closed = true
	return nil
}
