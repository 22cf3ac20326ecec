package statehttp_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// When the context ends, the run under way ends well, new messages are refused, and the
// store can be opened by the next Manager at once.
func TestListenAndServe(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	db := store.NewMemory()
	m, err := workspace.Open(context.Background(), db, &workspace.Options{Run: func(_ context.Context, run *workspace.Run) error {
		close(begun)
		<-goOn
		return state.Messages.Set(run.State(), []state.Message{state.AssistantText("Hello, Ann!")})
	}})
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	addr, served := freeAddress(t), make(chan error, 1)
	go func() { served <- statehttp.ListenAndServe(ctx, addr, m, &statehttp.Options{Who: who}) }()
	send := func(id string) (int, error) {
		req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/threads/1/messages", strings.NewReader(`{"id":"`+id+`","text":"Hello!"}`))
		require.NoError(t, err)
		req.Header.Set("User", "ann")
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		return resp.StatusCode, resp.Body.Close()
	}
	require.Eventually(t, func() bool { status, err := send("m1"); return err == nil && status == http.StatusOK }, time.Minute, 10*time.Millisecond)
	<-begun
	end()
	require.Eventually(t, func() bool { status, _ := send("m2"); return status == http.StatusServiceUnavailable }, time.Minute, 10*time.Millisecond)
	close(goOn)
	require.NoError(t, <-served)

	next, err := workspace.Open(t.Context(), db, nil)
	require.NoError(t, err)
	defer next.Close()
	v, err := next.View(t.Context(), workspace.Thread("ann", "1"))
	require.NoError(t, err)
	said := state.Messages.GetOr(v.State(), nil)
	require.Equal(t, "Hello, Ann!", said[len(said)-1].Text())
	require.Nil(t, v.Run)
}

// What keeps it from serving is returned at once.
func TestListenAndServeFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{Run: func(context.Context, *workspace.Run) error { return nil }})
	require.NoError(t, err)
	require.ErrorContains(t, statehttp.ListenAndServe(t.Context(), l.Addr().String(), m, nil), "Options with Who")
	err = statehttp.ListenAndServe(t.Context(), l.Addr().String(), m, &statehttp.Options{Who: who})
	require.ErrorContains(t, err, "statehttp: listen")
	_, err = m.Submit(t.Context(), "ann", workspace.Message{ID: "1", Content: state.UserText("Hello!")})
	require.ErrorIs(t, err, workspace.ErrClosed, "the Manager is closed")
}
