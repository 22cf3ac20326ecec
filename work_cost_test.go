package state_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/testkit"
)

// What costs in proportion to a text that others write. Sorting may take longer,
// so that package slices is not counted.
func TestWorkIsLinear(t *testing.T) {
	effort.Cost(t)
	names := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	schema := func(format string, parts ...string) func(*testing.T, int) {
		return func(t *testing.T, n int) {
			args := make([]any, len(parts))
			for i, part := range parts {
				args[i] = names(n, part)
			}
			s, err := state.ParseSchema(fmt.Appendf(nil, format, args...))
			require.NoError(t, err)
			text, err := json.Marshal(s)
			require.NoError(t, err)
			_, err = state.ParseSchema(text)
			require.NoError(t, err)
		}
	}
	refused := func(format string, part string) func(*testing.T, int) {
		return func(t *testing.T, n int) {
			_, err := state.ParseSchema(fmt.Appendf(nil, format, names(n, part)))
			require.Error(t, err)
		}
	}
	// results yields results with n calls in all.
	results := func(n, each int) iter.Seq[state.InferenceResult] {
		return func(yield func(state.InferenceResult) bool) {
			calls := slices.Repeat([]state.ToolCall{{Name: "f"}}, n)
			for calls := range slices.Chunk(calls, each) {
				if !yield(state.InferenceResult{Output: []state.Message{state.ToolCalls(calls...)}}) {
					return
				}
			}
		}
	}
	testkit.Work{
		Packages: "deps,strings,bytes",
		Size:     500, More: 16,
		Cases: map[string]func(*testing.T, int){
			"a scope of many agents":     schema(`{"fields":[{"name":"f","type":"string","owner":"a0","read":[%s],"write":["a1"]}],"team":{"a":[%s]}}`, `"a%d"`, `"a%d"`),
			"a team of many leaders":     schema(`{"fields":[],"team":{%s}}`, `"a%[1]d":["b%[1]d"]`),
			"a team of many agents":      schema(`{"fields":[],"team":{"a":[%s]}}`, `"b%d"`),
			"a field of many names":      schema(`{"fields":[{"name":"f","type":"string","was":[%s]}]}`, `"a%d"`),
			"many fields":                schema(`{"fields":[%s],"limits":{"keys":100000}}`, `{"name":"f%d","type":"string"}`),
			"a schema of other members":  refused(`{"fields":[],%s}`, `"a%d":1`),
			"a field of other members":   refused(`{"fields":[{"name":"f","type":"string",%s}]}`, `"a%d":1`),
			"fields of unknown types":    refused(`{"fields":[%s]}`, `{"name":"f%[1]d","type":"t%[1]d"}`),
			"fields of unknown handlers": refused(`{"fields":[%s]}`, `{"name":"f%[1]d","type":"string","handler":"h%[1]d"}`),
			"pending calls of one name": func(t *testing.T, n int) {
				st := state.New(nil)
				for r := range results(n, 250) {
					require.NoError(t, st.History().Append(r))
					require.NoError(t, st.History().Push(r))
				}
				require.Len(t, st.History().Pending(), 2*n)
				require.Len(t, st.History().Pending(state.ToolCall{Name: "f"}), 2*n-1)
			},
			"suspended calls of one name": func(t *testing.T, n int) {
				st := state.New(nil)
				for r := range results(n, 1) {
					require.NoError(t, st.History().Push(r))
				}
				suspended := slices.Repeat([]state.ToolCall{{Name: "f"}}, n-1)
				require.Len(t, st.History().Pending(suspended...), 1)
			},
			"results of few calls that are answered as they come": func(t *testing.T, n int) {
				st := state.New(nil)
				for r := range results(n, 2) {
					require.NoError(t, st.History().Append(r))
					for range 2 {
						require.NoError(t, st.History().Answer(state.ToolResult(state.ToolCall{Name: "f"}, "1")))
					}
				}
				require.Empty(t, st.History().Pending())
			},
		},
	}.Linear(t)
}
