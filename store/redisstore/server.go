package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/agentstate/state/store"
)

// errClusterNode is returned for a plain client of a node of a cluster.
var errClusterNode = fmt.Errorf("%w: the server is a node of a cluster and needs a cluster client", store.ErrInvalid)

// defaultLargest is the default of "proto-max-bulk-len".
const defaultLargest = 512 << 20

// server is what we know of a server, or of the weakest node of a cluster.
type server struct {
	durability store.Durability
	largest    int // bytes that a value may have
}

// inspect refuses clients and servers that would break the promises of a store.
func inspect(ctx context.Context, client redis.UniversalClient) (server, error) {
	switch client := client.(type) {
	case *redis.Client:
		if o := client.Options(); o.ClientSideCache != nil || o.ClientSideCacheConfig != nil {
			return server{}, fmt.Errorf("%w: the client caches", store.ErrInvalid)
		}
		return inspectNode(ctx, client, false)
	case *redis.ClusterClient:
		if client.Options().ReadOnly {
			return server{}, fmt.Errorf("%w: the client reads from replicas", store.ErrInvalid)
		}
		var mu sync.Mutex
		weakest := server{durability: store.DurabilityPower, largest: defaultLargest}
		err := client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			found, err := inspectNode(ctx, node, true)
			mu.Lock()
			defer mu.Unlock()
			weakest.durability = min(weakest.durability, found.durability)
			weakest.largest = min(weakest.largest, found.largest)
			return err
		})
		return weakest, err
	}
	return server{}, fmt.Errorf("%w: a %T is no client of a server or a cluster", store.ErrInvalid, client)
}

func inspectNode(ctx context.Context, node *redis.Client, cluster bool) (server, error) {
	text, err := node.Info(ctx).Result()
	if err != nil {
		return server{}, err
	}
	info := fields(text)
	switch {
	case info["role"] != "master":
		return server{}, fmt.Errorf("%w: the server is a replica", store.ErrInvalid)
	case info["maxmemory"] != "0" && info["maxmemory_policy"] != "noeviction":
		return server{}, fmt.Errorf("%w: the server evicts keys, its maxmemory-policy is %q and not noeviction",
			store.ErrInvalid, info["maxmemory_policy"])
	case info["cluster_enabled"] == "1" && !cluster:
		return server{}, errClusterNode
	}

	found := server{durability: store.DurabilityPower, largest: defaultLargest}
	for _, setting := range []struct{ name, want string }{
		{"appendonly", "yes"},
		{"appendfsync", "always"},
		{"no-appendfsync-on-rewrite", "no"}, // or a snapshot suspends "always"
	} {
		value, err := config(ctx, node, setting.name)
		if err != nil {
			return server{}, err
		}
		if value != setting.want {
			found.durability = store.DurabilityServer
		}
	}
	value, err := config(ctx, node, "proto-max-bulk-len")
	if err != nil {
		return server{}, err
	}
	if largest, err := strconv.Atoi(value); err == nil {
		found.largest = min(found.largest, largest)
	}
	return found, nil
}

// config returns a setting, "" if the server does not tell.
func config(ctx context.Context, node *redis.Client, name string) (string, error) {
	values, err := node.ConfigGet(ctx, name).Result()
	if isRefused(err) {
		return "", nil
	}
	return values[name], err
}

// isRefused reports whether an error is the answer of a server.
func isRefused(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}

// fields returns the lines "name:value" of INFO.
func fields(info string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}
