package aguistate_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/work"
)

// A page shows a file at its address, and sends it back as it was shown: the
// conversation refers to the file.
func TestFilesByReference(t *testing.T) {
	d := newDesk(t, nil)
	d.opts.Files = "/api/files/"
	d.reopen()
	url, err := d.m.AddFile(t.Context(), "ann", work.File{Type: "image/png", Data: []byte("x")})
	require.NoError(t, err)
	part := fmt.Sprintf(`{"type":"image","source":{"type":"url","value":"/api/files/%s","mimeType":"image/png"}}`, strings.TrimPrefix(url, "agent-file:"))
	run := func(id string) string {
		body := fmt.Sprintf(`{"threadId":"1","runId":%q,"messages":[{"id":"u1","role":"user","content":[%s,{"type":"text","text":"say hi"}]}]}`, id, part)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.srv.URL, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User", "ann")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		told, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Contains(t, string(told), "RUN_FINISHED")
		return string(told)
	}
	run("r1")
	require.Contains(t, run("r2"), part)
	v := d.view("ann", "1")
	said := state.Messages.GetOr(v.State(), nil)
	require.Len(t, said, 2)
	require.Contains(t, string(said[0].Raw()), url)
	threads := 0
	for range d.m.Threads(t.Context(), "ann", "") {
		threads++
	}
	require.Equal(t, 1, threads, "it is no edit")
}
