package statetest_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest"
)

// probe is a test that may fail without failing the test that makes it.
type probe struct {
	testing.TB
	mu       sync.Mutex
	reports  []string
	failed   bool
	cleanups []func()
}

func (p *probe) Helper()                      {}
func (p *probe) Name() string                 { return "TestProbe/a" }
func (p *probe) Skipped() bool                { return false }
func (p *probe) Cleanup(f func())             { p.cleanups = append(p.cleanups, f) }
func (p *probe) Logf(string, ...any)          {}
func (p *probe) Fatalf(text string, a ...any) { panic(fmt.Sprintf(text, a...)) }

func (p *probe) Fail() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
}

func (p *probe) Failed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

func (p *probe) Error(args ...any) {
	p.Fail()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports = append(p.reports, fmt.Sprint(args...))
}

func (p *probe) end() {
	for _, f := range p.cleanups {
		f()
	}
}

// roundTrips is a function that is a transport.
type roundTrips func(r *http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answers returns a transport with one answer to all requests.
func answers(status int, header http.Header, body string) http.RoundTripper {
	return roundTrips(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
		}
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	})
}

var jsonHeader = http.Header{"Content-Type": {"application/json"}}

// run runs use with a cassette in the present folder, which is recorded or
// played, and returns what the test then says.
func run(t testing.TB, record bool, opts *statetest.CassetteOptions, use func(rt http.RoundTripper)) string {
	t.Helper()
	defer func(set bool) { *update = set }(*update)
	*update = record
	p := &probe{TB: t}
	rt := statetest.Cassette(p, "a.json", opts)
	use(rt)
	p.end()
	require.Equal(t, p.Failed(), len(p.reports) > 0)
	return strings.Join(p.reports, "\n")
}

// send makes a request and returns its answer.
func send(t testing.TB, rt http.RoundTripper, method, url, kind, body string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", kind)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := rt.RoundTrip(r)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(data)
}

// sends returns a use of a cassette that posts JSON to a path.
func sends(t testing.TB, path string, bodies ...string) func(rt http.RoundTripper) {
	return func(rt http.RoundTripper) {
		for _, body := range bodies {
			send(t, rt, http.MethodPost, "https://api.test"+path, "application/json", body)
		}
	}
}

func cassetteText(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "a.json"))
	require.NoError(t, err)
	return string(data)
}

func zip(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func TestCassetteMatches(t *testing.T) {
	for _, c := range []struct {
		name, path, recorded, sent string
		ignore                     []string
		miss                       bool
	}{
		{name: "order of members", path: "/a", recorded: `{"a":1,"b":2}`, sent: ` {"b": 2, "a": 1}`},
		{name: "numbers spelled differently", path: "/a", recorded: `[1.50, 1e2, 0.1]`, sent: `[1.5, 100, 1e-1]`},
		{name: "large integers", path: "/a", recorded: `[9007199254740992]`, sent: `[9007199254740993]`, miss: true},
		{name: "long fractions", path: "/a", recorded: `[0.12345678901234567891]`, sent: `[0.12345678901234567892]`, miss: true},
		{name: "number and string", path: "/a", recorded: `[1]`, sent: `["1"]`, miss: true},
		{name: "ignored member", path: "/a", recorded: `{"at":{"time":1},"b":2}`, sent: `{"at":{"time":2},"b":2}`, ignore: []string{"$.at.time"}},
		{name: "ignored in each element", path: "/a", recorded: `[{"t":1},{"t":2}]`, sent: `[{"t":3},{}]`, ignore: []string{"$[*].t"}},
		{name: "ignored element", path: "/a", recorded: `{"l":[1,2]}`, sent: `{"l":[3,2]}`, ignore: []string{"$.l[0]"}},
		{name: "another element", path: "/a", recorded: `{"l":[1,2]}`, sent: `{"l":[1,3]}`, ignore: []string{"$.l[0]"}, miss: true},
		{name: "ignored odd name", path: "/a", recorded: `{"a b":1}`, sent: `{}`, ignore: []string{`$["a b"]`}},
		{name: "user of a model", path: chat, recorded: `{"messages":[],"user":"a"}`, sent: `{"messages":[]}`},
		{name: "user of a service", path: "/orders", recorded: `{"user":"a"}`, sent: `{"user":"b"}`, miss: true},
		{name: "text", path: "/a", recorded: `a b`, sent: `a  b`, miss: true},
		{name: "text and JSON", path: "/a", recorded: `"a"`, sent: ` "a"`, miss: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			opts := &statetest.CassetteOptions{Transport: answers(200, jsonHeader, `{"ok": true}`), Ignore: c.ignore}
			require.Empty(t, run(t, true, opts, sends(t, c.path, c.recorded)))
			report := run(t, false, opts, sends(t, c.path, c.sent))
			require.Equal(t, c.miss, report != "", report)
		})
	}
}

