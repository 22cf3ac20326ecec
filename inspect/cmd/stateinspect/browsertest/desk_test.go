package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

// document is a search result.
type document struct {
	Source string `json:"source"`
	Text   string `json:"text"`
}

// customer is what the desk knows of a user.
type customer struct {
	Name  string `json:"name"`
	Plan  string `json:"plan"`
	Since string `json:"since"`
}

// The fields of the desk.
var (
	orderID = &state.Field[string]{
		Name: "order_id", Description: "The order that the customer is asking about.",
		UpdateRules: "Set it as soon as the customer names it. Never guess.", Owner: "support", Read: state.Public,
	}
	intent    = &state.Field[string]{Name: "intent", Description: "What the customer wants.", Owner: "support", Read: state.Public}
	who       = &state.Field[customer]{Name: "customer", Owner: "support", Read: state.Public}
	documents = &state.Field[[]document]{Name: "documents", Owner: "search", Read: state.Public, Handler: state.Append[[]document]()}
	notes     = &state.Field[[]string]{Name: "notes", Read: state.Public, Write: state.Public, Handler: state.Append[[]string]()}
	refund    = &state.Field[float64]{Name: "refund", Description: "In dollars.", Owner: "billing", Read: state.Public}
	card      = &state.Field[string]{Name: "card", Owner: "support", Read: state.Only("billing"), Secret: true}
	limit     = &state.Field[float64]{Name: "refund_limit", Description: "What billing may refund without asking.", Owner: "billing"}
	cost      = &state.Field[float64]{Name: "cost", Description: "In cents.", Read: state.Public, Write: state.Public, Handler: state.Sum[float64]()}

	deskSchema = state.MustSchema(
		state.Team{"support": {"search", "billing", "general"}},
		orderID, intent, who, documents, notes, refund, card, limit, cost,
	)
)

const (
	cardNumber = "4242 4242 4242 4242"
	mailToken  = "tok-4711-abc"
)

// errDeclined is why a message of carol died.
var errDeclined = errors.New("refund: the bank declined card " + cardNumber + ": insufficient rights for 129.90 USD")

// newDesk makes a file with the workspaces of a support desk:
//
//	alice   two messages that were handled, in 10 versions, with memory and settings
//	bob     a run that another process has begun, and a message that waits
//	carol   a message that died
//	erin…   long values, under a long id
//	frank   a call that was forgotten
//	grace   a call that waits for a person, and another in a thread
//	henry   1 000 messages
//	ivan    a message that died
//	dave    damaged
//	user…   60 others
func newDesk(t testing.TB) string {
	t.Helper()
	ctx := context.Background()
	file := filepath.Join(t.TempDir(), "desk.db")
	db, err := sqlitestore.Open(ctx, file, nil)
	require.NoError(t, err)
	require.NoError(t, workspace.PublishSchema(ctx, db, deskSchema))
	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: deskSchema, Run: answer})
	require.NoError(t, err)
	for i, text := range []string{
		"Hi, my order #W2378156 arrived with a dead keyboard. I want my money back.",
		"Great. Where can I send the broken one?",
	} {
		_, err := m.Handle(ctx, "alice", workspace.Message{ID: fmt.Sprint("web-", 71+i), ChatID: "7", Platform: "web", Content: state.UserText(text)})
		require.NoError(t, err)
	}
	update(t, m, "alice", func(w *workspace.Workspace) error {
		return errors.Join(
			w.Memory().Set("language", "English"),
			w.Memory().Set("prefers", "short answers, no phone calls"),
			w.Memory().SetSecret("mail_token", mailToken),
			w.SetSettings(func(s *workspace.Settings) {
				s.MCPServers = map[string]state.JSON{"mail": `{"key":"key-of-the-server"}`, "tickets": `{}`}
			}),
		)
	})
	_, err = m.Submit(ctx, "bob", workspace.Message{ID: "web-90", Content: state.UserText("Is there a keyboard with Danish keys?")})
	require.NoError(t, err)
	require.NoError(t, m.Wait(ctx))
	_, err = m.Handle(ctx, "carol", workspace.Message{ID: "web-80", Content: state.UserText("Please refund order #W19 to my card " + cardNumber + ".")})
	require.ErrorIs(t, err, errDeclined)
	for i := range 60 {
		update(t, m, fmt.Sprintf("user%04d", i*37), func(w *workspace.Workspace) error { return cost.Set(w.State(), 0.25) })
	}
	addLong(t, m)
	addCalls(t, m)
	addMany(t, m)
	_, err = m.Handle(ctx, "dave", workspace.Message{ID: "web-80", Content: state.UserText("Refund it.")})
	require.ErrorIs(t, err, errDeclined)
	require.NoError(t, m.Close())
	_, err = store.Put(ctx, db, "agent:workspace:dave", []byte("{}"), store.Always)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	return file
}

func update(t testing.TB, m *workspace.Manager, user string, fn func(w *workspace.Workspace) error) {
	t.Helper()
	require.NoError(t, m.Update(context.Background(), user, fn))
}

// openDesk opens a desk as the program itself does.
func openDesk(t testing.TB, file string) *workspace.Manager {
	t.Helper()
	db, err := sqlitestore.Open(context.Background(), file, nil)
	require.NoError(t, err)
	m, err := workspace.Open(context.Background(), db, &workspace.Options{Schema: deskSchema, Run: answer})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(m.Close(), db.Close())) })
	return m
}

