package sdks

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	goopenai "github.com/sashabaranov/go-openai"
	"github.com/stretchr/testify/require"
	"github.com/tmc/langchaingo/llms"
	lcanthropic "github.com/tmc/langchaingo/llms/anthropic"
	lcopenai "github.com/tmc/langchaingo/llms/openai"
	"google.golang.org/genai"
)

const (
	apiKey       = "sk-never-recorded-4242"
	instructions = "You are a clerk."
)

// schema is that of the arguments of the tool "lookup".
var schema = map[string]any{
	"type":       "object",
	"properties": map[string]any{"order": map[string]any{"type": "string"}},
	"required":   []string{"order"},
}

// model calls a model once, with instructions and the tool "lookup". said is
// added to the request as a turn of the user unless it is empty. left is called
// after each event of a stream: if it returns true, the client leaves.
type model func(ctx context.Context, said string, left func() bool) error

// sdk is a client of a provider.
type sdk struct {
	name string
	api  string // of the server
	open func(t testing.TB, url string, client *http.Client) (whole, streamed model)
}

var sdks = []sdk{
	{"openai-go Chat", "chat", openaiChat},
	{"openai-go Responses", "responses", openaiResponses},
	{"anthropic-sdk-go", "anthropic", anthropicMessages},
	{"genai", "gemini", geminiContent},
	{"go-openai", "chat", goOpenAI},
	{"langchaingo OpenAI", "chat", func(t testing.TB, url string, client *http.Client) (model, model) {
		llm, err := lcopenai.New(lcopenai.WithBaseURL(url+"/v1"), lcopenai.WithToken(apiKey),
			lcopenai.WithHTTPClient(client), lcopenai.WithModel("m"))
		require.NoError(t, err)
		return langchain(llm)
	}},
	{"langchaingo Anthropic", "anthropic", func(t testing.TB, url string, client *http.Client) (model, model) {
		llm, err := lcanthropic.New(lcanthropic.WithBaseURL(url+"/v1"), lcanthropic.WithToken(apiKey),
			lcanthropic.WithHTTPClient(client), lcanthropic.WithModel("m"))
		require.NoError(t, err)
		return langchain(llm)
	}},
}

func openaiChat(_ testing.TB, url string, client *http.Client) (whole, streamed model) {
	c := openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey(apiKey), openaioption.WithHTTPClient(client))
	params := func(said string) openai.ChatCompletionNewParams {
		p := openai.ChatCompletionNewParams{
			Model:    "m",
			Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage(instructions)},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(
				shared.FunctionDefinitionParam{Name: "lookup", Parameters: schema})},
		}
		if said != "" {
			p.Messages = append(p.Messages, openai.UserMessage(said))
		}
		return p
	}
	whole = func(ctx context.Context, said string, _ func() bool) error {
		_, err := c.Chat.Completions.New(ctx, params(said))
		return err
	}
	streamed = func(ctx context.Context, said string, left func() bool) error {
		stream := c.Chat.Completions.NewStreaming(ctx, params(said))
		for stream.Next() {
			if left() {
				break
			}
		}
		return errors.Join(stream.Err(), stream.Close())
	}
	return whole, streamed
}

func openaiResponses(_ testing.TB, url string, client *http.Client) (whole, streamed model) {
	c := openai.NewClient(openaioption.WithBaseURL(url+"/v1"), openaioption.WithAPIKey(apiKey), openaioption.WithHTTPClient(client))
	params := func(said string) responses.ResponseNewParams {
		p := responses.ResponseNewParams{
			Model:        "m",
			Instructions: openai.String(instructions),
			Tools: []responses.ToolUnionParam{{OfFunction: &responses.FunctionToolParam{
				Name: "lookup", Parameters: schema}}},
		}
		if said != "" {
			p.Input.OfString = openai.String(said)
		}
		return p
	}
	whole = func(ctx context.Context, said string, _ func() bool) error {
		_, err := c.Responses.New(ctx, params(said))
		return err
	}
	streamed = func(ctx context.Context, said string, left func() bool) error {
		stream := c.Responses.NewStreaming(ctx, params(said))
		for stream.Next() {
			if left() {
				break
			}
		}
		return errors.Join(stream.Err(), stream.Close())
	}
	return whole, streamed
}

