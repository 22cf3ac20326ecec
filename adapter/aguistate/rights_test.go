package aguistate_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/adapter/aguistate"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/rightstest"
	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// A page is shown what its agent may read and nothing else, whatever happens in the
// thread.
func TestPagesAreShownWhatTheirAgentMayRead(t *testing.T) {
	seed := effort.LogSeed(t)
	for i := range uint64(effort.Runs(20)) {
		testRights(t, rightstest.New(seed+i))
	}
}

func testRights(t *testing.T, w *rightstest.World) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), w.Options())
	require.NoError(t, err)
	defer m.Close()
	h, err := aguistate.New(m, &aguistate.Options{Who: func(*http.Request, string) (statehttp.Who, error) {
		return statehttp.Who{User: "ann", Agent: w.Agent}, nil
	}})
	require.NoError(t, err)
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer srv.CloseClientConnections()
	id, names := workspace.Thread("ann", "1"), []string{"alpha", "bravo", "carol", "dance"}
	page := open(t, srv.URL)
	shown := page.until("RUN_FINISHED") // idle
	send := func(message string) {
		_, err := m.Submit(t.Context(), id, w.Message(message))
		require.NoError(t, err)
	}
	send("first")
	send("next")
	w.Check(t, "a page that comes while one is handled and one waits", open(t, srv.URL).until("STATE_SNAPSHOT"))
	<-w.Holding
	<-w.Holding
	shown += page.until("RUN_FINISHED")
	send("fails")
	<-w.Holding
	shown += page.until("RUN_ERROR")
	w.CheckAll(t, "a page that follows", shown, names...)
	w.CheckAll(t, "a page that comes later", open(t, srv.URL).until("RUN_FINISHED"), names...)
}

// stream is what a page reads.
type stream struct {
	t     testing.TB
	lines *bufio.Scanner
}

// open opens a page that follows the thread 1.
func open(t testing.TB, url string) *stream {
	resp, err := http.Post(url, "application/json", strings.NewReader(follows))
	require.NoError(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() })
	require.Equal(t, http.StatusOK, resp.StatusCode)
	return &stream{t, bufio.NewScanner(resp.Body)}
}

// until returns what comes up to a line with a text.
func (s *stream) until(text string) string {
	var all strings.Builder
	for s.lines.Scan() {
		all.WriteString(s.lines.Text() + "\n")
		if strings.Contains(s.lines.Text(), text) {
			return all.String()
		}
	}
	require.Fail(s.t, "the stream has ended", all.String())
	return ""
}
