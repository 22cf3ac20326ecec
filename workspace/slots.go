package workspace

import (
	"context"
	"sync"
)

// slots counts the runs that a Manager holds. Each has a slot, which the next
// run of the same workspace inherits unless other users wait for one. A slot
// belongs to a lease, of which the run may not be made yet.
type slots struct {
	line *line

	mu      sync.Mutex
	pending map[string]bool // the leases with a slot whose run is not made yet
	runs    map[*lease]bool // those of runs with a slot
	users   map[string]bool // those whose run waits for a slot
}

func newSlots(n int) *slots {
	return &slots{line: newLine(n), pending: map[string]bool{}, runs: map[*lease]bool{}, users: map[string]bool{}}
}

// enter waits for a slot for a lease.
func (s *slots) enter(ctx context.Context, leaseID string) error {
	err := s.line.Enter(ctx)
	if err == nil {
		s.note(leaseID)
	}
	return err
}

// squeeze gets a slot for a lease even if there is none.
func (s *slots) squeeze(leaseID string) {
	s.line.Squeeze()
	s.note(leaseID)
}

// try reports whether a lease has got a slot.
func (s *slots) try(leaseID string) bool {
	if !s.line.TryEnter() {
		return false
	}
	s.note(leaseID)
	return true
}

func (s *slots) note(leaseID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[leaseID] = true
}

// take says that the run of a lease is made. It has the slot from now on, if the
// lease has one.
func (s *slots) take(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[l.id] {
		delete(s.pending, l.id)
		s.runs[l] = true
	}
}

// has reports whether the run of a lease has a slot.
func (s *slots) has(l *lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[l]
}

// pass gives the slot of a run, if it has one, to that of the lease with an id.
func (s *slots) pass(l *lease, next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs[l] {
		delete(s.runs, l)
		s.pending[next] = true
	}
}

// free frees the slot of a run that has ended, if it has one.
func (s *slots) free(l *lease) { leaveSlot(s, s.runs, l) }

// drop frees the slot of a lease whose run will not be made, if it has one.
func (s *slots) drop(leaseID string) { leaveSlot(s, s.pending, leaseID) }

func leaveSlot[K comparable](s *slots, owners map[K]bool, owner K) {
	s.mu.Lock()
	has := owners[owner]
	delete(owners, owner)
	s.mu.Unlock()
	if has {
		s.line.Leave()
	}
}

// markWaiting reports whether the run of a user waits for a slot from now on: it
// did not do so before.
func (s *slots) markWaiting(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] {
		return false
	}
	s.users[user] = true
	return true
}

func (s *slots) unmarkWaiting(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.users, user)
}
