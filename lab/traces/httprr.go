package traces

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
)

const httprrMagic = "httprr trace v1\n"

// httprrCalls reads a file that begins with httprrMagic: for each call a line
// with the lengths of the request and the response, and both as they went over
// the wire.
func httprrCalls(data []byte) ([]httpCall, error) {
	data = data[len(httprrMagic):]
	var list []httpCall
	for len(data) > 0 {
		path := jsontext.Index("$", len(list))
		line, rest, ok := bytes.Cut(data, []byte("\n"))
		var request, response int
		if _, err := fmt.Sscanf(string(line), "%d %d", &request, &response); err != nil || !ok ||
			request < 0 || response < 0 || request > len(rest) || response > len(rest)-request {
			return list, atPath(path, errors.New("not a record of httprr"))
		}
		first, asked := splitHTTP(path+".request", rest[:request])
		status, answered := splitHTTP(path+".response", rest[request:request+response])
		c := httpCall{path: path, request: asked, response: answered}
		if words := strings.Fields(first); len(words) > 1 {
			c.url = words[1]
		}
		if words := strings.Fields(status); len(words) > 1 {
			c.status, _ = strconv.Atoi(words[1])
		}
		list = append(list, c)
		data = rest[request+response:]
	}
	return list, nil
}

// splitHTTP returns the first line and the body of an HTTP message.
func splitHTTP(path string, message []byte) (first string, b body) {
	b.path = path
	head, content, _ := bytes.Cut(message, []byte("\r\n\r\n"))
	first, _, _ = strings.Cut(string(head), "\r\n")
	if strings.Contains(strings.ToLower(string(head)), "\r\ntransfer-encoding: chunked") {
		plain, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(content)))
		if err != nil {
			b.problem = "a body in broken chunks"
			return first, b
		}
		content = plain
	}
	b.setBytes(content)
	return first, b
}
