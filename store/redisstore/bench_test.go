package redisstore_test

import (
	"testing"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

func BenchmarkStore(b *testing.B) {
	url := shared(b)
	b.Run("memory", func(b *testing.B) {
		prefix := fresh(b, url)
		storetest.Bench(b, func() store.Store { return open(b, url, prefix) })
	})
	b.Run("synced", func(b *testing.B) {
		server := start(b, "--appendonly", "yes", "--appendfsync", "always")
		storetest.Bench(b, func() store.Store { return open(b, server.url, "") })
	})
}
