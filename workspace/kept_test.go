package workspace_test

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// In all tests of this package, a State that was made of what was live a moment
// ago is the one that the document decodes to.
func init() {
	document.OnKeptLoad = func(d *document.Document, schema *state.Schema, st *state.State) {
		stored, err := document.Decode(d.Encode())
		if err != nil {
			panic(err)
		}
		loaded, _, err := stored.Load(schema)
		if err != nil {
			panic(err)
		}
		if err := sameState(st, loaded); err != nil {
			panic(err)
		}
	}
}

// sameState returns an error if a State that was made of what was live is not
// the one that was loaded.
func sameState(live, loaded *state.State) error {
	live, loaded = live.Snapshot(), loaded.Snapshot()
	changes, err := live.Effects(loaded)
	if err != nil {
		return err
	}
	if len(changes) > 0 || live.Version() != loaded.Version() {
		return fmt.Errorf("version %d is live, and version %d stored; differences: %v", live.Version(), loaded.Version(), changes)
	}
	if a, b := live.History().Results(), loaded.History().Results(); fmt.Sprint(a) != fmt.Sprint(b) {
		return fmt.Errorf("live %v, stored %v", a, b)
	}
	other := loaded.KV().All()
	for key, a := range live.KV().All() {
		if b := other[key]; fmt.Sprintf("%T %v", a, a) != fmt.Sprintf("%T %v", b, b) {
			return fmt.Errorf("%s: live %v, stored %v", key, a, b)
		}
	}
	return nil
}
