package wire_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/wire"
)

// requireAnswer fails unless the answer of the API is the only one that is
// recorded.
func requireAnswer(t *testing.T, st *state.State, a api, raw string) {
	t.Helper()
	require.Equal(t, 1, st.History().Len())
	r, _ := st.History().Last()
	require.Contains(t, texts(r.Output), "Hello, Ann!")
	require.Equal(t, raw, r.Raw)
	require.Greater(t, r.StartedAt.Year(), 2023, "the time of the program, and not that of the response")
	require.False(t, r.CreatedAt.Before(r.StartedAt))
	if a.format != provider.OpenAIResponses { // whose streams are not asked here
		require.Equal(t, "r1", r.ID)
	}
}

func (a api) raw(streamed bool) string {
	if streamed {
		return sse(a.events...)
	}
	return a.whole
}

func TestAnswersAreRecorded(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		server := serve(t, func(w http.ResponseWriter, req *http.Request) { a.answer(w, streamed) })
		for _, in := range []func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.HalfReader,
		} {
			st := newState(t)
			resp := post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.pathOf(streamed), a.body(streamed))
			body, err := io.ReadAll(in(resp.Body))
			require.NoError(t, err)
			require.Equal(t, a.raw(streamed), string(body))
			require.NoError(t, resp.Body.Close())
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 1, st.History().Len())
			// An answer is recorded when its last event has come, which may be
			// before the line after it.
			r, _ := st.History().Last()
			requireAnswer(t, st, a, r.Raw)
			said, _ := provider.Summarize(r.Raw)
			require.Equal(t, said.Usage, r.Usage)
			require.Equal(t, strings.TrimSpace(a.raw(streamed)), strings.TrimSpace(r.Raw))
			require.Empty(t, state.Messages.GetOr(st, nil), "with RecordOnly, the conversation stays as it is")
		}
	})
}

// Gemini sends a JSON array unless it is asked for events.
func TestStreamsOfJSON(t *testing.T) {
	a := apis[3]
	var chunks []string
	for _, event := range a.events {
		chunks = append(chunks, strings.TrimPrefix(event, "data: "))
	}
	raw := "[" + strings.Join(chunks, "\n,\n") + "]"
	server := serve(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, raw)
	})
	st := newState(t)
	body, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+"/v1beta/models/m:streamGenerateContent", a.body(true)))
	require.NoError(t, err)
	require.Equal(t, raw, body)
	requireAnswer(t, st, a, raw)
}

// A server may stream without saying so, or answer a request for a stream with
// JSON.
func TestStreamsAreToldByTheRequestOrTheResponse(t *testing.T) {
	for _, a := range apis[:3] {
		for _, c := range []struct{ asked, streamed bool }{{true, false}, {false, true}} {
			server := serve(t, func(w http.ResponseWriter, req *http.Request) { a.answer(w, c.streamed) })
			st := newState(t)
			_, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.path, a.body(c.asked)))
			require.NoError(t, err)
			requireAnswer(t, st, a, a.raw(c.streamed))
		}
	}
}

func TestErrorsOfTheProviderPassUntouched(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		for _, status := range []int{400, 401, 404, 429, 500, 503, 529} {
			server := serve(t, func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.WriteHeader(status)
				io.WriteString(w, `{"error":{"message":"no"}}`)
			})
			st := newState(t, state.UserText("Hi!"))
			resp := post(t, newClient(t, &wire.Transport{}), st, server.URL+a.pathOf(streamed), a.body(streamed))
			body, err := readAll(resp)
			require.NoError(t, err)
			require.Equal(t, status, resp.StatusCode)
			require.Equal(t, "7", resp.Header.Get("Retry-After"))
			require.Equal(t, `{"error":{"message":"no"}}`, body)
			require.Zero(t, st.History().Len())
			require.Len(t, state.Messages.GetOr(st, nil), 1)
		}
	})
}

func TestARetryIsRecordedOnce(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		var requests atomic.Int32
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			switch requests.Add(1) {
			case 1:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 2:
				panic(http.ErrAbortHandler) // the connection breaks
			default:
				a.answer(w, streamed)
			}
		})
		st := newState(t, state.UserText("Hi!"))
		client := newClient(t, &wire.Transport{})
		for requests.Load() < 3 {
			resp, err := tryPost(client, st, server.URL+a.pathOf(streamed), a.body(streamed))
			if err == nil {
				_, err = readAll(resp)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
			}
		}
		require.Len(t, state.Messages.GetOr(st, nil), 2)
		require.Equal(t, 1, st.History().Len())
	})
}

