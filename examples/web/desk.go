package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// request is what each request to the model has in common. Package wire adds the
// conversation and the tools.
const request = `{"model":"gpt-5.4-mini","stream":true,"messages":[{"role":"system","content":"You are a support desk. Be brief."}]}`

// order is an order of the shop.
type order struct {
	Item   string  `json:"item"`
	Price  float64 `json:"price"` // euros
	Status string  `json:"status"`
}

// The fields of a chat. The agents "customer" and "employee" stand for the persons who
// look at it: a page shows what its agent may read, and edits what that may write.
var (
	email    = &state.Field[string]{Name: "email", Description: "Where the desk writes to", Read: state.Public, Write: state.Only("customer")}
	orders   = shown("orders", "Orders that were looked up", state.MergeMap[map[string]order]())
	refunds  = shown("refunds", "Euros, by order", state.MergeMap[map[string]float64]())
	refunded = shown("refunded", "Euros in all", state.Sum[float64]())
	lookups  = shown("lookups", "How often the shop was asked", state.Sum[int]())
	risk     = &state.Field[string]{Name: "risk", Read: state.Only("desk", "employee"), Write: state.Only("desk")}
	memo     = &state.Field[string]{Name: "memo", Description: "For colleagues", Read: state.Only("employee"), Write: state.Only("employee")}

	schema = state.MustSchema(state.Team{"shop": {"desk", "customer", "employee"}}, email, orders, refunds, refunded, lookups, risk, memo)
)

// shown returns a field that the desk writes, and everybody may read.
func shown[T any](name, description string, h state.Handler[T]) *state.Field[T] {
	return &state.Field[T]{Name: name, Description: description, Handler: h, Read: state.Public, Write: state.Only("desk")}
}

// desk is the agent.
type desk struct {
	client *http.Client
	url    string        // of the model
	pace   time.Duration // of the shop and the scripted model
}

// options are those of the chats: one agent with two tools.
func (d *desk) options() *workspace.Options {
	agent := loop.Agent{Ask: d.ask, Tools: []*tool.Tool{
		tool.Must(tool.NewStateful("look_up_order", "Looks up an order.", d.lookUp, tool.To(orders, ""))),
		tool.Must(tool.NewStateful("refund", "Refunds an order.", d.refund,
			tool.To(refunds, "by_order"), tool.To(refunded, "euros"), tool.DecidedBy("employee"),
			tool.NeedsApproval(func(_ context.Context, in refundInput) (string, bool) {
				return fmt.Sprintf("%.2f euros are more than the desk may refund by itself.", in.Amount), in.Amount > 100
			}))),
	}}
	return &workspace.Options{
		Schema: schema,
		Run:    workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": agent}}),
		Title:  title,
		Window: &transcript.Window{Target: 8000}, // what the model reads; the page shows all
		Live:   true,                             // also for those who are connected to another process
	}
}

// title returns what was said first, if customers may read it: pages show the titles.
func title(st *state.State) string {
	for _, m := range state.Messages.GetOr(st.As("customer"), nil) {
		return m.Text()
	}
	return ""
}

func (d *desk) lookUp(ctx context.Context, st *state.State, in struct {
	Order string `json:"order"`
}) (map[string]order, error) {
	select {
	case <-time.After(25 * d.pace):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	found, ok := shop[in.Order]
	if !ok {
		return nil, errors.New("there is no order " + in.Order)
	}
	return map[string]order{in.Order: found}, errors.Join(lookups.Set(st, 1), risk.Set(st, "low"))
}

type refundInput struct {
	Order  string  `json:"order"`
	Amount float64 `json:"amount"`
}

type refundOutput struct {
	ByOrder map[string]float64 `json:"by_order"`
	Euros   float64            `json:"euros"`
	Told    string             `json:"told,omitempty"`
}

// refund would call a bank, with tool.CallOf(ctx).Key as the idempotency key: after
// a crash it may be called again, with the same key.
func (d *desk) refund(ctx context.Context, st *state.State, in refundInput) (refundOutput, error) {
	select {
	case <-time.After(25 * d.pace):
		return refundOutput{map[string]float64{in.Order: in.Amount}, in.Amount, email.GetOr(st, "")}, nil
	case <-ctx.Done():
		return refundOutput{}, ctx.Err()
	}
}

// ask sends one request. Package wire completes it, records the answer, and tells
// those who watch.
func (d *desk) ask(ctx context.Context, _ *loop.Turn) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+"/chat/completions", strings.NewReader(request))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("OPENAI_API_KEY"))
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New("the model answers with " + resp.Status)
	}
	return err
}
