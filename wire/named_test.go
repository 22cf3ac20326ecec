package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
)

const messagesPath = "/v1/messages"

// setting returns a member of the body of a request, "" if there is none.
func setting(t *testing.T, body, name string) string {
	t.Helper()
	members, err := jsontext.Members([]byte(body))
	require.NoError(t, err)
	return string(members.Get(name))
}

// runsCode is an answer of Anthropic whose code calls a tool of the client. container
// is its member, or "".
func runsCode(container string) string {
	if container != "" {
		container = `"container":` + container + `,`
	}
	return `{"id":"m1","type":"message","role":"assistant",` + container + `"content":[` +
		`{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"note()"}},` +
		`{"type":"tool_use","id":"toolu_1","name":"note","input":{"text":"x"},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}],"stop_reason":"tool_use"}`
}

// runsCodeStreamed is the same, as a stream.
func runsCodeStreamed(container string) string {
	delta := `"stop_reason":"tool_use"`
	if container != "" {
		delta += `,"container":` + container
	}
	return sse(`data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"container":null}}`,
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code":"note()"}}}`,
		`data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"note","input":{"text":"x"},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}}`,
		`data: {"type":"message_delta","delta":{`+delta+`}}`, `data: {"type":"message_stop"}`)
}

const codeHasRun = `{"id":"m2","type":"message","role":"assistant","content":[` +
	`{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_1","content":{"type":"code_execution_result","stdout":"x","stderr":"","return_code":0,"content":[]}},` +
	`{"type":"text","text":"Done."}],"stop_reason":"end_turn"}`

var plainNote = tool.Must(tool.New("note", "Notes a text.", func(_ context.Context, in struct {
	Text string `json:"text"`
}) (string, error) {
	return in.Text, nil
}))

// The container of an answer is named in the next requests, until it has expired or
// the provider does not know it.
func TestContainer(t *testing.T) {
	later, past := time.Now().Add(time.Hour).UTC().Format(time.RFC3339), time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	for _, c := range []struct {
		name, container, settings string
		want                      string // in the second request
	}{
		{"lives", `{"id":"container_1","expires_at":"` + later + `"}`, "", `"container_1"`},
		{"has no time", `{"id":"container_1"}`, "", `"container_1"`},
		{"has expired", `{"id":"container_1","expires_at":"` + past + `"}`, "", ""},
		{"none", "", "", ""},
		{"null", "null", "", ""},
		{"the program's own", `{"id":"container_1"}`, `,"container":"container_2"`, `"container_2"`},
		{"the program wants none", `{"id":"container_1"}`, `,"container":null`, `null`},
		{"with skills", `{"id":"container_1"}`, `,"container":{"skills":[{"skill_id":"pdf"}]}`, `{"skills":[{"skill_id":"pdf"}],"id":"container_1"}`},
		{"with skills, and its own", `{"id":"container_1"}`, `,"container":{"id":"container_2"}`, `{"id":"container_2"}`},
	} {
		for _, streamed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/streamed=%t", c.name, streamed), func(t *testing.T) {
				p := &provided{}
				first, kind := runsCode(c.container), "application/json"
				if streamed {
					first, kind = runsCodeStreamed(c.container), "text/event-stream"
				}
				p.answers = append(p.answers, status(200, first, "Content-Type", kind), status(200, codeHasRun), status(200, codeHasRun))
				body := `{"model":"m","max_tokens":9` + c.settings + `,"tools":[{"type":"code_execution_20260120","name":"code_execution"}]}`
				l := loop.Loop{Agents: map[string]loop.Agent{"": {Ask: asks(p, messagesPath, body), Tools: []*tool.Tool{plainNote}}}}
				st := newState(t, state.UserText("go"))
				_, err := l.Run(t.Context(), st)
				require.NoError(t, err)
				require.Len(t, p.bodies, 2)
				require.Equal(t, c.want, setting(t, p.bodies[1], "container"))
				require.NotContains(t, setting(t, p.bodies[1], "messages"), "container_1")

				// A fork and another process have it, and a new conversation has not.
				for want, st := range map[string]*state.State{c.want: st.Fork(), "": state.New(nil)} {
					if want == "" && c.settings != "" {
						continue
					}
					p.answers = []func(*http.Request) (*http.Response, error){status(200, codeHasRun)}
					require.NoError(t, st.UserSays("again"))
					_, err = l.Run(t.Context(), st)
					require.NoError(t, err)
					require.Equal(t, want, setting(t, p.bodies[len(p.bodies)-1], "container"))
				}
			})
		}
	}
}

