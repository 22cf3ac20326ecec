package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// recorder is a server that keeps the bodies of requests.
type recorder struct {
	*httptest.Server
	bodies []string
}

func newRecorder(t *testing.T, a api, streamed bool) *recorder {
	r := &recorder{}
	r.Server = serve(t, func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.bodies = append(r.bodies, string(body))
		a.answer(w, streamed)
	})
	return r
}

// last decodes the latest request.
func (r *recorder) last(t *testing.T, a api) provider.Request {
	t.Helper()
	request, err := a.format.DecodeRequest([]byte(r.bodies[len(r.bodies)-1]))
	require.NoError(t, err)
	return request
}

func TestBodiesThatNeedNoChangeAreTheSameBytes(t *testing.T) {
	secret := &state.Field[string]{Name: "card", Secret: true}
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		server := newRecorder(t, a, streamed)
		body := a.body(streamed)
		send := func(transport *wire.Transport, st *state.State) {
			_, err := readAll(post(t, newClient(t, transport), st, server.URL+a.pathOf(streamed), body))
			require.NoError(t, err)
			require.Equal(t, body, server.bodies[len(server.bodies)-1])
		}
		send(&wire.Transport{RecordOnly: true}, newState(t, state.UserText("Hi!")))
		send(&wire.Transport{}, newState(t))
		send(&wire.Transport{RecordOnly: true, Prompt: func(context.Context, *state.State) string { return "" }}, newState(t))
		guarded := state.New(state.MustSchema(secret))
		require.NoError(t, secret.Set(guarded, "4242-4242"))
		send(&wire.Transport{RecordOnly: true, Redact: true}, guarded)
	})
}

func TestTheConversationFollowsTheMessagesOfTheRequest(t *testing.T) {
	call := state.ToolCall{ID: "call_1", Name: "find", Input: `{"q":"x"}`}
	conversation := []state.Message{
		state.UserText("Hi!"), state.ToolCalls(call), state.ToolResult(call, `"found"`), state.AssistantText("Here."), state.UserText("Thanks."),
	}
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		server, st := newRecorder(t, a, streamed), newState(t, conversation...)
		_, err := readAll(post(t, newClient(t, &wire.Transport{}), st, server.URL+a.pathOf(streamed), a.body(streamed)))
		require.NoError(t, err)

		before, err := a.format.DecodeRequest([]byte(a.body(streamed)))
		require.NoError(t, err)
		sent := server.last(t, a)
		require.Equal(t, withoutMessages(before.Settings), withoutMessages(sent.Settings))
		require.Empty(t, transcript.Check(sent.Messages, a.profile))
		require.Len(t, sent.Messages, 1+len(conversation))
		require.Contains(t, sent.Messages[0].(state.TextMessage).Content(), "Be kind.")
		require.Contains(t, texts(sent.Messages[5:]), "Thanks.")

		result, ok := st.History().Last()
		require.True(t, ok)
		require.Equal(t, before.Messages[0].Raw(), result.Prompt[0].Raw())
		require.Len(t, result.Prompt, 1)
		require.Equal(t, texts(conversation), texts(result.History))
		require.Equal(t, texts(append(conversation, result.Output...)), texts(state.Messages.GetOr(st, nil)))
	})
}

// Some SDKs leave out an empty list of messages, or send null.
func TestTheListOfMessagesMayBeMissing(t *testing.T) {
	for _, a := range apis {
		for _, body := range []string{`{"model":"m"}`, `{"model":"m","messages":null,"contents":null}`} {
			server, st := newRecorder(t, a, false), newState(t, state.UserText("Hi!"))
			if a.format != provider.Gemini {
				body = strings.Replace(body, `,"contents":null`, "", 1)
			} else {
				body = strings.Replace(body, `"messages":null,`, "", 1)
			}
			_, err := readAll(post(t, newClient(t, &wire.Transport{}), st, server.URL+a.path, body))
			require.NoError(t, err)
			require.Len(t, server.last(t, a).Messages, 1, server.bodies[0])
		}
	}
}

