package pagehttp

import "sync"

const (
	maxStreams     = 1000 // of a Guard
	maxUserStreams = 32   // of a user, with the requests that are being read
)

// slots bounds the streams of a Guard, and how many of them one user takes.
type slots struct {
	mu      sync.Mutex
	streams int
	users   map[string]int
}

// enter counts a request of a user, until leave is called. It reports false, and
// counts nothing, if there are too many.
func (s *slots) enter(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] == maxUserStreams {
		return false
	}
	if s.users == nil {
		s.users = map[string]int{}
	}
	s.users[user]++
	return true
}

func (s *slots) leave(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user]--; s.users[user] == 0 {
		delete(s.users, user)
	}
}

// begin counts a stream, until end is called, as enter counts a request.
func (s *slots) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == maxStreams {
		return false
	}
	s.streams++
	return true
}

func (s *slots) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams--
}
