package einostate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/einostate"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/provider/providertest"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

func ref[T any](v T) *T { return &v }

// own are messages of eino with every member that a message can have.
var own = []*schema.Message{
	schema.SystemMessage("Be brief."),
	{Role: schema.User, Name: "ann", Content: "Where is #W1?", Extra: map[string]any{"trace": "t1"}},
	{
		Role: schema.Assistant, Content: "I look.", ReasoningContent: "The order matters.",
		ToolCalls: []schema.ToolCall{
			{ID: "c1", Type: "function", Index: ref(0), Function: schema.FunctionCall{Name: "look", Arguments: `{"order": "#W1"}`}},
			{ID: "c2", Type: "function", Function: schema.FunctionCall{Name: "pay", Arguments: `{"n":9007199254740993}`}, Extra: map[string]any{"x": true}},
		},
		ResponseMeta: &schema.ResponseMeta{FinishReason: "tool_calls", Usage: &schema.TokenUsage{PromptTokens: 12, TotalTokens: 15}},
	},
	schema.ToolMessage("shipped", "c1", schema.WithToolName("look")),
	schema.ToolMessage("", "c2", schema.WithToolName("pay")),
	{Role: schema.Assistant, ToolCalls: []schema.ToolCall{{ID: "c3", Type: "function", Function: schema.FunctionCall{Name: "look", Arguments: ``}}}},
	schema.ToolMessage(`{"n":1}`, "c3", schema.WithToolName("look")),
	{Role: schema.User, UserInputMultiContent: []schema.MessageInputPart{
		{Type: schema.ChatMessagePartTypeText, Text: "these"},
		{Type: schema.ChatMessagePartTypeImageURL, Extra: map[string]any{"k": "v"}, Image: &schema.MessageInputImage{
			MessagePartCommon: schema.MessagePartCommon{Base64Data: ref("aGk="), MIMEType: "image/png"}, Detail: schema.ImageURLDetailLow}},
		{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageInputImage{
			MessagePartCommon: schema.MessagePartCommon{URL: ref("https://example.com/a.png")}}},
		{Type: schema.ChatMessagePartTypeAudioURL, Audio: &schema.MessageInputAudio{
			MessagePartCommon: schema.MessagePartCommon{Base64Data: ref("aGk="), MIMEType: "audio/wav"}}},
		{Type: schema.ChatMessagePartTypeVideoURL, Video: &schema.MessageInputVideo{
			MessagePartCommon: schema.MessagePartCommon{URL: ref("https://example.com/a.mp4")}}},
		{Type: schema.ChatMessagePartTypeFileURL, File: &schema.MessageInputFile{
			MessagePartCommon: schema.MessagePartCommon{Base64Data: ref("aGk="), MIMEType: "text/plain"}, Name: "a.txt"}},
	}},
	{Role: schema.Assistant, AssistantGenMultiContent: []schema.MessageOutputPart{
		{Type: schema.ChatMessagePartTypeReasoning, Reasoning: &schema.MessageOutputReasoning{Text: "hm", Signature: "s"}},
		{Type: schema.ChatMessagePartTypeText, Text: "a picture"},
		{Type: schema.ChatMessagePartTypeImageURL, Image: &schema.MessageOutputImage{
			MessagePartCommon: schema.MessagePartCommon{Base64Data: ref("aGk="), MIMEType: "image/png"}}},
	}},
	schema.AssistantMessage("Done.", nil),
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMessageFormat(t *testing.T) {
	providertest.RunMessages(t, einostate.Format, own)
}

func TestMessagesComeBack(t *testing.T) {
	msgs, err := einostate.Messages(own...)
	if err != nil {
		t.Fatal(err)
	}
	again, err := einostate.FromMessages(msgs...)
	if err != nil {
		t.Fatal(err)
	}
	if len(again) != len(own) {
		t.Fatalf("%d messages, want %d", len(again), len(own))
	}
	for i := range own {
		if got, want := jsonOf(t, again[i]), jsonOf(t, own[i]); got != want {
			t.Errorf("message %d:\ngot  %s\nwant %s", i, got, want)
		}
	}
	if findings := transcript.Check(msgs, transcript.OpenAI); len(findings) > 0 {
		t.Error(findings)
	}
}

// TestAnswers: an answer of a model alone becomes the same messages as in a
// conversation.
func TestAnswers(t *testing.T) {
	meta := &schema.ResponseMeta{FinishReason: "stop", Usage: &schema.TokenUsage{TotalTokens: 3}, LogProbs: &schema.LogProbs{}}
	list := slices.Clone(own)
	for _, m := range own {
		if m.Role != schema.Assistant {
			continue
		}
		for _, change := range []func(*schema.Message){
			func(m *schema.Message) { m.Content = "" },
			func(m *schema.Message) { m.Content = "\x00\xff<b>" },
			func(m *schema.Message) { m.ToolCalls = nil },
			func(m *schema.Message) { m.ToolCalls = []schema.ToolCall{call("c1", "look", `{"text":"a b"}`)} },
			func(m *schema.Message) {
				m.ToolCalls = []schema.ToolCall{call("", "look", `{}`), call("c2", "", `{"a":[1e2]}`)}
			},
			func(m *schema.Message) { m.ToolCalls = []schema.ToolCall{call("c1", "look", `{"a": 1}`)} },
			func(m *schema.Message) { m.ToolCalls = []schema.ToolCall{call("c1", "look", `{"a":1},{}`)} },
			func(m *schema.Message) { m.ToolCalls = []schema.ToolCall{call("c1", "look", `{"a":1`)} },
			func(m *schema.Message) { m.ToolCalls = []schema.ToolCall{call("c1", "look", `{"a":1,"a":2}`)} },
			func(m *schema.Message) { m.ToolCalls = []schema.ToolCall{call("c1", "look", `[]`)} },
			func(m *schema.Message) {
				m.ToolCalls = []schema.ToolCall{{ID: "c1", Function: schema.FunctionCall{Name: "look", Arguments: `{}`}}}
			},
			func(m *schema.Message) {
				m.ResponseMeta, m.ReasoningContent, m.Extra = meta, "", map[string]any{"id": "m1", "n": 1.5}
			},
			func(m *schema.Message) { m.ResponseMeta, m.ReasoningContent, m.Name = nil, "", "bob" },
			func(m *schema.Message) { m.ResponseMeta, m.ReasoningContent, m.ToolName = nil, "hm", "look" },
		} {
			other := *m
			change(&other)
			list = append(list, &other)
		}
	}
	for _, m := range list {
		one, err := einostate.Messages(m)
		if err != nil {
			t.Error(err)
		}
		two, err := einostate.Messages(schema.UserMessage("hi"), m)
		if err != nil {
			t.Error(err)
		}
		if !slices.EqualFunc(one, two[1:], state.Message.Equal) {
			t.Errorf("alone and behind another:\n%s\n%s", jsonOf(t, one), jsonOf(t, two[1:]))
		}
	}
}

func TestEveryProviderReadsParts(t *testing.T) {
	msgs, err := einostate.Messages(own[7])
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []*provider.Format{provider.Anthropic, provider.Gemini, provider.OpenAIResponses} {
		kept, changes := transcript.Repair(msgs, f.Profile(), transcript.Policy{})
		if len(kept) != 1 || len(changes) > 0 {
			t.Errorf("%s: %v %v", f, kept, changes)
		}
		body, omitted, err := f.EncodeRequest(provider.Request{Messages: kept})
		t.Log(f, string(body), omitted, err)
	}
}

func TestMessagesFromElsewhere(t *testing.T) {
	request, err := provider.Anthropic.DecodeRequest([]byte(`{"messages":[
		{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"look","input":{"a":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a cat"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := einostate.FromMessages(request.Messages...)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(jsonOf(t, got))
}

func BenchmarkMessages(b *testing.B) {
	m := own[2]
	b.Run("to", func(b *testing.B) {
		for b.Loop() {
			_, _ = einostate.Messages(m)
		}
	})
	msgs, _ := einostate.Messages(m)
	b.Run("from", func(b *testing.B) {
		for b.Loop() {
			_, _ = einostate.FromMessages(msgs...)
		}
	})
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			_ = state.ToolCalls(state.ToolCall{ID: "c1", Name: "look", Input: `{"order":"#W1"}`}, state.ToolCall{ID: "c2", Name: "look", Input: `{"order":"#W1"}`})
		}
	})
}

// What a message keeps of eino may have been changed by hand.
func TestMessagesWithChangedExtra(t *testing.T) {
	for _, more := range []string{`{"type":null}`, `{"type":5}`, `5`} {
		m, err := state.DecodeMessage([]byte(`{"type":"tool_call","role":"assistant","tools":[` +
			`{"type":"tool","id":"1","name":"f","input":{},"format:eino":{"more":` + more + `}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := einostate.FromMessages(state.UserText("a"), m)
		if err != nil {
			t.Fatal(err)
		}
		want := []schema.ToolCall{{ID: "1", Type: "function", Function: schema.FunctionCall{Name: "f", Arguments: "{}"}}}
		if len(got) != 2 || !reflect.DeepEqual(want, got[1].ToolCalls) {
			t.Errorf("%s: got %v", more, got)
		}
	}
}

// adk of eino v0.9.13 gives each answer and each result a random id: two runs in
// which the same is said have equal messages.
func TestEqualRunsHaveEqualMessages(t *testing.T) {
	run := func() []state.Message {
		st := state.New(nil)
		must(st.UserSays("Note it."))
		note := tool.Must(tool.New("note", "Writes.", func(context.Context, struct{}) (string, error) { return "noted", nil }))
		agent, err := adk.NewChatModelAgent(t.Context(), &adk.ChatModelAgentConfig{
			Name: "clerk", Description: "notes", Model: script(calls(call("c1", "note", `{}`)), said("Done.")),
			ToolsConfig: adk.ToolsConfig{ToolsNodeConfig: compose.ToolsNodeConfig{Tools: einostate.Tools(note)}},
			Handlers:    []adk.ChatModelAgentMiddleware{einostate.Middleware("clerk", nil)},
		})
		must(err)
		msgs, err := einostate.FromMessages(state.Messages.GetOr(st, nil)...)
		must(err)
		_, err = drain(adk.NewRunner(t.Context(), adk.RunnerConfig{Agent: agent}).Run(state.NewContext(t.Context(), st), msgs))
		must(err)
		return state.Messages.GetOr(st, nil)
	}
	var texts [2]string
	for i := range texts {
		for _, m := range run() {
			texts[i] += fmt.Sprintln(keyless(m))
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("two runs differ:\n%s\n%s", texts[0], texts[1])
	}
}

// keyless returns the JSON of a message without the keys of its calls.
func keyless(m state.Message) string {
	data, err := json.Marshal(m)
	must(err)
	return regexp.MustCompile(`"key":"[^"]*"`).ReplaceAllString(string(data), "")
}
