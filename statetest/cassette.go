package statetest

import (
	"flag"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/agentstate/state"
)

// CassetteOptions are the options of a [Cassette]. The zero value is fine.
type CassetteOptions struct {
	// Transport makes the requests that are recorded (default
	// http.DefaultTransport). A replay does not use it.
	Transport http.RoundTripper

	// State is the handle of the host, whose secrets are masked in the file and
	// in failures (default: none). An answer that repeats a secret replays with
	// the mask.
	State *state.State

	// Ignore are members of bodies in JSON that do not count, such as
	// "$.metadata.trace", "$.messages[*].name" or "$.tools[0]". They are not
	// stored.
	Ignore []string
}

// Cassette returns a transport that answers requests from the file
// testdata/name and never dials. If files are updated, it makes the requests
// through opts.Transport instead and writes the file when the test ends.
//
// A request gets the answer to the recorded request that has the same method,
// host, path and body. Bodies are compared as JSON values, with the ids of calls
// renamed in their order. The members user, metadata, prompt_cache_key and
// safety_identifier of requests to models do not count, nor do opts.Ignore,
// headers and queries. Other bodies are compared as bytes, those of multipart
// requests without their boundary. Equal requests are answered in their order,
// others in any order. A request that is not recorded fails the test and is
// answered with the status 400, which SDKs do not retry. A recording that no
// request has used fails the test at its end. A request to a model whose
// conversation the provider would refuse fails the test.
//
// The file has no header of a request and no query. It is not written if the
// test fails, if a request has got no whole answer, or if the file would contain
// what the requests had in Authorization, Cookie, the headers *api-key or the
// parameter key. The headers of an answer are Content-Type, Retry-After, and the
// Location of a redirect, also while it is recorded. A body, decompressed, has at
// most 32 MiB. A stream replays byte for byte, and so does every body that is
// not JSON.
//
// The transport is safe for concurrent use.
func Cassette(t testing.TB, name string, opts *CassetteOptions) http.RoundTripper {
	t.Helper()
	if opts == nil {
		opts = &CassetteOptions{}
	}
	if name == "." || !filepath.IsLocal(name) {
		t.Fatalf("statetest: Cassette(%q): want the name of a file below testdata", name)
	}
	c := &cassette{t: t, path: filepath.Join("testdata", name), state: opts.State, secrets: newSecrets()}
	c.secrets.add(opts.State)
	for _, text := range opts.Ignore {
		path, err := parseMemberPath(text)
		if err != nil {
			t.Fatalf("statetest: Cassette: Ignore: %v", err)
		}
		c.ignore = append(c.ignore, path)
	}
	if updating() {
		c.deck = &recorder{cassette: c, transport: opts.Transport, failed: map[string]string{}}
	} else {
		c.deck = newPlayer(c)
	}
	t.Cleanup(c.end)
	return c
}

// cassette is what a recorder and a player have in common.
type cassette struct {
	t      testing.TB
	path   string
	state  *state.State
	ignore []memberPath
	deck   deck

	secrets *secrets

	mu       sync.Mutex
	keys     credentials
	requests int
	findings bool // a request with findings was reported
	reports  []string
	ended    bool
}

// deck answers the requests: a recorder or a player.
type deck interface {
	answer(r *http.Request, body []byte, req *cassetteRequest) (*http.Response, error)
	finish() // with the cassette's mutex held
}

// RoundTrip answers a request. It closes its body.
func (c *cassette) RoundTrip(r *http.Request) (*http.Response, error) {
	c.t.Helper()
	body, err := readBody(r.Body, r.Header.Get("Content-Encoding"))
	if err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	req := c.request(r, body)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return nil, fmt.Errorf("statetest: a request after the end of %s", c.t.Name())
	}
	c.requests++
	req.number = c.requests
	c.keys.collect(r)
	c.check(req, body)
	c.mu.Unlock()
	return c.deck.answer(r, body, req)
}

// check reports the first request whose conversation the provider would refuse.
// The mutex is held. The body is as it was sent: opts.Ignore may have removed
// what a request needs.
func (c *cassette) check(req *cassetteRequest, body []byte) {
	c.t.Helper()
	f := req.format()
	if f == nil || c.findings {
		return
	}
	decoded, err := f.DecodeRequest(body)
	if err != nil {
		c.findings = true
		c.errorf("%s, cannot be read as a request to %s: %v", req, f, err)
		return
	}
	if refusal := refusalBy(f, decoded, c.mask); refusal != "" {
		c.findings = true
		c.errorf("%s, %s", req, refusal)
	}
}

// errorf fails the test. The failure is printed at the end of the test, with
// the line of the call of Cassette: a request comes from the code of a client,
// whose lines say nothing. The mutex is held, and the test has not ended.
func (c *cassette) errorf(format string, args ...any) {
	text := c.keys.mask(c.mask(fmt.Sprintf(format, args...)))
	c.reports = append(c.reports, fmt.Sprintf("statetest: %s\n    again: go test -run '%s'", text, c.pattern()))
	c.t.Fail()
}

// pattern returns the pattern that runs only this test.
func (c *cassette) pattern() string {
	return "^" + strings.ReplaceAll(c.t.Name(), "/", "$/^") + "$"
}

// recordAgain returns the command that records the file.
func (c *cassette) recordAgain() string {
	if f := flag.Lookup("update"); f != nil {
		if boolean, ok := f.Value.(interface{ IsBoolFlag() bool }); ok && boolean.IsBoolFlag() {
			return fmt.Sprintf("go test -run '%s' -update records it", c.pattern())
		}
	}
	return fmt.Sprintf("STATETEST_UPDATE=1 go test -run '%s' records it", c.pattern())
}

// mask masks the secrets that the state has, in each encoding that Redact finds,
// and those that it had, as they are.
func (c *cassette) mask(text string) string {
	text = c.secrets.mask(text)
	if c.state == nil {
		return text
	}
	return c.state.Redact(text)
}

func (c *cassette) end() {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.deck.finish()
	for _, text := range c.reports {
		c.t.Error(text)
	}
}