// withoutMessages removes the empty list of messages, which the settings of a
// request without messages have.
func withoutMessages(settings state.JSON) string {
	return strings.NewReplacer(`"messages":[],`, "", `,"messages":[]`, "", `"contents":[],`, "", `,"contents":[]`, "").Replace(string(settings))
}

func TestTheConversationIsShortenedAndRepaired(t *testing.T) {
	open := state.ToolCall{ID: "a b", Name: "find", Input: `{}`}
	conversation := []state.Message{
		state.UserText("one"), state.AssistantText("two"), state.UserText("three"), state.ToolCalls(open), state.UserText("four"),
	}
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		for _, policy := range []*transcript.Policy{nil, &transcript.Policy{}} {
			var changes []transcript.Change
			transport := &wire.Transport{
				Window:  &transcript.Window{Target: 4000, Keep: 3500, Tokens: func(state.Message) int { return 1000 }},
				Changed: func(_ context.Context, c []transcript.Change) { changes = append(changes, c...) },
			}
			if policy != nil {
				transport.Policy = func(context.Context, *state.State) transcript.Policy { return *policy }
			}
			server, st := newRecorder(t, a, streamed), newState(t, conversation...)
			_, err := readAll(post(t, newClient(t, transport), st, server.URL+a.pathOf(streamed), a.body(streamed)))
			require.NoError(t, err)
			sent := server.last(t, a).Messages
			require.Empty(t, transcript.Check(sent, a.profile))
			require.NotContains(t, texts(sent), "two")
			require.Equal(t, policy == nil, strings.Contains(texts(sent), "tool_result"), texts(sent))
			require.NotEmpty(t, changes)
			for _, change := range changes {
				require.Equal(t, 2, change.Message) // prompt, three, call
			}
			result, _ := st.History().Last()
			require.Len(t, result.Prompt, 1)
			require.Contains(t, texts(result.History[:1]), "three")
			require.Equal(t, texts(conversation), texts(state.Messages.GetOr(st, nil)[:len(conversation)]))
		}
	})
}

func TestTheProgramHasTheLastWordOnTheProfile(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		server := newRecorder(t, a, streamed)
		st := newState(t, state.UserText("Hi!"), state.AssistantText("I was interr"))
		noPrefill := func(_ context.Context, p transcript.Profile) transcript.Profile {
			want := a.profile.At("127.0.0.1", p.Model)
			require.NotEmpty(t, p.Model)
			require.Equal(t, want, p)
			p.NoPrefill = true
			return p
		}
		_, err := readAll(post(t, newClient(t, &wire.Transport{Profile: noPrefill}), st, server.URL+a.pathOf(streamed), a.body(streamed)))
		require.NoError(t, err)
		msgs := server.last(t, a).Messages
		require.Equal(t, "Continue.", msgs[len(msgs)-1].(state.TextMessage).Text())
	})
}

func TestTheWholeIsRepairedWhereThePromptHasTurns(t *testing.T) {
	call := state.ToolCall{ID: "call_1", Name: "find", Input: `{"q":"x"}`}
	a := apis[2]
	server := newRecorder(t, a, false)
	st := newState(t, state.ToolCalls(call), state.ToolResult(call, `"found"`))
	body := `{"model":"m","max_tokens":9,"system":"Be kind.","messages":[{"role":"user","content":"Look."},
		{"role":"assistant","content":[{"type":"tool_use","id":"call_1","name":"find","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1","content":"old"}]},
		{"role":"assistant","content":"It is old."}]}`
	_, err := readAll(post(t, newClient(t, &wire.Transport{}), st, server.URL+a.path, body))
	require.NoError(t, err)
	sent := server.last(t, a).Messages
	require.Empty(t, transcript.Check(sent, a.profile)) // ids do not repeat
	require.Len(t, sent, 7)
	result, _ := st.History().Last()
	require.Len(t, result.Prompt, 5)
	require.Len(t, result.History, 2)
}

