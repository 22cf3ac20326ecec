package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// exportJSON is a workspace outside a store.
type exportJSON struct {
	Format  int             `json:"format"`
	UserID  string          `json:"user_id"`
	Content json.RawMessage `json:"content"`
	ledger.Copy
	Data  map[string][]byte `json:"data,omitempty"` // of Store; JSON has it in base64
	Files []exportedFile    `json:"files,omitempty"`
}

// exportFormat is the version of exports that this package writes.
const exportFormat = 1

// Export returns a whole workspace as JSON, for [Manager.ImportWorkspace]: the
// content with memory and settings, the title of [Manager.Rename], notes, the messages that wait, the dead letters,
// what has become of the last messages, the values of [Manager.Store], and the files
// of [Manager.AddFile] to which it refers. It leaves out the records of earlier versions. It returns ErrNotFound if the
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
	err := m.operate(ctx, work.Operation{Kind: opExport, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		c, err := l.Copy(ctx)
		if err != nil {
			return err
		}
		out := exportJSON{
			Format: exportFormat, UserID: userID, Content: c.Content.Encode(), Copy: c, Data: map[string][]byte{},
		}
		values := m.data(userID)
		for e, err := range values.List(ctx, values.Prefix(), "", true) {
			if err != nil {
				return err
			}
			out.Data[strings.TrimPrefix(e.Key, values.Prefix())] = e.Value
		}
		if data, err = jsontext.Marshal(out); err != nil {
			return err
		}
		if out.Files, err = m.filesIn(ctx, ownerOf(userID), data); err == nil && len(out.Files) > 0 {
			data, err = jsontext.Marshal(out)
		}
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
	return m.operate(ctx, work.Operation{Kind: opImport, UserID: userID}, func(ctx context.Context, l *ledger.Ledger) error {
		in, err := m.decodeExport(userID, data)
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
		for name, value := range in.Data {
			_, err := m.Store(userID).Update(ctx, name, func(present string, found bool) (string, error) {
				if found && present != string(value) {
					return "", fmt.Errorf("%w: the value of a key of Store", ErrExists)
				}
				return string(value), nil
			})
			if err != nil {
				return err
			}
		}
		if err := m.importFiles(ctx, ownerOf(userID), in.Files); err != nil {
			return err
		}
		h, err = l.Import(ctx, in.Copy, l.NewLease())
		if err == nil || errors.Is(err, store.ErrUnknownOutcome) { // then there may be a vacant run
			m.takeVacantRun(l, h)
			m.watchRun(userID, l)
		}
		return err
	})
}

// decodeExport returns an export that the workspace can be made from.
func (m *Manager) decodeExport(userID string, data []byte) (in exportJSON, err error) {
	if err = jsontext.Check(data, jsontext.Limits{}); err == nil {
		err = json.Unmarshal(data, &in)
	}
	if err == nil && in.Format > exportFormat {
		return in, fmt.Errorf("%w: export of format %d", ErrNewerFormat, in.Format)
	}
	if err == nil {
		in.Copy.Content, err = document.Decode(in.Content)
	}
	if err == nil {
		_, err = in.Copy.Content.Origins()
	}
	if err == nil && ledger.IsShared(userID) {
		err = m.sharing.checkPart(in.Copy.Content.Effects())
	}
	if err == nil {
		err = checkExported(userID, in.All())
	}
	for _, n := range in.Notes {
		err = errors.Join(err, checkNote(n))
	}
	for i, f := range in.Files {
		checked, wrong := checkedFile(f.File)
		if _, ok := origin.FileID("", f.ID); !ok {
			wrong = errors.New("a file without an id")
		}
		in.Files[i].File, err = checked, errors.Join(err, wrong)
	}
	in.Name = titleText(in.Name, func(text string) string { return text })
	if err != nil {
		return in, fmt.Errorf("%w: not an export: %w", ErrInvalid, err)
	}
	_, err = m.content(userID, in.Copy.Content, ledger.Position{}, nil)
	return in, err
}

// checkExported checks the messages of an export.
func checkExported(userID string, messages []*ledger.Message) error {
	seen := map[string]bool{}
	for i, stored := range messages {
		msg, err := decodeMessage(fmt.Sprintf("message %d", i), stored.Body)
		if err == nil {
			_, err = msg.encode()
		}
		if err == nil && (msg.ID != stored.ID || seen[msg.ID] || stored.Ticket || stored.Blob != "") {
			err = fmt.Errorf("message %d does not belong there", i)
		}
		if err != nil {
			return err
		}
		seen[msg.ID] = true
	}
	if len(messages) > 0 {
		return checkRuns(userID)
	}
	return nil
}
