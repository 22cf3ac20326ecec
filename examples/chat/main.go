// Chat keeps a list of tasks in a terminal, with an official SDK: that of OpenAI or
// Anthropic if OPENAI_API_KEY or ANTHROPIC_API_KEY is set, otherwise with a
// scripted server. The SDK is given instructions. Package wire adds the conversation
// of the State and the tools to each request, and records the answer.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

const instructions = "You keep the tasks of the user. Answer in one sentence."

var tasks = &state.Field[map[string]string]{Name: "tasks", Handler: state.MergeMap[map[string]string]()}

// set returns a tool that gives a task a status.
func set(name, status string) *tool.Tool {
	return tool.Must(tool.New(name, "Make a task "+status+".", func(_ context.Context, in struct {
		Task string `json:"task"`
	}) (map[string]string, error) {
		return map[string]string{in.Task: status}, nil
	}, tool.To(tasks, "")))
}

func main() {
	client := &http.Client{Transport: &wire.Transport{ // all that connects State and SDK
		Window:  &transcript.Window{Target: 30_000},
		Cache:   true,
		Context: wire.Fields,
	}}
	ctx, st, loop, lines := context.Background(), state.New(state.MustSchema(tasks)), newLoop(open(client)), bufio.NewScanner(os.Stdin)
	for fmt.Print("> "); lines.Scan(); fmt.Print("> ") {
		err := st.UserSays(lines.Text())
		if err == nil {
			_, err = loop.Run(ctx, st)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(tasks.GetOr(st, nil))
}

// newLoop returns the loop of an agent with two tools.
func newLoop(ask func(context.Context, *loop.Turn) error) *loop.Loop {
	return &loop.Loop{Agents: map[string]loop.Agent{
		"": {Ask: ask, Tools: []*tool.Tool{set("add_task", "open"), set("finish_task", "done")}},
	}}
}

// open returns a function that sends one request, and prints the text of the model
// as it comes. Package wire adds the conversation and the tools of the turn. The SDK
// does not repeat a request that has failed: the loop does.
func open(client *http.Client) func(context.Context, *loop.Turn) error {
	if os.Getenv("ANTHROPIC_API_KEY") != "" {
		sdk := anthropic.NewClient(anthropicoption.WithHTTPClient(client), anthropicoption.WithMaxRetries(0))
		params := anthropic.MessageNewParams{Model: anthropic.ModelClaudeSonnet5_5, MaxTokens: 4000,
			System: []anthropic.TextBlockParam{{Text: instructions}}, Messages: []anthropic.MessageParam{}}
		return func(ctx context.Context, _ *loop.Turn) error {
			return show(sdk.Messages.NewStreaming(ctx, params), func(e anthropic.MessageStreamEventUnion) string { return e.Delta.Text })
		}
	}
	options := []option.RequestOption{option.WithHTTPClient(client), option.WithMaxRetries(0)}
	if os.Getenv("OPENAI_API_KEY") == "" {
		options = append(options, option.WithAPIKey("none"), option.WithBaseURL(httptest.NewServer(http.HandlerFunc(script)).URL))
	}
	sdk := openai.NewClient(options...)
	params := openai.ChatCompletionNewParams{Model: openai.ChatModelGPT5_4Mini,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(instructions)}}
	return func(ctx context.Context, _ *loop.Turn) error {
		return show(sdk.Chat.Completions.NewStreaming(ctx, params), func(c openai.ChatCompletionChunk) (text string) {
			for _, choice := range c.Choices {
				text += choice.Delta.Content
			}
			return text
		})
	}
}

// stream is a stream of either SDK.
type stream[E any] interface {
	Next() bool
	Current() E
	Err() error
	Close() error
}

func show[E any](s stream[E], text func(E) string) error {
	end := ""
	for s.Next() {
		if t := text(s.Current()); t != "" {
			fmt.Print(t)
			end = "\n"
		}
	}
	fmt.Print(end)
	return errors.Join(s.Err(), s.Close())
}
