package sdks

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"
	"google.golang.org/genai/interactions/models/interactions"
	"google.golang.org/genai/interactions/models/operations"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/wire"
)

// The tests of this file show what becomes of a conversation of which the provider
// keeps a part: the table of docs/guide/providers.md.

// holder is a provider with scripted answers, and what it was sent.
type holder struct {
	url  string
	sent []string
}

func newHolder(t *testing.T, answer func(n int, body string) string) *holder {
	h := &holder{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		h.sent = append(h.sent, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer(len(h.sent), string(body)))
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

func (h *holder) openai(transport *wire.Transport) openai.Client {
	return openai.NewClient(openaioption.WithBaseURL(h.url+"/v1"), openaioption.WithAPIKey(apiKey),
		openaioption.WithHTTPClient(&http.Client{Transport: transport}))
}

func (h *holder) anthropic(transport *wire.Transport) anthropic.Client {
	return anthropic.NewClient(anthropicoption.WithBaseURL(h.url), anthropicoption.WithAPIKey(apiKey),
		anthropicoption.WithHTTPClient(&http.Client{Transport: transport}))
}

func responseOf(n int, items string) string {
	return fmt.Sprintf(`{"id":"r%d","object":"response","created_at":1,"status":"completed","model":"m","output":[%s`+
		`{"type":"message","id":"msg_%d","role":"assistant","status":"completed","content":[{"type":"output_text","text":"answer %d","annotations":[]}]}]}`, n, items, n, n)
}

func messageOf(n int, blocks, stop string, tokens int, more string) string {
	return fmt.Sprintf(`{"id":"m%d","type":"message","role":"assistant","model":"m","content":[%s],"stop_reason":"%s",`+
		`"usage":{"input_tokens":%d,"output_tokens":1}%s}`, n, blocks, stop, tokens, more)
}

func answerBlock(n int) string { return fmt.Sprintf(`{"type":"text","text":"answer %d"}`, n) }

// What the user says by the input alone is not in the State. A request that names no
// response sends what the State has: the answers without those questions.
func TestAnInputOfTheProgramIsNotInTheState(t *testing.T) {
	h := newHolder(t, func(n int, _ string) string { return responseOf(n, "") })
	c, st := h.openai(&wire.Transport{}), state.New(nil)
	ctx := state.NewContext(t.Context(), st)
	require.NoError(t, st.UserSays("first"))
	must(c.Responses.New(ctx, responses.ResponseNewParams{Model: "m"}))
	must(c.Responses.New(ctx, responses.ResponseNewParams{Model: "m", PreviousResponseID: openai.String("r1"),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("second")}}))
	require.NoError(t, st.UserSays("third"))
	must(c.Responses.New(ctx, responses.ResponseNewParams{Model: "m"}))
	require.NotContains(t, h.sent[1], "first")
	for _, words := range []string{"first", "answer 1", "answer 2", "third"} {
		require.Contains(t, h.sent[2], words)
	}
	require.NotContains(t, h.sent[2], "second")
}

// Branches, and a conversation that was begun anew, are the State's: what they name
// at the provider is the same conversation.
func TestBranchesAndAResetShareTheConversationOfTheProvider(t *testing.T) {
	h := newHolder(t, func(n int, _ string) string { return responseOf(n, "") })
	c, st := h.openai(&wire.Transport{}), state.New(nil)
	p := responses.ResponseNewParams{Model: "m", Conversation: responses.ResponseNewParamsConversationUnion{OfString: openai.String("conv_1")},
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hi!")}}
	branches := []*state.State{st.Fork(), st.Fork()}
	for _, branch := range branches {
		must(c.Responses.New(state.NewContext(t.Context(), branch), p))
	}
	require.NoError(t, state.Messages.Set(st, nil))
	must(c.Responses.New(state.NewContext(t.Context(), st), p))
	require.Equal(t, []string{h.sent[0], h.sent[0], h.sent[0]}, h.sent)
	for _, branch := range branches {
		require.Len(t, state.Messages.GetOr(branch, nil), 1)
	}
}

// A summary of the provider goes back where it stood, with all that is in front.
func TestASummaryOfTheProviderGoesBack(t *testing.T) {
	t.Run("Responses", func(t *testing.T) {
		h := newHolder(t, func(n int, _ string) string {
			return responseOf(n, []string{"", `{"type":"compaction","id":"cmp_1","encrypted_content":"ENC"},`, ""}[n-1])
		})
		c, st := h.openai(&wire.Transport{}), state.New(nil)
		for _, words := range []string{"first", "second", "third"} {
			require.NoError(t, st.UserSays(words))
			must(c.Responses.New(state.NewContext(t.Context(), st), responses.ResponseNewParams{Model: "m", Store: openai.Bool(false),
				ContextManagement: []responses.ResponseNewParamsContextManagement{{Type: "compaction", CompactThreshold: openai.Int(1000)}}}))
		}
		require.Regexp(t, `first.*answer 1.*second.*\{"type":"compaction","id":"cmp_1","encrypted_content":"ENC"\}.*answer 2.*third`, h.sent[2])
	})
	t.Run("Anthropic, and goes on by itself", func(t *testing.T) {
		h := newHolder(t, func(n int, _ string) string {
			if n == 1 {
				return messageOf(n, `{"type":"compaction","content":"They spoke of rain."}`, "compaction", 9, "")
			}
			return messageOf(n, answerBlock(n), "end_turn", 9, `,"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919","cleared_tool_uses":3,"cleared_input_tokens":50000}]}`)
		})
		st := state.New(nil)
		require.NoError(t, st.UserSays("first"))
		reply, err := claude(h.anthropic(&wire.Transport{})).Run(t.Context(), st)
		require.NoError(t, err)
		require.Equal(t, "answer 2", reply)
		require.Regexp(t, `first.*\{"type":"compaction","content":"They spoke of rain."\}`, h.sent[1])
		last, _ := st.History().Last()
		require.Contains(t, last.Raw, "applied_edits")
	})
}

// claude is a Loop on the client's own settings.
func claude(c anthropic.Client, tools ...*tool.Tool) *loop.Loop {
	return &loop.Loop{Agents: map[string]loop.Agent{"": {Tools: tools, Ask: func(ctx context.Context, _ *loop.Turn) error {
		_, err := c.Beta.Messages.New(ctx, anthropic.BetaMessageNewParams{
			Model: "m", MaxTokens: 100, Messages: []anthropic.BetaMessageParam{},
			Tools: []anthropic.BetaToolUnionParam{{OfMemoryTool20250818: &anthropic.BetaMemoryTool20250818Param{}}},
		})
		return err
	}}}}
}

// A Window knows no summary of the provider: it is left out with the message that
// has it, and with it all that it stood for.
func TestAWindowLeavesASummaryOfTheProviderOut(t *testing.T) {
	h := newHolder(t, func(n int, body string) string {
		blocks := answerBlock(n)
		if n == 2 {
			blocks = `{"type":"compaction","content":"Their name is Ann."},` + blocks
		}
		return messageOf(n, blocks, "end_turn", len(body)/4, "")
	})
	st := state.New(nil)
	l := claude(h.anthropic(&wire.Transport{Window: &transcript.Window{Target: 150}}))
	for range 12 {
		require.NoError(t, st.UserSays(strings.Repeat("some words ", 5)))
		_, err := l.Run(t.Context(), st)
		require.NoError(t, err)
	}
	require.Contains(t, h.sent[2], "Their name is Ann.")
	require.NotContains(t, h.sent[len(h.sent)-1], "Their name is Ann.")
}

// The memory tool of Anthropic has its definition from the program, and its function
// from the Loop.
func TestTheMemoryToolIsATool(t *testing.T) {
	answers := func(n int, _ string) string {
		if n == 1 {
			return messageOf(n, `{"type":"tool_use","id":"t1","name":"memory","input":{"command":"view","path":"/memories"}}`, "tool_use", 9, "")
		}
		return messageOf(n, answerBlock(n), "end_turn", 9, "")
	}
	memory := must(tool.New("memory", "Keeps files.", func(_ context.Context, in struct {
		Command string `json:"command"`
		Path    string `json:"path"`
	}) (string, error) {
		return in.Command + " " + in.Path, nil
	}))
	for result, tools := range map[string][]*tool.Tool{"view /memories": {memory}, "not found": nil} {
		h, st := newHolder(t, answers), state.New(nil)
		require.NoError(t, st.UserSays("Remember!"))
		_, err := claude(h.anthropic(&wire.Transport{}), tools...).Run(t.Context(), st)
		require.NoError(t, err)
		require.Len(t, h.sent, 2)
		require.Contains(t, h.sent[1], result)
		require.Contains(t, h.sent[1], `"tools":[{"name":"memory","type":"memory_20250818"}]`)
	}
}

// Interactions of Gemini pass as they are.
func TestInteractionsAreNotRecorded(t *testing.T) {
	h := newHolder(t, func(n int, _ string) string {
		return fmt.Sprintf(`{"id":"i%d","status":"completed","model":"m","steps":[]}`, n)
	})
	var told strings.Builder
	c, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: apiKey, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: h.url},
		HTTPClient: &http.Client{Transport: &wire.Transport{Logger: slog.New(slog.NewTextHandler(&told, nil))}},
	})
	require.NoError(t, err)
	st, before := state.New(nil), "i0"
	require.NoError(t, st.UserSays("first"))
	in := interactions.NewInteractionsInput([]interactions.Content{{TextContent: &interactions.TextContent{Text: "second"}}})
	body := operations.NewCreateInteractionRequestBody(interactions.CreateModelInteraction{Model: "m", Input: &in, PreviousInteractionID: &before})
	must(c.Interactions.Create(state.NewContext(t.Context(), st), operations.CreateInteractionRequest{Body: body}))
	require.Len(t, h.sent, 1)
	require.NotContains(t, h.sent[0], "first")
	require.Len(t, state.Messages.GetOr(st, nil), 1)
	require.Zero(t, st.History().Len())
	require.Contains(t, told.String(), "is not known")
}
