package loop_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// caller is an agent that calls a tool in each answer, n times, and then has done.
// Each request and its answer cost the given usage.
func caller(asked *int, n int, u state.Usage) loop.Agent {
	look := tool.Must(tool.New("look", "Looks.", func(context.Context, struct {
		At int `json:"at"`
	}) (string, error) {
		return "nothing", nil
	}))
	return loop.Agent{Tools: []*tool.Tool{look}, Ask: func(ctx context.Context, turn *loop.Turn) error {
		if *asked++; *asked%(n+1) == 0 {
			return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("Done.")}, Usage: u})
		}
		c := state.ToolCall{ID: fmt.Sprint("c", *asked), Name: "look", Input: state.JSON(fmt.Sprintf(`{"at":%d}`, *asked))}
		return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("I look."), state.ToolCalls(c)}, Usage: u})
	}}
}

// A run ends before the request that would pass a limit. Each row is a model that
// would be asked 10 times, at 100 tokens each.
func TestBudgetOfARun(t *testing.T) {
	hundred := state.Usage{Input: 90, Output: 10}
	for _, row := range []struct {
		name   string
		budget loop.Budget
		usage  state.Usage
		asked  int
		word   string
	}{
		{"no budget", loop.Budget{}, hundred, 10, ""},
		{"enough", loop.Budget{Tokens: 2_000, Requests: 10}, hundred, 10, ""},
		{"requests", loop.Budget{Requests: 4}, hundred, 4, "requests"},
		{"one request", loop.Budget{Requests: 1}, hundred, 1, "requests"},
		{"tokens", loop.Budget{Tokens: 350}, hundred, 3, "tokens"}, // 300, and the next would have more than 100
		{"the first request", loop.Budget{Tokens: 3}, hundred, 0, "tokens"},
		{"tokens that nobody reports", loop.Budget{Tokens: 300}, state.Usage{}, 3, "tokens"},
	} {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", row.name, durable), func(t *testing.T) {
				asked := 0
				l := &loop.Loop{Budget: row.budget, Agents: map[string]loop.Agent{"desk": caller(&asked, 9, row.usage)}}
				if durable {
					m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Run: workspace.Loop(l)})
					require.NoError(t, err)
					out, err := m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("Look!")})
					require.NoError(t, err)
					require.Equal(t, workspace.StatusDone, out.Status)
					require.Equal(t, row.word != "", out.Stop == state.StopBudget)
					view, err := m.View(t.Context(), "ann")
					require.NoError(t, err)
					require.Equal(t, out.Stop, view.Ended[0].Stop)
					require.Empty(t, view.Suspended())
					require.NoError(t, m.Close())
				} else {
					st := state.New(nil)
					require.NoError(t, st.UserSays("Look!"))
					reply, err := l.Run(t.Context(), st)
					var stop *loop.StopError
					if require.Equal(t, row.word != "", errors.As(err, &stop)); row.word != "" {
						require.ErrorIs(t, err, loop.ErrStopped)
						require.Equal(t, loop.StopError{Agent: "desk", Stop: state.StopBudget, Word: row.word, Reply: reply}, loop.StopError{
							Agent: stop.Agent, Stop: stop.Stop, Word: stop.Word, Reply: stop.Reply})
						require.Equal(t, row.asked > 0, reply == "I look.")
					}
					require.Empty(t, st.History().Pending(), "each call has a result")
				}
				require.Equal(t, row.asked, asked)
			})
		}
	}
}

