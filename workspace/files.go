package workspace

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// MaxFile is how many bytes a file of [Manager.AddFile] has at most.
const MaxFile = 20 << 20

const maxFileName = 255

// AddFile stores a file of a user, such as a picture, and returns its URL. A part of a
// message has that where it would have a data URL, so that messages, workspaces and
// views do not grow by the file:
//
//	url, err := m.AddFile(ctx, "ann", work.File{Type: "image/png", Name: "lamp.png", Data: data})
//	content, err := page.Content(page.Part{Kind: page.MediaPart, Media: &page.Media{Type: "image/png", URL: url}})
//
// In a run of the user, in any thread, package wire, [transcript.WithFiles] and the
// adapters put the data into requests to models, and nowhere else. A model reads a text
// in place of a file that is gone. Other users cannot read it.
//
// userID is the name of the user, as [Thread] takes it. The same file is stored once.
// It is sealed if Options.Keys is set, and stays until [Manager.DeleteUser]: threads and
// forks may refer to it. [Manager.Export] has the files to which a workspace refers, and
// [Manager.Verify] and [Manager.Compact] handle all of the user.
//
// The error is ErrInvalid for a file without a Type such as image/png or without Data,
// for a Name with a path, and for more than MaxFile bytes, ErrUserDeleted if the user
// was deleted, and store.ErrTooLarge if the store does not take such values. AddFile
// can be called again.
func (m *Manager) AddFile(ctx context.Context, userID string, f work.File) (url string, err error) {
	op := work.Operation{Kind: opAddFile, UserID: Shared(userID)}
	err = m.operate(ctx, op, func(ctx context.Context, l *ledger.Ledger) error {
		if f, err = checkedFile(f); err != nil {
			return err
		}
		id := m.files(userID).ID(f)
		url = origin.FileScheme + id
		return m.putFile(ctx, l, id, f, store.Always)
	})
	if err != nil {
		return "", err
	}
	return url, nil
}

// File returns a file of a user by its URL, or ErrNotFound.
func (m *Manager) File(ctx context.Context, userID, url string) (f work.File, err error) {
	op := work.Operation{Kind: opFile, UserID: Shared(userID)}
	err = m.observe(ctx, "file", op, func(ctx context.Context, l *ledger.Ledger, _ *operation) error {
		id, ok := origin.FileID(origin.FileScheme, url)
		if !ok {
			return fmt.Errorf("%w: not the URL of a file", ErrNotFound)
		}
		ctx, cancel := m.withinStoreTimeout(ctx)
		defer cancel()
		return m.persist(ctx, l.User(), mayPass, func(ctx context.Context) (err error) {
			f, err = m.files(userID).Read(ctx, id)
			return err
		})
	})
	return f, err
}

func (m *Manager) files(userID string) ledger.FileStore {
	return ledger.NewFileStore(m.db, m.sealer, userID)
}

// withFiles returns a context in which requests to models have the files of a user.
func (m *Manager) withFiles(ctx context.Context, userID string) context.Context {
	return runctx.WithFiles(ctx, func(ctx context.Context, id string) (runctx.File, error) {
		f, err := m.File(ctx, userID, origin.FileScheme+id)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrCorrupt) { // the conversation goes on without it
			err = runctx.ErrNoFile
		}
		return runctx.File(f), err
	})
}

// putFile stores a file, unless the user was deleted: what DeleteUser has not seen is
// deleted here.
func (m *Manager) putFile(
	ctx context.Context, part *ledger.Ledger, id string, f work.File, cond store.Condition,
) error {
	ctx, cancel := m.withinStoreTimeout(ctx)
	defer cancel()
	files := m.files(ownerOf(part.User()))
	again := func(err error) bool { // it would be the same write
		return errors.Is(err, store.ErrUnknownOutcome) || mayPass(err) && !errors.Is(err, store.ErrConflict)
	}
	err := m.checkOpen(ctx, part)
	if err == nil {
		err = m.persist(ctx, part.User(), again, func(ctx context.Context) error { return files.Write(ctx, id, f, cond) })
	}
	if err == nil {
		if err = m.checkOpen(ctx, part); errors.Is(err, ErrUserDeleted) {
			err = errors.Join(err, files.Delete(ctx, id))
		}
	}
	return err
}

// checkOpen returns ErrUserDeleted if the user of a user part was deleted.
func (m *Manager) checkOpen(ctx context.Context, part *ledger.Ledger) error {
	h, err := part.ReadHead(ctx)
	if err == nil && h.Closed {
		err = ErrUserDeleted
	}
	return err
}

// fileType is a MIME type: what its characters are is written into requests.
var fileType = regexp.MustCompile(`^[a-z]+/[a-z0-9][a-z0-9.+-]{0,126}$`)

// checkedFile returns a file as it is stored.
func checkedFile(f work.File) (work.File, error) {
	typ, _, err := mime.ParseMediaType(f.Type)
	switch f.Type = typ; {
	case err != nil || !fileType.MatchString(typ):
		return f, fmt.Errorf("%w: the type of the file is no MIME type", ErrInvalid)
	case len(f.Data) == 0 || len(f.Data) > MaxFile:
		return f, fmt.Errorf("%w: the file has %d bytes: want 1 to %d", ErrInvalid, len(f.Data), MaxFile)
	case len(f.Name) > maxFileName || !utf8.ValidString(f.Name) || strings.ContainsFunc(f.Name, isNoFileName):
		return f, fmt.Errorf("%w: the name of the file is too long, a path, or not plain UTF-8", ErrInvalid)
	}
	return f, nil
}

func isNoFileName(r rune) bool { return r == '/' || r == '\\' || !unicode.IsGraphic(r) }

// exportedFile is a file in an export, under the id by which messages name it.
type exportedFile struct {
	ID string `json:"id"`
	work.File
}

var fileURL = regexp.MustCompile(regexp.QuoteMeta(origin.FileScheme) + `[A-Za-z0-9_-]{32}`)

// filesIn returns the files to which an export refers, as far as the user has them.
func (m *Manager) filesIn(ctx context.Context, userID string, export []byte) (list []exportedFile, err error) {
	seen := map[string]bool{}
	for _, found := range fileURL.FindAll(export, -1) {
		id := strings.TrimPrefix(string(found), origin.FileScheme)
		if seen[id] {
			continue
		}
		seen[id] = true
		f, err := m.files(userID).Read(ctx, id)
		if err == nil {
			list = append(list, exportedFile{id, f})
		} else if !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return list, nil
}

// importFiles stores the files of an export. One that the user has stays.
func (m *Manager) importFiles(ctx context.Context, userID string, list []exportedFile) error {
	for _, f := range list {
		part, err := m.ledger(Shared(userID))
		if err == nil {
			err = m.putFile(ctx, part, f.ID, f.File, store.IfAbsent)
		}
		if err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}
