package inspect

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state/workspace"
)

// pulse is what a stream says of a workspace: what its head says, without
// content.
type pulse struct {
	Seq         string `json:"seq"` // the revision of the head
	Version     uint64 `json:"version"`
	Run         string `json:"run"` // a name of the run that is under way, made by tag
	Queued      int    `json:"queued"`
	DeadLetters int    `json:"dead_letters"`
}

func (p pulse) id() string { return p.Seq }

func (h *Handler) newPulse(s workspace.Summary) pulse {
	p := pulse{Seq: s.Revision, Version: s.Version, Queued: s.Queued, DeadLetters: s.DeadLetters}
	if s.Run != nil {
		p.Run = h.tag(s.Run.ID)
	}
	if s.Seq == 0 {
		h.views.drop(s.UserID)
	}
	return p
}

// feeds has one feed for each workspace that streams follow, so that the number
// of streams does not change how often the store is read.
type feeds struct {
	mu        sync.Mutex
	followers int
	byUser    map[string]*feed
}

// feed watches a workspace.
type feed struct {
	followers map[*follower]bool
	last      *pulse // nil until the workspace was read
	stop      context.CancelFunc
}

// follower is a stream that follows a workspace.
type follower struct {
	// pulses has the newest pulse that the stream has not taken. It is closed if
	// the workspace cannot be watched any more.
	pulses chan pulse
	leave  func()
}

var (
	errStreams = &httpError{http.StatusServiceUnavailable, "Too many pages are live. Reload this one to see what is new."}
	errClosed  = &httpError{http.StatusServiceUnavailable, "The server ends."}
)

// follow adds a stream to the feed of a user. The caller must call leave.
func (fs *feeds) follow(h *Handler, user string) (*follower, error) {
	leave, err := fs.enter(h)
	if err != nil {
		return nil, err
	}
	fs.mu.Lock()
	f := fs.byUser[user]
	if f == nil {
		var ctx context.Context
		f = &feed{followers: map[*follower]bool{}}
		ctx, f.stop = context.WithCancel(h.ctx)
		if !fs.watch(ctx, h, user, f) {
			fs.mu.Unlock()
			leave()
			return nil, errClosed
		}
	}
	defer fs.mu.Unlock()
	w := &follower{pulses: make(chan pulse, 1)}
	if f.last != nil {
		w.pulses <- *f.last
	}
	f.followers[w] = true
	w.leave = func() {
		defer leave()
		fs.mu.Lock()
		defer fs.mu.Unlock()
		delete(f.followers, w)
		if len(f.followers) == 0 {
			fs.end(user, f)
		}
	}
	return w, nil
}

// enter counts a stream. The caller must call leave at its end.
func (fs *feeds) enter(h *Handler) (leave func(), err error) {
	if !h.beginWork() {
		return nil, errClosed
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.followers == maxStreams {
		h.work.Done()
		return nil, errStreams
	}
	fs.followers++
	return func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.followers--
		h.work.Done()
	}, nil
}

// end ends a feed, unless it has ended. The lock must be held.
func (fs *feeds) end(user string, f *feed) {
	f.stop()
	if fs.byUser[user] == f {
		delete(fs.byUser, user)
	}
}

// watch begins to watch a workspace, unless the Handler is closed. The lock must
// be held.
func (fs *feeds) watch(ctx context.Context, h *Handler, user string, f *feed) bool {
	if !h.beginWork() {
		f.stop()
		return false
	}
	fs.byUser[user] = f
	go func() {
		defer h.work.Done()
		tell := func(s workspace.Summary) { fs.tell(f, h.newPulse(s)) }
		err := h.watch(ctx, user, tell)
		if err != nil && ctx.Err() == nil {
			h.logger.Error("workspace cannot be watched", "user", user, "class", workspace.ErrorClass(err))
		}
		fs.mu.Lock()
		defer fs.mu.Unlock()
		fs.end(user, f)
		for w := range f.followers {
			close(w.pulses)
		}
	}()
	return true
}

// tell gives a pulse to all that follow, in the place of one that they have not
// taken.
func (fs *feeds) tell(f *feed, p pulse) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f.last != nil && *f.last == p {
		return
	}
	f.last = &p
	for w := range f.followers {
		select {
		case <-w.pulses:
		default:
		}
		w.pulses <- p
	}
}

// watch calls tell with the summary of a workspace, at first and when it has
// changed, until ctx ends. The Manager looks four times a second at a store that
// cannot be watched, which is more than a page needs.
func (h *Handler) watch(ctx context.Context, user string, tell func(workspace.Summary)) error {
	if slices.Contains(h.options.Abilities, "Watcher") {
		for e, err := range h.manager.Watch(ctx, user) {
			if err != nil {
				return err
			}
			tell(e.Summary)
		}
		return ctx.Err()
	}
	ticker := time.NewTicker(h.interval)
	defer ticker.Stop()
	for {
		s, err := h.manager.Summary(ctx, user)
		if err != nil {
			return err
		}
		tell(s)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
