package workspace

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
)

// Info describes a Manager and its store, for people.
type Info struct {
	// Store is the kind of the store, such as "sqlite".
	Store      string
	Durability store.Durability
	// ReadOnly says that the store refuses writes: see [store.ReadOnly].
	ReadOnly bool
	// Abilities are the names of the interfaces of package store that the store
	// implements, such as "Watcher", sorted.
	Abilities []string
	// Keys are the ids of Options.Keys. The first key seals.
	Keys []string
	// Schema says whether the Manager has a schema.
	Schema bool
	// Handles says whether the Manager has Options.Run, so that it handles
	// messages.
	Handles bool
	// The options of the same names, with their defaults.
	Busy                    Busy
	Takeover                Takeover
	TTL                     time.Duration
	Queue, QueueBytes, Runs int
	Attempts, DeadLetters   int
	Messages, Results       int
	Holder                  string
	Traced                  bool // Options.Tracer
}

// Info returns a description of the Manager and its store. It reads nothing from
// the store.
func (m *Manager) Info() Info {
	o := m.opts
	return Info{
		Store: storeKind(m.db), Durability: m.db.Durability(), ReadOnly: m.readOnly,
		Abilities: storeAbilities(m.db), Keys: slices.Clone(m.keyIDs), Schema: o.Schema != nil, Handles: o.Run != nil,
		Busy: o.Busy, Takeover: o.Takeover, TTL: o.TTL,
		Queue: o.Queue, QueueBytes: o.QueueBytes, Runs: o.Runs, Attempts: o.Attempts, DeadLetters: o.DeadLetters,
		Messages: o.Messages, Results: o.Results, Holder: o.Holder,
		Traced: o.Tracer != nil,
	}
}

// Schema returns Options.Schema, or nil if there is none.
func (m *Manager) Schema() *state.Schema { return m.opts.Schema }

// storeKind returns the name that the errors of a store have. Every store
// refuses the empty key without looking anything up.
func storeKind(db store.Store) string {
	_, err := store.Get(context.Background(), db, "")
	var refused *store.Error
	if errors.As(err, &refused) {
		return refused.Store
	}
	return "unknown"
}

func storeAbilities(db store.Store) []string {
	var list []string
	add := func(name string, has bool) {
		if has {
			list = append(list, name)
		}
	}
	_, transactor := store.As[store.Transactor](db)
	add("Transactor", transactor)
	_, watcher := store.As[store.Watcher](db)
	add("Watcher", watcher)
	return list
}
