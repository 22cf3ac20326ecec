package adaptertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// UserID is the user whose workspace the scenario uses.
const UserID = "ann"

// Window is the window of the agents. It shows at most six messages, if what a
// request has besides them is no more than another one.
var Window = &transcript.Window{Target: 6900, Keep: 5000, Tokens: func(state.Message) int { return 1000 }}

// The fields of the scenario.
var (
	User  = &state.Field[string]{Name: "user", Read: state.Public}
	Card  = &state.Field[string]{Name: "card", Read: state.Only("billing"), Secret: true}
	Notes = &state.Field[[]string]{
		Name: "notes", Read: state.Public, Write: state.Only("search", "stock", "policy"),
	}
	Refunded = &state.Field[float64]{
		Name: "refunded", Owner: "billing", Read: state.Public, Handler: state.Sum[float64](),
	}
	Schema = state.MustSchema(parts...)
)

var parts = []state.Part{state.Team{"search": {"stock", "policy", "billing"}}, User, Card, Notes, Refunded}

// card is the value of Card.
const card = "4242-4242-4242"

// Agents returns the agents that answer a message: one, or several in parallel.
func Agents(msg workspace.Message) []string {
	switch msg.ID {
	case "1":
		return []string{"search"}
	case "2":
		return []string{"stock", "policy"}
	}
	return []string{"billing"}
}

// Bindings returns the options of a tool: which fields are injected, and which
// the result is written to.
func Bindings(name string) []tool.Option {
	switch name {
	case "look_up":
		return []tool.Option{tool.From(User, "user"), tool.ToFunc(Notes, "note", func(note string) ([]string, error) {
			return []string{note}, nil
		})}
	case "check_card":
		return []tool.Option{tool.From(Card, "card")}
	case "refund":
		return []tool.Option{tool.From(Card, "card"), tool.To(Refunded, "amount")}
	}
	return nil
}

// A Desk is what one process has: the model and the tools. Its methods are safe
// for concurrent use.
type Desk struct {
	Manager *workspace.Manager // whose runs are answered

	outside *store.Manager // what tools have done
	killAt  int            // the point at which the process is killed, 0 for none
	nested  bool           // billing is a tool of search

	refundKey func(*workspace.Run) string

	mu     sync.Mutex
	points int
	calls  map[string]int // the calls of functions, by tool and topic
}

// point counts the points at which the process can be killed.
func (d *Desk) point() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.points++; d.points == d.killAt {
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
		select {} // under the lock: nothing happens any more
	}
}

func (d *Desk) count(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[call]++
}

// Tools returns the tools of an agent.
func (d *Desk) Tools(agent string) []*tool.Tool { return d.tools(agent, Bindings) }

// Unbound returns the tools of an agent without their Bindings, as a server has
// them that knows nothing of states. The key of a refund is that of
// [tool.CallOf].
func (d *Desk) Unbound(agent string) []*tool.Tool {
	return d.tools(agent, func(string) []tool.Option { return nil })
}

func (d *Desk) tools(agent string, bind func(name string) []tool.Option) []*tool.Tool {
	if agent == "billing" {
		return []*tool.Tool{
			tool.Must(tool.New("approve", "Ask a person for approval.", d.approve, bind("approve")...)),
			tool.Must(tool.New("refund", "Refund an amount.", d.refund, bind("refund")...)),
		}
	}
	return []*tool.Tool{
		tool.Must(tool.New("look_up", "Look up a topic.", d.lookUp, bind("look_up")...)),
		tool.Must(tool.New("check_card", "Check the card.", d.checkCard, bind("check_card")...)),
	}
}

type lookUpInput struct {
	User  string `json:"user"`
	Topic string `json:"topic"`
}

type lookUpOutput struct {
	Note string `json:"note"`
}

func (d *Desk) lookUp(_ context.Context, in lookUpInput) (lookUpOutput, error) {
	d.count("look_up " + in.Topic)
	d.point()
	if in.Topic == "delivery" || in.Topic == "stock" {
		time.Sleep(5 * time.Millisecond) // the first of two is the slower one
	}
	return lookUpOutput{in.User + ": " + in.Topic}, nil
}

type cardInput struct {
	Card string `json:"card"`
}

func (d *Desk) checkCard(_ context.Context, in cardInput) (string, error) {
	d.count("check_card")
	return "The card is " + in.Card + ".", nil
}

type amountInput struct {
	Amount float64 `json:"amount"`
}

func (d *Desk) approve(context.Context, amountInput) (string, error) {
	d.count("approve")
	d.point()
	return "", tool.Suspend(errors.New("a person has to approve"))
}

type refundInput struct {
	Card   string  `json:"card"`
	Amount float64 `json:"amount"`
}

type refundOutput struct {
	Amount float64 `json:"amount"`
	To     string  `json:"to"`
}

// refund refunds once for each key, as a bank does.
func (d *Desk) refund(ctx context.Context, in refundInput) (refundOutput, error) {
	d.count("refund")
	d.point()
	call, _ := tool.CallOf(ctx)
	key := call.Key
	if run, ok := workspace.FromContext(ctx); ok && d.refundKey != nil {
		key = d.refundKey(run)
	}
	_, err := d.outside.Update(ctx, "refunds", func(keys string, _ bool) (string, error) {
		if !slices.Contains(strings.Fields(keys), key) {
			keys += key + "\n"
		}
		return keys, nil
	})
	d.point()
	return refundOutput{in.Amount, in.Card}, err
}

// Next returns what the model of an agent says next in a conversation. It
// depends on nothing else. The error says what is wrong with the prompt: it is
// too long, shows a secret, or a strict provider would refuse it.
func (d *Desk) Next(agent string, prompt []state.Message) (state.Message, error) {
	d.point()
	said := withoutContext(prompt)
	if len(said) > 6 {
		return nil, fmt.Errorf("adaptertest: prompt of %s has %d messages", agent, len(said))
	}
	for _, profile := range []transcript.Profile{transcript.OpenAI, transcript.Anthropic} {
		if findings := transcript.Check(prompt, profile); len(findings) > 0 {
			return nil, fmt.Errorf("adaptertest: %v refuses the prompt of %s: %v", profile, agent, findings)
		}
	}
	if shown, err := json.Marshal(prompt); err != nil || strings.Contains(string(shown), card) {
		return nil, errors.Join(err, fmt.Errorf("adaptertest: prompt of %s shows the card", agent))
	}
	return next(agent, said)
}

// withoutContext returns a prompt without a message that has nothing but what
// stands in <context> tags behind the conversation.
func withoutContext(prompt []state.Message) []state.Message {
	if n := len(prompt); n > 0 {
		if text, ok := prompt[n-1].(state.TextMessage); ok && strings.HasPrefix(text.Text(), "<context>\n") {
			return prompt[:n-1]
		}
	}
	return prompt
}
