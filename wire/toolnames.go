package wire

import (
	"bytes"
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
	changeBody(resp, nameRestorer(names).restore)
}

// nameRestorer gives a body other names of tools. A name is a JSON string that is one of
// them as a whole. It is nothing that the model says: there its quotes are escaped.
type nameRestorer provider.ToolNames

// restore makes ready what has come, up to a string that may become a name.
func (n nameRestorer) restore(ready, rest []byte, _ int) (made, held []byte) {
	for {
		start := bytes.IndexByte(rest, '"')
		if start < 0 {
			return append(ready, rest...), nil
		}
		ready, rest = append(ready, rest[:start]...), rest[start:]
		length := bytes.IndexByte(rest[1:], '"')
		if length < 0 {
			if n.mayBegin(string(rest[1:])) {
				return ready, rest
			}
			return append(ready, rest...), nil
		}
		if name, ok := n[string(rest[1:1+length])]; ok {
			ready, rest = jsontext.AppendQuote(ready, name), rest[length+2:]
			continue
		}
		ready, rest = append(ready, rest[:1+length]...), rest[1+length:]
	}
}

func (n nameRestorer) mayBegin(begin string) bool {
	for accepted := range n {
		if strings.HasPrefix(accepted, begin) {
			return true
		}
	}
	return false
}
