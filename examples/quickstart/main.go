// Quickstart is a support desk: four agents work on a customer's case and share
// one state. It needs no network and no key, because the model is scripted.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
)

// Document is a search result about the case.
type Document struct {
	Source string `json:"source"`
	Text   string `json:"text"`
}

// The fields declare what the agents know, and which agents may read and write
// it. Only the owner writes a field unless Write admits more agents. A field
// without an owner belongs to the host.
var (
	OrderID = &state.Field[string]{
		Name:        "order_id",
		Description: "The order that the customer is asking about.",
		UpdateRules: "Set it as soon as the customer names it. Never guess.",
		Owner:       "support",
		Read:        state.Public,
	}
	Intent    = &state.Field[string]{Name: "intent", Owner: "support", Read: state.Public}
	Documents = &state.Field[[]Document]{Name: "documents", Owner: "retriever", Read: state.Public}
	Refund    = &state.Field[float64]{Name: "refund", Owner: "billing", Read: state.Public}
	Token     = &state.Field[string]{Name: "payment_token", Read: state.Only("billing"), Secret: true}
	Cost      = &state.Field[float64]{Name: "cost", Read: state.Public, Write: state.Public, Handler: state.Sum[float64]()}

	schema = state.MustSchema(
		state.Team{"support": {"retriever", "billing", "general"}},
		OrderID, Intent, Documents, Refund, Token, Cost,
	)
)

const secret = "pm_4e7Hq2LmT9xW"

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run handles the case and prints what happened.
func run(w io.Writer) error {
	st := state.New(schema)
	p := &page{w: w, st: st}
	err := errors.Join(
		Token.Set(st, secret),
		st.UserSays("My order #W2378156 has a dead keyboard. I want my money back."),
	)
	if err != nil {
		return err
	}
	p.line("A support desk: four agents, one shared state, a scripted model.")
	p.line("\nTHE CASE                 who works next is decided by a router that looks at the state alone")
	p.line("  customer               My order #W2378156 has a dead keyboard. I want my money back.")
	if _, err := desk(theScript(), p.turns).Run(context.Background(), st); err != nil {
		return err
	}
	p.turns()
	p.fields("billing", "general")
	p.history()
	if err := p.past(); err != nil {
		return err
	}
	return p.secrecy()
}

// next is the router. It returns the agent that works next, and the reason.
func next(st *state.State) (agent, why string) {
	last, _ := st.History().Last()
	switch {
	case !OrderID.Has(st):
		return "support", "the order is not known"
	case state.ListLen(st, Documents) == 0:
		return "retriever", "nothing is known about the order"
	case Intent.GetOr(st, "") == "refund" && !Refund.Has(st):
		return "billing", "a refund is due"
	case last.Agent != "general" || len(last.ToolCalls) > 0:
		return "general", "the customer has no answer"
	}
	return "", ""
}

// desk returns the loop of the agents. before is called before a model is asked.
func desk(model *script, before func()) *loop.Loop {
	ask := func(ctx context.Context, turn *loop.Turn) error {
		before()
		return model.ask(ctx, turn)
	}
	agents := map[string]loop.Agent{}
	for name, tools := range tools() {
		agents[name] = loop.Agent{Ask: ask, Tools: tools}
	}
	return &loop.Loop{Agents: agents, Route: func(st *state.State) (agent string, ok bool) {
		agent, _ = next(st)
		return agent, agent != ""
	}}
}

// page prints what happened. Everything that it writes to w goes through
// Redact.
type page struct {
	w       io.Writer
	st      *state.State
	told    int // the turns that are printed
	printed strings.Builder
}

func (p *page) line(format string, args ...any) {
	text := p.st.Redact(fmt.Sprintf(format, args...)) + "\n"
	p.printed.WriteString(text)
	io.WriteString(p.w, text)
}

// turns prints the turn that has ended, and whose turn is next. By then, all calls
// are made.
func (p *page) turns() {
	for ; p.told < p.st.History().Len(); p.told++ {
		r, _ := p.st.History().Last()
		p.turn(r)
	}
	if agent, why := next(p.st); agent != "" {
		p.line("  router                 -> %s: %s", agent, why)
	}
}

// turn prints one answer of a model and the results of its tool calls.
func (p *page) turn(r state.InferenceResult) {
	who := r.Agent
	for _, m := range r.Output {
		if said, ok := m.(state.TextMessage); ok {
			p.line("  %-10s says        %s", who, said.Text())
		}
	}
	for _, m := range r.ToolCalls {
		p.line("  %-10s calls       %s %s", who, m.Call().Name, m.Call().Input)
		switch {
		case m.IsError():
			p.line("  %-10s is refused  %s", "", m.Text())
		case len(r.ToolCalls) == 1:
			p.line("  %-10s reads       %s", "", m.Text())
		}
		who = ""
	}
	if n := len(r.ToolCalls); n > 1 {
		p.line("  %-10s at once     %d calls, whose results are written in their order", "", n)
	}
}

// fields prints what two agents see of the same state.
func (p *page) fields(one, other string) {
	a, b := p.st.As(one).KV().All(), p.st.As(other).KV().All()
	p.line("\n%-25s%-22s %s", "THE FIELDS", one+" sees", other+" sees")
	for _, f := range p.st.Fields() {
		p.line("  %-22s %-22s %s", f.Name, show(a[f.Name]), show(b[f.Name]))
	}
}

func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case []Document:
		var sources []string
		for _, d := range v {
			sources = append(sources, d.Source)
		}
		return fmt.Sprintf("%d: %s", len(v), strings.Join(sources, ", "))
	case []state.Message:
		return fmt.Sprintf("%d messages", len(v))
	}
	return fmt.Sprint(v)
}

// history prints the stack of inference results.
func (p *page) history() {
	p.line("\nTHE HISTORY              prompt   conversation   answer      tool results")
	for i, r := range p.st.History().All() {
		p.line("  %d %-20s %-8d %-14d %-11s %d", i+1, r.Agent, len(r.Prompt), len(r.History), r.Output[0].Type(), len(r.ToolCalls))
	}
}

// past prints which writes added the documents, and the state before them.
func (p *page) past() error {
	p.line("\nA LOOK BACK              the journal knows who wrote what, and for which tool call")
	var found uint64
	for c, err := range p.st.Changes(0) {
		if err != nil {
			return err
		}
		if c.Field == Documents.Name {
			if found == 0 {
				found = c.Version
			}
			p.line("  version %-14d %s wrote %s for %s", c.Version, c.Agent, c.Field, c.Cause)
		}
	}
	before, err := p.st.At(found - 1)
	if err != nil {
		return err
	}
	for _, st := range []*state.State{before, p.st} {
		p.line("  at version %-11d %d documents, refund %v, cost %.3f",
			st.Version(), state.ListLen(st, Documents), Refund.GetOr(st, 0), Cost.GetOr(st, 0))
	}
	return nil
}

// secrecy tries to print the token and checks that no line above contains it.
func (p *page) secrecy() error {
	p.line("\nTHE SECRET               is masked wherever it turns up")
	p.line("  in a log line          POST /refunds?token=%s", secret)
	if strings.Contains(p.printed.String(), secret) {
		return errors.New("the payment token has been printed")
	}
	p.line("  checked                the payment token is nowhere in the %d lines above", strings.Count(p.printed.String(), "\n"))
	return nil
}