// What a user has spent in a period is a field: it survives a restart, all threads
// count, and the next period begins anew.
func TestBudgetOfAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spent := &state.Field[loop.Spent]{Name: "spent", Handler: loop.AddSpent(), Shared: true}
		db, asked := store.NewMemory(), 0
		l := &loop.Loop{
			Budget: loop.Budget{PeriodTokens: 500, PeriodRequests: 5, Spent: spent},
			Agents: map[string]loop.Agent{"desk": caller(&asked, 1, state.Usage{Input: 9, Output: 1})},
		}
		var m *workspace.Manager
		restart := func() {
			if m != nil {
				require.NoError(t, m.Close())
			}
			var err error
			m, err = workspace.Open(t.Context(), db, &workspace.Options{Schema: state.MustSchema(spent), Run: workspace.Loop(l)})
			require.NoError(t, err)
		}
		say := func(thread string) state.Stop {
			out, err := m.Handle(t.Context(), workspace.Thread("ann", thread), workspace.Message{Content: state.UserText("Look!")})
			require.NoError(t, err)
			return out.Stop
		}
		of := func(thread string) loop.Spent {
			v, err := m.View(t.Context(), workspace.Thread("ann", thread))
			require.NoError(t, err)
			return spent.GetOr(v.State(), loop.Spent{})
		}
		restart()
		day := time.Now().UTC().Truncate(24 * time.Hour)
		time.Sleep(time.Hour)
		require.Empty(t, say("a"))
		require.Equal(t, loop.Spent{Since: day, Tokens: 20, Requests: 2}, of("a"))
		restart()
		time.Sleep(time.Hour)
		require.Empty(t, say("b"))
		require.Equal(t, loop.Spent{Since: day, Tokens: 40, Requests: 4}, of("a"), "all threads count")
		require.Equal(t, state.StopBudget, say("a"), "one request of two")
		require.Equal(t, 5, of("b").Requests)
		restart()
		require.Equal(t, state.StopBudget, say("b"), "none is left")
		require.Equal(t, 5, asked)

		out, err := m.Handle(t.Context(), workspace.Thread("ben", "a"), workspace.Message{Content: state.UserText("Look!")})
		require.NoError(t, err)
		require.Equal(t, workspace.StatusDone, out.Status, "another user")
		require.NotEqual(t, state.StopBudget, out.Stop)

		time.Sleep(24 * time.Hour)
		require.Empty(t, say("b"), "the next day")
		require.Equal(t, loop.Spent{Since: day.Add(24 * time.Hour), Tokens: 20, Requests: 2}, of("a"))
		require.NoError(t, m.Close())
	})
}

// What is counted of a period that is over does not come into the next one.
func TestAddSpent(t *testing.T) {
	spent := &state.Field[loop.Spent]{Name: "spent", Handler: loop.AddSpent()}
	st := state.New(state.MustSchema(spent))
	monday := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	a, b := st.Fork(), st.Fork()
	for _, s := range []struct {
		on    *state.State
		spent loop.Spent
	}{{a, loop.Spent{Since: monday, Tokens: 1, Requests: 1}}, {b, loop.Spent{Since: monday, Tokens: 2, Requests: 1}}} {
		require.NoError(t, spent.Set(s.on, s.spent))
	}
	require.NoError(t, st.Join(a, b))
	require.Equal(t, loop.Spent{Since: monday, Tokens: 3, Requests: 2}, spent.GetOr(st, loop.Spent{}))
	tuesday := loop.Spent{Since: monday.Add(24 * time.Hour), Tokens: 10, Requests: 1}
	require.NoError(t, spent.Set(st, tuesday))
	require.NoError(t, spent.Set(st, loop.Spent{Since: monday, Tokens: 5, Requests: 1}))
	require.Equal(t, tuesday, spent.GetOr(st, loop.Spent{}))
}

