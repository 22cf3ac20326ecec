package workspace

import (
	"context"
	"time"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// core is what the parts of a Manager need of it. They do not know the Manager.
type core struct {
	telemetry
	db       store.Store
	readOnly bool // the store refuses writes
	sealer   *ledger.Sealer
	ctx      context.Context // of background work

	storeTimeout time.Duration // see Options.StoreTimeout
	live         bool          // see Options.Live
}

// patience is the time after which a call of the store that has not returned is
// made again, if it is one that is tried again. Options.StoreTimeout leaves time
// for another call.
func (c *core) patience() time.Duration { return min(c.ttl/2, c.storeTimeout/3) }

// isReadOnly reports whether db is a store of [store.ReadOnly], or passes calls on
// to one.
func isReadOnly(db store.Store) bool {
	for {
		if _, ok := db.(interface{ IsReadOnly() }); ok {
			return true
		}
		w, ok := db.(store.Wrapper)
		if !ok {
			return false
		}
		db = w.Unwrap()
	}
}
