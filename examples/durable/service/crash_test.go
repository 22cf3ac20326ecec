package main

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// refunds are what the bank of a case has refunded, in euros by order.
var refunds = &state.Field[map[string]float64]{Name: "refunds", Owner: "ai", Read: state.Public, Handler: state.MergeMap[map[string]float64]()}

type payment struct {
	Order  string  `json:"order"`
	Amount float64 `json:"amount"`
}

// open makes the options of a service such as this one, whose model has a script and
// whose bank may be away.
func open(p *crash.Process, replies ...statetest.Reply) *workspace.Options {
	client := &http.Client{Transport: &wire.Transport{Base: p.Model(provider.OpenAI, replies...)}}
	sdk := openai.NewClient(option.WithHTTPClient(client), option.WithAPIKey("key"), option.WithBaseURL("http://model/v1"), option.WithMaxRetries(0))
	request := openai.ChatCompletionNewParams{Model: "gpt-5.4-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief.")}}
	ask := func(ctx context.Context, _ *loop.Turn) error {
		answer := sdk.Chat.Completions.NewStreaming(ctx, request)
		for answer.Next() {
		}
		return answer.Err()
	}
	refund := tool.Must(tool.New("refund", "Refund an order.", func(ctx context.Context, in payment) (map[string]float64, error) {
		call, _ := tool.CallOf(ctx)
		_, err := p.Effect(ctx, "refund", call.Key, in)
		for err != nil && ctx.Err() == nil { // what has come of it is not known
			time.Sleep(time.Second)
			_, err = p.Effect(ctx, "refund", call.Key, in)
		}
		return map[string]float64{in.Order: in.Amount}, err
	}, tool.To(refunds, ""), tool.NeedsApproval(func(_ context.Context, in payment) (string, bool) { return "much", in.Amount > 100 })))
	return &workspace.Options{
		Schema: state.MustSchema(state.Team{"ai": {"eve"}}, refunds),
		Run:    workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"ai": {Ask: ask, Tools: []*tool.Tool{refund}}}}),
	}
}

// inFile opens the file of a case once more.
func inFile(t testing.TB) func() store.Store {
	path := filepath.Join(t.TempDir(), "desk.db")
	return func() store.Store {
		db, err := sqlitestore.Open(t.Context(), path, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
}

// The processes of the service die at each point, in memory and in a file.
func TestSurvivesCrashes(t *testing.T) {
	refund := func() statetest.Reply { return statetest.Call("refund", `{"order":"#W1","amount":120}`) }
	ask := workspace.Message{ID: "1", Content: state.UserText("Refund my order #W1.")}
	check := func(want map[string]float64) func(testing.TB, *workspace.View) {
		return func(t testing.TB, v *workspace.View) {
			require.Equal(t, want, refunds.GetOr(v.State(), nil))
			require.Empty(t, v.Suspended())
		}
	}
	for name, test := range map[string]crash.Test{
		"at once": {
			Open: func(p *crash.Process) *workspace.Options {
				return open(p, statetest.Call("refund", `{"order":"#W1","amount":80}`), statetest.Say("It is refunded."))
			},
			Messages: []workspace.Message{ask},
			Check:    check(map[string]float64{"#W1": 80}),
		},
		"approved": {
			Open: func(p *crash.Process) *workspace.Options {
				return open(p, refund(), statetest.Say("A colleague looks at it."), statetest.Say("It is refunded."))
			},
			Messages: []workspace.Message{ask, {ID: "2", Content: state.UserText("Are you there?")}, {ID: "3", Decisions: []tool.Decision{tool.Approve("call_1")}, Agent: "eve"}},
			Check:    check(map[string]float64{"#W1": 120}),
		},
		"refused, by a model that was away": {
			Open: func(p *crash.Process) *workspace.Options {
				away := statetest.Status(http.StatusServiceUnavailable, `{}`)
				return open(p, away, refund(), statetest.Say("I may").Cut(1), statetest.Say("I may not refund it."))
			},
			Messages: []workspace.Message{ask, {ID: "2", Decisions: []tool.Decision{tool.Refuse("call_1", "")}, Agent: "eve"}},
			Check:    check(nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run("memory", test.Run)
			test.OpenStore, test.Pairs = inFile, -1
			t.Run("sqlite", test.Run)
		})
	}
}