func TestContentThatTheFormatCannotExpressIsReported(t *testing.T) {
	a := apis[0]
	server := newRecorder(t, a, false)
	m, err := state.DecodeMessage([]byte(`{"type":"gemini.other","role":"user","item":{"x":1}}`))
	require.NoError(t, err)
	var omitted []provider.Omission
	transport := &wire.Transport{Omitted: func(_ context.Context, o []provider.Omission) { omitted = o }}
	_, err = readAll(post(t, newClient(t, transport), newState(t, state.UserText("Hi!"), m), server.URL+a.path, a.body(false)))
	require.NoError(t, err)
	require.Len(t, omitted, 1)
	require.Equal(t, 2, omitted[0].Message)
}

func TestPromptIsTheLastParagraphOfTheSystemPrompt(t *testing.T) {
	transport := &wire.Transport{RecordOnly: true, Prompt: func(context.Context, *state.State) string { return "It is late." }}
	for _, c := range []struct {
		api        api
		body, want string
	}{
		{apis[0], `{"messages":[{"role":"user","content":"Hi!"}]}`,
			`{"messages":[{"role":"system","content":"It is late."},{"role":"user","content":"Hi!"}]}`},
		{apis[0], `{"messages":[{"role":"developer","content":"Be kind."},{"role":"user","content":"Hi!"}]}`,
			`{"messages":[{"role":"developer","content":"Be kind.\n\nIt is late."},{"role":"user","content":"Hi!"}]}`},
		{apis[0], `{"messages":[{"role":"developer","content":[{"type":"text","text":"Be kind."}]}]}`,
			`{"messages":[{"role":"developer","content":[{"type":"text","text":"Be kind."}]},{"role":"developer","content":"It is late."}]}`},
		{apis[1], `{"input":"Hi!"}`, `{"instructions":"It is late.","input":"Hi!"}`},
		{apis[1], `{"instructions":"Be kind.","previous_response_id":"r0","input":"Hi!"}`,
			`{"instructions":"Be kind.\n\nIt is late.","previous_response_id":"r0","input":"Hi!"}`},
		{apis[1], `{"input":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi!"}]}`,
			`{"input":[{"role":"system","content":"Be kind.\n\nIt is late."},{"role":"user","content":"Hi!"}]}`},
		{apis[2], `{"messages":[{"role":"user","content":"Hi!"}]}`,
			`{"system":"It is late.","messages":[{"role":"user","content":"Hi!"}]}`},
		{apis[2], `{"system":"Be kind.","messages":[{"role":"user","content":"Hi!"}]}`,
			`{"system":"Be kind.\n\nIt is late.","messages":[{"role":"user","content":"Hi!"}]}`},
		{apis[2], `{"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],"messages":[]}`,
			`{"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"It is late."}],"messages":[]}`},
		{apis[3], `{"contents":[{"role":"user","parts":[{"text":"Hi!"}]}]}`,
			`{"systemInstruction":{"parts":[{"text":"It is late."}]},"contents":[{"role":"user","parts":[{"text":"Hi!"}]}]}`},
		{apis[3], `{"systemInstruction":{"parts":[{"text":"Be kind."}]},"contents":[{"role":"user","parts":[{"text":"Hi!"}]}]}`,
			`{"systemInstruction":{"parts":[{"text":"Be kind.\n\nIt is late."}]},"contents":[{"role":"user","parts":[{"text":"Hi!"}]}]}`},
	} {
		server, st := newRecorder(t, c.api, false), newState(t)
		_, err := readAll(post(t, newClient(t, transport), st, server.URL+c.api.path, c.body))
		require.NoError(t, err)
		require.JSONEq(t, c.want, server.bodies[0])
		result, _ := st.History().Last()
		require.Contains(t, texts(result.Prompt), "It is late.")
	}
}

