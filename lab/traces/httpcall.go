package traces

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state/internal/jsontext"
)

// httpCall is a recorded call of an API. Its members are zero if the recording
// does not tell.
type httpCall struct {
	path     string // in the file
	api      string // one of wires, if the recording names it
	vendor   string // if the recording names it
	url      string
	status   int
	request  body
	response body
}

// body is the body of a recorded request or response.
type body struct {
	path   string   // in the file
	data   []byte   // nil if there is none
	events [][]byte // of a stream that the file holds event by event
}

// exchange returns the call as an exchange with a provider, or says what it is
// instead.
func (c *httpCall) exchange() (x *exchange, other string) {
	w, other := c.wire()
	if w == nil {
		return nil, other
	}
	if c.request.data == nil && c.response.data == nil && c.response.events == nil {
		return nil, "an exchange of " + w.name + " without bodies"
	}
	x = &exchange{
		wire: w, form: "exchange",
		requestPath: c.request.path, responsePath: c.response.path,
		request: c.request.data, outcome: outcomeOf(c.status),
		vendor: c.vendorName(),
	}
	if x.request != nil && jsontext.Kind(x.request) != "object" {
		return nil, "a request of " + w.name + " that is not a JSON object"
	}
	x.setAnswer(c.response)
	x.model = c.model(x)
	return x, ""
}

// setAnswer sets the response or the stream.
func (x *exchange) setAnswer(b body) {
	switch {
	case b.events != nil:
		x.stream = b.events
	case b.data == nil:
	case isEventStream(b.data), jsontext.Kind(b.data) == "array" && x.wire.holdsEvent(loose.Elements(b.data)):
		x.streamText = b.data
		x.stream = splitEvents(b.data)
	default:
		x.response = b.data
	}
}

// wire returns the format of the bodies, or says what they are. The recording
// may name the format, the URL tells it, or the shape of the bodies.
func (c *httpCall) wire() (w *wire, other string) {
	if c.api != "" {
		return wireOf(c.api)
	}
	at, err := url.Parse(c.url)
	if err != nil {
		at = &url.URL{}
	}
	if w := wireAt(at); w != nil {
		return w, ""
	}
	request, response := loose.Members(c.request.data), loose.Members(c.response.data)
	if what := foreignKind(request); what != "" {
		return nil, what
	}
	if w := wireOfRequest(request); w != nil {
		return w, ""
	}
	if at.Host != "" { // the same answer may come from another API
		return nil, "an HTTP exchange with " + at.Host
	}
	for _, w := range wires {
		if w.isResponse(response) || w.holdsEvent(c.response.events) || isEventStream(c.response.data) && w.holdsEvent(splitEvents(c.response.data)) {
			return w, ""
		}
	}
	if what := foreignKind(response); what != "" {
		return nil, what
	}
	return nil, "an exchange that names neither api nor url"
}

// statusOf returns the status of an exchange, 0 if it has none.
func statusOf(o jsontext.Object) int {
	n, err := strconv.Atoi(loose.Text(o.Get("status")))
	if err != nil || n < 100 {
		return 0
	}
	return n
}

// bodyValue returns a body that stands in the file as JSON, or as a string.
func bodyValue(path string, value []byte) body {
	b := body{path: path}
	switch jsontext.Kind(value) {
	case "object", "array":
		b.data = value
	case "string":
		if text := jsontext.Unquote(value); strings.TrimSpace(text) != "" {
			b.data = []byte(text)
		}
	}
	return b
}

// streamValue returns the events of the member stream: objects that hold the
// data, the data itself, or the text of the stream.
func streamValue(path string, value []byte) (body, error) {
	b := body{path: path}
	switch jsontext.Kind(value) {
	case "string":
		b.data = []byte(jsontext.Unquote(value))
		if !isEventStream(b.data) {
			return b, fmt.Errorf("want server-sent events, got another text")
		}
	case "array":
		b.events = [][]byte{}
		for _, element := range loose.Elements(value) {
			if data := loose.Members(element).Get("data"); data != nil {
				element = data
			}
			b.events = append(b.events, eventOf(element))
		}
	default:
		return b, fmt.Errorf("want array or string, got %s", jsontext.Kind(value))
	}
	return b, nil
}
