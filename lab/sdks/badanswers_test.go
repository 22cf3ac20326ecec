package sdks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	aopt "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

var stateClient = &http.Client{Transport: &wire.Transport{}}

func openDesk(t *testing.T, ask func(context.Context, *loop.Turn) error, tools ...*tool.Tool) *workspace.Manager {
	m, err := workspace.Open(context.Background(), store.NewMemory(), &workspace.Options{
		Run: workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"": {Ask: ask, Tools: tools}}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func serveEvents(t *testing.T, h func(n int32, body string, send func(...string), w http.ResponseWriter)) string {
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		h(n.Add(1), string(b), func(events ...string) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, e := range events {
				fmt.Fprintf(w, "%s\n\n", e)
				w.(http.Flusher).Flush()
			}
		}, w)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func chatAsker(url string) func(context.Context, *loop.Turn) error {
	sdk := openai.NewClient(option.WithHTTPClient(stateClient), option.WithMaxRetries(0), option.WithBaseURL(url), option.WithAPIKey("none"))
	return func(ctx context.Context, _ *loop.Turn) error {
		s := sdk.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("x")}})
		for s.Next() {
		}
		return errors.Join(s.Err(), s.Close())
	}
}

func messagesAsker(url string) func(context.Context, *loop.Turn) error {
	sdk := anthropic.NewClient(aopt.WithHTTPClient(stateClient), aopt.WithMaxRetries(0), aopt.WithBaseURL(url), aopt.WithAPIKey("none"))
	return func(ctx context.Context, _ *loop.Turn) error {
		s := sdk.Messages.NewStreaming(ctx, anthropic.MessageNewParams{Model: "m", MaxTokens: 100, Messages: []anthropic.MessageParam{}})
		for s.Next() {
		}
		return errors.Join(s.Err(), s.Close())
	}
}

func chatChunk(delta, finish string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

var noteTool = tool.Must(tool.New("note", "Note.", func(_ context.Context, in struct {
	Text string `json:"text"`
}) (string, error) {
	return "ok", nil
}))

const start, stop = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}",
	"event: message_stop\ndata: {\"type\":\"message_stop\"}"

// Arguments that were cut go back as an object: the API refuses a text, and would refuse
// each later request too (anthropic-sdk-typescript, issue 648).
func TestACutCallGoesBackWhole(t *testing.T) {
	asString := regexp.MustCompile(`"type":"tool_use"[^}]*"input":"`)
	url := serveEvents(t, func(n int32, body string, send func(...string), w http.ResponseWriter) {
		if n == 1 {
			send(start, `event: content_block_start`+"\n"+`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"note","input":{}}}`,
				`event: content_block_delta`+"\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"text\":\"milk and"}}`,
				`event: content_block_stop`+"\n"+`data: {"type":"content_block_stop","index":0}`,
				`event: message_delta`+"\n"+`data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}`, stop)
			return
		}
		if asString.MatchString(body) { // github.com/anthropics/anthropic-sdk-typescript/issues/648
			w.WriteHeader(400)
			fmt.Fprint(w, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0.tool_use.input: Input should be a valid dictionary"}}`)
			return
		}
		send(start, `event: content_block_start`+"\n"+`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`event: content_block_delta`+"\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello."}}`,
			`event: content_block_stop`+"\n"+`data: {"type":"content_block_stop","index":0}`,
			`event: message_delta`+"\n"+`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, stop)
	})
	m := openDesk(t, messagesAsker(url), noteTool)
	for _, id := range []string{"1", "2", "3"} {
		out, err := m.Handle(context.Background(), "ann", workspace.Message{ID: id, Content: state.UserText("Note milk.")})
		if err != nil || out.Status != workspace.StatusDone {
			t.Errorf("message %s: %v %v", id, out.Status, err)
		}
	}
}

// An error in a stream is asked again also if the SDK reads it before the body ends.
func TestAnErrorEventIsAskedAgain(t *testing.T) {
	url := serveEvents(t, func(n int32, _ string, send func(...string), _ http.ResponseWriter) {
		if n == 1 {
			send(chatChunk(`{"role":"assistant","content":"I"}`, "null"), `data: {"error":{"message":"Overloaded","type":"server_error","code":null}}`)
			time.Sleep(300 * time.Millisecond) // as a proxy that closes late
			return
		}
		send(chatChunk(`{"role":"assistant","content":"Hello."}`, "null"), chatChunk(`{}`, `"stop"`), `data: [DONE]`)
	})
	out, err := openDesk(t, chatAsker(url)).Handle(context.Background(), "ann", workspace.Message{Content: state.UserText("Hi")})
	if err != nil || out.Reply != "Hello." {
		t.Errorf("%+v %v", out, err)
	}
}

// The same with the events of Anthropic.
func TestAnErrorEventOfAnthropicIsAskedAgain(t *testing.T) {
	url := serveEvents(t, func(n int32, _ string, send func(...string), _ http.ResponseWriter) {
		if n == 1 {
			send(start, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}")
			time.Sleep(300 * time.Millisecond)
			return
		}
		send(start, `event: content_block_start`+"\n"+`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello."}}`,
			`event: content_block_stop`+"\n"+`data: {"type":"content_block_stop","index":0}`,
			`event: message_delta`+"\n"+`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`, stop)
	})
	out, err := openDesk(t, messagesAsker(url)).Handle(context.Background(), "ann", workspace.Message{Content: state.UserText("Hi")})
	if err != nil || out.Reply != "Hello." {
		t.Errorf("%+v %v", out, err)
	}
}

