package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/workspace"
)

// No test reaches the network by the default client.
type refuse struct{}

func (refuse) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("the test reaches for %s", r.URL.Host)
}

func TestMain(m *testing.M) {
	http.DefaultTransport = refuse{}
	os.Exit(m.Run())
}

// newDesk returns the state with which each test begins.
func newDesk() *state.State {
	st := state.New(Desk)
	err := st.Patch(map[string]any{"order": "#W1", "card": "4242-4242-4242"})
	if err == nil {
		err = state.Messages.Set(st, []state.Message{state.UserText("The keyboard is broken.")})
	}
	if err != nil {
		panic(err)
	}
	return st
}

// open is a shop that is always open.
func open(context.Context, string, string, any) (state.JSON, error) { return `{"ok":true}`, nil }

// run lets the desk answer the customer.
func run(t *testing.T, st *state.State, m *statetest.Model, shop Shop) string {
	reply, err := desk(m.Ask, shop).Run(t.Context(), st)
	require.NoError(t, err)
	return reply
}

// 1. A model that answers by a script stands in for a provider. It fails the
// test if Anthropic would refuse a request, and if a reply is left.
func TestRefund(t *testing.T) {
	st := newDesk()
	m := statetest.NewModel(t, provider.Anthropic,
		statetest.Call("refund", `{"amount":129.9}`).To("billing").Reads("broken"),
		statetest.Say("Refunded.").To("billing"),
	)
	require.Equal(t, "Refunded.", run(t, st, m, open))
	require.Equal(t, 129.9, Refunded.GetOr(st, 0))
}

// 2. Providers are overloaded, and connections break. In a bubble, waiting costs
// no time.
func TestAnOverloadedProviderIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := statetest.NewModel(t, provider.OpenAI,
			statetest.Status(529, `{"error":{"type":"overloaded_error"}}`),
			statetest.Fail(io.ErrUnexpectedEOF),
			statetest.Say("I need the number of your order."),
		)
		run(t, newDesk(), m, open)
		require.Len(t, m.Requests(), 3)
	})
}

// 3. A shop whose answer is lost is asked again with the same key, so that it
// refunds once.
func TestALostAnswerOfTheShop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := statetest.NewModel(t, provider.Gemini, statetest.Call("refund", `{"amount":129.9}`), statetest.Say("Refunded."))
		keys := map[string]int{}
		lossy := func(_ context.Context, _, key string, _ any) (state.JSON, error) {
			if keys[key]++; keys[key] == 1 {
				return "", io.ErrUnexpectedEOF
			}
			return `{"ok":true}`, nil
		}
		st := newDesk()
		run(t, st, m, lossy)
		require.Equal(t, []int{2}, slices.Collect(maps.Values(keys)), "one key, asked twice")
		require.Equal(t, 129.9, Refunded.GetOr(st, 0))
	})
}

// 4. A crash.Test kills the process before and after each thing that it does outside of
// itself: each write, each request to the model, each refund. Others go on, and
// what is left must be what an undisturbed run leaves.
func TestRefundSurvivesCrashes(t *testing.T) {
	crash.Test{
		Open: func(p *crash.Process) *workspace.Options {
			m := p.Model(provider.OpenAI, statetest.Call("refund", `{"amount":129.9}`), statetest.Say("Refunded."))
			return &workspace.Options{Schema: Desk, Run: workspace.Loop(desk(m.Ask, p.Effect))}
		},
		Setup:    func(w *workspace.Workspace) error { return Order.Set(w.State(), "#W1") },
		Messages: []workspace.Message{{ID: "1", Content: state.UserText("The keyboard is broken.")}},
		Save:     "testdata/workspaces/v1.0",
	}.Run(t)
}

// 5. Resume goes on with what released versions have stored. Version 1.0 was
// saved by the test above, with STATETEST_UPDATE=1.
func TestVersionsResume(t *testing.T) {
	crash.Resume(t, "testdata/workspaces/*/*.json", func(p *crash.Process) *workspace.Options {
		m := p.Model(provider.OpenAI, statetest.Say("Done.").Times(-1))
		return &workspace.Options{Schema: Desk, Run: workspace.Loop(desk(m.Ask, p.Effect))}
	}, workspace.Message{ID: "next", Content: state.UserText("And now?")})
}

// 6. What a run leaves is compared as values, as a text and by who wrote it.
func TestWhatARefundLeaves(t *testing.T) {
	st := newDesk()
	m := statetest.NewModel(t, provider.OpenAI, statetest.Call("refund", `{"amount":129.9}`), statetest.Say("Refunded."))
	before := st.Version()
	run(t, st, m, open)
	statetest.Equal(t, 129.9, Refunded.GetOr(st, 0))
	statetest.Golden(t, "refund.txt", statetest.Transcript(state.Messages.GetOr(st, nil)))
	require.Contains(t, statetest.Journal(st, before, "refunded"), "billing set refunded call_1")
}

// 7. No request, and nothing that the agent reads, tells the card.
func TestTheModelIsNotToldTheCard(t *testing.T) {
	st := newDesk()
	m := statetest.NewModel(t, provider.OpenAI, statetest.Say("Which order?"))
	run(t, st, m, open)
	statetest.NoLeak(t, st, "billing", m.Sent("billing"), st.As("billing").Describe())
}

// 8. The topics are searched at once, and none has to be the first.
func TestResearchIsTheSameInAnyOrder(t *testing.T) {
	statetest.Orders(t, 3, func(t *testing.T, o *statetest.Order) *state.State {
		st, topics := newDesk(), []string{"orders", "warranty", "refunds"}
		require.NoError(t, research(st, topics, func(i int) string {
			o.Wait(i)
			return topics[i]
		}))
		return st
	})
}
