package sqlstore

import (
	"testing"
	"time"
)

// SetCallTime sets the time of calls for a test.
func SetCallTime(t *testing.T, d time.Duration) {
	before := callTime
	callTime = d
	t.Cleanup(func() { callTime = before })
}

// WaitingWrites returns the number of writes of a SQLite store that wait for a leader.
// A leader that waits for the lock of the file is one of them.
func WaitingWrites(s *Store) int {
	g := s.writer.(*groupWriter)
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}
