package otelstate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/otelstate"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// The number of series does not grow with users, messages, calls and names that
// the model makes up.
func TestSeriesAreBounded(t *testing.T) {
	synctest.Test(t, testSeries) // no time passes, so that there is no heartbeat
}

func testSeries(t *testing.T) {
	e := newTelemetry(t, otelstate.Options{Workflow: "desk"})
	read := tool.Must(tool.New("read", "", func(context.Context, struct{}) (string, error) { return "", nil }))
	m := open(t, store.NewMemory(), workspace.Options{
		Tracer: e.Tracer, WhenBusy: workspace.BusyReject, KeepMessages: 2, KeepResults: 2,
		Run: func(ctx context.Context, run *workspace.Run) error {
			id := run.Message().ID
			must(tool.Run(ctx, run.State(), []*tool.Tool{read}, []state.ToolCall{
				{ID: id, Name: "read", Input: `{}`}, {ID: id, Name: "made-up-" + id, Input: `{}`},
			}))
			_ = run.State().History().Append(state.InferenceResult{ID: id, Raw: strings.Replace(chatResponse, "c1", id, 1)})
			if len(id)%2 == 0 {
				return errors.New("broken " + id)
			}
			return nil
		},
	})
	count := func(from, to int) []string {
		for i := from; i < to; i++ {
			_, _ = m.Handle(t.Context(), fmt.Sprintf("user-%d", i), text(fmt.Sprintf("id-%d", i)))
		}
		series := e.series(t)
		for i, s := range series {
			series[i] = s[:strings.LastIndex(s, " ")]
			require.NotContains(t, s, "user-")
			require.NotContains(t, s, "id-")
			require.NotContains(t, s, "made-up")
		}
		slices.Sort(series)
		return series
	}
	few := count(0, 20)
	require.Equal(t, few, count(20, 500))
	require.Less(t, len(few), 60)
	require.Contains(t, strings.Join(few, "\n"), "tool.name=_OTHER")
}

// The number of models is bounded as well, although a gateway may write anything
// into the model of an answer. The spans have their names.
func TestModelsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newTelemetry(t, otelstate.Options{})
		m := open(t, store.NewMemory(), workspace.Options{
			Tracer: e.Tracer,
			Run: func(_ context.Context, run *workspace.Run) error {
				now := time.Now()
				return run.State().History().Append(state.InferenceResult{
					Raw:       fmt.Sprintf(`{"object":"chat.completion","model":"made-%s","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`, run.Message().ID),
					StartedAt: now, CreatedAt: now.Add(1),
				})
			},
		})
		for i := range 300 {
			_, err := m.Handle(t.Context(), "ann", text(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		models := map[string]bool{}
		for _, s := range e.series(t) {
			if _, model, ok := strings.Cut(s, "response.model="); ok {
				models[strings.FieldsFunc(model, func(r rune) bool { return strings.ContainsRune(" ,]}", r) })[0]] = true
			}
		}
		require.Len(t, models, 101)
		require.True(t, models["_OTHER"])
		var last bool
		for _, s := range e.spans() {
			last = last || s.Name() == "chat made-299"
		}
		require.True(t, last)
	})
}
