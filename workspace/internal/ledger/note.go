package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/work"
)

// maxNoteBytes bounds the notes of a workspace. Those about the messages with the
// lowest numbers go first.
var maxNoteBytes = 64 << 10

func noteBytes(n work.Note) int { return 100 + len(n.By) + len(n.Text) }

// Rename gives the workspace a title in place of that of its content, or that one
// again with "".
func (l *Ledger) Rename(ctx context.Context, title string) (*Head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		if !t.Exists() {
			return fmt.Errorf("%w: the workspace does not exist", work.ErrNotFound)
		}
		t.Name = title
		return nil
	})
}

// SetNote replaces what somebody has noted about a message, which a head has, or
// removes it if the text is empty.
func (l *Ledger) SetNote(ctx context.Context, of *Head, note work.Note) (*Head, error) {
	return l.commitHead(ctx, func(t *transition) error {
		if !t.Exists() || t.Epoch != of.Epoch { // numbers have begun again
			return fmt.Errorf("%w: the workspace was reset or deleted", work.ErrNotFound)
		}
		list, err := t.reader.Notes(t.ctx, t.Head)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(slices.Clone(list), func(n work.Note) bool {
			return n.Message == note.Message && n.By == note.By
		})
		if note.Text != "" {
			at, _ := slices.BinarySearchFunc(list, note.Message, func(n work.Note, number int) int { return n.Message - number })
			list = slices.Insert(list, at, note)
		}
		return t.setNotes(list)
	})
}

// Notes returns the notes, ordered by the numbers of their messages. The caller must
// not change the list.
func (c *contentReader) Notes(ctx context.Context, h *Head) ([]work.Note, error) {
	if h.Notes == "" {
		return nil, nil
	}
	return fetchBlobJSON[[]work.Note](ctx, &c.blobStore, h.Notes)
}

func (t *transition) setNotes(list []work.Note) error {
	if t.Notes != "" {
		t.dropBlob(t.Notes)
	}
	t.Notes = ""
	size := 0
	for _, n := range list {
		size += noteBytes(n)
	}
	for len(list) > 1 && size > maxNoteBytes {
		size -= noteBytes(list[0])
		list = list[1:]
	}
	if len(list) == 0 {
		return nil
	}
	data, err := jsontext.Marshal(list)
	if err == nil {
		t.Notes = t.addBlob(data)
	}
	return err
}