// turn is one answer of the scripted model.
type turn struct {
	agent string
	calls []state.ToolCall
	// work does what the calls do.
	work    func(st *state.State) error
	results []state.JSON
	text    string
}

// answer handles a message of the desk: four agents, one after another.
func answer(ctx context.Context, run *workspace.Run) error {
	switch run.Message().ID {
	case "web-80":
		return errors.Join(card.Set(run.State(), cardNumber), run.Commit(ctx), errDeclined)
	case "web-95":
		call := state.ToolCall{ID: "call_1", Name: "approve_refund", Input: `{"amount":900}`}
		history := run.State().As("billing").History()
		if err := history.Append(state.InferenceResult{Output: []state.Message{state.ToolCalls(call)}}); err != nil {
			return err
		}
		return run.Suspend(history.Pending()[0].Key)
	case "web-71":
		return play(ctx, run, refundScript)
	default:
		for _, call := range run.State().History().Pending() { // it was approved
			if err := run.State().History().Answer(state.ToolResult(call, "true")); err != nil {
				return err
			}
		}
		return play(ctx, run, []turn{{agent: "general", text: "Please put it into the box that it came in. A label is on its way to you by mail."}})
	}
}

var refundScript = []turn{
	{
		agent: "support",
		calls: []state.ToolCall{{ID: "call_1", Name: "set_fields", Input: `{"order_id":"#W2378156","intent":"refund"}`}},
		work: func(st *state.State) error {
			return errors.Join(
				orderID.Set(st, "#W2378156"), intent.Set(st, "refund"), card.Set(st, cardNumber),
				who.Set(st, customer{"Alice Andersen", "plus", "2021-03-14"}),
			)
		},
		results: []state.JSON{`"ok"`},
	},
	{
		agent: "search",
		calls: []state.ToolCall{
			{ID: "call_2", Name: "search_orders", Input: `{"order":"#W2378156"}`},
			{ID: "call_3", Name: "search_policies", Input: `{"topic":"refunds"}`},
		},
		work: func(st *state.State) error {
			return errors.Join(
				documents.Set(st.WithCause("call_2"), []document{{"orders", "#W2378156: mechanical keyboard, 129.90 USD, delivered 3 days ago"}}),
				documents.Set(st.WithCause("call_3"), []document{{"policies", "Defects are refunded within 30 days, to the card that was charged."}}),
				notes.Set(st.WithCause("call_3"), []string{"refunds within 30 days"}),
			)
		},
		results: []state.JSON{`{"order":"#W2378156","item":"mechanical keyboard","price":129.9}`, `{"policy":"Defects are refunded within 30 days."}`},
	},
	{
		agent: "billing",
		calls: []state.ToolCall{{ID: "call_4", Name: "refund", Input: `{"amount":129.9}`}},
		work: func(st *state.State) error {
			st = st.WithCause("call_4")
			return errors.Join(limit.Set(st, 200), refund.Set(st, 129.9), notes.Set(st, []string{"paid back to the card"}))
		},
		results: []state.JSON{`{"refunded":129.9,"to":"` + cardNumber + `"}`},
	},
	{agent: "general", text: "I have refunded 129.90 USD to the card you paid with. It may take three days until you see it."},
}

// play lets agents take their turns, and commits after each.
func play(ctx context.Context, run *workspace.Run, script []turn) error {
	for i, turn := range script {
		st := run.State().As(turn.agent)
		began := time.Now()
		talk, err := state.Messages.Get(st)
		if err != nil {
			return err
		}
		said := state.Message(state.AssistantText(turn.text))
		if turn.calls != nil {
			said = state.ToolCalls(turn.calls...)
		}
		result := state.InferenceResult{
			Agent: turn.agent, History: talk, Output: []state.Message{said}, Raw: rawResponse(i, turn), StartedAt: began,
			Prompt: []state.Message{state.SystemText("You are " + turn.agent + ", an agent of a support desk. The state:\n" + st.Describe())},
		}
		// The calls are stored before they are made.
		if err := errors.Join(st.History().Append(result), cost.Set(st, 0.25), run.Commit(ctx)); err != nil {
			return err
		}
		for n, call := range turn.calls {
			if err := st.History().Answer(state.ToolResult(call, turn.results[n])); err != nil {
				return err
			}
		}
		if turn.work != nil {
			if err := errors.Join(turn.work(st.WithCause(turn.calls[0].ID)), run.Commit(ctx)); err != nil {
				return err
			}
		}
		run.SetReply(turn.text)
	}
	return nil
}

// rawResponse is what a provider would have sent for a turn.
func rawResponse(i int, t turn) string {
	message := map[string]any{"role": "assistant", "content": t.text}
	stop := "stop"
	if t.calls != nil {
		stop = "tool_calls"
		var calls []any
		for _, c := range t.calls {
			calls = append(calls, map[string]any{
				"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": string(c.Input)},
			})
		}
		message = map[string]any{"role": "assistant", "content": nil, "tool_calls": calls}
	}
	data, _ := json.Marshal(map[string]any{
		"id": fmt.Sprint("chatcmpl-", 100+i), "object": "chat.completion", "model": "gpt-4.1-mini",
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": stop}},
		"usage":   map[string]any{"prompt_tokens": 412 + 230*i, "completion_tokens": 31 + 7*i, "total_tokens": 443 + 237*i},
	})
	return string(data)
}
