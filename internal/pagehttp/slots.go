package pagehttp

import "sync"

const (
	maxStreams     = 1000 // of a Guard
	maxUserStreams = 32   // of a user, with the requests that are being read
)

// slots bounds the streams of a Guard, and how many of them one user takes.
type slots struct {
	mu    sync.Mutex
	taken map[string]int // by users; those of streams by ""
}

// take counts a request of a user, or a stream of anybody for "", until give is called.
// It reports false, and counts nothing, if there are too many.
func (s *slots) take(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.taken[user]; n == maxStreams || user != "" && n == maxUserStreams {
		return false
	}
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	s.taken[user]++
	return true
}

func (s *slots) give(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[user]--; s.taken[user] == 0 {
		delete(s.taken, user)
	}
}
