package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/store"
)

// blobStore reads and writes the blobs of one workspace. Blobs never change and
// never have the same name twice. With the key of the workspace they are
// sealed.
type blobStore struct {
	db     store.Store
	multi  store.MultiGetter // db, or nil if it is none
	key    string            // of the head
	sealer *Sealer
	pause  func(context.Context, time.Duration) error // waits between attempts
	cache  *blobCache
	// fresh has the blobs that a transition adds, which are not stored yet.
	fresh map[string][]byte
}

// blobInfix stands between the key of a head and the name of a blob. It
// contains a character that EncodeUser escapes, so no head has the key of
// another's blob, and the blobs of a workspace are adjacent in the order of the
// keys.
const blobInfix = "/b/"

// newBackoff returns the delays between the attempts of one operation.
func newBackoff() backoff.Backoff {
	return backoff.Backoff{Min: time.Millisecond, Max: 256 * time.Millisecond}
}

// maxUnknown is the number of attempts that may have an unknown outcome.
const maxUnknown = 12

// missingBlobError reports a blob that does not exist. The head that refers to
// it may have been replaced since it was read.
type missingBlobError struct{ key string }

func (e *missingBlobError) Error() string { return ErrCorrupt.Error() + ": " + e.key + ": missing" }
func (e *missingBlobError) Unwrap() error { return ErrCorrupt }

// newBlob is a blob that is to be written.
type newBlob struct {
	name    string
	data    []byte
	content string // see transition.identify
}

// blobKey returns the key of a blob in the store.
func (s *blobStore) blobKey(name string) string { return s.key + blobInfix + name }

// putBlobs writes blobs. No other writer knows their names.
func (s *blobStore) putBlobs(ctx context.Context, blobs []newBlob) error {
	for _, b := range blobs {
		key := s.blobKey(b.name)
		if err := s.putBlob(ctx, key, s.sealer.seal(s.key, key, b.data)); err != nil {
			return err
		}
	}
	return nil
}

func (s *blobStore) putBlob(ctx context.Context, key string, data []byte) error {
	delay := newBackoff()
	for attempt := 0; ; attempt++ {
		_, err := s.db.Put(ctx, key, data, store.IfAbsent)
		if err == nil || errors.Is(err, store.ErrConflict) { // written now, or by an earlier attempt
			return nil
		}
		// A blob that may have been written is garbage until a head refers to
		// it. So the error must not say that the outcome is unknown.
		if !errors.Is(err, store.ErrUnknownOutcome) {
			return fmt.Errorf("%s: not written: %w", s.key, err)
		}
		if attempt == maxUnknown {
			return fmt.Errorf("%s: not written: %v", s.key, err)
		}
		if err := s.pause(ctx, delay.Delay()); err != nil {
			return err
		}
	}
}

// fetchBlob returns the content of a blob, or a missingBlobError. The caller
// must not change it.
func (s *blobStore) fetchBlob(ctx context.Context, name string) ([]byte, error) {
	if data := s.heldBlob(name); data != nil {
		return data, nil
	}
	e, err := s.db.Get(ctx, s.blobKey(name))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return s.openBlob(name, e)
}

// fetchBlobs is fetchBlob for several blobs, which it reads at once if the store
// is a MultiGetter. With an error, it returns the contents of those before the
// first that it cannot read.
func (s *blobStore) fetchBlobs(ctx context.Context, names []string) ([][]byte, error) {
	blobs := make([][]byte, len(names))
	var keys []string
	for i, name := range names {
		if blobs[i] = s.heldBlob(name); blobs[i] == nil {
			keys = append(keys, s.blobKey(name))
		}
	}
	var entries []store.Entry
	if s.multi != nil && len(keys) > 1 {
		var err error
		if entries, err = s.multi.GetMulti(ctx, keys...); err != nil {
			return nil, err
		}
	}
	for i, name := range names {
		if blobs[i] != nil {
			continue
		}
		var err error
		if len(entries) > 0 {
			blobs[i], err = s.openBlob(name, entries[0])
			entries[0].Value, entries = nil, entries[1:] // not held while others are opened
		} else {
			blobs[i], err = s.fetchBlob(ctx, name)
		}
		if err != nil {
			return blobs[:i], err
		}
	}
	return blobs, nil
}

// atOnce returns how many of n blobs are to be read at once. Without a
// MultiGetter, blobs that nobody asks for later are not read.
func (s *blobStore) atOnce(n int) int {
	if s.multi == nil {
		return 1
	}
	return n
}

// heldBlob returns the content of a blob that need not be read, or nil.
func (s *blobStore) heldBlob(name string) []byte {
	if data, ok := s.fresh[name]; ok {
		return data
	}
	return s.cache.get(name)
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

// deleteBlobs deletes blobs to which no head will refer again. If the store is a
// Purger, they leave no markers.
func (s *blobStore) deleteBlobs(ctx context.Context, names []string) error {
	p, ok := store.As[store.Purger](s.db)
	if !ok {
		var failed error
		for _, name := range names {
			err := s.db.Delete(ctx, s.blobKey(name), store.Always)
			if err == nil {
				s.cache.noteDeleted(name)
			}
			failed = errors.Join(failed, err)
		}
		return failed
	}
	if len(names) == 0 {
		return nil
	}
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = s.blobKey(name)
	}
	err := p.Purge(ctx, keys...)
	if err == nil { // a store that had to delete them lists them
		for _, name := range names {
			s.cache.noteDeleted(name)
		}
	}
	return err
}

