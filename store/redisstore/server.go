package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/store"
)

// errClusterNode reports a single-server client for a node of a cluster.
var errClusterNode = fmt.Errorf("%w: a node of a cluster needs a cluster client", store.ErrInvalid)

// defaultMaxValue is the default of "proto-max-bulk-len".
const defaultMaxValue = 512 << 20

// serverInfo describes a server, or the weakest node of a cluster.
type serverInfo struct {
	durability store.Durability
	maxValue   int // maximum size of a value in bytes
}

// inspectServer returns an error for clients and servers that cannot keep the
// guarantees of a store.
func inspectServer(ctx context.Context, client redis.UniversalClient) (serverInfo, error) {
	switch client := client.(type) {
	case *redis.Client:
		if o := client.Options(); o.ClientSideCache != nil || o.ClientSideCacheConfig != nil {
			return serverInfo{}, fmt.Errorf("%w: the client has a cache", store.ErrInvalid)
		}
		return inspectNode(ctx, client, false)
	case *redis.ClusterClient:
		if client.Options().ReadOnly {
			return serverInfo{}, fmt.Errorf("%w: the client reads from replicas", store.ErrInvalid)
		}
		var mu sync.Mutex
		weakest := serverInfo{durability: store.DurabilityPower, maxValue: defaultMaxValue}
		err := client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			found, err := inspectNode(ctx, node, true)
			mu.Lock()
			defer mu.Unlock()
			weakest.durability = min(weakest.durability, found.durability)
			weakest.maxValue = min(weakest.maxValue, found.maxValue)
			return err
		})
		return weakest, err
	}
	return serverInfo{}, fmt.Errorf("%w: a %T is not a client of a server or a cluster", store.ErrInvalid, client)
}

func inspectNode(ctx context.Context, node *redis.Client, cluster bool) (serverInfo, error) {
	info, err := node.InfoMap(ctx).Result()
	if err != nil {
		return serverInfo{}, err
	}
	memory := info["Memory"]
	switch {
	case info["Replication"]["role"] != "master":
		return serverInfo{}, fmt.Errorf("%w: the server is a replica", store.ErrInvalid)
	case memory["maxmemory"] != "0" && memory["maxmemory_policy"] != "noeviction":
		return serverInfo{}, fmt.Errorf("%w: the server evicts keys: its maxmemory-policy is %q, not noeviction",
			store.ErrInvalid, memory["maxmemory_policy"])
	case info["Cluster"]["cluster_enabled"] == "1" && !cluster:
		return serverInfo{}, errClusterNode
	}

	found := serverInfo{durability: store.DurabilityPower, maxValue: defaultMaxValue}
	for _, setting := range []struct{ name, want string }{
		{"appendonly", "yes"},
		{"appendfsync", "always"},
		{"no-appendfsync-on-rewrite", "no"}, // "yes" suspends "always" during a snapshot
	} {
		value, err := readSetting(ctx, node, setting.name)
		if err != nil {
			return serverInfo{}, err
		}
		if value != setting.want {
			found.durability = store.DurabilityServer
		}
	}
	value, err := readSetting(ctx, node, "proto-max-bulk-len")
	if err != nil {
		return serverInfo{}, err
	}
	if maxValue, err := strconv.Atoi(value); err == nil {
		found.maxValue = min(found.maxValue, maxValue)
	}
	return found, nil
}

// readSetting returns a setting, or "" if the server does not allow reading it.
func readSetting(ctx context.Context, node *redis.Client, name string) (string, error) {
	values, err := node.ConfigGet(ctx, name).Result()
	if isRefused(err) {
		return "", nil
	}
	return values[name], err
}

// isRefused reports whether an error is a reply of the server.
func isRefused(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// isLasting reports whether the server refuses the program until somebody changes
// one of them. A server that is read-only is not meant: it may be one that a
// failover has replaced.
func isLasting(err error) bool {
	for _, prefix := range []string{"WRONGPASS", "NOAUTH", "NOPERM"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return errors.Is(err, errLost)
}
