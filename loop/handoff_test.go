package loop_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/route"
	"github.com/agentstate/state/tool"
)

type transferTo struct {
	To string `json:"to"`
}

// Each row is an answer of the agent triage with calls that write the field of the
// route.
func TestCallsOfOneAnswerThatHandOverToDifferentAgents(t *testing.T) {
	next := &state.Field[string]{Name: "next"}
	visits := &state.Field[int]{Name: "visits", Handler: state.Sum[int]()}
	schema := state.MustSchema(next, visits)
	output := tool.Must(tool.New("transfer", "Hands over.", func(_ context.Context, in transferTo) (string, error) {
		return in.To, nil
	}, tool.To(next, "")))
	stateful := tool.Must(tool.NewStateful("transfer", "Hands over.", func(_ context.Context, st *state.State, in transferTo) (string, error) {
		if in.To == "nobody" {
			return "", errors.New("no such agent")
		}
		return "transferred to " + in.To, errors.Join(visits.Set(st, 1), next.Set(st, in.To))
	}))
	const refused = `error: tool "transfer": not followed: calls of one answer hand over to "billing" and to "tech"`
	for _, row := range []struct {
		name    string
		to      []string
		results []string // of the stateful tool
		next    string
	}{
		{"different", []string{"billing", "tech"}, []string{refused, refused}, ""},
		{"equal", []string{"billing", "billing"}, []string{"transferred to billing", "transferred to billing"}, "billing"},
		{"one", []string{"tech"}, []string{"transferred to tech"}, "tech"},
		{"one, and nobody", []string{"tech", "nobody"}, []string{"transferred to tech", `error: tool "transfer": no such agent`}, "tech"},
		{"to where it is", []string{"tech", "triage"}, []string{
			strings.Replace(refused, `"billing" and to "tech"`, `"tech" and to "triage"`, 1),
			strings.Replace(refused, `"billing" and to "tech"`, `"tech" and to "triage"`, 1),
		}, ""},
	} {
		for _, way := range []struct {
			name string
			tool *tool.Tool
			one  bool // the calls are made one by one, as frameworks do
		}{{"stateful", stateful, false}, {"output", output, false}, {"one by one", stateful, true}} {
			if way.tool == output && row.name != "different" && row.name != "equal" {
				continue
			}
			t.Run(row.name+"/"+way.name, func(t *testing.T) {
				asked := []string{}
				agent := func(name string) loop.Agent {
					return loop.Agent{Tools: []*tool.Tool{way.tool}, Ask: func(ctx context.Context, turn *loop.Turn) error {
						if asked = append(asked, name); len(asked) > 1 {
							return turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.AssistantText("Done.")}})
						}
						var calls []state.ToolCall
						for i, to := range row.to {
							calls = append(calls, state.ToolCall{ID: fmt.Sprint("c", i), Name: "transfer", Input: state.JSON(fmt.Sprintf(`{"to":%q}`, to))})
						}
						err := turn.Said(ctx, state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}})
						for _, c := range calls {
							if way.one && err == nil {
								_, err = turn.Call(ctx, c)
							}
						}
						return err
					}}
				}
				router := route.Must(route.New(
					route.When(route.Eq(next, "billing"), "billing"), route.When(route.Eq(next, "tech"), "tech"), route.Otherwise("triage")))
				l := &loop.Loop{
					Agents: map[string]loop.Agent{"triage": agent("triage"), "billing": agent("billing"), "tech": agent("tech")},
					Route: func(st *state.State) (string, bool) {
						msgs := state.Messages.GetOr(st, nil)
						if msgs[len(msgs)-1].Text() == "Done." {
							return "", false
						}
						return router.Next(st)
					},
				}
				st := state.New(schema)
				require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("Help!")}))
				_, err := l.Run(t.Context(), st)
				require.NoError(t, err)
				require.Equal(t, row.next, next.GetOr(st, ""))
				require.Equal(t, []string{"triage", cmp.Or(row.next, "triage")}, asked)
				var results []string
				for _, m := range state.Messages.GetOr(st, nil) {
					if r, ok := m.(state.ToolResultMessage); ok {
						text := r.Text()
						if r.IsError() {
							text = "error: " + text
						}
						results = append(results, text)
					}
				}
				if way.tool == output && row.next != "" {
					require.Equal(t, []string{"billing", "billing"}, results)
					return
				}
				require.Equal(t, row.results, results)
			})
		}
	}
}