func TestSecretsAreMaskedInWhatIsSentAndRecorded(t *testing.T) {
	card := &state.Field[string]{Name: "card", Secret: true}
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		st := state.New(state.MustSchema(card))
		require.NoError(t, card.Set(st, "4242-4242"))
		call := state.ToolCall{ID: "c1", Name: "pay", Input: `{"card":"4242-4242","note":"\"4242-4242\""}`}
		require.NoError(t, state.Messages.Set(st, []state.Message{
			state.UserText("Pay with 4242-4242."), state.ToolCalls(call), state.ToolResult(call, `{"paid":"4242-4242"}`),
		}))
		server := newRecorder(t, a, streamed)
		transport := &wire.Transport{Redact: true, Prompt: func(context.Context, *state.State) string { return "Card 4242-4242." }}
		body := strings.Replace(a.body(streamed), "Be kind.", "Be kind to 4242-4242.", 1)
		_, err := readAll(post(t, newClient(t, transport), st, server.URL+a.pathOf(streamed), body))
		require.NoError(t, err)
		require.NotContains(t, server.bodies[0], "4242")
		require.Equal(t, 6, strings.Count(server.bodies[0], "[SECRET]"), server.bodies[0])
		result, _ := st.History().Last()
		require.NotContains(t, texts(result.Prompt)+texts(result.History), "4242")
		for _, m := range append(result.Prompt, result.History...) {
			require.NotContains(t, m.Raw(), "4242")
		}
	})
}

// A secret that is a word of messages is masked in the body nevertheless.
func TestASecretThatIsAWordOfMessagesIsMasked(t *testing.T) {
	word := &state.Field[string]{Name: "word", Secret: true}
	st := state.New(state.MustSchema(word))
	require.NoError(t, word.Set(st, "tool_result"))
	call := state.ToolCall{ID: "c1", Name: "find", Input: `{}`}
	require.NoError(t, state.Messages.Set(st, []state.Message{
		state.UserText("Hi!"), state.ToolCalls(call), state.ToolResult(call, `"the tool_result"`),
	}))
	server := newRecorder(t, apis[0], false)
	transport := &wire.Transport{Redact: true}
	_, err := readAll(post(t, newClient(t, transport), st, server.URL+apis[0].path, apis[0].body(false)))
	require.NoError(t, err)
	require.Contains(t, server.bodies[0], "the [SECRET]")
}

// The bodies of requests are closed, as http.RoundTripper demands, also of those
// that are not sent.
func TestRequestBodiesAreClosed(t *testing.T) {
	server := newRecorder(t, apis[0], false)
	for _, text := range []string{apis[0].body(false), "no JSON"} {
		body := &closedBody{Reader: strings.NewReader(text)}
		ctx := state.NewContext(context.Background(), newState(t))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+apis[0].path, body)
		require.NoError(t, err)
		if resp, err := newClient(t, &wire.Transport{RecordOnly: true}).Transport.RoundTrip(req); err == nil {
			require.NoError(t, resp.Body.Close())
		}
		require.True(t, body.closed)
	}
}

type closedBody struct {
	io.Reader
	closed bool
}

func (b *closedBody) Close() error {
	b.closed = true
	return nil
}

// A request that continues a conversation of the provider has its beginning
// there already.
func TestAConversationThatTheProviderHoldsIsNotSentAgain(t *testing.T) {
	a := apis[1]
	server, st := newRecorder(t, a, false), newState(t, state.UserText("Hi!"))
	body := `{"model":"m","previous_response_id":"r0","input":"Hi!"}`
	_, err := readAll(post(t, newClient(t, &wire.Transport{}), st, server.URL+a.path, body))
	require.NoError(t, err)
	require.Equal(t, []string{body}, server.bodies)
	require.Len(t, state.Messages.GetOr(st, nil), 2)
}

