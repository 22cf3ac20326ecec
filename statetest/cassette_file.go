package statetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/agentstate/state/internal/jsontext"
)

// cassetteFile is the content of a cassette: the exchanges in the order in which
// their requests were sent.
type cassetteFile struct {
	Version   int         `json:"version"`
	Exchanges []*exchange `json:"exchanges"`
}

// exchange is a request and its answer.
type exchange struct {
	Request  recordedRequest  `json:"request"`
	Response recordedResponse `json:"response"`
}

// recordedRequest is what a cassette has of a request: no query and no headers,
// which have keys.
type recordedRequest struct {
	Method string `json:"method"`
	Host   string `json:"host"`
	Path   string `json:"path"`
	recordedBody
}

type recordedResponse struct {
	Status int               `json:"status"`
	Header map[string]string `json:"headers,omitempty"`
	recordedBody
}

// recordedBody is a body in the form that is the easiest to read. At most one of
// the members is set, none for an empty body.
type recordedBody struct {
	JSON   json.RawMessage `json:"json,omitempty"`
	Events []streamEvent   `json:"events,omitempty"`
	Text   string          `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
}

const (
	cassetteVersion = 1

	// maxBody bounds a body, after it was decompressed, and maxCassette a file.
	maxBody     = 32 << 20
	maxCassette = 8 * maxBody
)

// bodyLimits bounds the bodies that count as JSON. encoding/json, which reads
// and writes the files, has a limit of 10 000 levels for all of a file.
var bodyLimits = jsontext.Limits{Bytes: maxBody, Depth: 1000}

// isJSON reports whether a body is an object or an array, in JSON that means the
// same to each reader.
func isJSON(body []byte) bool {
	start := bytes.TrimLeft(body, " \t\r\n")
	return len(start) > 0 && (start[0] == '{' || start[0] == '[') && jsontext.Check(body, bodyLimits) == nil
}

// recordBytes records a body as text, or as base64 if it is not.
func recordBytes(body []byte) recordedBody {
	if utf8.Valid(body) {
		return recordedBody{Text: string(body)}
	}
	return recordedBody{Base64: body}
}

// pieces returns the body as it is sent: a stream in its events. JSON is
// compact, everything else is as it was byte for byte.
func (b recordedBody) pieces() [][]byte {
	switch {
	case b.JSON != nil:
		return [][]byte{jsontext.AppendCompact(nil, b.JSON)}
	case b.Events != nil:
		list := make([][]byte, len(b.Events))
		for i, event := range b.Events {
			list[i] = []byte(event)
		}
		return list
	case b.Text != "":
		return [][]byte{[]byte(b.Text)}
	case b.Base64 != nil:
		return [][]byte{b.Base64}
	}
	return nil
}

func (b recordedBody) bytes() []byte { return bytes.Join(b.pieces(), nil) }

func (b recordedBody) check() error {
	forms := 0
	for _, set := range []bool{b.JSON != nil, b.Events != nil, b.Text != "", b.Base64 != nil} {
		if set {
			forms++
		}
	}
	if forms > 1 {
		return errors.New("more than one of json, events, text and base64")
	}
	if b.JSON != nil {
		return jsontext.Check(b.JSON, bodyLimits)
	}
	return nil
}

// encode returns the file: indented JSON.
func (f cassetteFile) encode() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(f)
	return out.Bytes(), err
}

// decodeCassette reads a file, which may have been edited.
func decodeCassette(data []byte) (f cassetteFile, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, err
	}
	if _, err := d.Token(); err != io.EOF {
		return f, errors.New("more than one JSON value")
	}
	if f.Version != cassetteVersion {
		return f, fmt.Errorf("version %d, want %d", f.Version, cassetteVersion)
	}
	if len(f.Exchanges) == 0 {
		return f, errors.New("no exchanges")
	}
	for i, x := range f.Exchanges {
		if err := x.check(); err != nil {
			return f, fmt.Errorf("exchange %d: %w", i+1, err)
		}
	}
	return f, nil
}

func (x *exchange) check() error {
	switch {
	case x == nil:
		return errors.New("null")
	case x.Request.Method == "" || x.Request.Path == "":
		return errors.New("the request has no method or path")
	case x.Response.Status < 200 || x.Response.Status > 999:
		return fmt.Errorf("status %d", x.Response.Status)
	}
	for name := range x.Response.Header {
		if !slices.Contains(recordedHeaders(http.StatusFound), name) {
			return fmt.Errorf("header %q: want one of %q", name, recordedHeaders(http.StatusFound))
		}
	}
	return errors.Join(x.Request.check(), x.Response.check())
}

// recordedHeaders returns the names of the headers of an answer that clients
// need. A client cannot follow a redirect without its Location.
func recordedHeaders(status int) []string {
	names := []string{"Content-Type", "Retry-After"}
	if status >= 300 && status < 400 {
		names = append(names, "Location")
	}
	return names
}

func readCassette(path string) (f cassetteFile, err error) {
	file, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxCassette+1))
	if err != nil {
		return f, err
	}
	if len(data) > maxCassette {
		return f, fmt.Errorf("more than %d bytes", maxCassette)
	}
	return decodeCassette(data)
}

// writeCassette replaces a file as a whole, so that no half of one is left if
// the tests are interrupted.
func writeCassette(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // fails once it was renamed
	_, err = file.Write(data)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
