package redisstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
	"github.com/agentstate/state/store/storetest"
)

func TestPresence(t *testing.T) {
	url := shared(t)
	storetest.Presence(t, url+"#"+fresh(t, url))
}

// TestPresenceLost checks that the end of a connection closes lost, and that
// the client does not announce the name again by subscribing again.
func TestPresenceLost(t *testing.T) {
	p := start(t)
	s, other := open(t, p.url, "a:"), open(t, p.url, "a:")
	lost, withdraw, err := s.Announce(t.Context(), "name")
	require.NoError(t, err)
	_, err = connect(t, p.url).ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result()
	require.NoError(t, err)
	<-lost
	_ = withdraw() // waits for the end of the connection
	testkit.Until(func() bool {
		present, err := other.IsPresent(t.Context(), "name")
		require.NoError(t, err)
		return !present
	})
	lost, _, err = other.Announce(t.Context(), "name")
	require.NoError(t, err)
	present, err := s.IsPresent(t.Context(), "name")
	require.NoError(t, err)
	require.True(t, present)
	require.Empty(t, lost)
}

// TestPresenceOfDeadNames checks that announcements of processes that were
// killed do not remain in the server.
func TestPresenceOfDeadNames(t *testing.T) {
	p := start(t)
	s := open(t, p.url, "a:")
	client := connect(t, p.url)
	require.NoError(t, client.HSet(t.Context(), "{a:}presence", "one", "x", "two", "y").Err())
	_, _, err := s.Announce(t.Context(), "two")
	require.NoError(t, err)
	names, err := client.HKeys(t.Context(), "{a:}presence").Result()
	require.NoError(t, err)
	require.Equal(t, []string{"two"}, names)
}

// TestPresenceOfPrefixes checks that the names of prefixes are independent.
func TestPresenceOfPrefixes(t *testing.T) {
	p := start(t)
	one, two := open(t, p.url, "a:"), open(t, p.url, "a")
	_, _, err := one.Announce(t.Context(), "name")
	require.NoError(t, err)
	present, err := two.IsPresent(t.Context(), "name")
	require.NoError(t, err)
	require.False(t, present)
}
