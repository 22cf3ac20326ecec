package workspace_test

import (
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
