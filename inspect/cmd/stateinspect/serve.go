package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/workspace"
)

// minToken is the length of the shortest token in bytes.
const minToken = 32

// patience is how long requests may go on after a signal.
const patience = 5 * time.Second

// serve serves the page until ctx ends. It prints the URL to out, and what fails
// and what is done to the log.
func (c *config) serve(ctx context.Context, m *workspace.Manager, out, log io.Writer) error {
	var err error
	token := rand.Text() + rand.Text()
	if c.tokenFile != "" {
		if token, err = readToken(c.tokenFile); err != nil {
			return err
		}
	}
	h, err := inspect.New(m, &inspect.Options{
		Title: c.store.title,
		Authorize: inspect.Token(token, inspect.Access{
			Read: true, Write: c.write, Delete: c.delete, Actor: actor(),
		}),
		Hosts:  c.hostNames(),
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return err
	}
	page := url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/"}
	if c.tokenFile == "" {
		page.RawQuery = url.Values{"token": {token}}.Encode()
	}
	fmt.Fprintln(out, page.String())

	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.NewTextHandler(log, nil), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		return errors.Join(err, server.Close())
	}
	return nil
}

// checkAddr refuses an address that other machines can reach without a token that
// its users have agreed upon.
func (c *config) checkAddr() error {
	host, _, err := net.SplitHostPort(c.addr)
	if err != nil {
		return usageError("-addr %q: want HOST:PORT", c.addr)
	}
	if !isLoopback(host) && c.tokenFile == "" {
		return usageError("-addr %q can be reached from other machines; it needs -token-file", c.addr)
	}
	return nil
}

// isLoopback reports whether only this machine can reach a host of -addr.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// hostNames returns the names that requests may use, besides those of this
// machine.
func (c *config) hostNames() []string {
	names := c.hosts
	host, _, _ := net.SplitHostPort(c.addr) // see checkAddr
	if addr, err := netip.ParseAddr(host); host != "" && (err != nil || !addr.IsUnspecified()) {
		names = append(names, host)
	}
	return names
}

// readToken reads the token of a file, which ends with the first line. No error
// contains it.
func readToken(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	token, _, _ := strings.Cut(string(data), "\n")
	if token = strings.TrimSpace(token); len(token) < minToken {
		return "", fmt.Errorf("%s: want a token of %d characters or more in the first line", file, minToken)
	}
	return token, nil
}

// actor is the name that signs actions.
func actor() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "stateinspect"
}