// A stream is cut after each event, by an orderly end of the body and by the end
// of the connection.
func TestACutStreamIsAnErrorAndNotRecorded(t *testing.T) {
	for _, a := range apis {
		for n := range a.events {
			for _, abrupt := range []bool{false, true} {
				t.Run(fmt.Sprint(a.format, "/", n, "/", abrupt), func(t *testing.T) {
					server := serve(t, func(w http.ResponseWriter, req *http.Request) {
						w.Header().Set("Content-Type", "text/event-stream")
						for _, event := range a.events[:n] {
							io.WriteString(w, sse(event))
						}
						io.WriteString(w, a.events[n][:len(a.events[n])/2])
						w.(http.Flusher).Flush()
						if abrupt {
							panic(http.ErrAbortHandler)
						}
					})
					st := newState(t, state.UserText("Hi!"))
					resp := post(t, newClient(t, &wire.Transport{}), st, server.URL+a.stream, a.body(true))
					body, err := readAll(resp)
					require.True(t, strings.HasPrefix(sse(a.events...), body))
					said := a.format == provider.OpenAI && n > 2 || a.format == provider.Gemini && n > 1 // why the model stopped
					if said && !abrupt {
						require.NoError(t, err)
						require.NoError(t, resp.Body.Close())
						require.Equal(t, 1, st.History().Len())
						return
					}
					require.Error(t, err)
					if !abrupt {
						require.ErrorIs(t, err, provider.ErrIncomplete)
						require.ErrorContains(t, err, "wire: answer not recorded: ")
					}
					_, again := resp.Body.Read(make([]byte, 1))
					require.Equal(t, err, again)
					require.NoError(t, resp.Body.Close())
					require.Zero(t, st.History().Len())
					require.Len(t, state.Messages.GetOr(st, nil), 1)
				})
			}
		}
	}
}

func TestACutResponseIsAnErrorAndNotRecorded(t *testing.T) {
	for _, a := range apis {
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(a.whole)+10))
			io.WriteString(w, a.whole) // all of the JSON, but not of the body
		})
		st := newState(t)
		body, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.path, a.body(false)))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, a.whole, body)
		require.Zero(t, st.History().Len())
	}
}

// A stream may cut a character into halves: the answer is recorded, and its bytes
// are passed on as they came.
func TestHalvesOfCharacters(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		cut := func(body string) string { return strings.ReplaceAll(body, "Hello, Ann!", `Hello, \ud83d!`) }
		want := "Hello, \ufffd!"
		if streamed {
			body := strings.Join(a.events, "\n\n") + "\n\n"
			if strings.Contains(body, `Hello, "`) {
				body, want = strings.NewReplacer(`Hello, "`, `Hello, \ud83d"`, `"Ann!`, `"\ude00!`).Replace(body), "Hello, 😀!"
			}
			cut = func(string) string { return strings.ReplaceAll(body, "Hello, Ann!", `Hello, \ud83d!`) }
		}
		sent := cut(a.whole)
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			if streamed {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			io.WriteString(w, sent)
		})
		st := newState(t)
		body, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.pathOf(streamed), a.body(streamed)))
		require.NoError(t, err)
		require.Equal(t, sent, body)
		answer, ok := st.History().At(0)
		require.True(t, ok)
		require.Equal(t, want, answer.Output[0].(state.TextMessage).Text())
	})
}

// A client that stops at the last event may close the body at once, late, or
// never: the server keeps the connection open.
func TestReadersThatStopAtTheLastEvent(t *testing.T) {
	for _, a := range apis {
		if !a.hasEnd {
			continue
		}
		t.Run(a.format.String(), func(t *testing.T) {
			release := make(chan struct{})
			server := serve(t, func(w http.ResponseWriter, req *http.Request) {
				a.answer(w, true)
				select {
				case <-release:
				case <-req.Context().Done():
				}
			})
			defer close(release)
			st := newState(t, state.UserText("Hi!"))
			resp := post(t, newClient(t, &wire.Transport{}), st, server.URL+a.stream, a.body(true))
			_, err := io.ReadFull(resp.Body, make([]byte, len(sse(a.events...))))
			require.NoError(t, err)
			requireAnswer(t, st, a, sse(a.events...)) // before Close
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 1, st.History().Len())
			require.Len(t, state.Messages.GetOr(st, nil), 2)
		})
	}
}

