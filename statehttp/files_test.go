package statehttp_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/statehttp"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// file reads a file as a browser does.
func (s *site) file(path string, header ...string) (*http.Response, []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.srv.URL+path, nil)
	require.NoError(s.t, err)
	req.Header.Set("User", "ann")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp, data
}

func (s *site) upload(typ, name, data string) (m page.Media) {
	s.t.Helper()
	s.ok("POST", "/files?name="+url.QueryEscape(name), data, &m, "Content-Type", typ)
	return m
}

// A page uploads a picture, says something about it, and is shown where it is. Its
// messages do not have it.
func TestFiles(t *testing.T) {
	s := newSite(t, func(o *statehttp.Options) { o.Files = "/api/files/" })
	picture := strings.Repeat("a picture", 100_000)
	m := s.upload("image/png", `C:\photos\lamp é.png`, picture)
	require.Equal(t, "image/png", m.Type)
	require.Equal(t, "lamp é.png", m.Name)
	require.Equal(t, m, s.upload("image/png", "lamp é.png", picture))
	body, err := json.Marshal(statehttp.Message{ID: "m1", Parts: []page.Part{{Kind: page.MediaPart, Media: &m}, {Kind: page.Text, Text: "Look"}}})
	require.NoError(t, err)
	s.ok("POST", "/threads/1/messages", string(body), nil)
	require.NoError(t, s.m.Wait(t.Context()))
	require.Equal(t, m, *s.page("1").Items[0].Parts[0].Media)
	var again statehttp.Sent
	s.ok("POST", "/threads/1/messages", string(body), &again)
	require.Equal(t, statehttp.Sent{Thread: "1", ID: "m1", Status: workspace.StatusDuplicate}, again, "the same once more is no edit")
	_, view := s.do("GET", "/threads/1/view", "")
	require.Less(t, len(view), 10_000)
	require.NotContains(t, view, "/api/files/", "what is stored does not know where pages find it")

	path := strings.TrimPrefix(m.URL, "/api")
	resp, data := s.file(path)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, picture, string(data))
	require.Equal(t, "image/png", resp.Header.Get("Content-Type"))
	require.Equal(t, "inline; filename*=utf-8''lamp%20%C3%A9.png", resp.Header.Get("Content-Disposition"))
	resp, _ = s.file(path, "If-None-Match", resp.Header.Get("ETag"))
	require.Equal(t, http.StatusNotModified, resp.StatusCode)
	resp, data = s.file(path, "Range", "bytes=2-4")
	require.Equal(t, http.StatusPartialContent, resp.StatusCode)
	require.Equal(t, "pic", string(data))
}

// A file is shown to nobody else, and to nobody who may not read.
func TestFilesOfOthers(t *testing.T) {
	refused := statehttp.Action("")
	s := newSite(t, func(o *statehttp.Options) {
		o.May = func(_ *http.Request, _ statehttp.Who, action statehttp.Action, _ string) error {
			if action == refused {
				return statehttp.ErrForbidden
			}
			return nil
		}
	})
	at := s.upload("image/png", "", "x").URL
	for _, user := range []string{"bob", "ann/", "anna"} {
		resp, data := s.file(at, "User", user)
		require.Equal(t, http.StatusNotFound, resp.StatusCode)
		require.JSONEq(t, `{"error":"Not Found"}`, string(data))
	}
	for path, status := range map[string]int{
		"/files/x": 404, "/files/": 404, "/files/..%2F" + strings.TrimPrefix(at, "/files/"): 404, "/files/%00": 404, at + "x": 404, at + "/x": 404,
	} {
		resp, _ := s.file(path)
		require.Equal(t, status, resp.StatusCode, path)
	}
	resp, _ := s.file(at, "User", "")
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	refused = statehttp.ActionRead
	resp, _ = s.file(at)
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	refused = statehttp.ActionUpload
	status, _ := s.do("POST", "/files", "x", "Content-Type", "image/png")
	require.Equal(t, http.StatusForbidden, status)
	require.NoError(t, s.m.DeleteUser(t.Context(), "ann"))
	refused = ""
	resp, _ = s.file(at)
	require.Equal(t, http.StatusNotFound, resp.StatusCode)
	status, _ = s.do("POST", "/files", "x", "Content-Type", "image/png")
	require.Equal(t, http.StatusGone, status)
}

// Whatever somebody uploads, a browser runs nothing of it: it shows pictures, sound and
// video, and stores the rest.
func TestFilesAreHarmless(t *testing.T) {
	s := newSite(t)
	for typ, shown := range map[string]bool{
		"image/png": true, "image/jpeg": true, "video/mp4": true, "image/svg+xml": false, "text/html": false, "text/javascript": false,
		"application/javascript": false, "text/css": false, "application/pdf": false, "application/xhtml+xml": false, "image/x+xml": false,
		"text/xml": false, "multipart/x-mixed-replace": false, "application/octet-stream": false, "IMAGE/SVG+XML": false, "application/wasm": false,
	} {
		at := s.upload(typ, `"a";<b>.html`, "<script>alert(1)</script>").URL
		resp, _ := s.file(at)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		h := resp.Header
		want, how := "application/octet-stream", "attachment"
		if shown {
			want, how = typ, "inline"
		}
		require.Equal(t, want, h.Get("Content-Type"))
		require.Equal(t, how+`; filename="\"a\";<b>.html"`, h.Get("Content-Disposition"))
		require.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		require.Equal(t, "default-src 'none'; sandbox", h.Get("Content-Security-Policy"))
		require.Equal(t, "same-origin", h.Get("Cross-Origin-Resource-Policy"))
		require.Equal(t, "private, no-cache", h.Get("Cache-Control"))
	}
}

func TestUploadsThatAreRefused(t *testing.T) {
	s := newSite(t)
	large := string(bytes.Repeat([]byte("x"), workspace.MaxFile))
	s.upload("image/png", "", large)
	const evil = "https://evil.example"
	for name, c := range map[string]struct {
		typ, body string
		status    int
		header    []string
	}{
		"a byte too much": {"image/png", large + "x", 413, nil},
		"nothing":         {"image/png", "", 400, nil},
		"no type":         {"", "x", 400, nil},
		"a wrong type":    {"image", "x", 400, nil},
		"of another site": {"text/plain", "x", 403, []string{"Origin", evil, "Sec-Fetch-Site", "cross-site"}},
		"of nobody":       {"image/png", "x", 401, []string{"User", ""}},
	} {
		status, text := s.do("POST", "/files", c.body, append(c.header, "Content-Type", c.typ)...)
		require.Equal(t, c.status, status, "%s: %s", name, text)
		require.Regexp(t, `^{"error":".+"}$`, text, name)
	}
	status, _ := s.do("POST", "/files?name="+strings.Repeat("x", 300), "x", "Content-Type", "image/png")
	require.Equal(t, http.StatusBadRequest, status)
}
