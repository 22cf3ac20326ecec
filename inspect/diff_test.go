package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

// led is a change that led to a difference.
type led struct {
	Version uint64
	Agent   string
	Cause   string
}

type difference struct {
	Part, Name string
	Changes    []led
}

type comparison struct {
	Fields, Others []difference
	Unread         uint64
}

func TestComparisonsSayWhoChangedTheConversationAndTheMemory(t *testing.T) {
	f := newFixture(t, 0)
	f.update(t, "erin", func(st *state.State) error {
		return errors.Join(
			cost.Set(st, 1), state.Messages.Set(st.As("search").WithCause("call_8"), []state.Message{state.AssistantText("Hello.")}),
		)
	})
	require.NoError(t, f.manager.Update(t.Context(), "erin", func(w *workspace.Workspace) error { return w.Memory().Set("name", "Erin") }))
	require.NoError(t, f.manager.Update(t.Context(), "erin", func(w *workspace.Workspace) error {
		return errors.Join(w.Memory().Set("name", "Erin B."), w.SetSettings(func(s *workspace.Settings) { s.Platform = "web" }))
	}))
	h := f.handler(t, nil)
	var got comparison
	jsonOf(t, h, "/workspace/diff?user=erin&from=0&to=3", &got)
	search := []led{{1, "search", "call_8"}}
	want := []difference{
		{"message", "1", search},
		{"conversation", "entries", search},
		{"memory", "name", []led{{Version: 3}, {Version: 2}}},
		{"setting", "platform", []led{{Version: 3}}},
	}
	for _, d := range want {
		i := slices.IndexFunc(got.Others, func(o difference) bool { return o.Part == d.Part && o.Name == d.Name })
		require.GreaterOrEqual(t, i, 0, "%s in %v", d.Name, got.Others)
		require.Equal(t, d, got.Others[i])
	}
	require.Zero(t, got.Unread)
	page := get(t, h, "/workspace/diff?user=erin&from=0&to=3").body
	require.Contains(t, page, "call_8")
	require.NotContains(t, page, "No record says who")
}

func TestOldChangesHaveTheVersionBeforeWhichTheyWereMade(t *testing.T) {
	f := newFixture(t, 0)
	f.manager = f.open(t, &workspace.Options{Schema: desk, RecordBytes: 64 << 20})
	f.update(t, "erin", func(st *state.State) error {
		return plan.Set(st.As("billing"), map[string]any{"total": 1.0})
	})
	for range 1200 {
		f.visit(t, "erin")
	}
	h := f.handler(t, nil)
	var shown struct {
		Fields []struct {
			Name string
			Last struct {
				Version, Before uint64
			} `json:"last_change"`
		}
	}
	jsonOf(t, h, "/workspace/state?user=erin", &shown)
	seen := 0
	for _, field := range shown.Fields {
		switch field.Name {
		case "plan":
			seen++
			require.Zero(t, field.Last.Version)
			require.Greater(t, field.Last.Before, uint64(1))
			require.Less(t, field.Last.Before, uint64(200))
			require.Contains(t, get(t, h, "/workspace/state?user=erin").body, fmt.Sprint("before version ", field.Last.Before))
		case "cost":
			seen++
			require.Equal(t, uint64(1201), field.Last.Version)
			require.Zero(t, field.Last.Before)
		case "order_id": // unset
			seen++
			require.Zero(t, field.Last)
		}
	}
	require.Equal(t, 3, seen)

	var got comparison
	jsonOf(t, h, "/workspace/diff?user=erin&from=0&to=1201", &got)
	require.Greater(t, got.Unread, uint64(1))
	require.Contains(t, get(t, h, "/workspace/diff?user=erin&from=0&to=1201").body, fmt.Sprint("before version ", got.Unread))
}