// A client may stop when the model says that it has stopped, where no last
// event follows.
func TestReadersThatCloseWhenTheModelHasStopped(t *testing.T) {
	a := apis[3]
	server := serve(t, func(w http.ResponseWriter, req *http.Request) {
		a.answer(w, true)
		<-req.Context().Done()
	})
	st := newState(t)
	resp := post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.stream, a.body(true))
	_, err := io.ReadFull(resp.Body, make([]byte, len(sse(a.events...))))
	require.NoError(t, err)
	require.Zero(t, st.History().Len()) // usage may follow
	require.NoError(t, resp.Body.Close())
	requireAnswer(t, st, a, sse(a.events...))
}

func TestReadersThatCloseEarly(t *testing.T) {
	for _, a := range apis {
		for n := range a.events[:len(a.events)-1] {
			if a.format == provider.OpenAI && n >= 2 || a.format == provider.Gemini && n >= 1 {
				continue // the model has stopped
			}
			server := serve(t, func(w http.ResponseWriter, req *http.Request) { a.answer(w, true) })
			st := newState(t)
			resp := post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.stream, a.body(true))
			length := len(sse(a.events[:n+1]...))
			_, err := io.ReadFull(io.LimitReader(resp.Body, int64(length)), make([]byte, length))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Zero(t, st.History().Len(), "%v after event %d", a.format, n)
			_, err = resp.Body.Read(make([]byte, 1))
			require.Error(t, err)
			require.Zero(t, st.History().Len())
		}
	}
}

// SDKs close the body when a context ends, while another goroutine reads.
func TestABodyIsClosedWhileItIsRead(t *testing.T) {
	for _, a := range apis {
		server := serve(t, func(w http.ResponseWriter, req *http.Request) { a.answer(w, true) })
		for range 20 {
			st := newState(t)
			resp := post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.stream, a.body(true))
			var wg sync.WaitGroup
			wg.Go(func() { readAll(resp) })
			wg.Go(func() { resp.Body.Close() })
			wg.Wait()
			if st.History().Len() > 0 {
				r, _ := st.History().Last()
				require.Contains(t, texts(r.Output), "Hello, Ann!")
			}
			require.LessOrEqual(t, st.History().Len(), 1)
		}
	}
}

// The server sends each event only when the client has the event before.
func TestAStreamIsNotHeldBack(t *testing.T) {
	for _, a := range apis {
		next := make(chan struct{})
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, event := range a.events {
				io.WriteString(w, sse(event))
				w.(http.Flusher).Flush()
				<-next
			}
		})
		st := newState(t)
		resp := post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.stream, a.body(true))
		for _, event := range a.events {
			got := make([]byte, len(sse(event)))
			_, err := io.ReadFull(resp.Body, got)
			require.NoError(t, err)
			require.Equal(t, sse(event), string(got))
			next <- struct{}{}
		}
		_, err := readAll(resp)
		require.NoError(t, err)
		requireAnswer(t, st, a, sse(a.events...))
	}
}

func TestCompressedResponses(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			switch accept := req.Header.Get("Accept-Encoding"); accept {
			case "gzip":
			case "identity":
				a.answer(w, streamed)
				return
			default:
				t.Errorf("the server may use %q", accept)
			}
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			a.answer(&packedWriter{w, packed}, streamed)
			packed.Close()
		})
		for _, accept := range []string{"", "gzip", "identity", "gzip, deflate, br, zstd", "br"} {
			for _, reads := range []bool{true, false} {
				st := newState(t)
				req, err := http.NewRequestWithContext(state.NewContext(context.Background(), st), http.MethodPost,
					server.URL+a.pathOf(streamed), strings.NewReader(a.body(streamed)))
				require.NoError(t, err)
				if accept != "" {
					req.Header.Set("Accept-Encoding", accept)
				}
				resp, err := newClient(t, &wire.Transport{RecordOnly: true}).Do(req)
				require.NoError(t, err)
				require.Equal(t, accept == "gzip", resp.Header.Get("Content-Encoding") == "gzip")
				body := io.Reader(resp.Body)
				if accept == "gzip" {
					body, err = gzip.NewReader(resp.Body)
					require.NoError(t, err)
				}
				got := make([]byte, len(a.raw(streamed)))
				_, err = io.ReadFull(body, got) // up to the last event
				require.NoError(t, err)
				require.Equal(t, a.raw(streamed), string(got))
				if reads {
					_, err = io.Copy(io.Discard, body)
					require.NoError(t, err)
				}
				require.NoError(t, resp.Body.Close())
				requireAnswer(t, st, a, a.raw(streamed))
				require.Equal(t, accept, req.Header.Get("Accept-Encoding")) // of the caller's request
			}
		}
	})
}

