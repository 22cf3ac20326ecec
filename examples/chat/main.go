// Chat keeps a list of tasks in a terminal, with an official SDK: that of OpenAI or
// Anthropic if OPENAI_API_KEY or ANTHROPIC_API_KEY is set, otherwise with a
// scripted server. The SDK is given instructions and tools. Package wire adds the
// conversation of the State to each request, and records the answer in it.
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
		Converse: true,
		Window:   &transcript.Window{Max: 30_000},
		Cache:    true,
		Context:  func(_ context.Context, st *state.State) string { return st.Describe() },
	}}
	tools, st := []*tool.Tool{set("add_task", "open"), set("finish_task", "done")}, state.New(state.MustSchema(tasks))
	ctx, ask, lines := state.NewContext(context.Background(), st), open(client, tools), bufio.NewScanner(os.Stdin)
	for fmt.Print("> "); lines.Scan(); fmt.Print("> ") {
		err := state.Messages.Set(st, []state.Message{state.UserText(lines.Text())})
		if err == nil {
			err = answer(ctx, st, ask, tools)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(tasks.Or(st, nil))
}

// answer asks the model until it makes no more calls.
func answer(ctx context.Context, st *state.State, ask func(context.Context) error, tools []*tool.Tool) error {
	for {
		err := ask(ctx)
		calls := transcript.Pending(state.Messages.Or(st, nil))
		results, runErr := tool.Run(ctx, st, tools, calls)
		err = errors.Join(err, runErr)
		for _, r := range results {
			fmt.Println(r.Message)
			err = errors.Join(err, st.History().Answer(r.Message))
		}
		if err != nil || len(calls) == 0 {
			return err
		}
	}
}

// open returns a function that asks the model, and prints its text as it comes.
func open(client *http.Client, tools []*tool.Tool) func(context.Context) error {
	var ofOpenAI, ofAnthropic []map[string]any
	for _, t := range tools {
		of := map[string]any{"name": t.Name(), "description": t.Description(), "parameters": t.Schema()}
		ofOpenAI = append(ofOpenAI, map[string]any{"type": "function", "function": of})
		ofAnthropic = append(ofAnthropic, map[string]any{"name": t.Name(), "description": t.Description(), "input_schema": t.Schema()})
	}
	if os.Getenv("ANTHROPIC_API_KEY") != "" {
		sdk := anthropic.NewClient(anthropicoption.WithHTTPClient(client), anthropicoption.WithJSONSet("tools", ofAnthropic))
		params := anthropic.MessageNewParams{Model: anthropic.ModelClaudeSonnet5_5, MaxTokens: 4000,
			System: []anthropic.TextBlockParam{{Text: instructions}}, Messages: []anthropic.MessageParam{}}
		return func(ctx context.Context) error {
			return show(sdk.Messages.NewStreaming(ctx, params), func(e anthropic.MessageStreamEventUnion) string { return e.Delta.Text })
		}
	}
	options := []option.RequestOption{option.WithHTTPClient(client), option.WithJSONSet("tools", ofOpenAI)}
	if os.Getenv("OPENAI_API_KEY") == "" {
		options = append(options, option.WithAPIKey("none"), option.WithBaseURL(httptest.NewServer(http.HandlerFunc(script)).URL))
	}
	sdk := openai.NewClient(options...)
	params := openai.ChatCompletionNewParams{Model: openai.ChatModelGPT5_4Mini,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(instructions)}}
	return func(ctx context.Context) error {
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
