package aguistate_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

func (d *desk) post(user, body string) *http.Response {
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.srv.URL, strings.NewReader(body))
	require.NoError(d.t, err)
	req.Header.Set("User", user)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

func TestRequestsThatAreRefused(t *testing.T) {
	d := newDesk(t, nil)
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		user, body string
		status     int
	}{
		{"", "{}", 401},
		{"eve", "{}", 403},
		{"ann", "", 400},
		{"ann", "{}", 400},
		{"ann", `{"runId":"` + long + `"}`, 400},
		{"ann", `{"runId":"1","messages":[{"id":"","role":"user","content":"x"}]}`, 400},
		{"ann", `{"runId":"1","messages":[{"id":"1","role":"user","content":"x"},{"id":"1","role":"assistant"}]}`, 400},
		{"ann", `{"runId":"1","state":"` + strings.Repeat(long, 30_000) + `"}`, 413},
	} {
		resp := d.post(c.user, c.body)
		require.Equal(t, c.status, resp.StatusCode, "%.100s", c.body)
	}
	resp, err := http.Get(d.srv.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
}

func TestAToolWithoutParameters(t *testing.T) {
	d := newDesk(t, nil)
	data, err := io.ReadAll(d.post("ann", `{"threadId":"1","runId":"1","messages":[{"id":"m","role":"user","content":"call plain:"}],
		"tools":[{"name":"plain","description":"Plain.","parameters":null}]}`).Body)
	require.NoError(t, err)
	require.Contains(t, string(data), "RUN_FINISHED")
	require.True(t, d.view("ann", "1").Suspended()[0].Client)
}

// No byte of a secret leaves, wherever it stands.
func TestSecretsNeverLeave(t *testing.T) {
	d := newDesk(t, nil)
	const plain = "9d3f-77aa-0c1e"
	id := workspace.Thread("ann", "1")
	require.NoError(t, d.m.Update(t.Context(), id, func(w *workspace.Workspace) error {
		return w.State().Patch(map[string]any{
			"card": plain, "title": "the card " + plain, "notes": []string{plain, "x" + plain}, "scores": map[string]int{plain: 1}, "private": plain,
		})
	}))
	said := []string{"say it is " + plain, "call note:" + plain, "call pay:" + plain, "call note:fail", "think", "fail", "panic", "set title \\\"" + plain + "\\\"\\nsay x"}
	var all bytes.Buffer
	for i, text := range said {
		for _, version := range []string{"", `,"protocolVersion":"1.0"`} {
			body := fmt.Sprintf(`{"threadId":"1","runId":"r%d%d"%s,"messages":[{"id":"m%d%d","role":"user","content":"%s"}]}`, i, len(version), version, i, len(version), text)
			data, err := io.ReadAll(d.post("ann", body).Body)
			require.NoError(t, err)
			all.Write(data)
		}
	}
	resp := d.post("ann", `{"threadId":"1","runId":"follow"}`)
	_, err := all.ReadFrom(resp.Body)
	require.NoError(t, err)
	require.Contains(t, all.String(), `"runId":"follow","outcome"`)
	if at := strings.Index(all.String(), plain); at >= 0 {
		t.Fatalf("… %s", all.String()[max(0, at-300):at+100])
	}
	require.Contains(t, all.String(), "[SECRET]")
	require.NotContains(t, all.String(), "private")
}

// A request without a new message ends with its run: a page takes the next message
// only then. It is open longer if it asks for that.
func TestARequestEndsWithItsRun(t *testing.T) {
	d := newDesk(t, nil)
	for _, with := range []string{"", `,"forwardedProps":{}`, `,"forwardedProps":{"follow":false}`, `,"forwardedProps":"x"`} {
		data, err := io.ReadAll(d.post("ann", `{"threadId":"1","runId":"1"`+with+`}`).Body)
		require.NoError(t, err)
		require.Equal(t, 1, bytes.Count(data, []byte("RUN_STARTED")), with)
		require.Equal(t, 1, bytes.Count(data, []byte("RUN_FINISHED")), with)
	}
	page := &stream{t, bufio.NewScanner(d.post("ann", follows).Body)}
	page.until("RUN_FINISHED")
	_, err := d.m.Submit(t.Context(), "ann/1", workspace.Message{ID: "m", Content: state.UserText("say hello")})
	require.NoError(t, err)
	page.until("RUN_FINISHED")
}

// A browser that takes nothing holds up nobody.
func TestASlowReader(t *testing.T) {
	d := newDesk(t, nil)
	slow := d.post("ann", `{"threadId":"1","runId":"slow","forwardedProps":{"follow":true}}`)
	for i := range 8 {
		require.NoError(t, d.m.Update(t.Context(), workspace.Thread("ann", "1"), func(w *workspace.Workspace) error {
			return title.Set(w.State(), strings.Repeat(fmt.Sprint(i), 1<<19))
		}))
	}
	began := time.Now()
	out, err := d.m.Handle(t.Context(), workspace.Thread("ann", "1"), workspace.Message{Content: state.UserText("say hello")})
	require.NoError(t, err)
	require.Equal(t, "hello", out.Reply)
	require.Less(t, time.Since(began), 5*time.Second)
	require.NoError(t, slow.Body.Close())
}
