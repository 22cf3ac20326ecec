package sqlstore

// Waiting returns the number of calls that wait for a commit of SQLite.
func Waiting(s *Store) int {
	g := s.writer.(*groupWriter)
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}
