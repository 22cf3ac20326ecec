package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// blobStore reads and writes the blobs of one workspace. Blobs never change and
// never have the same name twice. With the key of the workspace they are
// sealed.
type blobStore struct {
	db     store.Store
	key    string // of the head
	sealer *Sealer
	pause  func(context.Context, time.Duration) error // waits between attempts
	cache  *blobCache
	// fresh are the blobs that a transition has added, few of which are stored yet.
	fresh []newBlob
}

// maxUnknown is the number of attempts that may have an unknown outcome.
const maxUnknown = 12

// missingBlobError reports a blob that does not exist. The head that refers to
// it may have been replaced since it was read.
type missingBlobError struct{ key string }

func (e *missingBlobError) Error() string {
	return work.ErrCorrupt.Error() + ": " + e.key + ": missing"
}
func (e *missingBlobError) Unwrap() error { return work.ErrCorrupt }

// newBlob is a blob that is to be written.
type newBlob struct {
	name string
	data []byte
}

// blobKey returns the key of a blob in the store.
func (s *blobStore) blobKey(name string) string {
	return blobPrefix + strings.TrimPrefix(s.key, headPrefix) + "/" + name
}

// fetchBlob returns the content of a blob, or a missingBlobError. The caller
// must not change it.
func (s *blobStore) fetchBlob(ctx context.Context, name string) ([]byte, error) {
	blobs, err := s.fetchBlobs(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	return blobs[0], nil
}

// fetchBlobs is fetchBlob for several blobs, which it reads at once. With an
// error, it returns the contents of those before the first that it cannot read.
func (s *blobStore) fetchBlobs(ctx context.Context, names []string) ([][]byte, error) {
	blobs := make([][]byte, len(names))
	var keys []string
	for i, name := range names {
		if blobs[i] = s.heldBlob(name); blobs[i] == nil {
			keys = append(keys, s.blobKey(name))
		}
	}
	if len(keys) == 0 {
		return blobs, nil
	}
	entries, err := s.db.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if blobs[i] != nil {
			continue
		}
		blobs[i], err = s.openBlob(name, entries[0])
		if err != nil {
			return blobs[:i], err
		}
		entries[0].Value, entries = nil, entries[1:] // not held while others are opened
	}
	return blobs, nil
}

// heldBlob returns the content of a blob that need not be read, or nil.
func (s *blobStore) heldBlob(name string) []byte {
	if data := s.freshBlob(name); data != nil {
		return data
	}
	return s.cache.get(name)
}

// freshBlob returns the content of a blob that the transition has added, or nil.
func (s *blobStore) freshBlob(name string) []byte {
	for i := range s.fresh {
		if s.fresh[i].name == name {
			return s.fresh[i].data
		}
	}
	return nil
}

// openBlob returns the content of a blob that was read.
func (s *blobStore) openBlob(name string, e store.Entry) ([]byte, error) {
	key := s.blobKey(name)
	if e.Revision == "" {
		return nil, &missingBlobError{key}
	}
	data, err := s.sealer.open(s.key, key, e.Value)
	if err != nil {
		return nil, err
	}
	if s.sealer == nil && !nameFits(name, data) {
		return nil, corrupt(key, "the hash does not match")
	}
	s.cache.add(name, data)
	return data, nil
}

// listBlobs yields the names of the blobs.
func (s *blobStore) listBlobs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix := s.blobKey("")
		for e, err := range s.db.List(ctx, prefix, "", false) {
			if !yield(strings.TrimPrefix(e.Key, prefix), err) {
				return
			}
		}
	}
}

// hasBlobs reports whether there are blobs.
func (s *blobStore) hasBlobs(ctx context.Context) (bool, error) {
	for _, err := range s.db.List(ctx, s.blobKey(""), "", false) {
		return err == nil, err
	}
	return false, nil
}

// fetchBlobJSON decodes the content of a blob.
func fetchBlobJSON[T any](ctx context.Context, s *blobStore, name string) (T, error) {
	var v T
	data, err := s.fetchBlob(ctx, name)
	if err == nil {
		if err = unmarshalChecked(data, &v); err != nil {
			err = fmt.Errorf("%w: %s: %w", work.ErrCorrupt, s.blobKey(name), err)
		}
	}
	return v, err
}

// unmarshalChecked is json.Unmarshal for text that may be damaged.
func unmarshalChecked(data []byte, v any) error {
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// The name of a blob is the Seq of the head with which it is written, salt, and a
// hash:
//
//	1k-ssshhhhhhhhh
//
// The salt makes the name unique. The hash, of salt and content,
// authenticates the blob to those who have its name. A sealed blob is
// authenticated by its seal, which covers the name; instead of the hash, which
// would tell something about the content, it has more salt.
const (
	nameSaltLen = 3
	nameHashLen = 9
	maxBlobName = 13 + 1 + nameSaltLen + nameHashLen
)

func (s *blobStore) newBlobName(seq uint64, data []byte) string {
	name := append(strconv.AppendUint(make([]byte, 0, maxBlobName), seq, 36), '-')
	if s.sealer != nil {
		return string(appendRandomText(name, nameSaltLen+nameHashLen))
	}
	name = appendRandomText(name, nameSaltLen)
	return string(appendNameHash(name, name[len(name)-nameSaltLen:], data))
}

// appendNameHash appends the beginning of the hash of a salt and the content.
func appendNameHash(b, salt, data []byte) []byte {
	var text [hashLen]byte
	return append(b, appendHashText(text[:0], salt, data)[:nameHashLen]...)
}

// nameFits reports whether the hash in a name is that of the content.
func nameFits(name string, data []byte) bool {
	_, text, ok := strings.Cut(name, "-")
	if !ok || len(text) != nameSaltLen+nameHashLen {
		return false
	}
	return text[nameSaltLen:] == string(appendNameHash(nil, []byte(text[:nameSaltLen]), data))
}

// blobSeq returns the Seq in the name of a blob.
func blobSeq(name string) (uint64, bool) {
	text, rest, ok := strings.Cut(name, "-")
	if !ok || len(rest) != nameSaltLen+nameHashLen {
		return 0, false
	}
	seq, err := strconv.ParseUint(text, 36, 64)
	return seq, err == nil
}

// maxCachedBlobs is the number of bytes that a blobCache holds.
const maxCachedBlobs = 96 << 10

// blobCache holds small blobs that were read or written lately: records, lists
// and outcomes, which the next transitions read. It is safe for concurrent use.
type blobCache struct {
	mu    sync.Mutex
	blobs map[string][]byte
	order []string // the oldest first
	bytes int
}

func (c *blobCache) get(name string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.blobs[name]
}

func (c *blobCache) add(name string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(data) > maxCachedBlobs/4 || c.blobs[name] != nil {
		return
	}
	if c.blobs == nil {
		c.blobs = map[string][]byte{}
	}
	c.blobs[name] = data
	c.order = append(c.order, name)
	for c.bytes += len(data); c.bytes > maxCachedBlobs; c.order = c.order[1:] {
		c.bytes -= len(c.blobs[c.order[0]])
		delete(c.blobs, c.order[0])
	}
}

func (c *blobCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blobs, c.order, c.bytes = nil, nil, 0
}
