package workspace

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// View is a workspace at one moment. It does not change, and it cannot be
// changed.
type View struct {
	Workspace
	Version     uint64 // of the content
	Oldest      uint64 // the oldest version that ViewAt can show
	Run         *RunInfo
	Queue       []Message // the waiting messages, the next first
	DeadLetters []Message // the dead letters, the latest last
	Unknown     []string  // the names of stored fields that the schema does not have, sorted
}

// RunInfo describes a run that is under way.
type RunInfo struct {
	ID      string
	Message Message
	Began   time.Time
	Attempt int // the number of times that it was taken over
}

// View returns the workspace of a user. A workspace that does not exist is
// empty.
func (m *Manager) View(ctx context.Context, userID string) (*View, error) {
	v, err := m.view(ctx, userID, nil)
	return v, wrapError("view", userID, err)
}

// ViewAt returns the content of a workspace at an earlier version, with the
// present run and queue. It returns state.ErrCompacted if the version is older
// than Oldest.
func (m *Manager) ViewAt(ctx context.Context, userID string, version uint64) (*View, error) {
	v, err := m.view(ctx, userID, &version)
	return v, wrapError("view", userID, err)
}

// view shows the newest version if version is nil.
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
		*v = View{Workspace: c.Workspace, Version: at.Version, Oldest: h.oldest().Version}
		v.state = c.storedState
		former := c.moved.FormerNames()
		for _, field := range doc.Names(document.PartField) {
			if !former[field] && !v.state.KV().Has(field) {
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

// addMessages adds the messages that have no outcome.
func (v *View) addMessages(ctx context.Context, l *ledger, h *head) error {
	for _, p := range h.pending() {
		msg, err := l.readMessage(ctx, *p)
		if err != nil {
			return err
		}
		switch h.messageState(p.ID) {
		case messageRunning:
			v.Run = &RunInfo{h.Run.RunID, msg, h.Run.Began, h.Run.Attempt}
		case messageQueued:
			v.Queue = append(v.Queue, msg)
		case messageDead:
			v.DeadLetters = append(v.DeadLetters, msg)
		}
	}
	return nil
}

// Records yields the changes of the content of a workspace after a version, the
// oldest first. It yields state.ErrCompacted if there are records that are no
// longer held. The values of secret fields, and of fields that the schema does
// not have, are masked. A message that repeats a secret is not; see
// [Workspace.Redact].
func (m *Manager) Records(ctx context.Context, userID string, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		list, err := m.readRecords(ctx, userID, after)
		if err != nil {
			yield(Record{}, wrapError("records", userID, err))
			return
		}
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (m *Manager) readRecords(ctx context.Context, userID string, after uint64) ([]Record, error) {
	l, err := m.ledger(userID)
	if err != nil {
		return nil, err
	}
	var list []Record
	_, err = l.readStable(ctx, func(h *head) error {
		list = nil
		at, err := l.positionAt(ctx, h, after)
		if err != nil || at == h.position() {
			return err
		}
		redact, err := m.presentSecrets(ctx, l, h)
		if err != nil {
			return err
		}
		for r, err := range l.records(ctx, h, at) {
			if err == nil {
				err = m.maskRecord(r, redact)
			}
			if err != nil {
				return err
			}
			list = append(list, *r)
		}
		return nil
	})
	return list, err
}

// presentSecrets returns a function that masks the secrets of the present
// content in texts. If they are not known, it masks everything.
func (m *Manager) presentSecrets(ctx context.Context, l *ledger, h *head) (func(string) string, error) {
	doc, err := l.content(ctx, h, h.position())
	if err != nil {
		return nil, err
	}
	c, err := newLiveContent("", m.opts.Schema, doc, h.position())
	if err != nil {
		return func(string) string { return masked }, nil
	}
	return c.redactor(), nil
}

// maskRecord masks the values of secrets, and of fields that the schema does
// not have because they may be secret. In the other values it masks what redact
// finds.
func (m *Manager) maskRecord(r *Record, redact func(string) string) error {
	open, secret := map[string]bool{}, map[string]bool{}
	for _, f := range state.New(m.opts.Schema).Fields() {
		open[f.Name], secret[f.Name] = !f.Secret, f.Secret
	}
	for i := range r.Effects {
		e := &r.Effects[i]
		switch {
		case e.Value == "":
			continue
		case e.Part == document.PartField && !open[e.Field], e.Part == document.PartKey && secret[e.Field]:
			e.Value = state.JSONText(masked)
		case e.Part == document.PartMemory:
			entry, _, err := decodeMemoryEntry([]byte(e.Value))
			if err != nil {
				return fmt.Errorf("%w: record %d: memory: %w", ErrCorrupt, r.Version, err)
			}
			if e.Value, err = state.JSONOf(entry); err != nil { // a MemoryEntry masks itself
				return err
			}
		}
		if e.Part == document.PartConversation {
			e.Value = document.RedactConversation(*e, redact)
		} else if e.Value = state.JSON(redact(string(e.Value))); !e.Value.Valid() {
			e.Value = state.JSONText(masked) // a secret that is a piece of JSON
		}
	}
	return nil
}
