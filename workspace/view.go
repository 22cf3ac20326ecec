package workspace

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// View is what a workspace was at one moment. It does not change, and nothing of it
// can be changed.
type View struct {
	Workspace
	Version uint64 // of the content
	Oldest  uint64 // the oldest version that ViewAt can show
	Run     *RunInfo
	Queue   []Message // what waits, the next first
	Dead    []Message // what was given up, the latest last
	Unknown []string  // names of fields that are stored, but that the schema does not have, sorted
}

// RunInfo tells of a run that is under way.
type RunInfo struct {
	ID      string
	Message Message
	Began   time.Time
	Attempt int // how often it was taken over
}

// View returns what the workspace of a user is now. The one of a user who has none
// is empty.
func (m *Manager) View(ctx context.Context, userID string) (*View, error) {
	v, err := m.view(ctx, userID, nil)
	return v, wrapError("view", userID, err)
}

// ViewAt returns the content of a workspace at an earlier version, with the run and
// the queue as they are now. It is state.ErrCompacted if the version is older than
// Oldest.
func (m *Manager) ViewAt(ctx context.Context, userID string, version uint64) (*View, error) {
	v, err := m.view(ctx, userID, &version)
	return v, wrapError("view", userID, err)
}

func (m *Manager) view(ctx context.Context, userID string, version *uint64) (*View, error) {
	l, err := m.ledger(userID)
	if err != nil {
		return nil, err
	}
	v := &View{}
	_, err = l.readStable(ctx, func(h *head) error {
		at := h.position()
		if version != nil {
			var err error
			if at, err = l.positionAt(ctx, h, *version); err != nil {
				return err
			}
		}
		doc, err := l.content(ctx, h, at)
		if err != nil {
			return err
		}
		c, err := newLiveContent(userID, m.opts.Schema, doc, at)
		if err != nil {
			return err
		}
		*v = View{Workspace: c.Workspace, Version: at.Version, Oldest: h.snapshotPosition().Version}
		v.state = c.storedState
		for _, field := range doc.Names(document.PartField) {
			if !v.state.KV().Has(field) {
				v.Unknown = append(v.Unknown, field)
			}
		}
		c.endWrites(state.ErrReadOnly)
		return v.addMessages(ctx, l, h)
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// waiting adds the messages that are not done.
func (v *View) addMessages(ctx context.Context, l *ledger, h *head) error {
	if h.Run != nil {
		msg, err := l.readMessage(ctx, h.Run.Message)
		if err != nil {
			return err
		}
		v.Run = &RunInfo{h.Run.RunID, msg, h.Run.Begun, h.Run.Attempt}
	}
	for _, i := range h.Queue {
		msg, err := l.readMessage(ctx, i)
		if err != nil {
			return err
		}
		v.Queue = append(v.Queue, msg)
	}
	for _, d := range h.DeadLetters {
		msg, err := l.readMessage(ctx, d.Message)
		if err != nil {
			return err
		}
		v.Dead = append(v.Dead, msg)
	}
	return nil
}

// pointAt returns the point of a version.
func (l *ledger) positionAt(ctx context.Context, h *head, version uint64) (position, error) {
	switch start := h.snapshotPosition(); {
	case version > h.Version:
		return position{}, fmt.Errorf("%w: there is no version %d yet", ErrInvalid, version)
	case version < start.Version:
		return position{}, fmt.Errorf("version %d: %w", version, state.ErrCompacted)
	case version == start.Version:
		return start, nil
	}
	for e, err := range l.entries(ctx, h, version-1) {
		if err != nil {
			return position{}, err
		}
		return e.position(), nil // replay checks that it fits
	}
	return position{}, corrupt(l.key, "records do not lead to the head")
}

// Records yields what has changed the content of a workspace after a version, the
// oldest first. It is state.ErrCompacted if there are records that are no longer
// held. The values of secrets are masked, and those of fields that the schema does
// not have. That a text of the conversation repeats a secret is not seen; see
// [Workspace.Redact].
func (m *Manager) Records(ctx context.Context, userID string, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		fail := func(err error) { yield(Record{}, wrapError("records", userID, err)) }
		l, err := m.ledger(userID)
		if err != nil {
			fail(err)
			return
		}
		var list []Record
		_, err = l.readStable(ctx, func(h *head) error {
			list = nil
			at, err := l.positionAt(ctx, h, after)
			if err != nil {
				return err
			}
			for r, err := range l.records(ctx, h, at) {
				if err != nil {
					return err
				}
				shown, err := m.maskRecord(*r)
				if err != nil {
					return err
				}
				list = append(list, shown)
			}
			return nil
		})
		if err != nil {
			fail(err)
			return
		}
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}
