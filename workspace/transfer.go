package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// exportFormat is the version of exports that this package writes.
const exportFormat = 1

// exportJSON is a workspace outside a store.
type exportJSON struct {
	Format      int                 `json:"format"`
	UserID      string              `json:"user_id"`
	Content     json.RawMessage     `json:"content"`
	Messages    []ledger.Message    `json:"messages,omitempty"`
	DeadLetters []ledger.DeadLetter `json:"dead_letters,omitempty"`
	Ended       []ledger.Outcome    `json:"ended,omitempty"`
	Data        map[string][]byte   `json:"data,omitempty"` // of Store; JSON has it in base64
}

// Export returns a whole workspace as JSON, for [Manager.ImportWorkspace]: the
// content with memory and settings, the messages that wait, the dead letters,
// what has become of the last messages, and the values of [Manager.Store]. It
// leaves out the records of earlier versions. It returns ErrNotFound if the
// workspace does not exist.
//
// The export is not sealed and contains all secrets: it must be kept as safe as
// the keys.
//
// The export is consistent, except for the values of Store, which may change
// meanwhile. A run that is under way is exported as if it had not begun: its
// committed changes are left out, and its message waits. To move a workspace
// without handling a message twice, stop sending messages to it, wait until
// View shows no run, export it, import it elsewhere and delete it here.
func (m *Manager) Export(ctx context.Context, userID string) ([]byte, error) {
	var data []byte
	err := m.operate(ctx, Operation{Kind: opExport, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		c, err := l.Copy(ctx)
		if err != nil {
			return err
		}
		out := exportJSON{
			Format: exportFormat, UserID: userID, Content: c.Content.Encode(),
			Messages: c.Messages, DeadLetters: c.DeadLetters, Ended: c.Outcomes, Data: map[string][]byte{},
		}
		stored := m.data(userID)
		for e, err := range stored.List(ctx, stored.Prefix(), "", true) {
			if err != nil {
				return err
			}
			out.Data[e.Key[len(stored.Prefix()):]] = e.Value
		}
		data, err = jsontext.Marshal(out)
		return err
	})
	return data, err
}

// ImportWorkspace makes a workspace from an export. The user may be another one
// than that of the export. If Options.Keys is set, all values are sealed. The
// first version of the workspace has the whole content. Messages of the export
// that wait are handled, with new run ids. Messages whose handling has ended in
// the export are duplicates here too.
//
// ImportWorkspace returns ErrExists if the workspace exists, or if a key of
// [Manager.Store] has another value: nothing is overwritten. It returns
// ErrInvalid for data that is not an export. An import that has failed halfway,
// which may have written values of Store, can be repeated.
func (m *Manager) ImportWorkspace(ctx context.Context, userID string, data []byte) error {
	return m.operate(ctx, Operation{Kind: opImport, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		in, c, err := m.decodeExport(userID, data)
		if err != nil {
			return err
		}
		h, err := l.ReadHead(ctx)
		if err != nil {
			return err
		}
		if h.Exists() {
			return ErrExists
		}
		if err := m.importData(ctx, userID, in.Data); err != nil {
			return err
		}
		h, err = l.Import(ctx, c, l.NewLease())
		if err == nil || errors.Is(err, store.ErrUnknownOutcome) { // then there may be a vacant run
			m.takeVacantRun(l, h)
			m.watchRun(userID, l)
		}
		return err
	})
}

// decodeExport checks an export and returns what it contains.
func (m *Manager) decodeExport(userID string, data []byte) (exportJSON, ledger.Copy, error) {
	var in exportJSON
	err := jsontext.Check(data, jsontext.Limits{})
	if err == nil {
		err = json.Unmarshal(data, &in)
	}
	switch {
	case err != nil:
		return in, ledger.Copy{}, fmt.Errorf("%w: not an export: %w", ErrInvalid, err)
	case in.Format > exportFormat:
		return in, ledger.Copy{}, fmt.Errorf("%w: export of format %d", ErrNewerFormat, in.Format)
	case in.Format != exportFormat || in.UserID == "":
		return in, ledger.Copy{}, fmt.Errorf("%w: not an export", ErrInvalid)
	}
	c := ledger.Copy{Messages: in.Messages, DeadLetters: in.DeadLetters, Outcomes: in.Ended}
	if c.Content, err = document.Decode(in.Content); err == nil {
		err = checkExported(c)
	}
	if err == nil {
		_, err = c.Content.Origins()
	}
	if err == nil && ledger.IsShared(userID) {
		err = m.sharing.checkPart(c.Content.Effects())
		if len(c.Messages)+len(c.DeadLetters) > 0 {
			err = checkRuns(userID)
		}
	}
	if err != nil {
		return in, c, fmt.Errorf("%w: export: %w", ErrInvalid, err)
	}
	_, err = m.content(userID, c.Content, ledger.Position{}, nil)
	return in, c, err
}

// checkExported checks the messages of an export.
func checkExported(c ledger.Copy) error {
	all := c.Messages
	for _, d := range c.DeadLetters {
		all = append(all[:len(all):len(all)], d.Message)
	}
	seen := map[string]bool{}
	for i, stored := range all {
		msg, err := decodeMessage(fmt.Sprintf("message %d", i), stored.Body)
		if err == nil {
			_, err = msg.encode()
		}
		if err == nil && (msg.ID != stored.ID || seen[msg.ID] || stored.Ticket || stored.Blob != "") {
			err = fmt.Errorf("%w: message %d does not belong there", ErrInvalid, i)
		}
		if err != nil {
			return err
		}
		seen[msg.ID] = true
	}
	for i, o := range c.Outcomes {
		if checkID(o.ID) != nil || o.Ending == "" {
			return fmt.Errorf("%w: outcome %d", ErrInvalid, i)
		}
	}
	return nil
}

// importData writes the values of Store.
func (m *Manager) importData(ctx context.Context, userID string, values map[string][]byte) error {
	stored := m.data(userID)
	for name, value := range values {
		key := stored.Prefix() + name
		_, err := store.Put(ctx, stored, key, value, store.IfAbsent)
		if errors.Is(err, store.ErrConflict) {
			e, getErr := store.Get(ctx, stored, key)
			if err = getErr; err == nil && !bytes.Equal(e.Value, value) {
				err = fmt.Errorf("%w: the value of a key of Store", ErrExists)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