// The compression of a stream ends too early, although the model has said why it
// stopped. A reader that leaves then does not need its end.
func TestACutCompressionIsAnErrorUnlessTheReaderLeaves(t *testing.T) {
	a := apis[3]
	server := serve(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		a.answer(&packedWriter{w, gzip.NewWriter(w)}, true) // flushed, not closed
		if req.Header.Get("X-Open") != "" {
			<-req.Context().Done()
		}
	})
	for _, open := range []string{"", "yes"} {
		st := newState(t)
		req, err := http.NewRequestWithContext(state.NewContext(context.Background(), st), http.MethodPost,
			server.URL+a.stream, strings.NewReader(a.body(true)))
		require.NoError(t, err)
		req.Header.Set("Accept-Encoding", "gzip")
		req.Header.Set("X-Open", open)
		resp, err := newClient(t, &wire.Transport{RecordOnly: true}).Do(req)
		require.NoError(t, err)
		body, err := gzip.NewReader(resp.Body)
		require.NoError(t, err)
		if open != "" {
			_, err = io.ReadFull(body, make([]byte, len(sse(a.events...))))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			requireAnswer(t, st, a, sse(a.events...))
			continue
		}
		_, err = io.ReadAll(body)
		require.ErrorIs(t, err, provider.ErrIncomplete)
		require.NoError(t, resp.Body.Close())
		require.Zero(t, st.History().Len())
	}
}

// packedWriter writes a compressed response.
type packedWriter struct {
	http.ResponseWriter
	packed *gzip.Writer
}

func (w *packedWriter) Write(p []byte) (int, error) { return w.packed.Write(p) }

func (w *packedWriter) WriteString(s string) (int, error) { return w.packed.Write([]byte(s)) }

func (w *packedWriter) Flush() {
	w.packed.Flush()
	w.ResponseWriter.(http.Flusher).Flush()
}

// Answers that cannot be read or recorded are errors for the reader of the
// body, and not of RoundTrip, after which SDKs make the call again.
func TestAnswersThatCannotBeRecordedAreErrors(t *testing.T) {
	small := state.New(state.MustSchema(state.Limits{ValueBytes: 10}))
	for _, c := range []struct {
		name string
		st   *state.State
		want error
	}{
		{"a snapshot", newState(t).Snapshot(), state.ErrReadOnly},
		{"a limit", small, state.ErrLimitExceeded},
	} {
		eachAPI(t, func(t *testing.T, a api, streamed bool) {
			server := serve(t, func(w http.ResponseWriter, req *http.Request) { a.answer(w, streamed) })
			resp := post(t, newClient(t, &wire.Transport{RecordOnly: true}), c.st, server.URL+a.pathOf(streamed), a.body(streamed))
			body, err := readAll(resp)
			require.ErrorIs(t, err, c.want, c.name)
			require.ErrorContains(t, err, "wire: answer not recorded: ")
			require.Equal(t, !streamed, resp.Header.Get("X-Should-Retry") == "false") // SDKs repeat no stream
			if streamed {
				require.Equal(t, sse(a.events...), body) // all of it was paid for
			} else {
				require.NotEmpty(t, body)
			}
			require.Zero(t, c.st.History().Len())
		})
	}
}

