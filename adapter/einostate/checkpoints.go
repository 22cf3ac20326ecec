package einostate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/cloudwego/eino/adk"
	"github.com/cloudwego/eino/schema"

	"github.com/agentstate/state"
)

// Checkpoint is where an interrupted run of eino goes on.
type Checkpoint struct {
	Data []byte `json:"data"` // eino's
	// Interrupts has the interrupt of each suspended call, by its key. Without Data,
	// they are those of the calls around agents that a process was resuming.
	Interrupts map[string]Interrupt `json:"interrupts,omitempty"`
}

// Interrupt is where a call waits.
type Interrupt struct {
	ID string `json:"id"` // eino's
	// Foreign says that the tool is not one of [Tools]. It is called again with
	// the answer; for the others, the answer is the result.
	Foreign bool `json:"foreign,omitempty"`
	// Outer says that the call waits because an agent that is its tool does.
	Outer bool `json:"outer,omitempty"`
	// Seen is how many messages behind the call, without results, there were when
	// it began to wait. Missed is what had been said before while the call waited.
	Seen   int             `json:"seen,omitempty"`
	Missed []state.Message `json:"missed,omitempty"`
}

// CheckpointField is the field of [Checkpoints]. The schema must have it: without it,
// [Handle] returns an error before a model is asked. Only the host may use it. A
// checkpoint has eino's whole position, with the messages of the agents.
var CheckpointField = &state.Field[map[string]Checkpoint]{
	Name: "eino_checkpoints", Description: "Where interrupted agents go on.",
}

// errNoState is the error of a runner that is used without a state.
var errNoState = fmt.Errorf("einostate: the context carries no state: %w", state.ErrInvalid)

// Checkpoints returns the store of an [adk.Runner] that keeps checkpoints in
// [CheckpointField] of the state of the context. In a run of a workspace they are
// committed together with what the agents have written.
func Checkpoints() adk.CheckPointStore { return checkpoints{} }

type checkpoints struct{}

type resumptionKey struct{}

// resumption is the checkpoint at which a run goes on. A run that begins has
// only the id for its own.
type resumption struct {
	id         string
	checkpoint Checkpoint
	targets    map[string]any // with what eino's interrupts are resumed
	// missed has what was said while each call waited, by the ids that eino knows.
	missed map[string][]state.Message
}

// catchUp returns the first prompt of an agent with what was said meanwhile: in
// front of the calls that have waited, so that it ends with their results. An
// agent that was not interrupted is shown it in front of the last message.
func (r *resumption) catchUp(msgs []*schema.Message) ([]*schema.Message, error) {
	last := len(msgs) - 1
	for last >= 0 && msgs[last].Role == schema.Tool {
		last--
	}
	if last < 0 {
		return msgs, nil
	}
	var missed []state.Message
	of := msgs[last].ToolCalls
	for id, said := range r.missed {
		waited := slices.ContainsFunc(of, func(c schema.ToolCall) bool { return c.ID == id })
		if (waited || len(of) == 0) && len(said) > len(missed) {
			missed = said
		}
	}
	own, err := FromMessages(missed...)
	return slices.Insert(slices.Clone(msgs), last, own...), err
}

// checkSchema returns an error if the schema of a state has no place for checkpoints.
func checkSchema(st *state.State) error {
	if err := inside.CheckField(st, CheckpointField.Name, CheckpointField, nil); err != nil {
		return fmt.Errorf("the schema has no place for the checkpoints of eino: give it einostate.CheckpointField: %w", err)
	}
	return nil
}

func (checkpoints) Get(ctx context.Context, id string) ([]byte, bool, error) {
	if r, ok := ctx.Value(resumptionKey{}).(*resumption); ok {
		return r.checkpoint.Data, true, nil
	}
	st, ok := state.FromContext(ctx)
	if !ok {
		return nil, false, errNoState
	}
	c, found := CheckpointField.GetOr(st, nil)[id]
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
	st, ok := state.FromContext(ctx)
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
		return fmt.Errorf("einostate: checkpoint: %w", cmp.Or(checkSchema(st), err))
	}
	return nil
}

// keeps reports whether a runner has the store of [Checkpoints]. eino tells nobody
// which one it has, but by its field; if a version of eino has no such field, the
// first interrupt finds what is wrong.
func keeps(r *adk.Runner) bool {
	kept := reflect.ValueOf(r).Elem().FieldByName("store")
	return kept.IsValid() && kept.Kind() == reflect.Interface && kept.Elem().IsValid() &&
		kept.Elem().Type() == reflect.TypeFor[checkpoints]()
}