func anthropicMessages(_ testing.TB, url string, client *http.Client) (whole, streamed model) {
	c := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey(apiKey), anthropicoption.WithHTTPClient(client))
	params := func(said string) anthropic.MessageNewParams {
		p := anthropic.MessageNewParams{
			Model: "m", MaxTokens: 4000, Messages: []anthropic.MessageParam{},
			System:   []anthropic.TextBlockParam{{Text: instructions, CacheControl: anthropic.NewCacheControlEphemeralParam()}},
			Thinking: anthropic.ThinkingConfigParamOfEnabled(2000),
			Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
				Name: "lookup", InputSchema: anthropic.ToolInputSchemaParam{Properties: schema["properties"]}}}},
		}
		if said != "" {
			p.Messages = append(p.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(said)))
		}
		return p
	}
	whole = func(ctx context.Context, said string, _ func() bool) error {
		_, err := c.Messages.New(ctx, params(said))
		return err
	}
	streamed = func(ctx context.Context, said string, left func() bool) error {
		stream := c.Messages.NewStreaming(ctx, params(said))
		for stream.Next() {
			if left() {
				break
			}
		}
		return errors.Join(stream.Err(), stream.Close())
	}
	return whole, streamed
}

func geminiContent(t testing.TB, url string, client *http.Client) (whole, streamed model) {
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: apiKey, Backend: genai.BackendGeminiAPI, HTTPClient: client,
		HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
	require.NoError(t, err)
	config := &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: instructions}}},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "lookup", ParametersJsonSchema: schema}}}},
	}
	contents := func(said string) []*genai.Content {
		if said == "" {
			return nil
		}
		return genai.Text(said)
	}
	whole = func(ctx context.Context, said string, _ func() bool) error {
		_, err := c.Models.GenerateContent(ctx, "m", contents(said), config)
		return err
	}
	streamed = func(ctx context.Context, said string, left func() bool) error {
		for _, err := range c.Models.GenerateContentStream(ctx, "m", contents(said), config) {
			if err != nil {
				return err
			}
			if left() {
				break
			}
		}
		return nil
	}
	return whole, streamed
}

func goOpenAI(_ testing.TB, url string, client *http.Client) (whole, streamed model) {
	config := goopenai.DefaultConfig(apiKey)
	config.BaseURL, config.HTTPClient = url+"/v1", client
	c := goopenai.NewClientWithConfig(config)
	params := func(said string) goopenai.ChatCompletionRequest {
		p := goopenai.ChatCompletionRequest{
			Model:    "m",
			Messages: []goopenai.ChatCompletionMessage{{Role: "system", Content: instructions}},
			Tools: []goopenai.Tool{{Type: goopenai.ToolTypeFunction,
				Function: &goopenai.FunctionDefinition{Name: "lookup", Parameters: schema}}},
		}
		if said != "" {
			p.Messages = append(p.Messages, goopenai.ChatCompletionMessage{Role: "user", Content: said})
		}
		return p
	}
	whole = func(ctx context.Context, said string, _ func() bool) error {
		_, err := c.CreateChatCompletion(ctx, params(said))
		return err
	}
	streamed = func(ctx context.Context, said string, left func() bool) error {
		stream, err := c.CreateChatCompletionStream(ctx, params(said))
		if err != nil {
			return err
		}
		defer stream.Close()
		for {
			if _, err := stream.Recv(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if left() {
				return nil
			}
		}
	}
	return whole, streamed
}

// errLeft ends a stream of langchaingo.
var errLeft = errors.New("the client leaves")

func langchain(llm llms.Model) (whole, streamed model) {
	messages := func(said string) []llms.MessageContent {
		msgs := []llms.MessageContent{llms.TextParts(llms.ChatMessageTypeSystem, instructions)}
		if said != "" {
			msgs = append(msgs, llms.TextParts(llms.ChatMessageTypeHuman, said))
		}
		return msgs
	}
	tools := llms.WithTools([]llms.Tool{{Type: "function",
		Function: &llms.FunctionDefinition{Name: "lookup", Parameters: schema}}})
	whole = func(ctx context.Context, said string, _ func() bool) error {
		_, err := llm.GenerateContent(ctx, messages(said), tools)
		return err
	}
	streamed = func(ctx context.Context, said string, left func() bool) error {
		_, err := llm.GenerateContent(ctx, messages(said), tools, llms.WithStreamingFunc(func(context.Context, []byte) error {
			if left() {
				return errLeft
			}
			return nil
		}))
		if errors.Is(err, errLeft) {
			return nil
		}
		return err
	}
	return whole, streamed
}
