// The example adk keeps the sessions of adk-go (google.golang.org/adk/v2) in
// workspaces, and gives its agents the tools of a state: docs/adk.md explains it.
// Its other files are meant to be copied.
//
// The model is scripted: it looks up two topics at once, asks a person, and
// refunds.
package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/agent/llmagent"
	"google.golang.org/adk/v2/model"
	"google.golang.org/adk/v2/plugin"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// The fields of the desk. The model neither sees the card nor the user.
var (
	User     = &state.Field[string]{Name: "user", Read: state.Public}
	Card     = &state.Field[string]{Name: "card", Read: state.Only("desk"), Secret: true}
	Notes    = &state.Field[[]string]{Name: "notes", Owner: "desk", Read: state.Public}
	Refunded = &state.Field[float64]{Name: "refunded", Owner: "desk", Handler: state.Sum[float64]()}
	Desk     = state.MustSchema(state.Team{"desk": nil}, User, Card, Notes, Refunded, Session, Events, Values)
)

var lookUp = tool.Must(tool.New("look_up", "Look up a topic.",
	func(_ context.Context, in struct {
		User  string `json:"user"`
		Topic string `json:"topic"`
	}) (map[string]string, error) {
		return map[string]string{"note": in.User + ": " + in.Topic}, nil
	},
	tool.From(User, "user"),
	tool.ToFunc(Notes, "note", func(note string) ([]string, error) { return []string{note}, nil })))

var approve = tool.Must(tool.New("approve", "Ask a person whether an amount may be refunded.",
	func(context.Context, amount) (string, error) {
		return "", tool.Suspend(errors.New("a person has to agree"))
	}))

var refund = tool.Must(tool.New("refund", "Refund an amount.",
	func(_ context.Context, in struct {
		amount
		Card string `json:"card"`
	}) (map[string]any, error) {
		return map[string]any{"amount": in.Amount, "to": in.Card}, nil
	},
	tool.From(Card, "card"), tool.To(Refunded, "amount")))

type amount struct {
	Amount float64 `json:"amount"`
}

// open returns a Manager whose messages an agent of adk answers.
func open(ctx context.Context, db store.Store) (*workspace.Manager, error) {
	kit := NewKit(&transcript.Window{Target: 20_000}, lookUp, approve, refund)
	plug, err := kit.Plugin()
	if err != nil {
		return nil, err
	}
	root, err := llmagent.New(llmagent.Config{
		Name: "desk", Model: script{}, Tools: kit.Tools(),
		InstructionProvider: func(ctx agent.ReadonlyContext) (string, error) {
			st, _ := state.FromContext(ctx)
			return st.As(ctx.AgentName()).Describe(), nil // without secrets
		},
	})
	if err != nil {
		return nil, err
	}
	var r *runner.Runner
	var sessions session.Service
	m, err := workspace.Open(ctx, db, &workspace.Options{
		Schema: Desk,
		Run:    func(ctx context.Context, run *workspace.Run) error { return Answer(ctx, run, r, sessions) },
	})
	if err != nil {
		return nil, err
	}
	sessions = Service(m)
	r, err = runner.New(runner.Config{
		AppName: "shop", Agent: root, SessionService: sessions, AutoCreateSession: true,
		PluginConfig: runner.PluginConfig{Plugins: []*plugin.Plugin{plug}},
	})
	return m, err
}

func main() {
	if err := talk(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// talk sends a message, and lets a person agree to what waits for it.
func talk(ctx context.Context) error {
	m, err := open(ctx, store.NewMemory())
	if err != nil {
		return err
	}
	defer m.Close()
	ann := Name("shop", "ann", "chat-1")
	err = m.Update(ctx, ann, func(w *workspace.Workspace) error {
		return errors.Join(User.Set(w.State(), "ann"), Card.Set(w.State(), "4242-4242"))
	})
	if err != nil {
		return err
	}
	if _, err := m.Handle(ctx, ann, workspace.Message{ID: "1", Content: state.UserText("Refund my order.")}); err != nil {
		return err
	}
	view, err := m.View(ctx, ann)
	if err != nil {
		return err
	}
	agreed := workspace.Message{ID: "2"}
	for _, call := range view.Suspended() {
		fmt.Println("waits:", call.Name, call.Input)
		agreed.Decisions = append(agreed.Decisions, tool.AnswerWith(call.Key, `{"agreed":true}`))
	}
	out, err := m.Handle(ctx, ann, agreed)
	if err != nil {
		return err
	}
	view, err = m.View(ctx, ann)
	if err != nil {
		return err
	}
	fmt.Println("reply:", out.Reply)
	fmt.Println(Notes.GetOr(view.State(), nil), Refunded.GetOr(view.State(), 0))
	return nil
}

// script is the model.
type script struct{}

func (script) Name() string { return "script" }

func (script) GenerateContent(_ context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	said := &genai.Content{Role: genai.RoleModel}
	call := func(name, key string, value any) {
		id := fmt.Sprintf("%s-%d", name, len(said.Parts))
		said.Parts = append(said.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: map[string]any{key: value}}})
	}
	last := req.Contents[len(req.Contents)-1].Parts
	switch result := last[len(last)-1].FunctionResponse; {
	case result == nil:
		call("look_up", "topic", "delivery")
		call("look_up", "topic", "returns")
		call("approve", "amount", 30)
	case result.Name == "approve":
		call("refund", "amount", 30)
	default:
		said.Parts = []*genai.Part{{Text: fmt.Sprintf("I have refunded %v to %v.", result.Response["amount"], result.Response["to"])}}
	}
	return func(yield func(*model.LLMResponse, error) bool) { yield(&model.LLMResponse{Content: said}, nil) }
}