func TestCassetteRefusesPaths(t *testing.T) {
	for _, path := range []string{"", "a", "$", "$.", "$.a[", "$.a[x]", `$["a]`, "$..a"} {
		require.Panics(t, func() {
			statetest.Cassette(&probe{TB: t}, "a.json", &statetest.CassetteOptions{Ignore: []string{path}})
		}, path)
	}
	for _, name := range []string{"", ".", "../a.json", "/a.json"} {
		require.Panics(t, func() { statetest.Cassette(&probe{TB: t}, name, nil) }, name)
	}
}

func TestCassetteReadsGzip(t *testing.T) {
	t.Chdir(t.TempDir())
	header := http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}
	opts := &statetest.CassetteOptions{Transport: answers(200, header, zip(t, `{"a":"zipped"}`))}
	body := `{"q":"zipped, too"}`
	require.Empty(t, run(t, true, opts, func(rt http.RoundTripper) {
		_, text := send(t, rt, http.MethodPost, "https://api.test/a", "application/json", zip(t, body), "Content-Encoding", "gzip")
		require.Equal(t, `{"a":"zipped"}`, text)
	}))
	require.Contains(t, cassetteText(t), `"a": "zipped"`)
	require.Empty(t, run(t, false, nil, sends(t, "/a", body)))

	header.Set("Content-Encoding", "br")
	require.Contains(t, run(t, true, opts, func(rt http.RoundTripper) {
		_, err := rt.RoundTrip(get(t, t.Context(), "https://api.test/a"))
		require.ErrorContains(t, err, `"br"`)
	}), "has no answer to record")
}

func get(t testing.TB, ctx context.Context, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	return r
}

func TestCassetteBoundsBodies(t *testing.T) {
	t.Chdir(t.TempDir())
	bomb := zip(t, strings.Repeat(" ", 32<<20+1))
	require.Contains(t, run(t, true, &statetest.CassetteOptions{
		Transport: answers(200, http.Header{"Content-Encoding": {"gzip"}}, bomb),
	}, func(rt http.RoundTripper) {
		_, err := rt.RoundTrip(get(t, t.Context(), "https://api.test/a"))
		require.ErrorContains(t, err, "more than 33554432 bytes")
	}), "is not written")
	require.NoFileExists(t, "testdata/a.json")
}

func TestCassetteIgnoresBoundaries(t *testing.T) {
	t.Chdir(t.TempDir())
	upload := func(text string) func(rt http.RoundTripper) {
		return func(rt http.RoundTripper) {
			var b bytes.Buffer
			w := multipart.NewWriter(&b) // with a boundary at random
			part, err := w.CreateFormFile("file", "a.txt")
			require.NoError(t, err)
			_, err = io.WriteString(part, text)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			send(t, rt, http.MethodPost, "https://api.test/files", w.FormDataContentType(), b.String())
		}
	}
	require.Empty(t, run(t, true, &statetest.CassetteOptions{Transport: answers(200, jsonHeader, `{}`)}, upload("a")))
	require.Empty(t, run(t, false, nil, upload("a")))
	require.Contains(t, run(t, false, nil, upload("b")), "is not in testdata")
}

