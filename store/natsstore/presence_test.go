package natsstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/storetest"
)

func TestPresence(t *testing.T) {
	servers(t, func(t *testing.T, url string) { storetest.Presence(t, url+" "+bucket(t, url)) })
}

func isPresent(t *testing.T, s store.Presence, name string) bool {
	t.Helper()
	present, err := s.IsPresent(t.Context(), name)
	require.NoError(t, err)
	return present
}

// TestPresenceLost checks that the end of a connection closes lost, and that
// the client does not announce the name again when it connects again.
func TestPresenceLost(t *testing.T) {
	node := embedded(t)
	name := bucket(t, node.ClientURL())
	s, other := open(t, node.ClientURL(), name), open(t, node.ClientURL(), name)
	before := connections(t, node)
	lost, withdraw, err := s.Announce(t.Context(), "name")
	require.NoError(t, err)
	require.Len(t, connections(t, node), len(before), "an announcement needs no connection")
	otherLost, _, err := other.Announce(t.Context(), "other name")
	require.NoError(t, err)

	disconnect(t, node)
	<-lost
	_ = withdraw()
	testkit.Until(func() bool {
		present, err := s.IsPresent(t.Context(), "name")
		return err == nil && !present // it has connected again
	})
	require.False(t, isPresent(t, other, "name"))
	require.True(t, isPresent(t, s, "other name"))
	require.Empty(t, otherLost)
	_, _, err = s.Announce(t.Context(), "name")
	require.NoError(t, err)
	require.True(t, isPresent(t, other, "name"))
}

func connections(t *testing.T, node *server.Server) []*server.ConnInfo {
	t.Helper()
	list, err := node.Connz(&server.ConnzOptions{Subscriptions: true})
	require.NoError(t, err)
	return list.Conns
}

// disconnect ends the oldest connection with an announcement.
func disconnect(t *testing.T, node *server.Server) {
	t.Helper()
	var oldest uint64
	for _, conn := range connections(t, node) {
		announces := slices.ContainsFunc(conn.Subs, func(subject string) bool {
			return strings.HasPrefix(subject, "state.presence.")
		})
		if announces && (oldest == 0 || conn.Cid < oldest) {
			oldest = conn.Cid
		}
	}
	require.NotZero(t, oldest)
	require.NoError(t, node.DisconnectClientByID(oldest))
}

// TestPresenceWithoutAnswer checks that a name whose process does not answer is
// not reported as absent.
func TestPresenceWithoutAnswer(t *testing.T) {
	url := embedded(t).ClientURL()
	name := bucket(t, url)
	s := open(t, url, name)
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	defer nc.Close()
	_, err = nc.Subscribe("state.presence."+name+".stopped", func(*nats.Msg) {})
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	_, err = streams(t, url).Publish(t.Context(), "$KV."+name+".=presence", []byte(`{"name": "stopped"}`))
	require.NoError(t, err)
	_, err = s.IsPresent(t.Context(), "name")
	require.ErrorIs(t, err, nats.ErrTimeout)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.IsPresent(ctx, "name")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, _, err = s.Announce(t.Context(), "name")
	require.ErrorIs(t, err, nats.ErrTimeout)
	_, _, err = s.Announce(t.Context(), "other name")
	require.NoError(t, err)
}

// TestPresenceOfDeadNames checks that announcements of processes that were
// killed do not remain in the bucket.
func TestPresenceOfDeadNames(t *testing.T) {
	url := embedded(t).ClientURL()
	name := bucket(t, url)
	s := open(t, url, name)
	js := streams(t, url)
	subject := "$KV." + name + ".=presence"
	_, err := js.Publish(context.Background(), subject, []byte(`{"one": "x", "two": "y"}`))
	require.NoError(t, err)
	require.False(t, isPresent(t, s, "one"))
	_, withdraw, err := s.Announce(t.Context(), "two")
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), "KV_"+name)
	require.NoError(t, err)
	msg, err := stream.GetLastMsgForSubject(t.Context(), subject)
	require.NoError(t, err)
	require.NotContains(t, string(msg.Data), "one")
	require.NoError(t, withdraw())
	msg, err = stream.GetLastMsgForSubject(t.Context(), subject)
	require.NoError(t, err)
	require.Equal(t, "{}", string(msg.Data))
}
