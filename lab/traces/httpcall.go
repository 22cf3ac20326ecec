package traces

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state/internal/jsontext"
)

// httpCall is a recorded call of an API, whatever layout the file has. Its
// members are zero if the recording does not tell.
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
	path    string   // in the file
	data    []byte   // nil if there is none
	events  [][]byte // of a stream that the file holds event by event
	problem string   // why it cannot be read, empty if it can
}

// httpBody returns the body of a recorded request or response. The names are
// those of VCR in Ruby, Python, R and Go, betamax, HAR, WireMock, nock and the
// recorders of some projects; no two of them mean different things by one.
func httpBody(path string, o jsontext.Object) body {
	for _, name := range []string{"parsed_body", "jsonBody", "base64Body", "postData", "bodyPatterns", "body", "content", "chunks"} {
		value := nonNull(o, name)
		if value == nil {
			continue
		}
		b := body{path: jsontext.Path(path, name)}
		switch name {
		case "parsed_body", "jsonBody":
			b.data = value
		case "base64Body":
			b.setBase64(loose.Text(value))
		case "bodyPatterns":
			for _, pattern := range loose.Elements(value) {
				if want := nonNull(loose.Members(pattern), "equalToJson"); want != nil {
					b.set(want)
				}
			}
		default:
			b.set(value)
		}
		if b.data != nil || b.problem != "" {
			return b
		}
	}
	if o.Get("bodyFileName") != nil {
		return body{path: path, problem: "a body in another file"}
	}
	return body{path: path}
}

// set takes the value of a body: its text, an object that holds the text, or
// the JSON of the body itself.
func (b *body) set(value []byte) {
	switch jsontext.Kind(value) {
	case "string":
		b.setBytes([]byte(jsontext.Unquote(value)))
	case "array":
		b.setChunks(value)
	case "object":
		o := loose.Members(value)
		for _, name := range []string{"base64_string", "raw_gzip", "string", "text"} {
			text := o.Get(name)
			switch {
			case text == nil:
			case jsontext.Kind(text) == "object": // bytes within, as in YAML
				b.set(text)
				return
			case jsontext.Kind(text) != "string" && jsontext.Kind(text) != "null":
			case name == "base64_string", name == "raw_gzip", loose.Text(o.Get("encoding")) == "base64":
				b.setBase64(loose.Text(text))
				return
			default:
				b.setBytes([]byte(loose.Text(text)))
				return
			}
		}
		if o.Get("mimeType") == nil { // that a HAR has no text
			b.data = value
		}
	}
}

// setChunks takes an array: the pieces of a text, in hex if they are
// compressed, or JSON.
func (b *body) setChunks(value []byte) {
	var text []byte
	elements := loose.Elements(value)
	for _, element := range elements {
		if jsontext.Kind(element) != "string" {
			b.data = value
			return
		}
		text = append(text, jsontext.Unquote(element)...)
	}
	if binary, err := hex.DecodeString(string(text)); err == nil {
		text = binary
	}
	b.setBytes(text)
}

// setBase64 takes base64, or a JSON array of pieces of it, which Polly.JS
// records.
func (b *body) setBase64(text string) {
	pieces := []string{text}
	if list := loose.Elements([]byte(text)); list != nil {
		pieces = nil
		for _, piece := range list {
			pieces = append(pieces, loose.Text(piece))
		}
	}
	var all []byte
	for _, piece := range pieces {
		data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(piece), ""))
		if err != nil {
			b.problem = "a body that is not base64"
			return
		}
		all = append(all, data...)
	}
	b.setBytes(all)
}

// setBytes takes the bytes of the body, which may be compressed.
func (b *body) setBytes(data []byte) {
	data, err := uncompressed(data)
	switch {
	case err != nil:
		b.problem = "a body with broken gzip"
	case !utf8.Valid(data):
		b.problem = "a binary body"
	case len(bytes.TrimSpace(data)) > 0:
		b.data = data
	}
}

// uncompressed returns data without its compression with gzip, if it has one.
func uncompressed(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// exchange returns the call as an exchange with a provider, or says what it is
// instead.
func (c *httpCall) exchange() (x *exchange, other string) {
	w, other := c.wire()
	if w == nil {
		return nil, other
	}
	if c.request.data == nil && c.response.data == nil && c.response.events == nil {
		return nil, bodyless(w, c)
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

func bodyless(w *wire, c *httpCall) string {
	for _, b := range []body{c.request, c.response} {
		if b.problem != "" {
			return "an exchange of " + w.name + " with " + b.problem
		}
	}
	return "an exchange of " + w.name + " without bodies"
}

// setAnswer sets the response or the stream.
func (x *exchange) setAnswer(b body) {
	switch {
	case b.events != nil:
		x.stream = b.events
	case b.problem != "":
		x.other = "an answer of " + x.wire.name + " with " + b.problem
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
	if w, other := wireAt(at); w != nil || other != "" {
		return w, other
	}
	request, response := loose.Members(c.request.data), loose.Members(c.response.data)
	if what := foreignKind(request); what != "" {
		return nil, what
	}
	if w := wireOfRequest(request); w != nil {
		return w, ""
	}
	switch {
	case strings.HasSuffix(at.Path, "/invoke"):
		return nil, "a Bedrock exchange with another model"
	case at.Host != "": // the same answer may come from another API
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

// statusOf returns the status of a response: a number, the text of a status
// line, or an object with a code.
func statusOf(o jsontext.Object) int {
	for _, name := range []string{"status_code", "statusCode", "code", "status"} {
		value := o.Get(name)
		if code := loose.Members(value).Get("code"); code != nil {
			value = code
		}
		first, _, _ := strings.Cut(loose.Text(value), " ")
		if n, err := strconv.Atoi(first); err == nil && n > 99 {
			return n
		}
	}
	return 0
}

// bodyValue returns a body that stands in the file as JSON, or as a string.
func bodyValue(path string, value []byte) body {
	b := body{path: path}
	switch jsontext.Kind(value) {
	case "object":
		b.data = value
	case "array", "string":
		b.set(value)
	}
	return b
}

// envelopeStream returns the events of the member stream of the envelope:
// objects that hold the data, the data itself, or the text of the stream.
func envelopeStream(path string, value []byte) (body, error) {
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
