package mcpstate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxSubscriptions is the maximum number of subscriptions of a client.
const maxSubscriptions = 1000

// retryDelay is the time after which a user whose state could not be watched is
// watched again.
const retryDelay = time.Second

// subscriptions watch the fields to which clients have subscribed.
type subscriptions struct {
	srv    *mcp.Server
	states States

	mu      sync.Mutex
	watches map[string]*watch // by user
	kept    map[*mcp.ServerSession]map[string]func()
}

// watch is the watching of one user. It lasts as long as there are
// subscriptions.
type watch struct {
	fields map[string]int // how many subscriptions each field has
	begun  chan struct{}  // closed when changes are seen
	cancel context.CancelFunc
}

func newSubscriptions(srv *mcp.Server, states States) *subscriptions {
	return &subscriptions{
		srv: srv, states: states,
		watches: map[string]*watch{}, kept: map[*mcp.ServerSession]map[string]func(){},
	}
}

// begin returns when changes of a field are notified from now on. They are until
// release is called.
func (s *subscriptions) begin(ctx context.Context, user, field string) (release func(), err error) {
	s.mu.Lock()
	w := s.watches[user]
	if w == nil {
		watching, cancel := context.WithCancel(context.Background())
		w = &watch{fields: map[string]int{}, begun: make(chan struct{}), cancel: cancel}
		s.watches[user] = w
		go s.run(watching, user, w)
	}
	w.fields[field]++
	s.mu.Unlock()

	release = sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.fields[field]--; w.fields[field] == 0 {
			delete(w.fields, field)
		}
		if len(w.fields) == 0 {
			w.cancel()
			delete(s.watches, user)
		}
	})
	select {
	case <-w.begun:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// run notifies the subscribers of the fields of a user, until ctx ends.
func (s *subscriptions) run(ctx context.Context, user string, w *watch) {
	begun := sync.OnceFunc(func() { close(w.begun) })
	for again := false; ctx.Err() == nil; again = true {
		for names, err := range s.states.Watch(ctx, user) {
			if err != nil {
				break
			}
			begun()
			s.mu.Lock()
			fields := slices.Sorted(maps.Keys(w.fields))
			s.mu.Unlock()
			for _, field := range fields {
				// What has happened between two watches is not known.
				if names == nil && again || slices.Contains(names, field) {
					// The SDK logs a session that cannot be reached.
					_ = s.srv.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: URI(user, field)})
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
}

// errTooMany is returned to a client that has too many subscriptions.
var errTooMany = &jsonrpc.Error{
	Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("a client may have %d subscriptions", maxSubscriptions),
}

// keep calls release when the session ends, or when drop is called. A
// subscription too many is released at once.
func (s *subscriptions) keep(session *mcp.ServerSession, uri string, release func()) error {
	s.mu.Lock()
	if _, known := s.kept[session][uri]; !known && len(s.kept[session]) >= maxSubscriptions {
		s.mu.Unlock()
		release()
		return errTooMany
	}
	if s.kept[session] == nil {
		s.kept[session] = map[string]func(){}
		go s.end(session)
	}
	earlier := s.kept[session][uri]
	s.kept[session][uri] = release
	s.mu.Unlock()
	if earlier != nil {
		earlier()
	}
	return nil
}

func (s *subscriptions) drop(session *mcp.ServerSession, uri string) {
	s.mu.Lock()
	release := s.kept[session][uri]
	delete(s.kept[session], uri)
	s.mu.Unlock()
	if release != nil {
		release()
	}
}

// end waits for the end of a session and releases its subscriptions.
func (s *subscriptions) end(session *mcp.ServerSession) {
	_ = session.Wait()
	s.mu.Lock()
	releases := s.kept[session]
	delete(s.kept, session)
	s.mu.Unlock()
	for _, release := range releases {
		release()
	}
}