func TestCassetteIsNotWrittenWithoutAllAnswers(t *testing.T) {
	t.Chdir(t.TempDir())
	broken := errors.New("connection reset")
	fail := true
	opts := &statetest.CassetteOptions{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
		if fail {
			return nil, broken
		}
		return answers(200, jsonHeader, `{}`).RoundTrip(r)
	})}
	use := func(again bool) func(rt http.RoundTripper) {
		return func(rt http.RoundTripper) {
			fail = true
			_, err := rt.RoundTrip(get(t, t.Context(), "https://api.test/a"))
			require.ErrorIs(t, err, broken)
			if fail = false; again { // as SDKs do
				_, err := rt.RoundTrip(get(t, t.Context(), "https://api.test/a"))
				require.NoError(t, err)
			}
		}
	}
	report := run(t, true, opts, use(false))
	require.Contains(t, report, "request 1, GET api.test/a, has no answer to record: connection reset")
	require.NoFileExists(t, "testdata/a.json")
	require.Empty(t, run(t, true, opts, use(true)))
	require.Empty(t, run(t, false, nil, func(rt http.RoundTripper) {
		_, err := rt.RoundTrip(get(t, t.Context(), "https://api.test/a"))
		require.NoError(t, err)
	}))
	require.Contains(t, run(t, true, nil, func(http.RoundTripper) {}), "no request was made")
}

func TestCassetteEndsWithTheContext(t *testing.T) {
	t.Chdir(t.TempDir())
	opts := &statetest.CassetteOptions{Transport: answers(200, http.Header{"Content-Type": {"text/event-stream"}}, "data: 1\n\ndata: 2\n\n")}
	require.Empty(t, run(t, true, opts, func(rt http.RoundTripper) {
		send(t, rt, http.MethodGet, "https://api.test/a", "", "")
	}))
	require.Contains(t, run(t, false, nil, func(rt http.RoundTripper) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := rt.RoundTrip(get(t, ctx, "https://api.test/a"))
		require.ErrorIs(t, err, context.Canceled)
	}), "1 of 1 recordings", "a request that was given up uses nothing up")
	require.Empty(t, run(t, false, nil, func(rt http.RoundTripper) {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := rt.RoundTrip(get(t, ctx, "https://api.test/a"))
		require.NoError(t, err)
		first := make([]byte, 100)
		n, err := res.Body.Read(first)
		require.NoError(t, err)
		require.Equal(t, "data: 1\n\n", string(first[:n]), "one event, as it was sent")
		cancel()
		_, err = res.Body.Read(first)
		require.ErrorIs(t, err, context.Canceled)
		require.NoError(t, res.Body.Close())
	}))
}

func TestCassetteSaysNothingAfterTheEnd(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, record := range []bool{true, false} {
		var late http.RoundTripper
		opts := &statetest.CassetteOptions{Transport: answers(200, jsonHeader, `{}`)}
		require.Empty(t, run(t, record, opts, func(rt http.RoundTripper) {
			late = rt
			sends(t, "/a", `{}`)(rt)
		}))
		_, err := late.RoundTrip(get(t, t.Context(), "https://api.test/other")) // a report would make the probe fail
		require.ErrorContains(t, err, "after the end of TestProbe/a")
	}
}

func TestCassetteKeepsRequestsThatAreUnderWay(t *testing.T) {
	t.Chdir(t.TempDir())
	started, release, done := make(chan bool), make(chan bool), make(chan bool)
	opts := &statetest.CassetteOptions{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
		close(started)
		<-release
		return answers(200, jsonHeader, `{}`).RoundTrip(r)
	})}
	report := run(t, true, opts, func(rt http.RoundTripper) {
		go func() {
			defer close(done)
			_, _ = rt.RoundTrip(get(t, t.Context(), "https://api.test/a"))
		}()
		<-started
	})
	close(release)
	<-done
	require.Contains(t, report, "1 requests are under way at the end")
	require.NoFileExists(t, "testdata/a.json")
}

func TestCassetteFollowsRedirects(t *testing.T) {
	t.Chdir(t.TempDir())
	opts := &statetest.CassetteOptions{Transport: roundTrips(func(r *http.Request) (*http.Response, error) {
		header := http.Header{"Content-Type": {"text/plain"}, "Location": {"/b"}, "Set-Cookie": {"session=4242424242"}}
		status := map[string]int{"/a": 302, "/b": 200}[r.URL.Path]
		return answers(status, header, "at "+r.URL.Path).RoundTrip(r)
	})}
	use := func(rt http.RoundTripper) {
		res, err := (&http.Client{Transport: rt}).Do(get(t, t.Context(), "https://api.test/a"))
		require.NoError(t, err)
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, "at /b", string(data))
		require.Empty(t, res.Header.Get("Location"))
	}
	require.Empty(t, run(t, true, opts, use))
	require.NotContains(t, cassetteText(t), "4242")
	require.Empty(t, run(t, false, nil, use))
}

