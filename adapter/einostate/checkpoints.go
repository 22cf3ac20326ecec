package einostate

import (
	"context"
	"fmt"
	"maps"

	"github.com/cloudwego/eino/adk"

	"github.com/agentstate/state"
)

// Checkpoint is where an interrupted run of eino goes on.
type Checkpoint struct {
	Data []byte `json:"data"` // eino's
	// Interrupts has the id of the interrupt of each suspended call.
	Interrupts map[string]string `json:"interrupts,omitempty"`
}

// CheckpointField is the field of [Checkpoints], for the schema. Only the host
// may use it. A checkpoint has eino's whole position, with the messages of the
// agents.
var CheckpointField = &state.Field[map[string]Checkpoint]{
	Name: "eino_checkpoints", Description: "Where interrupted agents go on.",
}

// Checkpoints returns the store of an [adk.Runner] that keeps checkpoints in
// [CheckpointField] of the state of the context. In a run of a workspace they are
// committed together with what the agents have written.
func Checkpoints() adk.CheckPointStore { return checkpoints{} }

type checkpoints struct{}

// resumedKey is the key of the checkpoint that a context resumes.
type resumedKey struct{}

func (checkpoints) Get(ctx context.Context, id string) ([]byte, bool, error) {
	if data, ok := ctx.Value(resumedKey{}).([]byte); ok {
		return data, true, nil
	}
	st, ok := baseState(ctx)
	if !ok {
		return nil, false, errNoState
	}
	c, found := CheckpointField.Or(st, nil)[id]
	return c.Data, found, nil
}

func (checkpoints) Set(ctx context.Context, id string, data []byte) error {
	return change(ctx, func(all map[string]Checkpoint) { all[id] = Checkpoint{Data: data} })
}

// Delete makes the store an [adk.CheckPointDeleter].
func (checkpoints) Delete(ctx context.Context, id string) error {
	return change(ctx, func(all map[string]Checkpoint) { delete(all, id) })
}

func change(ctx context.Context, fn func(map[string]Checkpoint)) error {
	st, ok := baseState(ctx)
	if !ok {
		return errNoState
	}
	err := CheckpointField.Update(st, func(all map[string]Checkpoint) (map[string]Checkpoint, error) {
		all = maps.Clone(all)
		if all == nil {
			all = map[string]Checkpoint{}
		}
		fn(all)
		return all, nil
	})
	if err != nil {
		return fmt.Errorf("einostate: checkpoint: %w", err)
	}
	return nil
}
