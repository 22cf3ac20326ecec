package store_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// only has the methods of Store and of nothing else.
type only struct{ store.Store }

// listed has List, whatever is in it.
type listed struct{ store.Store }

func (l listed) Unwrap() store.Store { return l.Store }

func (l listed) List(ctx context.Context, prefix, after string) iter.Seq2[string, error] {
	inner, ok := store.As[store.Lister](l.Store)
	if !ok {
		return func(yield func(string, error) bool) { yield("", errors.ErrUnsupported) }
	}
	return inner.List(ctx, prefix, after)
}

func TestAs(t *testing.T) {
	memory := store.NewMemory()
	for _, c := range []struct {
		name  string
		s     store.Store
		lists bool
	}{
		{"nil", nil, false},
		{"a store", memory, true},
		{"a store without", only{memory}, false},
		{"a wrapper", listed{memory}, true},
		{"a wrapper of a store without", listed{only{memory}}, false},
		{"two wrappers", listed{listed{memory}}, true},
		{"two wrappers of a store without", listed{listed{only{memory}}}, false},
		{"a wrapper of another one", listed{store.ReadOnly(memory)}, true},
		{"a wrapper of nothing", listed{nil}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, lists := store.As[store.Lister](c.s)
			require.Equal(t, c.lists, lists)
			if lists {
				require.Equal(t, c.s, l, "As has returned another store")
				for _, err := range l.List(t.Context(), "", "") {
					require.NoError(t, err)
				}
			} else {
				require.Nil(t, l)
			}
		})
	}
}
