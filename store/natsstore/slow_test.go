package natsstore_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store"
)

// slowServer returns the URL of a server whose answers pass while the returned
// lock is free.
func slowServer(t *testing.T, url string) (string, *sync.Mutex) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	var gate sync.Mutex
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
			if err != nil {
				_ = client.Close()
				return
			}
			go func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			}()
			go func() {
				defer func() { _ = client.Close() }()
				buf := make([]byte, 64<<10)
				for {
					n, err := server.Read(buf)
					gate.Lock()
					_, writeErr := client.Write(buf[:n])
					gate.Unlock()
					if err != nil || writeErr != nil {
						return
					}
				}
			}()
		}
	}()
	return "nats://" + listener.Addr().String(), &gate
}

// A server with many keys may take longer for a listing than for other calls.
func TestListingOfSlowServer(t *testing.T) {
	t.Parallel()
	url := embedded(t).ClientURL()
	slow, gate := slowServer(t, url)
	s := open(t, slow, bucket(t, url))
	_, err := s.Put(t.Context(), "a/b", nil, store.Always)
	require.NoError(t, err)
	gate.Lock()
	time.AfterFunc(6*time.Second, gate.Unlock) // longer than the client waits by default
	for key, err := range s.List(t.Context(), "a/", "") {
		require.NoError(t, err)
		require.Equal(t, "a/b", key)
	}
}
