package mcpstate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// retryDelay is the time after which a user whose state could not be watched is
// watched again.
const retryDelay = time.Second

// subscriptions watch the fields to which clients have subscribed.
type subscriptions struct {
	srv    *mcp.Server
	states States

	mu      sync.Mutex
	watches map[string]*watch // by URI
	kept    map[*mcp.ServerSession]map[string]func()
}

// watch is the watching of one field. It lasts as long as there are
// subscriptions.
type watch struct {
	subscriptions int
	begun         chan struct{} // closed when changes are seen
	cancel        context.CancelFunc
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
	uri := URI(user, field)
	s.mu.Lock()
	w := s.watches[uri]
	if w == nil {
		watching, cancel := context.WithCancel(context.Background())
		w = &watch{begun: make(chan struct{}), cancel: cancel}
		s.watches[uri] = w
		go s.run(watching, user, field, sync.OnceFunc(func() { close(w.begun) }))
	}
	w.subscriptions++
	s.mu.Unlock()

	release = sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if w.subscriptions--; w.subscriptions == 0 {
			w.cancel()
			delete(s.watches, uri)
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

// run notifies the subscribers of a field, until ctx ends.
func (s *subscriptions) run(ctx context.Context, user, field string, begun func()) {
	for again := false; ctx.Err() == nil; again = true {
		for names, err := range s.states.Watch(ctx, user) {
			if err != nil {
				break
			}
			begun()
			// What has happened between two watches is not known.
			if names == nil && again || slices.Contains(names, field) {
				// The SDK logs a session that cannot be reached.
				_ = s.srv.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: URI(user, field)})
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
}

// keep calls release when the session ends, or when drop is called.
func (s *subscriptions) keep(session *mcp.ServerSession, uri string, release func()) {
	s.mu.Lock()
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
