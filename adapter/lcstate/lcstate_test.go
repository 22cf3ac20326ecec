package lcstate_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/lcstate"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

var (
	card  = &state.Field[string]{Name: "card", Owner: "billing", Secret: true}
	order = &state.Field[string]{Name: "order", Read: state.Public}
	notes = &state.Field[[]string]{
		Name: "notes", Read: state.Public, Write: state.Public, Handler: state.Append[[]string](),
	}
	fields = state.MustSchema(card, order, notes, state.Team{"support": {"billing", "search"}})
)

var (
	errApproval = errors.New("a person has to agree")
	refund      = tool.Must(tool.New("refund", "Refund an amount.", func(_ context.Context, in struct {
		Amount float64 `json:"amount"`
		Order  string  `json:"order"`
		Card   string  `json:"card"`
	}) (string, error) {
		return fmt.Sprintf("refunded %v of %s to %s", in.Amount, in.Order, in.Card), nil
	}, tool.From(card, "card"), tool.From(order, "order")))
	pay = tool.Must(tool.New("pay", "Pay an amount, if a person agrees.", func(context.Context, struct {
		Amount float64 `json:"amount"`
	}) (string, error) {
		return "", tool.Suspend(errApproval)
	}))
	note = tool.Must(tool.New("note", "Write a note.", func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	}, tool.ToFunc(notes, "", func(text string) ([]string, error) { return []string{text}, nil })))
)

func desk(t testing.TB) *state.State {
	st := state.New(fields)
	check(t, card.Set(st, "4242-4242-4242"))
	check(t, order.Set(st, "#W1"))
	return st
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func denied(t testing.TB, err error) {
	t.Helper()
	if !errors.Is(err, state.ErrDenied) {
		t.Error("not denied:", err)
	}
}

// clients are the clients of langchaingo for the providers whose rules the
// scripted model enforces.
var clients = []struct {
	name    string
	format  *provider.Format
	profile transcript.Profile
	open    func(m *statetest.Model) (llms.Model, error)
}{
	{"openai", provider.OpenAI, transcript.OpenAI, func(m *statetest.Model) (llms.Model, error) {
		return openai.New(openai.WithHTTPClient(m.Client()), openai.WithToken("none"), openai.WithModel("m"))
	}},
	{"anthropic", provider.Anthropic, transcript.Anthropic, func(m *statetest.Model) (llms.Model, error) {
		return anthropic.New(anthropic.WithHTTPClient(m.Client()), anthropic.WithToken("none"), anthropic.WithModel("m"))
	}},
}

// each runs a test with each client.
func each(t *testing.T, test func(t *testing.T, a *lcstate.Agent, script func(...statetest.Reply) *statetest.Model)) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			a := &lcstate.Agent{Profile: c.profile}
			test(t, a, func(replies ...statetest.Reply) *statetest.Model {
				m := statetest.NewModel(t, c.format, replies...)
				llm, err := c.open(m)
				check(t, err)
				a.LLM = llm
				return m
			})
		})
	}
}

// answers is a model of langchaingo that calls a function for each request.
type answers func(msgs []llms.MessageContent, opts llms.CallOptions) llms.ContentChoice

func (a answers) GenerateContent(
	_ context.Context, msgs []llms.MessageContent, options ...llms.CallOption,
) (*llms.ContentResponse, error) {
	var opts llms.CallOptions
	for _, o := range options {
		o(&opts)
	}
	c := a(msgs, opts)
	return &llms.ContentResponse{Choices: []*llms.ContentChoice{&c}}, nil
}

func (a answers) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, a, prompt, options...)
}

// call is a call of a tool by a model.
func call(id, name, arguments string) llms.ToolCall {
	return llms.ToolCall{ID: id, Type: "function", FunctionCall: &llms.FunctionCall{Name: name, Arguments: arguments}}
}

// What a message keeps of langchaingo may have been changed by hand.
func TestMessagesWithChangedExtra(t *testing.T) {
	for _, more := range []string{`{"type":null}`, `{"type":5}`, `5`} {
		m, err := state.DecodeMessage([]byte(`{"type":"tool_call","role":"assistant","tools":[` +
			`{"type":"tool","id":"1","name":"f","input":{},"format:langchaingo":{"more":` + more + `}}]}`))
		check(t, err)
		got := lcstate.ChatMessages([]state.Message{state.UserText("a"), m})
		want := []llms.ToolCall{{ID: "1", Type: "function", FunctionCall: &llms.FunctionCall{Name: "f", Arguments: "{}"}}}
		if len(got) != 2 || !reflect.DeepEqual(got[1], llms.ChatMessage(llms.AIChatMessage{ToolCalls: want})) {
			t.Errorf("%s: got %v", more, got)
		}
	}
}
