package store

import "context"

// MultiGetter is a Store that reads several entries in one call. It saves the
// round trips of a program that knows the keys: a database answers with one
// statement.
type MultiGetter interface {
	Store

	// GetMulti returns an entry for each of the keys, in their order. The entry
	// of a missing key has the key and an empty revision, which no write has. A
	// key may be given more than once. An invalid key is ErrInvalidKey. With an
	// error, no entries are returned.
	//
	// Each entry is read as by Get. Together they are not a snapshot: a store
	// may see the entries at different times, and a part of a concurrent batch.
	//
	// The number of keys is not limited: a store may divide a long list into
	// several requests. All values are in memory at once, so a caller that does
	// not know how large they are asks for a few at a time.
	GetMulti(ctx context.Context, keys ...string) ([]Entry, error)
}
