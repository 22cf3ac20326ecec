package statetest

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/number"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/wire"
)

// cassetteRequest is a request, as it was sent or recorded.
type cassetteRequest struct {
	recordedRequest
	number int    // in the order in which the requests came, or were recorded
	body   any    // what counts of the body: a JSON value, or a string of any other bytes
	key    string // equal requests have equal keys
}

func (r *cassetteRequest) String() string {
	return fmt.Sprintf("request %d, %s %s%s", r.number, r.Method, r.Host, r.Path)
}

// readBody reads a body that may be compressed, and closes it.
func readBody(body io.ReadCloser, encoding string) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	defer body.Close()
	var r io.Reader = body
	switch strings.ToLower(encoding) {
	case "", "identity":
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(body)
		if errors.Is(err, io.EOF) {
			return nil, nil // such as the answer to HEAD
		}
		if err != nil {
			return nil, err
		}
		r = unzipped
	default:
		return nil, fmt.Errorf("statetest: cannot record a body encoded as %q", encoding)
	}
	data, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err == nil && len(data) > maxBody {
		err = fmt.Errorf("statetest: a body has more than %d bytes", maxBody)
	}
	return data, err
}

// request returns what a cassette has of a request, with its secrets masked.
// Members that do not count are left out, those of opts.Ignore of each body in
// JSON, and user and the like only of requests to models: another service may
// answer another user with other things.
func (c *cassette) request(r *http.Request, body []byte) *cassetteRequest {
	req := recordedRequest{Method: r.Method, Host: hostOf(r.URL), Path: r.URL.EscapedPath()}
	if req.Method == "" {
		req.Method = http.MethodGet
	}
	if req.Path == "" {
		req.Path = "/"
	}
	req.Path = c.mask(req.Path)
	if isJSON(body) {
		req.JSON = c.maskJSON(body)
	} else {
		req.recordedBody = recordBytes([]byte(c.mask(plainBoundary(r, string(body)))))
	}
	return c.match(req)
}

// match finds what counts of a request.
func (c *cassette) match(req recordedRequest) *cassetteRequest {
	var order secretOrder
	m := &cassetteRequest{recordedRequest: req, body: order.rename(string(req.bytes()))}
	m.key = order.rename(req.Method+" "+req.Host+req.Path) + "\ntext " + m.body.(string)
	if req.JSON == nil {
		return m
	}
	body, err := jsontext.Decode(req.JSON, bodyLimits)
	if err != nil { // of JSON that was checked
		return m
	}
	remove := func(any) (any, bool) { return nil, false }
	for _, path := range c.ignore {
		path.edit(body, remove)
	}
	format := req.format()
	if object, ok := body.(map[string]any); format != nil || ok && object["model"] != nil {
		for _, path := range unmatched {
			path.edit(body, remove)
		}
	}
	m.JSON, _ = jsontext.Marshal(body) // a value made of JSON
	renameCalls(format, body)
	m.body = plainNumbers(body)
	plain, _ := json.Marshal(m.body)
	order = secretOrder{}
	renamed := order.rename(string(plain))
	if renamed != string(plain) {
		d := json.NewDecoder(strings.NewReader(renamed))
		d.UseNumber()
		if err := d.Decode(&m.body); err != nil {
			return m
		}
	}
	m.key = order.rename(req.Method+" "+req.Host+req.Path) + "\njson " + renamed
	return m
}

// secretOrder numbers the masks of a request in the order of their appearance,
// as the numbers of the file depend on the order of the requests.
type secretOrder struct{ names map[string]string }

var numberedMask = regexp.MustCompile(`\[SECRET [0-9]+\]`)

func (o *secretOrder) rename(text string) string {
	return numberedMask.ReplaceAllStringFunc(text, func(mask string) string {
		if o.names == nil {
			o.names = map[string]string{}
		}
		if o.names[mask] == "" {
			o.names[mask] = fmt.Sprintf("[SECRET %d]", len(o.names)+1)
		}
		return o.names[mask]
	})
}

// format returns the format of a request to a model, or nil.
func (r recordedRequest) format() *provider.Format {
	return wire.FormatOf(&http.Request{Method: r.Method, URL: &url.URL{Path: r.Path}})
}

// hostOf returns the host of a URL without the port that its scheme has anyway.
func hostOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch u.Scheme {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	}
	return host
}

// plainBoundary returns a body with a boundary between its parts that is not
// drawn at random.
func plainBoundary(r *http.Request, body string) string {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") || params["boundary"] == "" {
		return body
	}
	return strings.ReplaceAll(body, params["boundary"], "boundary")
}

// plainNumbers spells equal numbers in the same way. Those that would lose
// something keep their spelling.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = plainNumbers(member)
		}
	case []any:
		for i, element := range v {
			v[i] = plainNumbers(element)
		}
	case json.Number:
		if n, ok := number.ToInt(v); ok {
			return json.Number(strconv.FormatInt(n, 10))
		}
		if f, ok := number.ToFloat(v, 64); ok && len(v) < 18 {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return v
}

// maskJSON masks texts and numbers of a checked JSON text, also in the JSON that
// a text contains, and leaves all else as it is spelled. A number becomes a
// string. A number that only has the digits of a short secret in it stays.
func (c *cassette) maskJSON(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		end := i + 1
		switch {
		case data[i] == '"':
			for data[end] != '"' {
				if data[end] == '\\' {
					end++
				}
				end++
			}
			end++
			text := jsontext.Unquote(data[i:end])
			masked := c.mask(text)
			if isJSON([]byte(text)) {
				masked = string(c.maskJSON([]byte(text)))
			}
			if masked != text {
				out = jsontext.AppendQuote(out, masked)
			} else {
				out = append(out, data[i:end]...)
			}
		case data[i] == '-' || data[i] >= '0' && data[i] <= '9':
			for end < len(data) && strings.IndexByte("0123456789+-.eE", data[end]) >= 0 {
				end++
			}
			text := string(data[i:end])
			if masked := c.maskNumber(text); masked != text {
				out = jsontext.AppendQuote(out, masked)
			} else {
				out = append(out, text...)
			}
		default:
			out = append(out, data[i])
		}
		i = end
	}
	return out
}

// maskNumber masks a number that is a secret, or has one that is so long that
// it is no coincidence.
func (c *cassette) maskNumber(text string) string {
	if masked := c.mask(text); numberedMask.FindString(masked) == masked || c.state != nil && c.state.Redact(text) != text {
		return masked
	}
	return text
}
