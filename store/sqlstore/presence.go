package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/agentstate/state/internal/announce"
	"github.com/agentstate/state/store"
)

// presence makes names present. A claim must end with its process, without an
// action of that process.
type presence interface {
	// claim returns store.ErrConflict if the name is present.
	claim(ctx context.Context, name string) (announce.Claim, error)
	isPresent(ctx context.Context, name string) (bool, error)
}

// Announce implements [store.Presence].
//
// SQLite holds a lock on a byte of the file PATH-presence next to the database.
// The system releases it when the process ends, and at no other time. The file
// remains. While it is removed or replaced, names are absent that are announced.
//
// On a server, an announcement is a session with an advisory lock. A name is
// absent before its process has ended if the session ends: if its connection
// breaks, the server is restarted or fails over to another, an administrator
// ends it, or the process has been suspended or disconnected for 20 seconds
// (PostgreSQL before version 14: when TCP gives up). The store looks every second
// whether the session is there. A pooler between client and server
// must not share sessions; Announce refuses one that does. An announcement keeps
// a connection of the pool, beyond the limit of a pool that the store owns. A Galera
// cluster has no such locks, and Announce and IsPresent return an error.
func (s *Store) Announce(ctx context.Context, name string) (lost <-chan struct{}, withdraw func() error, err error) {
	if err := store.CheckKey(name); err != nil {
		return nil, nil, s.newError("announce", name, err)
	}
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return nil, nil, s.newError("announce", name, err)
	}
	defer endCall()
	c, err := s.presence.claim(ctx, name)
	if err != nil {
		return nil, nil, s.newError("announce", name, withCause(ctx, err))
	}
	k := announce.NewKeeper(c)
	s.calls.Go(func() { k.Run(s.lifetime.Done()) }) // Close waits for it
	return k.Lost(), func() error {
		if err := k.Withdraw(); err != nil {
			return s.newError("withdraw", name, err)
		}
		return nil
	}, nil
}

// IsPresent implements [store.Presence].
func (s *Store) IsPresent(ctx context.Context, name string) (bool, error) {
	if err := store.CheckKey(name); err != nil {
		return false, s.newError("is present", name, err)
	}
	ctx, endCall, err := s.beginCall(ctx)
	if err != nil {
		return false, s.newError("is present", name, err)
	}
	defer endCall()
	var present bool
	err = s.retry(ctx, func() (err error) {
		present, err = s.presence.isPresent(ctx, name)
		return err
	})
	if err != nil {
		return false, s.newError("is present", name, withCause(ctx, err))
	}
	return present, nil
}

// nameHash identifies a name of a table.
type nameHash [sha256.Size]byte

func newNameHash(table, name string) nameHash {
	return sha256.Sum256([]byte("presence\x00" + table + "\x00" + name))
}

func (h nameHash) String() string { return hex.EncodeToString(h[:]) }

// noPresence is the presence of a server that has no suitable locks.
type noPresence struct{ reason error }

func (n noPresence) claim(context.Context, string) (announce.Claim, error) {
	return announce.Claim{}, n.reason
}
func (n noPresence) isPresent(context.Context, string) (bool, error) { return false, n.reason }

var errGalera = errors.New("a Galera cluster has no locks that all of its servers know")
