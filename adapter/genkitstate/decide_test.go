package genkitstate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/genkit"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// bank is a workspace with a tool that pays when a person has decided.
type bank struct {
	t    *testing.T
	mu   sync.Mutex
	paid []string
	made map[string]int // the calls of the function, by their input
	m    *workspace.Manager
	tool *tool.Tool
	held *ai.ModelResponse // the last one that is interrupted
	// resume has the options of the next requests, in place of the conversation.
	resume []ai.GenerateOption
}

type payment struct {
	To string `json:"to"`
}

// newBank returns a bank whose model calls pay for each letter of what the user
// says in capitals, with the ids. Without an approval the function suspends until
// open says that it pays.
func newBank(t *testing.T, open func() bool, ids ...string) *bank {
	b := &bank{t: t, made: map[string]int{}}
	pay := func(_ context.Context, in payment) (string, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.made[in.To]++
		if open != nil && !open() {
			return "", tool.Suspend(nil)
		}
		b.paid = append(b.paid, in.To)
		return "paid " + in.To, nil
	}
	var options []tool.Option
	if open == nil {
		options = append(options, tool.NeedsApproval(func(_ context.Context, in payment) (string, bool) { return "pay " + in.To, true }))
	}
	b.tool = tool.Must(tool.New("pay", "Pays.", pay, options...))
	say := func(_ context.Context, req *ai.ModelRequest) (*ai.Message, error) {
		last := req.Messages[len(req.Messages)-1]
		text := last.Text()
		if last.Role != ai.RoleUser || strings.ToUpper(text) != text {
			return ai.NewModelTextMessage("done"), nil
		}
		var calls []*ai.Part
		for i, to := range strings.Split(text, "") {
			calls = append(calls, request("pay", ids[i%len(ids)], fmt.Sprintf(`{"to":%q}`, to)))
		}
		return ai.NewModelMessage(calls...), nil
	}
	var err error
	b.m, err = workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Attempts: 1, Run: func(ctx context.Context, run *workspace.Run) error {
		g := genkit.Init(ctx)
		conversation, err := genkitstate.From(state.Messages.GetOr(run.State(), nil)...)
		if err != nil {
			return err
		}
		opts := b.resume
		if opts == nil {
			opts = []ai.GenerateOption{ai.WithMessages(conversation...)}
		}
		tools := []*tool.Tool{b.tool}
		resp, err := genkit.Generate(state.NewContext(ctx, run.State()), g, append(opts[:len(opts):len(opts)], ai.WithModel(define(g, say)),
			ai.WithTools(genkitstate.Tools(tools...)...), ai.WithMiddleware(genkitstate.Middleware(tools, nil)))...)
		if err == nil && len(resp.Interrupts()) > 0 {
			b.held = resp
		}
		return err
	}})
	must(err)
	t.Cleanup(func() { must(b.m.Close()) })
	return b
}

func (b *bank) handle(msg workspace.Message) {
	b.t.Helper()
	_, err := b.m.Handle(b.t.Context(), "ann", msg)
	must(err)
}

func (b *bank) say(text string) { b.handle(workspace.Message{Content: state.UserText(text)}) }

func (b *bank) decide(d ...tool.Decision) { b.handle(workspace.Message{Decisions: d}) }

// cards returns the keys of the calls that wait, by what they pay.
func (b *bank) cards() map[string]string {
	view, err := b.m.View(b.t.Context(), "ann")
	must(err)
	keys := map[string]string{}
	for _, c := range view.Suspended() {
		var in payment
		must(c.Input.Decode(&in))
		keys[in.To] = c.Key
	}
	return keys
}