// Without an input, a provider that holds the conversation would be asked without
// what the State has since its last answer: a question, or the results of a Loop.
func TestAnInputThatAHoldingProviderDoesNotGetIsAnError(t *testing.T) {
	a, call := apis[1], state.ToolCall{ID: "c1", Name: "look", Input: `{}`}
	said, answer := state.UserText("Hi!"), state.AssistantText("Hello.")
	for name, test := range map[string]struct {
		body     string
		messages []state.Message
		refused  bool
	}{
		"a question":                  {`{"previous_response_id":"r0"}`, []state.Message{said}, true},
		"a question, empty input":     {`{"previous_response_id":"r0","input":[]}`, []state.Message{said}, true},
		"a question, instructions":    {`{"previous_response_id":"r0","instructions":"Be kind.","input":null}`, []state.Message{said}, true},
		"a question, of conversation": {`{"conversation":"conv_1"}`, []state.Message{said, answer, said}, true},
		"a result":                    {`{"previous_response_id":"r0"}`, []state.Message{said, state.ToolCalls(call), state.ToolResult(call, `"seen"`)}, true},
		"a call":                      {`{"previous_response_id":"r0"}`, []state.Message{said, state.ToolCalls(call)}, false},
		"an answer":                   {`{"previous_response_id":"r0"}`, []state.Message{said, answer}, false},
		"nothing":                     {`{"previous_response_id":"r0"}`, nil, false},
		"an input of the program":     {`{"previous_response_id":"r0","input":[{"type":"function_call_output","call_id":"c1","output":"seen"}]}`, []state.Message{said, state.ToolCalls(call), state.ToolResult(call, `"seen"`)}, false},
		"the State's":                 {`{"input":[]}`, []state.Message{said}, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, st := newRecorder(t, a, false), newState(t, test.messages...)
			req, err := http.NewRequestWithContext(state.NewContext(t.Context(), st), http.MethodPost, server.URL+a.path, strings.NewReader(test.body))
			require.NoError(t, err)
			resp, err := newClient(t, &wire.Transport{}).Do(req)
			if !test.refused {
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Len(t, server.bodies, 1)
				return
			}
			require.ErrorIs(t, err, state.ErrInvalid)
			require.ErrorContains(t, err, "wire: request: ")
			require.ErrorContains(t, err, "previous_response_id")
			require.Empty(t, server.bodies)
			_, err = readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+a.path, test.body))
			require.NoError(t, err)
			require.Equal(t, []string{test.body}, server.bodies)
		})
	}
}

func TestAsideIsNoPartOfTheConversation(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		server, st := newRecorder(t, a, streamed), newState(t, state.UserText("Hi!"))
		client := newClient(t, &wire.Transport{})
		ctx := wire.OutsideConversation(state.NewContext(context.Background(), st))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+a.pathOf(streamed), strings.NewReader(a.body(streamed)))
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		_, err = readAll(resp)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, []string{a.body(streamed)}, server.bodies)
		require.Len(t, state.Messages.GetOr(st, nil), 1)
		require.Equal(t, 1, st.History().Len())
	})
}

func TestRequestsThatAreNotForTheStatePassUntouched(t *testing.T) {
	var got []*http.Request
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		got = append(got, req)
		return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
	})
	st := newState(t, state.UserText("Hi!"))
	for _, c := range []struct {
		name, method, path string
		st                 *state.State
		formats            func(*http.Request) *provider.Format
	}{
		{"no state", "POST", "/v1/messages", nil, nil},
		{"another path", "POST", "/v1/embeddings", st, nil},
		{"a message of a thread", "POST", "/v1/threads/t1/messages", st, nil},
		{"tokens are counted", "POST", "/v1/messages/count_tokens", st, nil},
		{"another method", "GET", "/v1/responses", st, nil},
		{"a format of the program's", "POST", "/v1/messages", st, func(*http.Request) *provider.Format { return nil }},
	} {
		transport := &wire.Transport{Base: base, Formats: c.formats}
		body := io.NopCloser(strings.NewReader("no JSON at all"))
		ctx := state.NewContext(context.Background(), c.st)
		req, err := http.NewRequestWithContext(ctx, c.method, "http://host"+c.path, body)
		require.NoError(t, err)
		_, err = transport.RoundTrip(req)
		require.NoError(t, err)
		require.Same(t, req, got[len(got)-1], c.name)
	}
	require.Zero(t, st.History().Len())
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestFormatsOfTheProgram(t *testing.T) {
	a := apis[0]
	server, st := newRecorder(t, a, false), newState(t)
	transport := &wire.Transport{RecordOnly: true, Formats: func(req *http.Request) *provider.Format {
		if req.URL.Path == "/llm" {
			return provider.OpenAI
		}
		return wire.FormatOf(req)
	}}
	for _, path := range []string{"/llm", a.path} {
		_, err := readAll(post(t, newClient(t, transport), st, server.URL+path, a.body(false)))
		require.NoError(t, err)
	}
	require.Equal(t, 2, st.History().Len())
}