// A budget that cannot be kept is an error before a model is asked.
func TestBudgetIsChecked(t *testing.T) {
	spent := &state.Field[loop.Spent]{Name: "spent", Handler: loop.AddSpent()}
	plain := &state.Field[loop.Spent]{Name: "spent"}
	team := state.New(state.MustSchema(state.Team{"desk": nil}, spent)).As("desk")
	for _, row := range []struct {
		name   string
		st     *state.State
		budget loop.Budget
		want   string
	}{
		{"a negative number", nil, loop.Budget{Tokens: -1}, "negative"},
		{"a negative period", nil, loop.Budget{Period: -1}, "negative"},
		{"a period that nobody counts", nil, loop.Budget{PeriodTokens: 1}, "without Spent"},
		{"a field without the handler", state.New(state.MustSchema(plain)), loop.Budget{PeriodTokens: 1, Spent: plain}, "loop.AddSpent"},
		{"a schema without the handler", state.New(state.MustSchema(plain)), loop.Budget{PeriodTokens: 1, Spent: spent}, "want replace"},
		{"a schema without the field", state.New(state.MustSchema(state.Limits{})), loop.Budget{PeriodTokens: 1, Spent: spent}, "unknown field"},
		{"a handle that may not count", team, loop.Budget{PeriodTokens: 1, Spent: spent}, "access denied"},
	} {
		t.Run(row.name, func(t *testing.T) {
			st, asked := row.st, 0
			if st == nil {
				st = state.New(nil)
			}
			require.NoError(t, st.UserSays("Look!"))
			_, err := (&loop.Loop{Budget: row.budget, Agents: map[string]loop.Agent{"": caller(&asked, 0, state.Usage{})}}).Run(t.Context(), st)
			require.ErrorIs(t, err, state.ErrInvalid)
			require.ErrorContains(t, err, row.want)
			require.Zero(t, asked)
		})
	}
}

// What an agent spends that a tool calls counts for the Loop that has called it, also
// if the agent has a Budget of its own.
func TestBudgetOfAnAgentThatIsATool(t *testing.T) {
	for _, own := range []loop.Budget{{}, {Requests: 100}} {
		inner, outer := 0, 0
		expert := &loop.Loop{Budget: own, Agents: map[string]loop.Agent{"expert": caller(&inner, 9, state.Usage{Input: 9, Output: 1})}}
		ask := tool.Must(tool.NewStateful("ask", "Asks the expert.", func(ctx context.Context, st *state.State, _ struct{}) (string, error) {
			fork := st.Fork()
			if err := fork.UserSays("Look!"); err != nil {
				return "", err
			}
			return expert.Run(ctx, fork)
		}))
		desk := &loop.Loop{Budget: loop.Budget{Requests: 4}, Agents: map[string]loop.Agent{"desk": {Tools: []*tool.Tool{ask}, Ask: func(ctx context.Context, turn *loop.Turn) error {
			outer++
			return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.ToolCalls(state.ToolCall{ID: fmt.Sprint(outer), Name: "ask", Input: "{}"})}})
		}}}}
		st := state.New(nil)
		require.NoError(t, st.UserSays("Look!"))
		_, err := desk.Run(t.Context(), st)
		var stop *loop.StopError
		require.ErrorAs(t, err, &stop)
		require.Equal(t, state.StopBudget, stop.Stop)
		require.Equal(t, "desk", stop.Agent)
		require.Equal(t, []int{1, 3}, []int{outer, inner})
		said := state.Messages.GetOr(st, nil)
		require.Contains(t, said[len(said)-1].Text(), "budget", "the outer model would read why")
	}
}

// A run that another process goes on with has spent what the first one has.
func TestBudgetOfARunThatIsTakenOver(t *testing.T) {
	for _, budget := range []loop.Budget{{Requests: 4}, {Tokens: 450}} {
		synctest.Test(t, func(t *testing.T) {
			asked, dies := 0, true
			desk := caller(&asked, 9, state.Usage{Input: 90, Output: 10})
			ask := desk.Ask
			desk.Ask = func(ctx context.Context, turn *loop.Turn) error {
				if asked == 2 && dies {
					<-ctx.Done()
					return context.Cause(ctx)
				}
				return ask(ctx, turn)
			}
			db, opts := store.NewMemory(), &workspace.Options{Run: workspace.Loop(&loop.Loop{Budget: budget, Agents: map[string]loop.Agent{"desk": desk}})}
			m, err := workspace.Open(t.Context(), db, opts)
			require.NoError(t, err)
			_, err = m.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("Look!")})
			require.NoError(t, err)
			synctest.Wait()
			require.Error(t, m.Close())
			require.Equal(t, 2, asked)

			dies = false
			m, err = workspace.Open(t.Context(), db, opts)
			require.NoError(t, err)
			out, err := m.Await(t.Context(), "ann", "1")
			require.NoError(t, err)
			require.Equal(t, state.StopBudget, out.Stop)
			require.Equal(t, 4, asked)
			require.NoError(t, m.Close())
		})
	}
}
