package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/testkit"
)

// page is the page of a command that runs.
type page struct {
	t      *testing.T
	url    *url.URL // as the command has printed it
	client *http.Client
	stop   func() error // sends the signal and returns the error of the command
	log    *testkit.Buffer
}

// start starts the command at a free port, as a person with a browser would.
func start(t *testing.T, args ...string) *page {
	t.Helper()
	p := &page{t: t, client: &http.Client{}, log: &testkit.Buffer{}}
	var err error
	p.client.Jar, err = cookiejar.New(nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	read, write := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, append([]string{"-addr", "127.0.0.1:0"}, args...), os.Getenv, write, p.log)
		write.CloseWithError(err)
		ended <- err
	}()
	p.stop = func() error {
		cancel()
		return <-ended
	}
	t.Cleanup(func() {
		cancel()
		p.client.CloseIdleConnections()
	})
	line, err := bufio.NewReader(read).ReadString('\n')
	require.NoError(t, err)
	p.url, err = url.Parse(strings.TrimSpace(line))
	require.NoError(t, err)
	return p
}

// get returns the status and the body of a page.
func (p *page) get(path string) (int, string) {
	p.t.Helper()
	target, err := p.url.Parse(path)
	require.NoError(p.t, err)
	return p.fetch(target.String())
}

func (p *page) fetch(target string) (int, string) {
	p.t.Helper()
	r, err := p.client.Get(target)
	require.NoError(p.t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(p.t, err)
	return r.StatusCode, string(body)
}

func TestServe(t *testing.T) {
	p := start(t, newDesk(t, true))
	token := p.url.Query().Get("token")
	require.GreaterOrEqual(t, len(token), minToken)

	status, _ := p.get("/workspace/state?user=ann")
	require.Equal(t, http.StatusForbidden, status, "without the token")

	status, body := p.fetch(p.url.String())
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "the bank has refused")
	require.Contains(t, body, "desk.db")

	status, body = p.get("/workspace/state?user=ann")
	require.Equal(t, http.StatusOK, status, "with the cookie")
	require.Contains(t, body, "#W1")
	for _, secret := range secrets {
		require.NotContains(t, body, secret)
	}
	require.NoError(t, p.stop())
	require.NotContains(t, p.log.String(), token)
}

func TestServeTokenFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	token := strings.Repeat("t", 32)
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	p := start(t, "-token-file", file, newDesk(t, true))
	require.Empty(t, p.url.RawQuery, "the person knows the token")
	status, _ := p.get("/?token=" + token)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, p.stop())

	require.NoError(t, os.WriteFile(file, []byte(token[1:]+"\n"+token), 0o600))
	_, err := print(t, newDesk(t, true), "-token-file", file)
	require.EqualError(t, err, file+": want a token of 32 characters or more in the first line")
}

func TestServeRefusesAddresses(t *testing.T) {
	url := newDesk(t, true)
	for _, addr := range []string{":8377", "0.0.0.0:8377", "[::]:8377", "192.0.2.1:8377", "example.org:8377"} {
		_, err := print(t, url, "-addr", addr)
		require.ErrorContains(t, err, "it needs -token-file", addr)
		require.ErrorIs(t, err, errUsage)
	}
	_, err := print(t, url, "-addr", "8377")
	require.ErrorContains(t, err, "want HOST:PORT")
}

// TestServeReadOnly checks that no action exists without the flag for it.
func TestServeReadOnly(t *testing.T) {
	p := start(t, newDesk(t, true))
	_, _ = p.fetch(p.url.String())
	for _, path := range []string{"/workspace/delete", "/workspace/reset", "/workspace/retry", "/workspace/cancel"} {
		r, err := p.client.PostForm(p.url.ResolveReference(&url.URL{Path: path, RawQuery: "user=ann"}).String(), url.Values{"user": {"ann"}})
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusNotFound, r.StatusCode, path)
	}
	require.NoError(t, p.stop())
}

// TestServeEnds ends the command while a browser follows a workspace.
func TestServeEnds(t *testing.T) {
	p := start(t, newDesk(t, true))
	_, _ = p.fetch(p.url.String())
	r, err := p.client.Get(p.url.ResolveReference(&url.URL{Path: "/workspace", RawQuery: "user=ann"}).String())
	require.NoError(t, err)
	defer r.Body.Close()
	require.NoError(t, p.stop())
	_, err = p.client.Get(p.url.String())
	require.Error(t, err, "the server has ended")
}
