package natsstore_test

import (
	"testing"

	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

// servers runs a test on a server in this process and on one that runs on this machine.
func servers(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("embedded", func(t *testing.T) { test(t, embedded(t).ClientURL()) })
	t.Run("local", func(t *testing.T) { test(t, local(t)) })
}

func TestStore(t *testing.T) {
	servers(t, func(t *testing.T, url string) {
		storetest.Run(t, func(t *testing.T) func() store.Store {
			name := bucket(t, url)
			return func() store.Store { return open(t, url, name) }
		})
	})
}

func TestProcesses(t *testing.T) {
	servers(t, func(t *testing.T, url string) { storetest.Processes(t, url+" "+bucket(t, url)) })
}

func TestCounter(t *testing.T) {
	servers(t, func(t *testing.T, url string) { storetest.Counter(t, url+" "+bucket(t, url)) })
}

func TestKill(t *testing.T) {
	servers(t, func(t *testing.T, url string) { storetest.Kill(t, url+" "+bucket(t, url), 10) })
}

func BenchmarkStore(b *testing.B) {
	url := embedded(b).ClientURL()
	storetest.Bench(b, func() store.Store { return open(b, url, bucket(b, url)) })
}
