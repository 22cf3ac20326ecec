package workspace

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/store"
)

// blobStore reads and writes the blobs of one workspace. Blobs never change and
// never have the same name twice. With the key of the workspace they are
// sealed.
type blobStore struct {
	db     store.Store
	key    string // of the head
	sealer *sealer
	pause  func(context.Context, time.Duration) error // waits between attempts
}

// blobInfix stands between the key of a head and the name of a blob. It
// contains a character that encodeUser escapes, so no head has the key of
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
	name string
	data []byte
}

func (b *newBlob) ref() blobRef { return blobRef{Name: b.name, Hash: hash(b.data), Bytes: len(b.data)} }

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
		if !errors.Is(err, store.ErrUnknownOutcome) || attempt == maxUnknown {
			return fmt.Errorf("%s: not written: %v", s.key, err)
		}
		if err := s.pause(ctx, delay.Delay()); err != nil {
			return err
		}
	}
}

// fetchBlob returns the content of a blob, or a missingBlobError.
func (s *blobStore) fetchBlob(ctx context.Context, r blobRef) ([]byte, error) {
	key := s.blobKey(r.Name)
	e, err := s.db.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, &missingBlobError{key}
	}
	if err != nil {
		return nil, err
	}
	data, err := s.sealer.open(s.key, key, e.Value)
	if err != nil {
		return nil, err
	}
	if hash(data) != r.Hash {
		return nil, corrupt(key, "the hash does not match")
	}
	return data, nil
}

// fetchBlobJSON decodes the content of a blob.
func fetchBlobJSON[T any](ctx context.Context, s *blobStore, r blobRef) (T, error) {
	var v T
	data, err := s.fetchBlob(ctx, r)
	if err == nil {
		if err = json.Unmarshal(data, &v); err != nil {
			err = fmt.Errorf("%w: %s: %w", ErrCorrupt, s.blobKey(r.Name), err)
		}
	}
	return v, err
}

// blobLead is the distance between the Seq of the head that a writer has read
// and the expiry of the blobs that it prepares. It is a variable, like maxOps
// and maxTailBytes, so that tests reach it with few writes.
var blobLead uint64 = 64

// newBlobName returns a name that no blob has had. Only a head whose Seq is at
// most expiry may be the first to refer to the blob.
func newBlobName(expiry uint64) string {
	return fmt.Sprintf("%016x-%s", expiry, hex.EncodeToString(randomBytes(16)))
}

// blobExpiry returns the expiry in the name of a blob.
func blobExpiry(name string) (uint64, bool) {
	text, _, ok := strings.Cut(name, "-")
	if !ok || len(text) != 16 {
		return 0, false
	}
	expiry, err := strconv.ParseUint(text, 16, 64)
	return expiry, err == nil
}
