package wire

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider"
)

// restoreNames gives the program the names of its tools in a response, where the
// request had others. A compressed response stays as it is: none was asked for.
func restoreNames(resp *http.Response, names provider.ToolNames) {
	if len(names) == 0 || resp.Header.Get("Content-Encoding") != "" {
		return
	}
	resp.Body = &namedBody{ReadCloser: resp.Body, names: names}
	resp.ContentLength = -1
	resp.Header.Del("Content-Length")
}

// namedBody is a body with other names of tools. A name is a JSON string that
// is one of them as a whole. It is nothing that the model says: there its quotes
// are escaped. The reader gets all that has come, except for a string at the end
// that may become a name.
type namedBody struct {
	io.ReadCloser
	names provider.ToolNames

	ready []byte // for the reader
	held  []byte // the beginning of a string
	err   error  // after what is ready
}

func (b *namedBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 && b.err == nil && len(p) > 0 {
		n, err := b.ReadCloser.Read(p)
		b.held = append(b.held, p[:n]...)
		b.restore()
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

// restore makes ready what is held, up to a string that may become a name.
func (b *namedBody) restore() {
	rest := b.held
	for {
		start := bytes.IndexByte(rest, '"')
		if start < 0 {
			b.ready, rest = append(b.ready, rest...), nil
			break
		}
		b.ready, rest = append(b.ready, rest[:start]...), rest[start:]
		length := bytes.IndexByte(rest[1:], '"')
		if length < 0 {
			if b.mayBecomeName(string(rest[1:])) {
				break
			}
			b.ready, rest = append(b.ready, rest...), nil
			break
		}
		if name, ok := b.names[string(rest[1:1+length])]; ok {
			b.ready, rest = jsontext.AppendQuote(b.ready, name), rest[length+2:]
			continue
		}
		b.ready, rest = append(b.ready, rest[:1+length]...), rest[1+length:]
	}
	b.held = append(b.held[:0], rest...)
}

func (b *namedBody) mayBecomeName(begin string) bool {
	for accepted := range b.names {
		if strings.HasPrefix(accepted, begin) {
			return true
		}
	}
	return false
}