// Another process and another format.
func TestContainerElsewhere(t *testing.T) {
	p := &provided{answers: []func(*http.Request) (*http.Response, error){status(200, runsCode(`{"id":"container_1"}`))}}
	st := newState(t, state.UserText("go"))
	ask := func(path string) {
		require.NoError(t, asks(p, path, `{"model":"m"}`)(state.NewContext(t.Context(), st), nil))
	}
	ask(messagesPath)
	exported, err := st.Export()
	require.NoError(t, err)
	st, err = state.Import(nil, exported)
	require.NoError(t, err)
	p.answers = append(p.answers, status(200, codeHasRun), saysText("Hi"))
	ask(messagesPath)
	require.Equal(t, `"container_1"`, setting(t, p.bodies[1], "container"))
	ask(chatPath)
	require.NotContains(t, p.bodies[2], "container_1")
}

// A container that the provider does not know, as that of another account, is not
// named again.
func TestContainerIsRefused(t *testing.T) {
	p := &provided{answers: []func(*http.Request) (*http.Response, error){
		status(200, runsCode(`{"id":"container_1"}`)),
		status(404, `{"type":"error","error":{"type":"not_found_error","message":"container: container_1 not found"}}`),
		status(200, codeHasRun), status(200, codeHasRun),
	}}
	st := newState(t, state.UserText("go"))
	for range 3 {
		require.NoError(t, asks(p, messagesPath, `{"model":"m"}`)(state.NewContext(t.Context(), st), nil))
		require.NoError(t, st.UserSays("again"))
	}
	var sent []string
	for _, body := range p.bodies {
		sent = append(sent, setting(t, body, "container"))
	}
	require.Equal(t, []string{"", `"container_1"`, "", ""}, sent)

	p.answers = []func(*http.Request) (*http.Response, error){
		status(200, runsCode(`{"id":"container_2"}`)),
		status(400, `{"type":"error","error":{"message":"container_id is required when there are pending tool uses"}}`),
	}
	require.NoError(t, asks(p, messagesPath, `{"model":"m"}`)(state.NewContext(t.Context(), st), nil))
	require.Error(t, asks(p, messagesPath, `{"model":"m"}`)(state.NewContext(t.Context(), st), nil), "another error is the program's")
}

