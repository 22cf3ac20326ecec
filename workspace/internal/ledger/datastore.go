package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
)

// dataPrefix begins the keys of the data of all users.
const dataPrefix = "agent:data:"

// DataStore is a store for a user's data outside the workspace. Its values are
// sealed with the key of the workspace, each bound to its key in the store.
type DataStore struct {
	db        store.Store
	sealer    *Sealer
	workspace string // the key of the head
	prefix    string // begins all keys
	err       error  // why the user is not valid
}

// NewDataStore returns the store of a user's data. If the user is not valid, its
// methods return ErrInvalid.
func NewDataStore(db store.Store, s *Sealer, user string) *DataStore {
	key, err := HeadKey(user)
	return &DataStore{db, s, key, dataPrefix + EncodeUser(user) + ":", err}
}

// Prefix begins the keys of the data.
func (d *DataStore) Prefix() string { return d.prefix }

// fault returns the error of an operation.
func (d *DataStore) fault(op, key string, err error) error {
	return &store.Error{Store: "workspace", Op: op, Key: key, Err: err}
}

// Get implements store.Store.
func (d *DataStore) Get(ctx context.Context, keys ...string) ([]store.Entry, error) {
	if d.err != nil {
		return nil, d.fault("get", "", d.err)
	}
	entries, err := d.db.Get(ctx, keys...)
	for i, e := range entries {
		if err == nil && e.Revision != "" {
			entries[i], err = d.open("get", e)
		}
	}
	if err != nil {
		return nil, err
	}
	return entries, nil
}

func (d *DataStore) open(op string, e store.Entry) (store.Entry, error) {
	value, err := d.sealer.open(d.workspace, e.Key, e.Value)
	if err != nil {
		return store.Entry{}, d.fault(op, e.Key, err)
	}
	e.Value = value
	return e, nil
}

// Batch implements store.Store. Without keys, it refuses a value that Get would
// take for a sealed one.
func (d *DataStore) Batch(ctx context.Context, writes []store.Write) ([]store.Revision, error) {
	if d.err != nil {
		return nil, d.fault("write", "", d.err)
	}
	sealed := slices.Clone(writes)
	for i, w := range writes {
		if w.Delete {
			continue
		}
		if _, _, h := cutSealHeader(w.Value); d.sealer == nil && h.Sealed {
			return nil, d.fault("write", w.Key, fmt.Errorf("%w: the value begins as a sealed one", work.ErrInvalid))
		}
		sealed[i].Value = d.sealer.seal(d.workspace, w.Key, w.Value)
	}
	return d.db.Batch(ctx, sealed)
}

// List implements store.Store.
func (d *DataStore) List(ctx context.Context, prefix, after string, values bool) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		if d.err != nil {
			yield(store.Entry{}, d.fault("list", prefix, d.err))
			return
		}
		for e, err := range d.db.List(ctx, prefix, after, values) {
			if err == nil && values {
				e, err = d.open("list", e)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// Durability implements store.Store.
func (d *DataStore) Durability() store.Durability { return d.db.Durability() }

// Close does nothing: the store belongs to the caller.
func (d *DataStore) Close() error { return nil }

// Reseal seals all values with the first key, unless they are.
func (d *DataStore) Reseal(ctx context.Context) error {
	if d.sealer == nil {
		return nil
	}
	var failed error
	for e, err := range d.db.List(ctx, d.prefix, "", true) {
		if _, _, h := cutSealHeader(e.Value); err == nil && h.Key != d.sealer.first {
			err = d.resealValue(ctx, e.Key)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func (d *DataStore) resealValue(ctx context.Context, key string) error {
	delay := newBackoff()
	for {
		e, err := store.Get(ctx, d, key)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err = store.Put(ctx, d, key, e.Value, store.IfRevision(e.Revision)); !errors.Is(err, store.ErrConflict) {
			return err
		}
		if err := delay.Wait(ctx); err != nil { // another writer was first
			return err
		}
	}
}

// Clear deletes all values.
func (d *DataStore) Clear(ctx context.Context) error { return clearPrefix(ctx, d.db, d.prefix) }

// ClearThreads deletes the values of all threads of a user, but not those of the
// user's own workspace.
func ClearThreads(ctx context.Context, db store.Store, user string) error {
	return clearPrefix(ctx, db, dataPrefix+EncodeUser(SharedID(user)))
}

func clearPrefix(ctx context.Context, db store.Store, prefix string) error {
	var failed error
	for e, err := range db.List(ctx, prefix, "", false) {
		if err == nil {
			err = store.Delete(ctx, db, e.Key, store.Always)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// verify reads all values and checks that they are authentic. It returns their
// number, and notes the ids of the keys with which they are sealed.
func (d *DataStore) verify(ctx context.Context, keys map[string]bool) (n int, err error) {
	for e, err := range d.db.List(ctx, d.prefix, "", true) {
		if err == nil {
			_, err = d.open("verify", e)
		}
		if err != nil {
			return n, err
		}
		noteSealKey(keys, e.Value)
		n++
	}
	return n, nil
}
