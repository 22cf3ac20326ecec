package ledger

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// filePrefix begins the keys of the files of all users.
const filePrefix = "agent:file:"

// FileStore keeps the files of a user, to which messages of all threads refer. A file
// does not change. It is sealed with the key of the user part.
type FileStore struct{ *DataStore }

// NewFileStore returns the store of a user's files. If the user is not valid, its
// methods return ErrInvalid.
func NewFileStore(db store.Store, s *Sealer, user string) FileStore {
	d := NewDataStore(db, s, SharedID(user))
	d.prefix = filePrefix + EncodeUser(user) + ":"
	return FileStore{d}
}

// fileHeader is the first line of a stored file, in front of its bytes.
type fileHeader struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"`
	Sum  string `json:"sum"` // of the id and the rest, which finds damage
}

const fileIDLen = 32

// ID returns the id of a file: a hash, so that a file that is added twice is one. Where
// files are sealed it needs a key: the hash would tell something about the file.
func (s FileStore) ID(f work.File) string {
	return fileSum(s.sealer.nameKey(s.workspace), f, "")[:fileIDLen]
}

func fileSum(key []byte, f work.File, id string) string {
	sum := hmac.New(sha256.New, key)
	_, _ = io.WriteString(sum, id+"\n"+f.Type+"\n"+f.Name+"\n") // the lines are checked
	sum.Write(f.Data)
	return base64.RawURLEncoding.EncodeToString(sum.Sum(nil))
}

// Write stores a file under an id, if a condition holds.
func (s FileStore) Write(ctx context.Context, id string, f work.File, cond store.Condition) error {
	value, err := jsontext.Marshal(fileHeader{f.Type, f.Name, fileSum(nil, f, id)})
	if err != nil {
		return err
	}
	_, err = store.Put(ctx, s, s.prefix+id, append(append(value, '\n'), f.Data...), cond)
	return err
}

// Read returns a file, or ErrNotFound.
func (s FileStore) Read(ctx context.Context, id string) (work.File, error) {
	e, err := store.Get(ctx, s, s.prefix+id)
	if errors.Is(err, store.ErrNotFound) {
		return work.File{}, fmt.Errorf("%w: the user has no file %s", work.ErrNotFound, fault.Quote(id))
	}
	if err != nil {
		return work.File{}, err
	}
	return s.decode(e)
}

// decode returns the file in a value that was opened.
func (s FileStore) decode(e store.Entry) (f work.File, err error) {
	line, data, ok := bytes.Cut(e.Value, []byte("\n"))
	var h fileHeader
	if !ok || json.Unmarshal(line, &h) != nil {
		return f, corrupt(e.Key, "no file")
	}
	f = work.File{Type: h.Type, Name: h.Name, Data: data}
	if h.Sum != fileSum(nil, f, strings.TrimPrefix(e.Key, s.prefix)) {
		return f, corrupt(e.Key, "the hash does not match")
	}
	return f, nil
}

// Delete deletes a file.
func (s FileStore) Delete(ctx context.Context, id string) error {
	return store.Delete(ctx, s.db, s.prefix+id, store.Always)
}

// each calls fn with the files as they are stored, one at a time: all of them may not
// fit in memory. It goes on after an error.
func (s FileStore) each(ctx context.Context, fn func(store.Entry) error) error {
	failed := s.err
	for e, err := range s.db.List(ctx, s.prefix, "", false) {
		if err == nil {
			e, err = store.Get(ctx, s.db, e.Key)
		}
		if err == nil {
			err = fn(e)
		}
		if !errors.Is(err, store.ErrNotFound) { // deleted meanwhile
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// Reseal seals all files with the first key, unless they are.
func (s FileStore) Reseal(ctx context.Context) error {
	if s.sealer == nil {
		return nil
	}
	return s.each(ctx, func(e store.Entry) error {
		if _, _, h := cutSealHeader(e.Value); h.Key == s.sealer.first {
			return nil
		}
		return s.resealValue(ctx, e.Key)
	})
}

// verify is that of a DataStore.
func (s FileStore) verify(ctx context.Context, keys map[string]bool) (n int, err error) {
	err = s.each(ctx, func(e store.Entry) error {
		opened, err := s.open("verify", e)
		if err == nil {
			_, err = s.decode(opened)
		}
		noteSealKey(keys, e.Value)
		n++
		return err
	})
	return n, err
}
