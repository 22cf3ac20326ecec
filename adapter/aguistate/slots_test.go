package aguistate_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/adapter/aguistate"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

const follows = `{"threadId":"1","runId":"1","forwardedProps":{"follow":true}}`

// One user takes at most 32 streams, and all users together 1 000.
func TestTooManyStreams(t *testing.T) {
	d := newDesk(t, nil)
	refused := func(user string, status int) {
		t.Helper()
		resp := d.post(user, follows)
		require.Equal(t, status, resp.StatusCode)
		require.NotEmpty(t, resp.Header.Get("Retry-After"))
	}
	for n := range 1000 {
		require.Equal(t, http.StatusOK, d.post(fmt.Sprint("user", n/32), follows).StatusCode)
		if n == 32 {
			refused("user0", http.StatusTooManyRequests)
		}
	}
	refused("ann", http.StatusServiceUnavailable)
}

// pipes is a listener whose connections are in memory, so that a test has the time.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	p <- there
	return here, nil
}

// Bodies that do not end take the streams of nobody else, and are given up. A stream
// outlives the time that a body may take.
func TestBodiesThatDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{})
		require.NoError(t, err)
		listener := make(pipes)
		h, err := aguistate.New(m, &aguistate.Options{Who: func(r *http.Request, _ string) (statehttp.Who, error) {
			return statehttp.Who{User: r.Header.Get("User"), Agent: "ui"}, nil
		}})
		require.NoError(t, err)
		srv := &http.Server{Handler: h}
		go func() { _ = srv.Serve(listener) }()
		client := &http.Client{Transport: &http.Transport{DialContext: listener.dial}}
		send := func(user string, body io.Reader) *http.Response {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://desk/", body)
			require.NoError(t, err)
			req.Header.Set("User", user)
			req.Header.Set("Content-Type", "application/json")
			resp, err := client.Do(req)
			require.NoError(t, err)
			return resp
		}
		statuses := make(chan int, 1000)
		for range 1000 {
			conn, err := listener.dial(t.Context(), "", "")
			require.NoError(t, err)
			go func() {
				defer conn.Close()
				_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: desk\r\nUser: mallory\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{")
				if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
					statuses <- resp.StatusCode
				}
			}()
		}
		synctest.Wait()
		resp := send("ann", strings.NewReader(follows))
		require.Equal(t, http.StatusOK, resp.StatusCode)
		shown := make(chan string)
		go func() { shown <- (&stream{t: t, lines: bufio.NewScanner(resp.Body)}).until("fresh") }()
		time.Sleep(time.Minute)
		synctest.Wait()
		byStatus := map[int]int{}
		for range 1000 {
			byStatus[<-statuses]++
		}
		require.Equal(t, map[int]int{http.StatusTooManyRequests: 1000 - 32, http.StatusRequestTimeout: 32}, byStatus)
		require.NoError(t, m.Update(t.Context(), workspace.Thread("ann", "1"), func(w *workspace.Workspace) error {
			return w.State().KV().Set("news", "fresh")
		}))
		require.Contains(t, <-shown, "RUN_FINISHED")
		again := send("mallory", strings.NewReader(follows))
		require.Equal(t, http.StatusOK, again.StatusCode, "her requests are over")
		require.NoError(t, errors.Join(resp.Body.Close(), again.Body.Close(), m.Close(), srv.Close()))
		client.CloseIdleConnections()
	})
}
