package natsstore_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/natsstore"
	"github.com/agentstate/state/store/storetest"
)

// TestMain is also the main function of worker processes. An address is a URL, a space
// and a bucket.
func TestMain(m *testing.M) {
	os.Exit(storetest.Main(m, func(address string) (store.Store, error) {
		url, bucket, _ := strings.Cut(address, " ")
		return natsstore.Open(context.Background(), url, &natsstore.Options{Bucket: bucket})
	}))
}

// embedded starts a server in this process. It ends with the test.
func embedded(t testing.TB) *server.Server {
	s := start(t, &server.Options{Host: "127.0.0.1", Port: -1, StoreDir: t.TempDir()})[0]
	anchor(t, s.ClientURL())
	return s
}

// start starts servers. Their options make them a cluster or not.
func start(t testing.TB, nodes ...*server.Options) []*server.Server {
	t.Helper()
	var started []*server.Server
	for _, opts := range nodes {
		opts.JetStream, opts.NoLog, opts.NoSigs = true, true, true
		s, err := server.NewServer(opts)
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { stop(s) })
		started = append(started, s)
	}
	for _, s := range started {
		testkit.Until(func() bool { return s.ReadyForConnections(time.Second) })
	}
	return started
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// local returns the URL of a server that runs on this machine.
func local(t testing.TB) string {
	t.Helper()
	url := os.Getenv("STATE_TEST_NATS")
	if url == "" {
		url = "nats://127.0.0.1:4222"
	}
	nc, err := nats.Connect(url)
	if err == nil {
		nc.Close()
		anchor(t, url)
		return url
	}
	const help = "no NATS server: run nats-server -js, or set STATE_TEST_NATS to the URL of one: %v"
	if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), "nats") {
		t.Fatalf(help, err)
	}
	t.Skipf(help, err)
	return ""
}

// anchor keeps a stream on a server. When the last stream is deleted, the server
// removes its folder in the background, and creating a stream fails until then.
func anchor(t testing.TB, url string) {
	name := bucket(t, url)
	js := streams(t, url)
	testkit.Until(func() bool {
		_, err := js.CreateStream(context.Background(), jetstream.StreamConfig{Name: "KV_" + name, Subjects: []string{name}})
		return err == nil
	})
}

// bucket returns the name of a new bucket, which is deleted when the test ends.
func bucket(t testing.TB, url string) string {
	name := "test-" + nuid.Next()
	t.Cleanup(func() {
		err := streams(t, url).DeleteStream(context.Background(), "KV_"+name)
		if err != nil {
			require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
		}
	})
	return name
}

// streams returns a client for the streams of a server.
func streams(t testing.TB, url string) jetstream.JetStream {
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func open(t testing.TB, url, bucket string) *natsstore.Store {
	s, err := natsstore.Open(context.Background(), url, &natsstore.Options{Bucket: bucket})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