// results returns the results of all calls by what they pay.
func (b *bank) results() map[string]string {
	view, err := b.m.View(b.t.Context(), "ann")
	must(err)
	out, names := map[string]string{}, map[string]string{}
	for _, m := range state.Messages.GetOr(view.State(), nil) {
		switch m := m.(type) {
		case state.ToolCallMessage:
			for _, c := range m.Calls() {
				var in payment
				must(c.Input.Decode(&in))
				names[c.Key] = in.To
			}
		case state.ToolResultMessage:
			out[names[m.Call().Key]] = m.Text()
		}
	}
	return out
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The key says which call is decided about, whatever refs the provider gives: of
// one answer, of several, and none.
func TestADecisionHitsItsCall(t *testing.T) {
	for name, ids := range map[string][]string{"no ids": {""}, "one id": {"c1"}, "ids": {"c1", "c2", "c3"}} {
		for _, answers := range [][]string{{"ABC"}, {"A", "B", "C"}} {
			t.Run(fmt.Sprint(name, answers), func(t *testing.T) {
				b := newBank(t, nil, ids...)
				for _, text := range answers {
					b.say(text)
				}
				keys := b.cards()
				b.decide(tool.Approve(keys["B"]))
				equal(t, []string{"B"}, b.paid)
				b.decide(tool.Refuse(keys["A"], "no"), tool.Approve(keys["C"]))
				equal(t, []string{"B", "C"}, b.paid)
				equal(t, map[string]string{"A": "The call was refused by a person: no", "B": "paid B", "C": "paid C"}, b.results())
				equal(t, 0, len(b.cards()))
			})
		}
	}
}

// An approval is not lost because something was said in between, or with it.
func TestAnApprovalAfterOtherWords(t *testing.T) {
	b := newBank(t, nil, "c1")
	b.say("AB")
	b.say("hello")
	keys := b.cards()
	b.decide(tool.Approve(keys["A"]))
	equal(t, []string{"A"}, b.paid)
	b.handle(workspace.Message{Content: state.UserText("yes, do"), Decisions: []tool.Decision{tool.Approve(keys["B"])}})
	equal(t, []string{"A", "B"}, b.paid)
	equal(t, map[string]string{"A": "paid A", "B": "paid B"}, b.results())
}

// The function of a call that waits is not called again because another one is
// decided.
func TestCallsThatWaitAreNotMadeAgain(t *testing.T) {
	b := newBank(t, func() bool { return false }, "c1")
	b.say("AB")
	keys := b.cards()
	b.decide(tool.AnswerWith(keys["A"], `"by hand"`))
	b.say("hello")
	equal(t, map[string]int{"A": 1, "B": 1}, b.made)
	equal(t, map[string]string{"A": "by hand"}, b.results())
	equal(t, map[string]string{"B": keys["B"]}, b.cards())
}

// A response that a program holds makes its calls once, however often it is
// resumed, and never those of other answers with the same refs.
func TestHeldResponses(t *testing.T) {
	// resume restarts the first call, and restarts or answers the second one.
	resume := func(b *bank, held *ai.ModelResponse, answers bool) {
		first, second := held.Interrupts()[0], held.Interrupts()[1]
		pay := genkitstate.Tools(b.tool)[0].(ai.Tool)
		b.resume = []ai.GenerateOption{ai.WithMessages(held.History()...)}
		if answers {
			b.resume = append(b.resume, ai.WithToolRestarts(pay.Restart(first, nil)), ai.WithToolResponses(ai.NewResponseForToolRequest(second, "by hand")))
		} else {
			b.resume = append(b.resume, ai.WithToolRestarts(pay.Restart(first, nil), pay.Restart(second, nil)))
		}
	}
	try := func(b *bank) bool {
		out, err := b.m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("resume")})
		return err == nil && out.Status == workspace.StatusDone
	}
	for _, ids := range [][]string{{"c1"}, {""}, {"c1", "c2"}} {
		for _, answers := range []bool{false, true} {
			want, results := []string{"A", "B"}, map[string]string{"A": "paid A", "B": "paid B"}
			if answers {
				want, results["B"] = []string{"A"}, "by hand"
			}
			may := false
			t.Run(fmt.Sprintf("resumed twice %q %v", ids, answers), func(t *testing.T) {
				b := newBank(t, func() bool { return may }, ids...)
				b.say("AB")
				may = true
				resume(b, b.held, answers)
				equal(t, true, try(b))
				equal(t, false, try(b))
				slices.Sort(b.paid) // they are made at once
				equal(t, want, b.paid)
				equal(t, results, b.results())
			})
			may = false
			t.Run(fmt.Sprintf("of an earlier answer %q %v", ids, answers), func(t *testing.T) {
				b := newBank(t, func() bool { return may }, ids...)
				b.say("AB")
				first := b.held
				b.say("XY")
				may = true
				resume(b, first, answers)
				equal(t, true, try(b))
				slices.Sort(b.paid) // they are made at once
				equal(t, want, b.paid)
				equal(t, results, b.results())
				equal(t, 2, len(b.cards()))
			})
			may = false
			t.Run(fmt.Sprintf("after a Reset %q %v", ids, answers), func(t *testing.T) {
				b := newBank(t, func() bool { return may }, ids...)
				b.say("AB")
				first := b.held
				_, err := b.m.Reset(t.Context(), "ann")
				must(err)
				b.say("AB")
				may = true
				resume(b, first, answers)
				equal(t, false, try(b))
				equal(t, 0, len(b.paid))
				equal(t, 0, len(b.results()))
				equal(t, 2, len(b.cards()))
			})
		}
	}
}
