package workspace

import (
	"fmt"
	"log/slog"

	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Key is a master key, from which a key for each workspace is derived. A Key
// that is printed, logged or marshalled never shows the Secret.
//
// A process that is not given the key of a value cannot read it: it gets
// ErrInvalidKey and writes nothing, and a run that it holds is left to other
// processes. So a new key is introduced in this order:
//
//  1. Add it as the second of Options.Keys in every process: all can read what
//     is sealed with it, and none seals with it yet.
//  2. When every process runs so, make it the first everywhere.
//  3. When every process runs so, call [Manager.Compact] for every workspace of
//     [Manager.Summaries], and again for one as long as Verify reports the old
//     key, because a run was under way.
//  4. Remove the old key, unless [Manager.Expire] still has to remove deleted
//     workspaces that are sealed with it.
//
// Data that was written without keys is ErrInvalidKey for a Manager that has
// some: nothing authenticates it. So a deployment without keys gets its first
// key while no process uses the workspaces. For each of them, a Manager
// without keys calls Export and Delete, and then Expire with 0. A Manager with
// the key calls ImportWorkspace. The values of [Manager.Store] go along. Keep
// the exports until that is done.
type Key struct {
	ID     string // stored next to sealed data: 1 to 64 visible ASCII characters
	Secret []byte // at least 32 random bytes
}

// String returns the ID.
func (k Key) String() string { return fmt.Sprintf("key %s %s", fault.Quote(k.ID), masked) }

// GoString returns String.
func (k Key) GoString() string { return k.String() }

// Format prints String, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// LogValue returns String.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// MarshalText returns String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// newSealer returns a sealer that seals with the first key and opens with all
// of them, or nil if there are no keys.
func newSealer(keys []Key) (*ledger.Sealer, error) {
	plain := make([]ledger.Key, len(keys))
	for i, k := range keys {
		plain[i] = ledger.Key(k)
	}
	return ledger.NewSealer(plain)
}
