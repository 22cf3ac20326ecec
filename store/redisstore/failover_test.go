package redisstore_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/redisstore"
)

// node is a node of a cluster.
type node struct {
	*private
	client  *redis.Client
	address []any // host, port, and port of the bus
}

// startCluster starts three masters and a replica of the one that has the slot of
// a store with the default prefix.
func startCluster(t *testing.T) (master, replica node, addresses []string) {
	t.Helper()
	nodes := make([]node, 4)
	for i := range nodes {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		bus := free.Addr().(*net.TCPAddr).Port
		require.NoError(t, free.Close())
		p := start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", fmt.Sprint(bus))
		client := connect(t, p.url)
		host, port, err := net.SplitHostPort(client.Options().Addr)
		require.NoError(t, err)
		nodes[i] = node{p, client, []any{host, port, bus}}
		addresses = append(addresses, client.Options().Addr)
	}
	ctx := t.Context()
	for _, n := range nodes[1:] {
		require.NoError(t, nodes[0].client.Do(ctx, append([]any{"cluster", "meet"}, n.address...)...).Err())
	}
	for i, slots := range [][2]int{{0, 5460}, {5461, 10922}, {10923, 16383}} {
		require.NoError(t, nodes[i].client.ClusterAddSlotsRange(ctx, slots[0], slots[1]).Err())
	}
	slot, err := nodes[0].client.ClusterKeySlot(ctx, "{state:}entries").Result()
	require.NoError(t, err)
	master, replica = nodes[min(slot/5461, 2)], nodes[3]
	id, err := master.client.Do(ctx, "cluster", "myid").Text()
	require.NoError(t, err)
	testkit.Until(func() bool { return replica.client.ClusterReplicate(ctx, id).Err() == nil })
	for _, n := range nodes {
		testkit.Until(func() bool {
			info, err := n.client.ClusterInfo(ctx).Result()
			return err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:4")
		})
	}
	testkit.Until(func() bool {
		return strings.Contains(replica.client.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	return master, replica, addresses
}

// offset returns a position in the stream of replication, by its name in INFO. WAIT does
// not do for the write of a store: it waits for those of its own connection.
func (n node) offset(t *testing.T, name string) int {
	t.Helper()
	for line := range strings.Lines(n.client.Info(t.Context(), "replication").Val()) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			offset, err := strconv.Atoi(text)
			require.NoError(t, err)
			return offset
		}
	}
	t.Fatalf("INFO has no %s", name)
	return 0
}

// A store finds the node that has replaced a dead one, although its client asks
// for that once an hour only.
func TestClusterFailover(t *testing.T) {
	master, replica, addresses := startCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, ClusterStateReloadInterval: time.Hour})
	defer client.Close()
	s, err := redisstore.New(t.Context(), client, nil)
	require.NoError(t, err)
	_, err = store.Put(t.Context(), s, "k", []byte("1"), store.Always)
	require.NoError(t, err)
	written := master.offset(t, "master_repl_offset")
	testkit.Until(func() bool { return replica.offset(t, "slave_repl_offset") >= written })
	master.kill()
	promoted := make(chan time.Time, 1)
	go func() {
		testkit.Until(func() bool {
			info, _ := replica.client.ClusterInfo(context.Background()).Result()
			role := replica.client.Info(context.Background(), "replication").Val()
			return strings.Contains(role, "role:master") && strings.Contains(info, "cluster_state:ok")
		})
		promoted <- time.Now()
	}()
	testkit.Until(func() bool {
		_, err = store.Put(t.Context(), s, "k", []byte("2"), store.Always)
		return err == nil
	})
	served := time.Now()
	t.Logf("served %v after the cluster was whole again", served.Sub(<-promoted))
	e, err := store.Get(t.Context(), s, "k")
	require.NoError(t, err)
	require.Equal(t, "2", string(e.Value))
}
