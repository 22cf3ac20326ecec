package processes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

type dump struct {
	store.Store
	on    bool
	sizes map[string]int
}

func (d *dump) Batch(ctx context.Context, w []store.Write) ([]store.Revision, error) {
	for _, x := range w {
		kind := "head"
		if strings.Contains(x.Key, "blob") || strings.Count(x.Key, ":") > 2 {
			kind = "blob"
		}
		if d.on {
			fmt.Println(x.Key, x.Delete, len(x.Value))
			if len(x.Value) < 4000 {
				fmt.Println("    ", string(x.Value))
			}
		}
		d.sizes[kind] += len(x.Value)
	}
	return d.Store.Batch(ctx, w)
}

func TestZZ(t *testing.T) {
	d := &dump{Store: store.NewMemory(), sizes: map[string]int{}}
	m, err := workspace.Open(t.Context(), d, &workspace.Options{Run: zzRun})
	require.NoError(t, err)
	h := func() {
		_, err := m.Handle(t.Context(), "ann", workspace.Message{Content: state.UserText("Good evening! I have lost my key.")})
		require.NoError(t, err)
	}
	for range 210 {
		h()
	}
	d.on = true
	h()
	h()
	d.on = false
	clear(d.sizes)
	for range 1000 {
		h()
	}
	fmt.Println(d.sizes)
}

func zzRun(_ context.Context, r *workspace.Run) error {
	r.SetReply("Good evening, Ann.")
	if err := r.State().KV().Set("mood", r.ID()); err != nil {
		return err
	}
	return r.State().History().Append(state.InferenceResult{
		Agent: "porter", Prompt: prompt, History: state.Messages.Or(r.State(), nil),
		Output: []state.Message{state.AssistantText("Good evening, Ann. What can I do for you?")},
	})
}
