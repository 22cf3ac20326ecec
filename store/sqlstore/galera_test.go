package sqlstore_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlstore"
	"github.com/agentstate/state/store/sqlstore/mysqlstore"
	"github.com/agentstate/state/store/storetest"
)

// galeraNodes returns the nodes that STATE_TEST_GALERA names: URLs, separated by
// spaces.
func galeraNodes(t *testing.T) (nodes []*server) {
	t.Helper()
	for _, url := range strings.Fields(os.Getenv("STATE_TEST_GALERA")) {
		s := &server{driver: "mysql", url: url}
		s.db = s.connect(t)
		nodes = append(nodes, s)
	}
	if len(nodes) == 0 {
		t.Skip("NOT TESTED: STATE_TEST_GALERA names no nodes of a cluster")
	}
	return nodes
}

// A store is one, whatever node its handles are on.
func TestGalera(t *testing.T) {
	nodes := galeraNodes(t)
	var turn atomic.Int64
	storetest.Run(t, func(t *testing.T) func() store.Store {
		table := nodes[0].table(t)
		return func() store.Store {
			node := nodes[int(turn.Add(1))%len(nodes)]
			s := node.open(t, node.url, table)
			require.NotEqual(t, store.DurabilityPower, s.Durability())
			return s
		}
	})
}

// A pool of the program whose reads may be stale is refused.
func TestGaleraPool(t *testing.T) {
	node := galeraNodes(t)[0]
	for parameters, refused := range map[string]bool{"": true, "?wsrep_sync_wait=1": true, "?wsrep_sync_wait=7": false, "?wsrep_sync_wait=15": false} {
		s, err := sqlstore.New(context.Background(), node.mysqlPool(t, parameters), mysqlstore.Dialect(), &sqlstore.Options{Table: node.table(t)})
		if !refused {
			require.NoError(t, err, parameters)
			require.NoError(t, s.Close())
			continue
		}
		require.ErrorIs(t, err, store.ErrInvalid, parameters)
		require.ErrorContains(t, err, "wsrep_sync_wait=7", parameters)
	}
}