func TestCassetteChecksConversations(t *testing.T) {
	t.Chdir(t.TempDir())
	open := `{"model":"m","messages":[{"role":"user","content":"The keyboard is broken."},{"role":"assistant","tool_calls":[` +
		`{"id":"call_1","type":"function","function":{"name":"refund","arguments":"{}"}}]},{"role":"user","content":"Please hurry."}]}`
	opts := &statetest.CassetteOptions{Transport: answers(200, jsonHeader, `{}`)}
	report := run(t, true, opts, sends(t, chat, open, open))
	require.Equal(t, 1, strings.Count(report, "would be refused by OpenAI"), "only the first is reported")
	require.Contains(t, report, "✗ 1  assistant  calls refund {} (call_1)")
	require.NoFileExists(t, "testdata/a.json", "of a test that has failed")
	require.Contains(t, run(t, true, opts, sends(t, chat, `{"messages":1}`)), "cannot be read as a request to OpenAI")

	opts.Ignore = []string{"$.messages[0].content"}
	require.Empty(t, run(t, true, opts, sends(t, chat, says("a"))), "what does not count is checked")
}

var (
	cassetteCard = &state.Field[string]{Name: "card", Secret: true}
	cassettePIN  = &state.Field[int]{Name: "pin", Secret: true}
)

func TestCassetteMasksTheSecretsOfTheState(t *testing.T) {
	t.Chdir(t.TempDir())
	st := state.New(state.MustSchema(cassetteCard, cassettePIN))
	require.NoError(t, cassetteCard.Set(st, "4242-4242-4242"))
	require.NoError(t, cassettePIN.Set(st, 123456))
	opts := &statetest.CassetteOptions{State: st,
		Transport: answers(200, jsonHeader, `{"echo":"{\"card\":\"4242-4242-4242\"}","pin":123456,"created":91234560}`)}
	card, pin := `{"a":"pay with 4242-4242-4242"}`, `{"pin":123456}`
	require.Empty(t, run(t, true, opts, sends(t, "/a", card, pin)))
	for _, value := range []string{"4242-4242", `123456,`, `123456"`} {
		require.NotContains(t, cassetteText(t), value)
	}
	require.Contains(t, cassetteText(t), "pay with [SECRET 1]")
	require.Contains(t, cassetteText(t), `"pin": "[SECRET 2]"`)
	require.Empty(t, run(t, false, opts, sends(t, "/a", pin, card)), "the numbers of secrets depend on the order")

	require.NoError(t, cassetteCard.Set(st, "5555-5555-5555"))
	require.Empty(t, run(t, false, opts, sends(t, "/a", `{"a":"pay with 5555-5555-5555"}`, pin)), "another value of the same field")
	report := run(t, false, opts, sends(t, "/a", `{"a":"refund to 5555-5555-5555"}`, pin))
	require.Contains(t, report, `"refund to [SECRET 1]"`)
	require.NotContains(t, report, "5555")
}

func TestCassetteFindsSecretsInSeveralEvents(t *testing.T) {
	t.Chdir(t.TempDir())
	st := state.New(state.MustSchema(cassetteCard))
	require.NoError(t, cassetteCard.Set(st, "4242-4242-4242"))
	chunk := func(text string) string {
		return fmt.Sprintf("data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q}}]}\n\n", text)
	}
	opts := &statetest.CassetteOptions{State: st, Transport: answers(200, http.Header{"Content-Type": {"text/event-stream"}},
		chunk("4242-42")+chunk("42-4242")+"data: [DONE]\n\n")}
	require.Contains(t, run(t, true, opts, sends(t, chat, says("a"))), "it would tell a secret of the state")
	require.NoFileExists(t, "testdata/a.json")
}

