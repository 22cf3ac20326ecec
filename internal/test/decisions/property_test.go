package decisions_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// office is a conversation in which a model asks for payments, with ids as it
// likes, and a person decides about the cards.
type office struct {
	bank  *bank
	db    *store.Memory
	m     *workspace.Manager
	says  []state.ToolCall  // what the model says to the next message of the user
	cards map[string]string // who the money is for, by the keys that were shown
	paid  []string          // that must be paid, in their order
	n     int
}

func (o *office) open(t *rapid.T) {
	if o.m != nil {
		require.NoError(t, o.m.Close())
	}
	ask := func(ctx context.Context, turn *loop.Turn) error {
		var said state.Message = state.AssistantText("done")
		if o.says != nil {
			said, o.says = state.ToolCalls(o.says...), nil
		}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{said}})
	}
	var err error
	o.m, err = workspace.Open(context.Background(), o.db, &workspace.Options{
		Schema: o.bank.schema,
		Run:    workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"desk": {Ask: ask, Tools: []*tool.Tool{o.bank.tool()}}}}),
	})
	require.NoError(t, err)
}

func (o *office) handle(t *rapid.T, msg workspace.Message) {
	_, err := o.m.Handle(context.Background(), "ann", msg)
	require.NoError(t, err)
}

// waiting returns the cards, and requires that each is still for the one whom it
// was for when it was shown first.
func (o *office) waiting(t *rapid.T) []workspace.Suspended {
	v, err := o.m.View(context.Background(), "ann")
	require.NoError(t, err)
	cards := v.Suspended()
	for _, c := range cards {
		was, shown := o.cards[c.Key]
		require.True(t, !shown || was == c.Reason, "card %s was %q, and is %q", c.Key, was, c.Reason)
		require.Contains(t, string(c.Input), `"`+c.Reason[len("money for "):]+`"`)
		o.cards[c.Key] = c.Reason
	}
	return cards
}

// Whatever ids a model gives its calls, a decision hits the call whose card was
// shown, once, and nothing else is paid.
func TestDecisionsInRandomConversations(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		o := &office{bank: newBank(), db: store.NewMemory(), cards: map[string]string{}}
		o.open(t)
		defer func() { require.NoError(t, o.m.Close()) }()
		decided := []string{}
		t.Repeat(map[string]func(*rapid.T){
			"the model asks": func(t *rapid.T) {
				if len(o.waiting(t)) > 40 {
					t.Skip("a workspace has at most 64")
				}
				for range rapid.IntRange(1, 3).Draw(t, "calls") {
					o.n++
					id := rapid.SampledFrom([]string{"", "pay", "pay:0", "c1", fmt.Sprint("own", o.n)}).Draw(t, "id")
					o.says = append(o.says, pay(id, fmt.Sprint("user", o.n)))
				}
				o.handle(t, say("Pay."))
			},
			"the user speaks": func(t *rapid.T) { o.handle(t, say("Hello?")) },
			"somebody decides": func(t *rapid.T) {
				cards := o.waiting(t)
				if len(cards) == 0 {
					t.Skip("nothing waits")
				}
				var msg workspace.Message
				var paid []string
				for _, c := range cards {
					to := c.Reason[len("money for "):]
					switch rapid.SampledFrom([]string{"", "", "approve", "edit", "refuse", "answer"}).Draw(t, "decision") {
					case "approve":
						msg.Decisions, paid = append(msg.Decisions, tool.Approve(c.Key)), append(paid, to+" 500 boss")
					case "edit":
						input := state.JSON(fmt.Sprintf(`{"to":"%s","amount":7}`, to))
						msg.Decisions, paid = append(msg.Decisions, tool.ApproveWith(c.Key, input)), append(paid, to+" 7 boss")
					case "refuse":
						msg.Decisions = append(msg.Decisions, tool.Refuse(c.Key, "no"))
					case "answer":
						msg.Decisions = append(msg.Decisions, tool.AnswerWith(c.Key, `"by hand"`))
					}
				}
				if msg.Decisions == nil {
					t.Skip("nothing is decided")
				}
				if msg.Agent = "boss"; slices.ContainsFunc(msg.Decisions, func(d tool.Decision) bool { return d.Kind == tool.DecisionAnswer }) {
					msg.Agent = "" // the host
				}
				for i, text := range paid {
					if msg.Agent == "" {
						paid[i] = text[:len(text)-len("boss")]
					}
				}
				o.handle(t, msg)
				o.paid = append(o.paid, paid...)
				for _, d := range msg.Decisions {
					decided = append(decided, d.Key)
				}
			},
			"somebody decides again": func(t *rapid.T) {
				if len(decided) == 0 {
					t.Skip("nothing was decided")
				}
				_, err := o.m.Handle(context.Background(), "ann", decide(tool.Approve(rapid.SampledFrom(decided).Draw(t, "key"))))
				require.Error(t, err)
			},
			"another process": func(t *rapid.T) { o.open(t) },
			"the workspace is emptied": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "seldom") > 0 {
					t.Skip("seldom")
				}
				for _, c := range o.waiting(t) {
					decided = append(decided, c.Key)
				}
				_, err := o.m.Reset(context.Background(), "ann")
				require.NoError(t, err)
			},
			"": func(t *rapid.T) {
				want, got := slices.Sorted(slices.Values(o.paid)), slices.Sorted(slices.Values(o.bank.paid))
				require.Equal(t, want, got)
				require.Equal(t, len(o.bank.paid), o.bank.calls, "no call is made twice")
				for _, c := range o.waiting(t) {
					require.NotContains(t, decided, c.Key)
				}
			},
		})
	})
}