func TestRequestsThatCannotBeCompletedAreErrors(t *testing.T) {
	team := state.Team{"writer": {}, "reader": {}}
	hidden := &state.Field[[]state.Message]{Name: state.Messages.Name, Read: state.Only("reader"), Write: state.Only("reader")}
	denied := state.New(state.MustSchema(team, hidden)).As("writer")
	for _, c := range []struct {
		name, body, want string
		st               *state.State
	}{
		{"no JSON", `{"messages":`, "provider: OpenAI", newState(t)},
		{"another kind", `{"messages":{"sk-4242":1}}`, "$.messages", newState(t)},
		{"no right to read", apis[0].body(false), "denied", denied},
	} {
		server := newRecorder(t, apis[0], false)
		_, err := tryPost(newClient(t, &wire.Transport{}), c.st, server.URL+apis[0].path, c.body)
		require.ErrorContains(t, err, "wire: request: ", c.name)
		require.ErrorContains(t, err, c.want, c.name)
		require.NotContains(t, err.Error(), "sk-4242")
		require.Empty(t, server.bodies)
	}
}

// A client that follows a redirect must not come back with an answer that the
// State does not have, nor send the conversation where it was not meant to go.
func TestRedirectsOfCalls(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		target := newRecorder(t, a, streamed)
		status, path := 0, ""
		elsewhere := serve(t, func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, target.URL+a.pathOf(streamed), status)
		})
		here := serve(t, func(w http.ResponseWriter, req *http.Request) {
			switch {
			case req.Method == http.MethodGet:
				fmt.Fprint(w, a.whole)
			case req.URL.Path != "/moved":
				http.Redirect(w, req, path, status)
			default:
				a.answer(w, streamed)
			}
		})
		send := func(transport *wire.Transport, server *httptest.Server) (*state.State, error) {
			st := newState(t, state.UserText("Hi!"))
			resp, err := tryPost(newClient(t, transport), st, server.URL+a.pathOf(streamed), a.body(streamed))
			if err == nil {
				_, err = readAll(resp)
				resp.Body.Close()
			}
			return st, err
		}
		path = "/moved"
		for _, status = range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther} {
			st, err := send(&wire.Transport{}, here)
			require.ErrorContains(t, err, fmt.Sprintf("wire: the provider answers with status %d", status))
			require.Zero(t, st.History().Len())
		}
		for _, status = range []int{http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
			st, err := send(&wire.Transport{}, here) // to a path that is not that of a call
			require.NoError(t, err)
			require.Equal(t, 1, st.History().Len())

			before := len(target.bodies)
			st, err = send(&wire.Transport{}, elsewhere)
			require.ErrorContains(t, err, "wire: redirect to "+target.URL+" refused: it is another host")
			require.Zero(t, st.History().Len())

			refused := errors.New("not there")
			_, err = send(&wire.Transport{Redirect: func(*http.Request) error { return refused }}, elsewhere)
			require.ErrorIs(t, err, refused)
			require.Len(t, target.bodies, before)

			st, err = send(&wire.Transport{Redirect: func(req *http.Request) error {
				require.Equal(t, status, req.Response.StatusCode)
				return nil
			}}, elsewhere)
			require.NoError(t, err)
			require.Len(t, target.last(t, a).Messages, 2) // the conversation once
			require.Equal(t, 1, st.History().Len())
		}
	})
}

// Requests without a State, and those that are not calls, are redirected as the
// client does it.
func TestOtherRedirectsPassUntouched(t *testing.T) {
	target := serve(t, func(w http.ResponseWriter, req *http.Request) { fmt.Fprint(w, req.Method) })
	server := serve(t, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, target.URL, http.StatusTemporaryRedirect)
	})
	for _, path := range []string{"/models", apis[0].path} {
		var st *state.State
		if path == "/models" {
			st = newState(t)
		}
		body, err := readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, server.URL+path, "{}"))
		require.NoError(t, err)
		require.Equal(t, http.MethodPost, body)
	}
}

