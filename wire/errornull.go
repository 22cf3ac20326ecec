package wire

import (
	"bytes"
	"io"
	"net/http"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// restoreErrors takes "error":null out of the events of a stream. openai-go v3.98.0
// takes that for an error, gives the program nothing of the event, and closes the
// body: the answer would be recorded only if all of it had come by then.
func restoreErrors(resp *http.Response, format *provider.Format, streams bool) {
	ofOpenAI := format == provider.OpenAI || format == provider.OpenAIResponses
	if ofOpenAI && (streams || isEventStream(resp.Header)) && resp.Header.Get("Content-Encoding") == "" {
		resp.Body = &errorlessBody{ReadCloser: resp.Body}
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
	}
}

// errorlessBody is the body of a stream without "error":null. The reader gets all
// lines that have come whole.
type errorlessBody struct {
	io.ReadCloser

	ready []byte // for the reader
	held  []byte // the beginning of a line
	err   error  // after what is ready
}

// eventBytes is how much of a line is held. A longer one passes as it is.
const eventBytes = 1 << 20

func (b *errorlessBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 && b.err == nil && len(p) > 0 {
		n, err := b.ReadCloser.Read(p)
		if len(b.held) == 0 && n > 0 && p[n-1] == '\n' && !bytes.Contains(p[:n], errorName) {
			b.err = err
			return n, err
		}
		b.held = append(b.held, p[:n]...)
		whole := bytes.LastIndexByte(b.held, '\n') + 1
		if b.err = err; err != nil || len(b.held) > eventBytes {
			whole = len(b.held)
		}
		for line := range bytes.Lines(b.held[:whole]) {
			b.ready = append(b.ready, withoutErrorNull(line)...)
		}
		b.held = append(b.held[:0], b.held[whole:]...)
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	if len(b.ready) == 0 && b.err != nil {
		return n, b.err
	}
	return n, nil
}

var errorName = []byte(`"error"`)

// withoutErrorNull returns a line of a stream without the member.
func withoutErrorNull(line []byte) []byte {
	data, isData := bytes.CutPrefix(line, []byte("data:"))
	if !isData || !bytes.Contains(data, errorName) || jsontext.Check(data, jsontext.Limits{}) != nil {
		return line
	}
	event, err := jsontext.Members(data)
	if failure := event.Get("error"); err != nil || failure == nil || !jsontext.IsNull(failure) {
		return line
	}
	end := line[len(bytes.TrimRight(line, "\r\n")):]
	return append(event.Without("error").AppendJSON([]byte("data: ")), end...)
}