func TestResponsesThatAreNoAnswers(t *testing.T) {
	for _, c := range []struct {
		name, header, body string
		api                int
		streamed           bool
		want               any
		passes             string // what the reader gets before the error
	}{
		{"a page", "", "<html>", 0, false, new(*provider.Error), "<html>"},
		{"nothing", "", "", 2, false, new(*provider.Error), ""},
		{"an error", "", `{"error":{"code":"overloaded","message":"sk-4242"}}`, 0, false, new(*provider.ResponseError), "overloaded"},
		{"an unknown encoding", "br", "x", 0, false, nil, ""},
		{"an unknown encoding of a stream", "br", "x", 0, true, nil, ""},
		{"a broken compression", "gzip", "x", 0, false, nil, ""},
		{"a response that failed", "", `{"id":"r1","status":"failed","error":{"code":"server_error","message":"no"},"output":[]}`,
			1, false, new(*provider.ResponseError), ""},
		{"a response that failed with output", "",
			`{"id":"r1","status":"failed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"He"}]}]}`,
			1, false, nil, ""},
		{"a response that failed after reasoning", "",
			`{"id":"r1","status":"cancelled","output":[{"type":"reasoning","id":"rs_1","summary":[]}]}`, 1, false, nil, ""},
		{"a stream that failed", "", sse(append(slices.Clone(apis[1].events[:4]), `data: {"type":"response.failed","response":{"id":"r1","status":"failed","error":{"code":"server_error","message":"no"},"output":[]}}`)...),
			1, true, nil, "response.failed"},
		{"an error in a stream", "", sse(`data: {"id":"r1","choices":[{"index":0,"delta":{"content":"He"}}]}`, `data: {"error":{"code":"overloaded","message":"no"}}`, `data: [DONE]`),
			0, true, new(*provider.ResponseError), "overloaded"},
		{"an error in a stream of Anthropic's", "", sse(apis[2].events[0], "event: error\n"+`data: {"type":"error","error":{"type":"overloaded_error","message":"no"}}`),
			2, true, new(*provider.ResponseError), "overloaded_error"},
	} {
		a := apis[c.api]
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			if c.header != "" {
				w.Header().Set("Content-Encoding", c.header)
			}
			if c.streamed {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			io.WriteString(w, c.body)
		})
		st := newState(t)
		req, err := http.NewRequestWithContext(state.NewContext(context.Background(), st), http.MethodPost,
			server.URL+a.path, strings.NewReader(a.body(c.streamed)))
		require.NoError(t, err)
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := newClient(t, &wire.Transport{RecordOnly: true}).Do(req)
		require.NoError(t, err, c.name)
		body, err := readAll(resp)
		require.ErrorContains(t, err, "wire: answer not recorded: ", c.name)
		require.NotContains(t, err.Error(), "sk-4242")
		if c.want != nil {
			require.ErrorAs(t, err, c.want, c.name)
		}
		require.Contains(t, body, c.passes, c.name)
		require.NoError(t, resp.Body.Close())
		require.Zero(t, st.History().Len(), c.name)
	}
}

// A response in the background is fetched later, by a request that is not
// looked at.
func TestResponsesInTheBackgroundAreNotRecorded(t *testing.T) {
	const queued = `{"id":"r1","status":"queued","output":[]}`
	server := serve(t, func(w http.ResponseWriter, req *http.Request) { io.WriteString(w, queued) })
	st := newState(t)
	body, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+apis[1].path, `{"model":"m","input":"Hi!","background":true}`))
	require.NoError(t, err)
	require.Equal(t, queued, body)
	require.Zero(t, st.History().Len())
}

func TestAConnectionThatBreaksAfterTheLastEventIsNoError(t *testing.T) {
	for _, a := range apis {
		if !a.hasEnd {
			continue
		}
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			a.answer(w, true)
			panic(http.ErrAbortHandler)
		})
		st := newState(t)
		body, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.stream, a.body(true)))
		require.NoError(t, err)
		require.Equal(t, sse(a.events...), body)
		requireAnswer(t, st, a, sse(a.events...))
	}
}

func TestParallelCallsOfOneState(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		const calls = 100
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			if _, err := a.format.DecodeRequest(body); err != nil {
				t.Error(err)
			}
			a.answer(w, streamed)
		})
		st := newState(t, state.UserText("Hi!"))
		client := newClient(t, &wire.Transport{})
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				resp, err := tryPost(client, st, server.URL+a.pathOf(streamed), a.body(streamed))
				if err == nil {
					_, err = readAll(resp)
					resp.Body.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, calls, st.History().Len())
		require.Len(t, state.Messages.GetOr(st, nil), 1+calls)
		for _, r := range st.History().All() {
			require.Equal(t, a.raw(streamed), r.Raw)
		}
	})
}

func TestBoundHandlesSignTheirAnswers(t *testing.T) {
	a := apis[0]
	st := state.New(state.MustSchema(state.Team{"writer": {}}))
	server := serve(t, func(w http.ResponseWriter, req *http.Request) { a.answer(w, false) })
	_, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st.As("writer"), server.URL+a.path, a.body(false)))
	require.NoError(t, err)
	r, _ := st.History().Last()
	require.Equal(t, "writer", r.Agent)
}

func TestIdleConnectionsOfTheBaseAreClosed(t *testing.T) {
	base := &closer{}
	(&http.Client{Transport: &wire.Transport{RecordOnly: true, Base: base}}).CloseIdleConnections()
	require.True(t, base.closed)
	(&http.Client{Transport: &wire.Transport{RecordOnly: true, Base: roundTripper(nil)}}).CloseIdleConnections()
}

type closer struct {
	roundTripper
	closed bool
}

func (c *closer) CloseIdleConnections() { c.closed = true }