// A key is in a header or in the URL. Neither is recorded, and no error of the
// package has one.
func TestKeysAreNeverRecorded(t *testing.T) {
	const key = "sk-very-secret-4242"
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		status := http.StatusOK
		server := serve(t, func(w http.ResponseWriter, req *http.Request) {
			require.Equal(t, "Bearer "+key, req.Header.Get("Authorization"))
			w.WriteHeader(status)
			if status == http.StatusOK {
				a.answer(w, streamed)
			}
		})
		st := newState(t, state.UserText("Hi!"))
		path := a.pathOf(streamed)
		if strings.Contains(path, "?") {
			path += "&key=" + key
		} else {
			path += "?key=" + key
		}
		client := newClient(t, &wire.Transport{})
		for _, body := range []string{a.body(streamed), "{", a.body(streamed)} {
			ctx := state.NewContext(context.Background(), st)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader(body))
			require.NoError(t, err)
			for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
				req.Header.Set(name, key)
			}
			req.Header.Set("Authorization", "Bearer "+key)
			resp, err := client.Transport.RoundTrip(req)
			if err != nil {
				require.NotContains(t, err.Error(), key)
				continue
			}
			readAll(resp)
			require.NoError(t, resp.Body.Close())
		}
		require.Equal(t, 2, st.History().Len())
		exported, err := st.Export()
		require.NoError(t, err)
		require.NotContains(t, string(exported), key)
	})
}

// A context without a State is most often the wrong one. The model would be sent the
// instructions alone, and nobody would see it.
func TestCallsOfAModelNeedAState(t *testing.T) {
	background := context.Background()
	for _, row := range []struct {
		name      string
		transport wire.Transport
		ctx       context.Context
		method    string
		path      string
		passes    bool
	}{
		{"a forgotten State", wire.Transport{}, background, http.MethodPost, apis[0].path, false},
		{"a forgotten State, of a path that Formats knows", wire.Transport{Formats: func(*http.Request) *provider.Format { return provider.OpenAI }},
			background, http.MethodPost, "/proxy", false},
		{"no State is wanted", wire.Transport{}, state.NewContext(background, nil), http.MethodPost, apis[0].path, true},
		{"the program has the conversation", wire.Transport{RecordOnly: true}, background, http.MethodPost, apis[0].path, true},
		{"a title", wire.Transport{}, wire.OutsideConversation(background), http.MethodPost, apis[0].path, true},
		{"no call of a model", wire.Transport{}, background, http.MethodPost, "/v1/embeddings", true},
		{"a request without a body", wire.Transport{}, background, http.MethodGet, apis[0].path, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := 0
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) { asked++; fmt.Fprint(w, "{}") })
			var body io.Reader
			if row.method == http.MethodPost {
				body = strings.NewReader(apis[0].body(false))
			}
			req, err := http.NewRequestWithContext(row.ctx, row.method, server.URL+row.path, body)
			require.NoError(t, err)
			resp, err := newClient(t, &row.transport).Transport.RoundTrip(req)
			if row.passes {
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.Equal(t, 1, asked)
				return
			}
			require.ErrorIs(t, err, state.ErrInvalid)
			require.ErrorContains(t, err, "its context has no State")
			require.Zero(t, asked)
		})
	}
}

// An SDK that goes on with an answer by itself would leave its halves as two answers,
// or only the second one.
func TestRequestsThatGoOnWithAnAnswerAreRefused(t *testing.T) {
	asked := 0
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		fmt.Fprint(w, `{"candidates":[{"content":{"role":"model","parts":[{"text":"two"}]},"finishReason":"STOP"}]}`)
	})
	const body = `{"contents":[],"continuationToken":"dG9rZW4="}`
	st := newState(t, state.UserText("Count!"))
	path := server.URL + "/models/m:generateContent"
	client := newClient(t, &wire.Transport{})
	req, err := http.NewRequestWithContext(state.NewContext(t.Context(), st), http.MethodPost, path, strings.NewReader(body))
	require.NoError(t, err)
	_, err = client.Transport.RoundTrip(req)
	require.ErrorIs(t, err, state.ErrInvalid)
	require.ErrorContains(t, err, "AutomaticContinuation")
	require.Zero(t, asked)
	_, err = readAll(post(t, newClient(t, &wire.Transport{RecordOnly: true}), st, path, body))
	require.NoError(t, err)
	require.Equal(t, 1, st.History().Len())
}
