package workspace

import (
	"context"
	"sync"
)

// slots counts the runs that a Manager holds. Each has a slot, which the next
// run of the same workspace inherits unless others wait for one. A slot belongs to
// a lease, of which the run may not be made yet. It takes a place of all, and one
// of its user if Options.UserRuns bounds those.
type slots struct {
	line    *line
	perUser int // 0 if there is no bound

	mu      sync.Mutex
	pending map[string]string    // the user of each lease with a slot whose run is not made yet
	runs    map[*lease]string    // and of each run with a slot
	lines   map[string]*userLine // by user
	waiting map[string]bool      // the workspaces whose run waits for a slot
}

// userLine has the places of a user, as long as somebody uses them.
type userLine struct {
	*line
	uses int
}

func newSlots(n, perUser int) *slots {
	return &slots{
		line: newLine(n), perUser: perUser, pending: map[string]string{}, runs: map[*lease]string{}, lines: map[string]*userLine{},
		waiting: map[string]bool{},
	}
}

// use returns the places of the user of a workspace, which are kept until unuse is
// called with the user. Without a bound there are always some.
func (s *slots) use(id string) (user string, places *line) {
	user, _ = SplitThread(id)
	if s.perUser == 0 {
		return user, newLine(1)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[user]
	if l == nil {
		l = &userLine{line: newLine(s.perUser)}
		s.lines[user] = l
	}
	l.uses++
	return user, l.line
}

// unuse says that places are no longer used.
func (s *slots) unuse(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lines[user]; l != nil {
		if l.uses--; l.uses == 0 {
			delete(s.lines, user)
		}
	}
}

// placesOf returns the places of a user who has some, or nil without a bound.
func (s *slots) placesOf(user string) *line {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lines[user]; l != nil {
		return l.line
	}
	return nil
}

// leave gives the places of a slot back.
func (s *slots) leave(user string) {
	s.line.Leave()
	if l := s.placesOf(user); l != nil {
		l.Leave()
	}
	s.unuse(user)
}

// enter waits for a slot for the lease of a workspace.
func (s *slots) enter(ctx context.Context, id, leaseID string) error {
	user, places := s.use(id)
	err := places.Enter(ctx)
	if err == nil {
		if err = s.line.Enter(ctx); err != nil {
			places.Leave()
		}
	}
	if err != nil {
		s.unuse(user)
		return err
	}
	s.note(user, leaseID)
	return nil
}

// squeeze gets a slot for a lease even if there is none.
func (s *slots) squeeze(id, leaseID string) {
	user, places := s.use(id)
	places.Squeeze()
	s.line.Squeeze()
	s.note(user, leaseID)
}

// try reports whether a lease has got a slot.
func (s *slots) try(id, leaseID string) bool {
	user, places := s.use(id)
	if places.TryEnter() {
		if s.line.TryEnter() {
			s.note(user, leaseID)
			return true
		}
		places.Leave()
	}
	s.unuse(user)
	return false
}

func (s *slots) note(user, leaseID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[leaseID] = user
}

// lend gives the places of the run of a lease back, if it has a slot, until
// takeBack is called.
func (s *slots) lend(l *lease) (takeBack func()) {
	s.mu.Lock()
	user, has := s.runs[l]
	s.mu.Unlock()
	if !has {
		return func() {}
	}
	lines := []*line{s.line}
	if places := s.placesOf(user); places != nil {
		lines = append(lines, places)
	}
	for _, each := range lines {
		each.Leave()
	}
	return func() {
		for _, each := range lines {
			each.Squeeze()
		}
	}
}

// crowded reports whether others wait for the slot of the run of a lease.
func (s *slots) crowded(l *lease) bool {
	s.mu.Lock()
	user := s.runs[l]
	s.mu.Unlock()
	places := s.placesOf(user)
	return s.line.Crowded() || places != nil && places.Crowded()
}

// take says that the run of a lease is made. It has the slot from now on, if the
// lease has one.
func (s *slots) take(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user, has := s.pending[l.id]; has {
		delete(s.pending, l.id)
		s.runs[l] = user
	}
}

// has reports whether the run of a lease has a slot.
func (s *slots) has(l *lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, has := s.runs[l]
	return has
}

// pass gives the slot of a run, if it has one, to that of the lease with an id.
func (s *slots) pass(l *lease, next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user, has := s.runs[l]; has {
		delete(s.runs, l)
		s.pending[next] = user
	}
}

// free frees the slot of a run that has ended, if it has one.
func (s *slots) free(l *lease) { leaveSlot(s, s.runs, l) }

// drop frees the slot of a lease whose run will not be made, if it has one.
func (s *slots) drop(leaseID string) { leaveSlot(s, s.pending, leaseID) }

func leaveSlot[K comparable](s *slots, owners map[K]string, owner K) {
	s.mu.Lock()
	user, has := owners[owner]
	delete(owners, owner)
	s.mu.Unlock()
	if has {
		s.leave(user)
	}
}

// markWaiting reports whether the run of a workspace waits for a slot from now on:
// it did not do so before.
func (s *slots) markWaiting(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[id] {
		return false
	}
	s.waiting[id] = true
	return true
}

func (s *slots) unmarkWaiting(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, id)
}
