package statehttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/agentstate/state/workspace"
)

const (
	headerPatience = 10 * time.Second // for the headers of a request
	idlePatience   = 2 * time.Minute  // for the next request of a connection
	endPatience    = 20 * time.Second // for runs and answers when the server ends
)

// ListenAndServe serves a Handler at a TCP address, such as "127.0.0.1:8080", until
// ctx ends. Then it shuts the Manager down: new messages are refused, and for 20
// seconds runs go on and pages see their ends; what is left of them is released, for
// other processes. Clients that send their headers for more than 10 seconds, or
// nothing for two minutes, are disconnected. A program that has routes or certificates
// of its own has an http.Server of its own, with a Handler of [New].
//
// The error is that of New or of the address, or why runs were cut off. The store stays
// open.
func ListenAndServe(ctx context.Context, addr string, m *workspace.Manager, opts *Options) error {
	h, err := New(m, opts)
	if err != nil {
		return err
	}
	srv := &http.Server{Addr: addr, Handler: h, ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience}
	failed := make(chan error, 1)
	go func() { failed <- srv.ListenAndServe() }()
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	err = errors.Join(err, m.Shutdown(end)) // which ends the streams of pages
	if shut := srv.Shutdown(end); shut != nil {
		err = errors.Join(err, shut, srv.Close())
	}
	if err != nil {
		return fmt.Errorf("statehttp: %w", err)
	}
	return nil
}