// listBlobs yields the names of the blobs, and if the store is a Lister perhaps
// those of deleted ones.
func (s *blobStore) listBlobs(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		prefix := s.blobKey("")
		if l, ok := store.As[store.Lister](s.db); ok {
			for key, err := range l.List(ctx, prefix, "") {
				if !yield(strings.TrimPrefix(key, prefix), err) {
					return
				}
			}
			return
		}
		for e, err := range s.db.Scan(ctx, prefix, "") {
			if !yield(strings.TrimPrefix(e.Key, prefix), err) {
				return
			}
		}
	}
}

// mayBeMarker reports whether listBlobs may have yielded the name of a blob only
// because it was deleted here lately.
func (s *blobStore) mayBeMarker(name string) bool {
	_, lists := store.As[store.Lister](s.db)
	return lists && s.cache.isDeleted(name)
}

// blobExists reports whether a blob exists that listBlobs has yielded.
func (s *blobStore) blobExists(ctx context.Context, name string) (bool, error) {
	if _, ok := store.As[store.Lister](s.db); !ok {
		return true, nil
	}
	_, err := s.db.Get(ctx, s.blobKey(name))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// hasBlobs reports whether there are blobs. It also reads those that were
// deleted here: a write of before may have arrived since.
func (s *blobStore) hasBlobs(ctx context.Context) (bool, error) {
	for name, err := range s.listBlobs(ctx) {
		exists := false
		if err == nil {
			exists, err = s.blobExists(ctx, name)
		}
		if err != nil || exists {
			return exists, err
		}
	}
	return false, nil
}

// fetchBlobJSON decodes the content of a blob.
func fetchBlobJSON[T any](ctx context.Context, s *blobStore, name string) (T, error) {
	var v T
	data, err := s.fetchBlob(ctx, name)
	if err == nil {
		if err = unmarshalChecked(data, &v); err != nil {
			err = fmt.Errorf("%w: %s: %w", ErrCorrupt, s.blobKey(name), err)
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

// blobLead is the distance between the Seq of the head that a writer has read
// and the expiry of the blobs that it prepares. It is a variable, like maxOps,
// so that tests reach it with few writes.
var blobLead uint64 = 64

// The name of a blob is its expiry, salt, and a hash:
//
//	1k-ssshhhhhhhhh
//
// Only a head whose Seq is at most the expiry may be the first to refer to the
// blob. The salt makes the name unique. The hash, of salt and content,
// authenticates the blob to those who have its name. A sealed blob is
// authenticated by its seal, which covers the name; instead of the hash, which
// would tell something about the content, it has more salt.
const (
	nameSaltLen = 3
	nameHashLen = 9
	maxBlobName = 13 + 1 + nameSaltLen + nameHashLen
)

func (s *blobStore) newBlobName(expiry uint64, data []byte) string {
	name := strconv.FormatUint(expiry, 36) + "-"
	if s.sealer != nil {
		return name + randomText(nameSaltLen+nameHashLen)
	}
	salt := randomText(nameSaltLen)
	return name + salt + nameHash(salt, data)
}

func nameHash(salt string, data []byte) string { return hash([]byte(salt), data)[:nameHashLen] }

// nameFits reports whether the hash in a name is that of the content.
func nameFits(name string, data []byte) bool {
	_, text, ok := strings.Cut(name, "-")
	return ok && len(text) == nameSaltLen+nameHashLen && text[nameSaltLen:] == nameHash(text[:nameSaltLen], data)
}

// blobExpiry returns the expiry in the name of a blob.
func blobExpiry(name string) (uint64, bool) {
	text, rest, ok := strings.Cut(name, "-")
	if !ok || len(rest) != nameSaltLen+nameHashLen {
		return 0, false
	}
	expiry, err := strconv.ParseUint(text, 36, 64)
	return expiry, err == nil
}

// maxCachedBlobs is the number of bytes that a blobCache holds.
const maxCachedBlobs = 96 << 10

// blobCache holds small blobs that were read or written lately: records, lists
// and outcomes, which the next transitions read. It also knows which blobs were
// deleted. It is safe for concurrent use.
type blobCache struct {
	mu    sync.Mutex
	blobs map[string][]byte
	order []string // the oldest first
	bytes int

	deleted      map[string]time.Time // blobs that were deleted here, and when
	deletedOrder []string             // the oldest first
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
	c.deleted, c.deletedOrder = nil, nil
}

const (
	// maxDeletedBlobs is the number of deleted blobs that a blobCache remembers.
	maxDeletedBlobs = 1024
	// deletedLately is for how long it remembers them. Stores that list deleted
	// keys list them for some seconds. A write of a blob that arrives after the
	// deletion is garbage, which is found later.
	deletedLately = 10 * time.Second
)

// noteDeleted notes that a blob was deleted.
func (c *blobCache) noteDeleted(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deleted == nil {
		c.deleted = map[string]time.Time{}
	}
	c.deleted[name] = time.Now()
	c.deletedOrder = append(c.deletedOrder, name)
	if len(c.deletedOrder) > maxDeletedBlobs {
		delete(c.deleted, c.deletedOrder[0])
		c.deletedOrder = c.deletedOrder[1:]
	}
}

// isDeleted reports whether a blob was deleted here lately.
func (c *blobCache) isDeleted(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.deleted[name]
	return ok && time.Since(at) < deletedLately
}