// Code waits for results and for nothing else.
func TestResultsThatCodeWaitsFor(t *testing.T) {
	call := `{"type":"tool_use","id":"toolu_1","name":"note","input":{"text":"x"}`
	for name, c := range map[string]struct {
		content string
		alone   bool
	}{
		"made by code":                {call + `,"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_1"}}`, true},
		"beside a call that has none": {`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{}},` + call + `}`, true},
		"beside a call that has its result": {`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{}},` +
			`{"type":"web_fetch_tool_result","tool_use_id":"srvtoolu_1","content":[]},` + call + `}`, false},
		"made by the model": {call + `,"caller":{"type":"direct"}}`, false},
		"plain":             {call + `}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &provided{answers: []func(*http.Request) (*http.Response, error){
				status(200, `{"id":"m1","type":"message","role":"assistant","content":[`+c.content+`],"stop_reason":"tool_use"}`),
				status(200, codeHasRun), status(200, codeHasRun),
			}}
			st := newState(t, state.UserText("go"))
			ask := asksOfTransport(&wire.Transport{Base: p, Context: say("noon")}, messagesPath, `{"model":"m"}`)
			ctx := state.NewContext(t.Context(), st)
			require.NoError(t, ask(ctx, nil))
			require.NoError(t, st.History().Answer(state.ToolResult(state.ToolCall{ID: "toolu_1", Name: "note"}, `"x"`)))
			require.NoError(t, st.UserSays("Hurry."))
			require.NoError(t, ask(ctx, nil))
			require.NoError(t, ask(ctx, nil))
			for _, body := range p.bodies[1:] {
				var entries []string
				for _, m := range request(t, provider.Anthropic, body).Messages {
					entries = append(entries, m.Type())
				}
				results := strings.Index(body, `"tool_result","tool_use_id":"toolu_1"`)
				require.Positive(t, results)
				require.Equal(t, c.alone, strings.Index(body, "Hurry.") < results, body)
				require.Equal(t, 1, strings.Count(body, "Hurry."))
				require.Equal(t, 1, strings.Count(body, "noon"), entries)
			}
			require.Equal(t, c.alone, strings.Index(p.bodies[1], "noon") < strings.Index(p.bodies[1], `"tool_result"`), p.bodies[1])
			var said []string // in the State, nothing has moved
			for _, m := range state.Messages.GetOr(st, nil) {
				said = append(said, m.Type())
			}
			require.Less(t, strings.Index(fmt.Sprint(said), "tool_result"), len(fmt.Sprint(said))-len("text text text]"))
		})
	}
}

func request(t *testing.T, format *provider.Format, body string) provider.Request {
	t.Helper()
	r, err := format.DecodeRequest([]byte(body))
	require.NoError(t, err, body)
	return r
}

// A request to the Responses API that is not stored asks for the reasoning, and
// does not name what the provider has not stored.
func TestReasoningThatIsNotStored(t *testing.T) {
	answer := func(encrypted string) string {
		return `{"id":"r1","status":"completed","output":[{"type":"reasoning","id":"rs_1","summary":[]` + encrypted + `},` +
			`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hello.","annotations":[]}]}]}`
	}
	const whole = `,"encrypted_content":"eA=="`
	for _, c := range []struct {
		settings, encrypted string
		include             string
		named               bool
	}{
		{`"store":false,"reasoning":{"effort":"low"}`, whole, `["reasoning.encrypted_content"]`, true},
		{`"store":false,"reasoning":{},"include":["message.output_text.logprobs"]`, whole, `["message.output_text.logprobs","reasoning.encrypted_content"]`, true},
		{`"store":false,"reasoning":{},"include":["reasoning.encrypted_content"]`, whole, `["reasoning.encrypted_content"]`, true},
		{`"store":false,"reasoning":{},"include":null`, "", `["reasoning.encrypted_content"]`, false},
		{`"store":false`, "", "", false},
		{`"store":false`, `,"encrypted_content":null`, "", false},
		{`"store":false`, whole, "", true},
		{`"store":true,"reasoning":{}`, "", "", true},
		{`"reasoning":{}`, "", "", true},
	} {
		t.Run(c.settings+c.encrypted, func(t *testing.T) {
			p := &provided{answers: []func(*http.Request) (*http.Response, error){status(200, answer(c.encrypted)), status(200, answer(c.encrypted))}}
			st := newState(t, state.UserText("go"))
			for range 2 {
				require.NoError(t, asks(p, "/v1/responses", `{"model":"m",`+c.settings+`}`)(state.NewContext(t.Context(), st), nil))
				require.NoError(t, st.UserSays("again"))
			}
			for _, body := range p.bodies {
				require.Equal(t, c.include, setting(t, body, "include"))
			}
			require.Equal(t, c.named, strings.Contains(p.bodies[1], "rs_1"))
			require.Contains(t, p.bodies[1], "Hello.")
			require.Equal(t, 2, strings.Count(texts(state.Messages.GetOr(st, nil)), "openai_responses.reasoning"), "the State keeps it")
		})
	}
}

// What the model has said as a sound is named by its id, and by its words when the
// provider has forgotten it.
func TestSounds(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		calls string
		want  string
	}{
		{time.Hour, "", `{"role":"assistant","content":null,"refusal":null,"audio":{"id":"audio_1"}}`},
		{-time.Hour, "", `{"role":"assistant","content":"Yes.","refusal":null}`},
		{-time.Hour, `,"tool_calls":[{"id":"a","type":"function","function":{"name":"note","arguments":"{}"}}]`, `{"role":"assistant","content":null,"tool_calls":[`},
	} {
		answer := fmt.Sprintf(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"audio":{"id":"audio_1","data":"UklG","expires_at":%d,"transcript":"Yes."}%s},"finish_reason":"stop"}]}`,
			time.Now().Add(c.after).Unix(), c.calls)
		p := &provided{answers: []func(*http.Request) (*http.Response, error){status(200, answer), saysText("Hi")}}
		st := newState(t, state.UserText("go"))
		for range 2 {
			require.NoError(t, asks(p, chatPath, `{"model":"m","modalities":["text","audio"]}`)(state.NewContext(t.Context(), st), nil))
			require.NoError(t, st.UserSays("again"))
		}
		require.Contains(t, p.bodies[1], c.want)
		require.NotContains(t, p.bodies[1], "UklG")
	}
}

// genai sends no body at all if it has neither contents nor settings.
func TestEmptyBodies(t *testing.T) {
	eachAPI(t, func(t *testing.T, a api, streamed bool) {
		if streamed && a.format != provider.Gemini {
			return // its body asks for the stream
		}
		for name, body := range map[string]io.Reader{"nil": nil, "NoBody": http.NoBody, "empty": strings.NewReader(" \n"), "unknown": io.MultiReader()} {
			for _, recordOnly := range []bool{false, true} {
				server, st := newRecorder(t, a, streamed), newState(t, state.UserText("Hi!"))
				client := newClient(t, &wire.Transport{RecordOnly: recordOnly})
				req, err := http.NewRequestWithContext(state.NewContext(t.Context(), st), http.MethodPost, server.URL+a.pathOf(streamed), body)
				require.NoError(t, err)
				resp, err := client.Do(req)
				if recordOnly {
					if err == nil {
						resp.Body.Close()
					}
					continue
				}
				require.NoError(t, err, name)
				_, err = readAll(resp)
				require.NoError(t, err)
				resp.Body.Close()
				require.Len(t, server.last(t, a).Messages, 1, name)
				require.Equal(t, 1, st.History().Len())
			}
		}
	})
	_, err := newClient(t, &wire.Transport{}).Post("http://model"+apis[3].path, "application/json", nil)
	require.ErrorContains(t, err, "no State")
}

// A model that is sent no conversation because of its path does not pass in silence.
func TestUnknownPathsAreTold(t *testing.T) {
	base := roundTripper(func(req *http.Request) (*http.Response, error) { return status(200, "{}")(req) })
	for path, told := range map[string]bool{
		"/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict":       true,
		"/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict": true,
		"/model/m/invoke": true, "/model/m/invoke-with-response-stream": true, "/model/m/converse": true, "/model/m/converse-stream": true,
		"/api/chat": true, "/v2/chat": true, "/v1/completions": true,
		"/v1/messages/count_tokens": false, "/v1/embeddings": false, "/v1beta/models/m:countTokens": false, "/v1/files": false,
	} {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, nil))
		for _, recordOnly := range []bool{true, false} {
			client := newClient(t, &wire.Transport{Base: base, RecordOnly: recordOnly, Logger: logger})
			for range 2 {
				readAll(post(t, client, newState(t), "http://model"+path+"?key=secret", "{}"))
			}
			if recordOnly {
				require.Empty(t, out.String(), path)
			}
		}
		require.Equal(t, told, strings.Contains(out.String(), "level=WARN"), path)
		require.LessOrEqual(t, strings.Count(out.String(), "\n"), 1)
		require.NotContains(t, out.String(), "secret")
	}
}

// openai-go takes "error":null for an error, and closes the body. The answer does not
// depend on how much of it had come by then.
func TestNoErrorInEvents(t *testing.T) {
	const chunk = `data: {"id":"c","choices":[{"index":0,"delta":{"content":%s},"finish_reason":%s}],"error" : null}` + "\r\n\r\n"
	said := `"say \"error\":null"`
	body := ": \"error\":null\n" + fmt.Sprintf(chunk, said, "null") + fmt.Sprintf(chunk, "null", `"stop"`) + "data: [DONE]\n\n"
	for name, in := range map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "in halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
	} {
		p := &provided{answers: []func(*http.Request) (*http.Response, error){func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(in(strings.NewReader(body))), Request: req}, nil
		}}}
		st := newState(t, state.UserText("go"))
		read, err := readAll(post(t, newClient(t, &wire.Transport{Base: p}), st, "http://model"+chatPath, `{"model":"m","stream":true}`))
		require.NoError(t, err, name)
		require.Equal(t, strings.ReplaceAll(body, `,"error" : null`, ""), read, name)
		r, _ := st.History().Last()
		require.Equal(t, `say "error":null`, r.Output[0].Text(), name)
	}
	for _, other := range []string{`data: {"error":{"message":"no"}}`, `data: {"choices":[{"error":null}]}`, `data: {"error":null`, `{"error":null}`} {
		p := &provided{answers: []func(*http.Request) (*http.Response, error){status(200, other+"\n\n", "Content-Type", "text/event-stream")}}
		read, _ := readAll(post(t, newClient(t, &wire.Transport{Base: p}), newState(t), "http://model"+chatPath, `{"model":"m","stream":true}`))
		require.Equal(t, other+"\n\n", read)
	}
}