// What a model says when it refuses is the reply.
func TestTheWordsOfARefusalStay(t *testing.T) {
	url := serveEvents(t, func(_ int32, _ string, send func(...string), _ http.ResponseWriter) {
		send(chatChunk(`{"role":"assistant","refusal":"I cannot help with that."}`, "null"), chatChunk(`{}`, `"stop"`), `data: [DONE]`)
	})
	m := openDesk(t, chatAsker(url))
	out, err := m.Handle(context.Background(), "ann", workspace.Message{Content: state.UserText("Hi")})
	if out.Reply == "" {
		t.Errorf("%+v %v", out, err)
	}
}

// Handle says what Await says of a message whose run was cancelled.
func TestHandleOfACancelledMessage(t *testing.T) {
	there, quit := make(chan bool), make(chan bool)
	url := serveEvents(t, func(_ int32, _ string, send func(...string), _ http.ResponseWriter) {
		send(chatChunk(`{"role":"assistant","content":"Half"}`, "null"))
		there <- true
		<-quit
	})
	m := openDesk(t, chatAsker(url))
	go func() {
		<-there
		v, _ := m.View(context.Background(), "ann")
		_ = m.Cancel(context.Background(), "ann", v.Run.ID, "stopped by ann")
	}()
	out, err := m.Handle(context.Background(), "ann", workspace.Message{ID: "1", Content: state.UserText("Hi")})
	close(quit)
	if out.Status != workspace.StatusFailed || out.Reason == "" || !errors.Is(err, workspace.ErrRunFailed) {
		t.Errorf("handle: %+v\n%v", out, err)
	}
	out, err = m.Await(context.Background(), "ann", "1")
	t.Logf("await: %+v %v", out, err)
}

// openai-go takes "error":null for an error. The answer of a Loop does not depend on
// how much of it had come by then.
func TestNoErrorInChunks(t *testing.T) {
	for _, pause := range []time.Duration{0, 50 * time.Millisecond} {
		url := serveEvents(t, func(_ int32, _ string, send func(...string), _ http.ResponseWriter) {
			for _, e := range []string{chatChunk(`{"role":"assistant","content":"Hel"}`, "null"), chatChunk(`{"content":"lo."}`, "null"), chatChunk(`{}`, `"stop"`)} {
				send(strings.TrimSuffix(e, "}") + `,"error":null}`)
				time.Sleep(pause)
			}
			send(`data: [DONE]`)
		})
		out, err := openDesk(t, chatAsker(url)).Handle(context.Background(), "ann", workspace.Message{Content: state.UserText("Hi")})
		if err != nil || out.Reply != "Hello." {
			t.Errorf("after pauses of %v: %+v %v", pause, out, err)
		}
	}
}

// genai posts an empty body if it has neither contents nor a config. The model is sent
// the conversation all the same.
func TestGenaiHasNothingToSay(t *testing.T) {
	url := serveEvents(t, func(_ int32, body string, _ func(...string), w http.ResponseWriter) {
		if !strings.Contains(body, "Hi") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello."}]},"finishReason":"STOP"}]}`)
	})
	sdk, err := genai.NewClient(t.Context(), &genai.ClientConfig{APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url}, HTTPClient: stateClient})
	if err != nil {
		t.Fatal(err)
	}
	out, err := openDesk(t, func(ctx context.Context, _ *loop.Turn) error {
		_, err := sdk.Models.GenerateContent(ctx, "m", nil, nil)
		return err
	}).Handle(context.Background(), "ann", workspace.Message{Content: state.UserText("Hi")})
	if err != nil || out.Reply != "Hello." {
		t.Errorf("%+v %v", out, err)
	}
}
