package document_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort/property"
	"github.com/agentstate/state/workspace/internal/document"
)

// A document that was stored with another schema, and a state that was loaded
// from it and changed, stay equal through any sequence of changes and loads.
func TestADocumentMovesFormerFields(t *testing.T) {
	former := state.MustSchema(
		&state.Field[string]{Name: "order"}, &state.Field[[]string]{Name: "remarks"}, &state.Field[string]{Name: "tag"}, state.AllowUndeclared)
	order := &state.Field[string]{Name: "order_id", Was: []string{"no", "order"}}
	remarks := &state.Field[[]string]{Name: "notes", Was: []string{"remarks"}}
	tags := &state.Field[[]string]{Name: "tag", Convert: func(text state.JSON) ([]string, error) {
		tag, err := strconv.Unquote(string(text))
		return []string{tag}, err
	}}
	keyed := &state.Field[[]any]{Name: "list", Was: []string{"key"}}
	schema := state.MustSchema(order, remarks, tags, keyed)

	property.Check(t, func(t *rapid.T) {
		old, doc := state.New(former), document.New()
		empty := old.Snapshot()
		write := func(name string, v any) {
			if rapid.Bool().Draw(t, name) {
				require.NoError(t, old.KV().Set(name, v))
			}
		}
		write("order", "W1")
		write("remarks", []string{"a", "b"})
		write("tag", "x")
		write("key", []any{"k"})
		var moved document.Moved
		apply := func(from, to *state.State) {
			effects, err := doc.Save(from, to, moved)
			require.NoError(t, err)
			require.NoError(t, doc.Apply(effects))
			moved.Forget(effects)
		}
		apply(empty, old)

		st, moved, err := doc.Load(schema)
		require.NoError(t, err)
		require.Equal(t, old.KV().Has("key"), keyed.Has(st))
		require.Equal(t, old.KV().Has("tag"), tags.Has(st))
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			before := st.Snapshot()
			for range rapid.IntRange(1, 3).Draw(t, "writes") {
				name := rapid.SampledFrom([]string{"order_id", "notes", "tag", "list"}).Draw(t, "name")
				var err error
				switch op := rapid.SampledFrom([]string{"set", "replace", "delete"}).Draw(t, "op"); {
				case op == "delete":
					_, err = st.KV().Delete(name)
				case name == "order_id":
					err = st.KV().Set(name, rapid.SampledFrom([]string{"W2", "W3"}).Draw(t, "order"))
				case op == "set":
					err = st.KV().Set(name, []string{"more"})
				default:
					err = st.KV().Replace(name, []string{"other"})
				}
				require.NoError(t, err)
			}
			apply(before, st)
			again, _, err := doc.Clone().Load(schema)
			require.NoError(t, err)
			want, err := st.Export()
			require.NoError(t, err)
			got, err := again.Export()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			if rapid.Bool().Draw(t, "reload") {
				st, moved, err = doc.Load(schema)
				require.NoError(t, err)
			}
		}
	})
}
