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

// watched has Watch, whatever is in it.
type watched struct{ store.Store }

func (w watched) Unwrap() store.Store { return w.Store }

func (w watched) Watch(ctx context.Context, prefix string) iter.Seq2[store.Event, error] {
	inner, ok := store.As[store.Watcher](w.Store)
	if !ok {
		return func(yield func(store.Event, error) bool) { yield(store.Event{}, errors.ErrUnsupported) }
	}
	return inner.Watch(ctx, prefix)
}

func TestAs(t *testing.T) {
	memory := store.NewMemory()
	for _, c := range []struct {
		name    string
		s       store.Store
		watches bool
	}{
		{"nil", nil, false},
		{"a store", memory, true},
		{"a store without", only{memory}, false},
		{"a wrapper", watched{memory}, true},
		{"a wrapper of a store without", watched{only{memory}}, false},
		{"two wrappers", watched{watched{memory}}, true},
		{"two wrappers of a store without", watched{watched{only{memory}}}, false},
		{"a wrapper of another one", watched{store.ReadOnly(memory)}, true},
		{"a wrapper of nothing", watched{nil}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, watches := store.As[store.Watcher](c.s)
			require.Equal(t, c.watches, watches)
			if watches {
				require.Equal(t, c.s, w, "As has returned another store")
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				for range w.Watch(ctx, "") {
					t.Fatal("an event after the end")
				}
			} else {
				require.Nil(t, w)
			}
		})
	}
}
