package main

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// open makes the options of the service, whose model has a script and whose bank
// may be away.
func open(p *crash.Process, replies ...statetest.Reply) *workspace.Options {
	m := p.Model(provider.OpenAI, replies...)
	return options(&http.Client{Transport: &wire.Transport{Base: m}}, func(ctx context.Context, key string, in order) error {
		_, err := p.Effect(ctx, "refund", key, in)
		for err != nil && ctx.Err() == nil { // what has come of it is not known
			time.Sleep(time.Second)
			_, err = p.Effect(ctx, "refund", key, in)
		}
		return err
	})
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
	t.Setenv("OPENAI_API_KEY", "key")
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
