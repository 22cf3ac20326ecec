package state

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"

	"github.com/agentstate/state/internal/engine"
)

// State is a handle on the data that the agents, tools and routers of a network
// share. [New] makes one. As, With, Fork, Snapshot, At, WithCause and Update
// derive others, which can be used wherever a *State can. All methods are safe
// for concurrent use. Values are copied when they are written and when they are
// read.
//
// A nil *State, and the zero State, is an empty snapshot: reads find nothing
// and writes fail with [ErrReadOnly].
type State struct {
	// cmp.Diff of two states names this field first when it refuses them.
	compareWithStatetest noCopy

	handle
}

// noCopy makes go vet report copies of the struct that contains it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

var (
	openSchema *Schema // of New(nil)
	nothing    *State  // what a nil *State stands for
)

func init() {
	openSchema = MustSchema(AllowUndeclared)
	nothing = New(openSchema).Snapshot()
}

// New returns an empty state, as the host's handle, which has all rights. A nil
// schema accepts any name.
func New(schema *Schema) *State {
	if schema == nil {
		schema = openSchema
	}
	return &State{handle: handle{branch: engine.New(schema.layout), schema: schema, author: hostAuthor, family: &family{}}}
}

// Schema returns the schema of the state, with the fields that the handle may
// not read as well. That of New(nil) accepts any name.
func (s *State) Schema() *Schema { return s.on().schema }

// on returns the handle of the state.
func (s *State) on() *handle {
	if s == nil || s.branch == nil {
		return &nothing.handle
	}
	return &s.handle
}

// with returns a state on another branch, with the same rights and signature.
func (s *State) with(b *engine.Branch) *State {
	h := *s.on()
	h.branch = b
	return &State{handle: h}
}

// As returns a handle on the same data with the rights of agent, which signs
// its writes. A handle that is already bound to an agent is narrowed to what
// both may do, and the first agent signs. An agent outside the team, and "",
// have no rights. If the schema has no [Team], there are no rights to restrict: every
// agent with a name may do everything, and only signs. As is cheap: call it wherever a
// handle is passed on.
func (s *State) As(agent string) *State {
	h := *s.on()
	if h.rights == nil {
		h.author = &engine.Author{Agent: agent, Cause: h.author.Cause}
	}
	h.rights = h.rights.and(h.schema.access.of(agent))
	return &State{handle: h}
}

// Agent returns the name that signs the writes of this handle, empty for the
// host.
func (s *State) Agent() string { return s.on().agent() }

// maxCause is the number of bytes of a cause that the journal keeps. A provider
// or a client chooses the id of a call, and the journal repeats it.
const maxCause = 256

// WithCause returns a handle whose writes have cause in the journal, such as
// the id of the tool call that they come from. Of a cause of more than 256 bytes
// the journal keeps a hash, not the beginning: if that ended in a part of a
// secret, nothing would mask it later.
func (s *State) WithCause(cause string) *State {
	h := *s.on()
	if len(cause) > maxCause {
		cause = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(cause)))
	}
	h.author = &engine.Author{Agent: h.agent(), Cause: cause}
	return &State{handle: h}
}

// Snapshot returns a frozen view of the present content: it never changes, and
// writes to it fail with [ErrReadOnly]. The cost does not depend on the size of
// the state. A snapshot keeps in memory only what has been replaced since.
func (s *State) Snapshot() *State { return s.with(s.on().branch.Freeze()) }

type contextKey struct{}

// NewContext returns a context that carries the handle s.
func NewContext(ctx context.Context, s *State) context.Context {
	return context.WithValue(ctx, contextKey{}, s)
}

// FromContext returns the handle that the context carries, if there is one.
func FromContext(ctx context.Context) (*State, bool) {
	s, ok := ctx.Value(contextKey{}).(*State)
	return s, ok && s != nil
}

// With returns a handle on the same data that reads these values in place of
// the stored ones, for one request: the id of a user, a deadline, an argument
// for a tool. Nothing is written. Every handle that is derived from it reads
// the values, also after a Fork and in an Update. Join, Export, Effects,
// Changes and Version use what is stored. The handle does not see what others
// write to these fields. All other fields are read and written as through s.
// The map is not kept.
//
// Names and values are those of [State.Patch]: values are copied, converted and
// validated, nil reads as unset, and the handle must have the right to write
// the field. With returns the joined errors of all bad fields. The conversation
// cannot be given: that is [ErrInvalid]. A write to one of the names, through
// the handle that With returns, fails with [ErrReadOnly].
func (s *State) With(values map[string]any) (*State, error) {
	h := *s.on()
	given := h.overlay
	h.overlay = nil
	releaseTurns, err := h.branch.TakeTurns(h.validated(values))
	if err != nil {
		return nil, h.explain(err)
	}
	defer releaseTurns()
	cells := maps.Clone(given)
	if cells == nil {
		cells = map[engine.Address]*engine.Cell{}
	}
	var errs []error
	for _, name := range h.sortedNames(values) {
		o, err := h.assignment("with", name, values[name])
		if name == messagesName {
			err = invalidArgument("with", "the conversation cannot be given")
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if before := cells[o.Address]; before != nil && o.Slot.Secret {
			h.covered = &coveredSecret{secretCell{o.Slot.Form.(*fieldSpec), before}, h.covered}
		}
		cells[o.Address] = nil
		if o.Merger != nil {
			cells[o.Address] = &engine.Cell{Value: o.Value, Size: o.Size}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	h.overlay = cells
	return &State{handle: h}, nil
}