func TestCassetteFindsCredentials(t *testing.T) {
	const key = "sk-proj-4242abcdef99"
	for name, c := range map[string]struct {
		header []string
		query  string
		answer string
	}{
		"bearer":        {header: []string{"Authorization", "Bearer " + key}, answer: key},
		"api key":       {header: []string{"X-Goog-Api-Key", key}, answer: key},
		"cookie":        {header: []string{"Cookie", "a=1; session=" + key}, answer: key},
		"basic":         {header: []string{"Authorization", "Basic dXNlcjpzay1wcm9qLTQyNDJhYmNkZWY5OQ=="}, answer: key},
		"parameter":     {query: "?key=" + key, answer: key},
		"base64":        {query: "?key=" + key, answer: "c2stcHJvai00MjQyYWJjZGVmOTk="},
		"base64, moved": {query: "?key=" + key, answer: "eHNrLXByb2otNDI0MmFiY2RlZjk5"},
		"hex":           {query: "?key=" + key, answer: "736B2D70726F6A2D34323432616263646566" + "3939"},
		"base64 twice":  {query: "?key=" + key, answer: "YzJzdGNISnZhaTAwTWpReVlXSmpaR1ZtT1RrPQ=="},
		"12 bytes":      {query: "?key=" + key, answer: "invalid key " + key[:12] + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			opts := &statetest.CassetteOptions{Transport: answers(401, jsonHeader, fmt.Sprintf(`{"error":%q}`, c.answer))}
			report := run(t, true, opts, func(rt http.RoundTripper) {
				send(t, rt, http.MethodPost, "https://api.test/a"+c.query, "application/json", `{}`, c.header...)
			})
			require.Contains(t, report, "it would tell the")
			require.NotContains(t, report, key[:12])
			require.NoFileExists(t, "testdata/a.json")
		})
	}
}

func TestCassetteIsSafeForConcurrentUse(t *testing.T) {
	t.Chdir(t.TempDir())
	echo := roundTrips(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return answers(200, jsonHeader, string(body)).RoundTrip(&http.Request{URL: r.URL})
	})
	use := func(rt http.RoundTripper) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				body := fmt.Sprintf(`{"n":%d}`, i/2)
				_, got := send(t, rt, http.MethodPost, "https://api.test/a", "application/json", body)
				if got != body {
					t.Errorf("got %s, want %s", got, body)
				}
			})
		}
		wg.Wait()
	}
	require.Empty(t, run(t, true, &statetest.CassetteOptions{Transport: echo}, use))
	require.Empty(t, run(t, false, nil, use))
}

// A file has what it was written from: each body, recorded and played, is equal
// as JSON, and equal byte for byte if it is a stream or no JSON.
func TestCassetteLaw(t *testing.T) {
	t.Chdir(t.TempDir())
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"data: ", "event: a\n", "\n\n", "\r\n\r\n", "\r", "\n", `{"a": 1}`, `{"a":1}`, "[DONE]", `"b"`, ": ping", "<&>", "\u2028"}),
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }),
	)
	body := rapid.Map(rapid.SliceOfN(piece, 0, 8), func(list []string) string { return strings.Join(list, "") })
	kind := rapid.SampledFrom([]string{"text/event-stream", "text/plain", "application/json", ""})
	rapid.Check(t, func(rt *rapid.T) {
		var answer string
		var header http.Header
		transport := roundTrips(func(r *http.Request) (*http.Response, error) { return answers(200, header, answer).RoundTrip(r) })
		sent := rapid.SliceOfN(body, 1, 4).Draw(rt, "requests")
		got := rapid.SliceOfN(body, len(sent), len(sent)).Draw(rt, "answers")
		kinds := rapid.SliceOfN(kind, len(sent), len(sent)).Draw(rt, "kinds")
		use := func(c http.RoundTripper) {
			for i, text := range sent {
				answer, header = got[i], http.Header{"Content-Type": {kinds[i]}}
				status, text := send(t, c, http.MethodPost, "https://api.test/a", "text/plain", text)
				require.Equal(rt, 200, status)
				if kinds[i] == "application/json" && text != got[i] {
					require.JSONEq(rt, got[i], text)
				} else {
					require.Equal(rt, got[i], text)
				}
			}
		}
		require.Empty(rt, run(t, true, &statetest.CassetteOptions{Transport: transport}, use))
		require.Empty(rt, run(t, false, nil, use))
	})
}
