package wire

import (
	"bytes"
	"io"
	"net/http"

	"github.com/agentstate/state/internal/jsontext"
)

// change makes ready what has come and is known, and returns the rest. What it has
// returned so far comes again, in front of the other bytes: it has the length held.
type change func(ready, come []byte, held int) (made, rest []byte)

// changeBody gives a response a body in which some of the bytes are others.
func changeBody(resp *http.Response, change change) {
	resp.Body = &changedBody{ReadCloser: resp.Body, change: change}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
}

// changedBody is a body with other bytes. The reader gets all that is ready, and at the
// end what is left.
type changedBody struct {
	io.ReadCloser
	change change

	ready []byte // for the reader
	held  []byte // what is not known yet
	err   error  // after what is ready
}

func (b *changedBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 && b.err == nil && len(p) > 0 {
		n, err := b.ReadCloser.Read(p)
		come := append(b.held, p[:n]...)
		var rest []byte
		b.ready, rest = b.change(b.ready, come, len(b.held))
		if b.held = come; len(rest) < len(come) {
			b.held = bytes.Clone(rest)
		}
		if b.err = err; err != nil {
			b.ready, b.held = append(b.ready, b.held...), nil
		}
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	if len(b.ready) == 0 && b.err != nil {
		return n, b.err
	}
	return n, nil
}

// withoutErrors takes "error":null out of the events of OpenAI's streams. openai-go
// v3.98.0 takes it for an error, gives the program nothing of the event, and closes the
// body: the answer would be recorded only if all of it had come by then.
func withoutErrors(ready, come []byte, held int) (made, rest []byte) {
	end := 0
	if last := bytes.LastIndexByte(come[held:], '\n'); last >= 0 { // what is held is a part of a line
		end = held + last + 1
	}
	if len(come)-end > lineBytes {
		end = len(come)
	}
	for line := range bytes.Lines(come[:end]) {
		ready = append(ready, withoutErrorNull(line)...)
	}
	return ready, come[end:]
}

// lineBytes is how much of a line is held. A longer one passes as it is.
const lineBytes = 1 << 20

// withoutErrorNull returns a line of a stream without the member.
func withoutErrorNull(line []byte) []byte {
	data, isData := bytes.CutPrefix(line, []byte("data:"))
	if !isData || !bytes.Contains(data, []byte(`"error"`)) || jsontext.Check(data, jsontext.Limits{}) != nil {
		return line
	}
	event, err := jsontext.Members(data)
	if failure := event.Get("error"); err != nil || failure == nil || !jsontext.IsNull(failure) {
		return line
	}
	end := line[len(bytes.TrimRight(line, "\r\n")):]
	return append(event.Without("error").AppendJSON([]byte("data: ")), end...)
}
