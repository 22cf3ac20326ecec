package statetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// recorder makes the requests and writes the file.
type recorder struct {
	*cassette
	transport http.RoundTripper
	exchanges []*exchange       // nil if there is no whole answer
	failed    map[string]string // requests without an answer, by their keys
	texts     []string          // what the streams say in all, for the search
	underway  int
}

func (d *recorder) answer(r *http.Request, body []byte, req *cassetteRequest) (*http.Response, error) {
	d.mu.Lock()
	d.underway++
	place := len(d.exchanges)
	d.exchanges = append(d.exchanges, nil)
	d.mu.Unlock()

	response, err := d.send(r, body)

	d.mu.Lock()
	defer d.mu.Unlock()
	d.underway--
	if err != nil {
		d.failed[req.key] = fmt.Sprintf("%s, has no answer to record: %v", req, err)
		return nil, err
	}
	delete(d.failed, req.key)
	if f := req.format(); f != nil && response.Events != nil {
		stream := f.Stream()
		_, _ = stream.Write(response.bytes())
		result, _ := stream.Result() // of a stream that breaks off, what came
		for _, msg := range result.Output {
			d.texts = append(d.texts, string(msg.Raw()))
		}
	}
	d.exchanges[place] = &exchange{Request: req.recordedRequest, Response: d.masked(response)}
	return response.response(r), nil
}

// send makes a request and reads all of the answer, which the client gets as in
// a replay.
func (d *recorder) send(r *http.Request, body []byte) (recordedResponse, error) {
	out := r.Clone(r.Context())
	out.Header.Del("Accept-Encoding") // of encodings that cannot be read
	out.Header.Del("Content-Encoding")
	out.Body, out.GetBody, out.ContentLength = nil, nil, 0
	if len(body) > 0 {
		out.ContentLength = int64(len(body))
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		out.Body, _ = out.GetBody()
	}
	transport := d.transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	res, err := transport.RoundTrip(out)
	if err != nil {
		return recordedResponse{}, err
	}
	if res.Request != nil {
		d.mu.Lock()
		d.keys.collect(res.Request) // with what transports below have added
		d.mu.Unlock()
	}
	if res.StatusCode < 200 {
		return recordedResponse{}, errors.Join(fmt.Errorf("statetest: cannot record the status %d", res.StatusCode), res.Body.Close())
	}
	data, err := readBody(res.Body, res.Header.Get("Content-Encoding"))
	if err != nil {
		return recordedResponse{}, err
	}
	return recordResponse(res.StatusCode, res.Header, data), nil
}

func recordResponse(status int, header http.Header, body []byte) recordedResponse {
	x := recordedResponse{Status: status, Header: map[string]string{}}
	for _, name := range recordedHeaders(status) {
		if value := header.Get(name); value != "" {
			x.Header[name] = value
		}
	}
	kind, _, _ := mime.ParseMediaType(x.Header["Content-Type"])
	switch {
	case kind == "text/event-stream" && len(body) > 0 && utf8.Valid(body):
		x.Events = splitEvents(string(body))
	case (kind == "application/json" || strings.HasSuffix(kind, "+json")) && isJSON(body):
		x.JSON = body
	default:
		x.recordedBody = recordBytes(body)
	}
	return x
}

// masked returns the answer without the secrets of the state.
func (d *recorder) masked(x recordedResponse) recordedResponse {
	if d.state == nil {
		return x
	}
	x.Header = maps.Clone(x.Header)
	for name, value := range x.Header {
		x.Header[name] = d.mask(value)
	}
	if x.JSON != nil {
		x.JSON = d.maskJSON(x.JSON)
	}
	x.Events = slices.Clone(x.Events)
	for i, event := range x.Events {
		if f, ok := event.fields(); ok {
			f.Data = d.maskJSON(f.Data)
			x.Events[i], _ = f.text()
			continue
		}
		x.Events[i] = streamEvent(d.mask(string(event)))
	}
	x.Text = d.mask(x.Text)
	return x
}

// finish writes the file unless something is wrong.
func (d *recorder) finish() {
	d.t.Helper()
	switch {
	case d.t.Skipped():
		return
	case d.t.Failed():
		d.t.Logf("statetest: the test has failed: %s is not written", d.path)
		return
	case d.underway > 0:
		d.errorf("%d requests are under way at the end: %s is not written", d.underway, d.path)
		return
	case len(d.failed) > 0:
		d.errorf("%s is not written:\n      %s", d.path, strings.Join(slices.Sorted(maps.Values(d.failed)), "\n      "))
		return
	}
	file := cassetteFile{Version: cassetteVersion}
	for _, x := range d.exchanges {
		if x != nil {
			file.Exchanges = append(file.Exchanges, x)
		}
	}
	if len(file.Exchanges) == 0 {
		d.errorf("no request was made: %s is not written", d.path)
		return
	}
	data, err := file.encode()
	if err == nil {
		_, err = decodeCassette(data)
	}
	if err != nil {
		d.errorf("%s is not written: %v", d.path, err)
		return
	}
	for _, text := range append([]string{string(data)}, d.texts...) {
		if found := d.keys.find(text); found != "" {
			d.errorf("%s is not written: it would tell %s", d.path, found)
			return
		}
	}
	for _, text := range append([]string{string(data)}, d.streamed(file)...) {
		if string(d.maskJSON([]byte(text))) != text {
			d.errorf("%s is not written: it would tell a secret of the state, which was set after the exchange"+
				" or is in several events of a stream", d.path)
			return
		}
	}
	if err := writeCassette(d.path, data); err != nil {
		d.errorf("%s is not written: %v", d.path, err)
		return
	}
	d.t.Logf("statetest: %s has %d exchanges", d.path, len(file.Exchanges))
}

// streamed returns what the streams of a file say in all, from the masked
// events: a text that is in several of them cannot be masked.
func (d *recorder) streamed(file cassetteFile) (texts []string) {
	for _, x := range file.Exchanges {
		f := x.Request.format()
		if f == nil || x.Response.Events == nil {
			continue
		}
		stream := f.Stream()
		_, _ = stream.Write(x.Response.bytes())
		result, _ := stream.Result()
		for _, msg := range result.Output {
			texts = append(texts, string(msg.Raw()))
		}
	}
	return texts
}
