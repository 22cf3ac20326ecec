package workspace_test

import (
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// In all tests of this package, a State that was made of what was live a moment
// ago is the one that is loaded from the store.
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
		now := st.Snapshot()
		changes, err := now.Effects(loaded)
		if err != nil {
			panic(err)
		}
		if len(changes) > 0 || now.Version() != loaded.Version() {
			panic(fmt.Sprintf("version %d is live, and version %d stored; differences: %v", now.Version(), loaded.Version(), changes))
		}
		if a, b := now.History().Results(), loaded.History().Results(); fmt.Sprint(a) != fmt.Sprint(b) {
			panic(fmt.Sprintf("live %v, stored %v", a, b))
		}
		other := loaded.KV().All()
		for key, live := range now.KV().All() {
			if stored := other[key]; fmt.Sprintf("%T %v", live, live) != fmt.Sprintf("%T %v", stored, stored) {
				panic(fmt.Sprintf("%s: live %v, stored %v", key, live, stored))
			}
		}
	}
}
