package turns

import (
	"context"
	"sync"
)

// Slots counts the runs that a Manager holds. Each has a slot, which the next run
// of the same workspace inherits unless others wait for one. A slot is had for a
// lease first, of which the run may never be made, and then by the run. It takes a
// place of all, and one of its user if the runs of a user are bounded.
type Slots struct {
	all     []*Line // one
	perUser int     // 0 if there is no bound
	userOf  func(workspace string) string

	mu      sync.Mutex
	pending map[string]string    // the user of each lease with a slot whose run is not made yet
	users   map[string]*userLine // by user, if there is a bound
	waiting map[string]bool      // the workspaces whose run waits for a slot
}

// userLine has the places of a user, as long as somebody uses them.
type userLine struct {
	lines []*Line // that of the user, and that of all
	uses  int
}

// NewSlots returns n slots, of which each user has at most perUser, if that is not 0.
// userOf returns the user of a workspace.
func NewSlots(n, perUser int, userOf func(workspace string) string) *Slots {
	return &Slots{
		all: []*Line{NewLine(n)}, perUser: perUser, userOf: userOf,
		pending: map[string]string{}, users: map[string]*userLine{}, waiting: map[string]bool{},
	}
}

// use returns the lines in which a slot of a user takes a place. That of the user is
// kept until unuse is called.
func (s *Slots) use(user string) []*Line {
	if s.perUser == 0 {
		return s.all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.users[user]
	if l == nil {
		l = &userLine{lines: append([]*Line{NewLine(s.perUser)}, s.all...)}
		s.users[user] = l
	}
	l.uses++
	return l.lines
}

// unuse says that the line of a user is no longer used.
func (s *Slots) unuse(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.users[user]; l != nil {
		if l.uses--; l.uses == 0 {
			delete(s.users, user)
		}
	}
}

// lines returns those in which the slot of a user has a place.
func (s *Slots) lines(user string) []*Line {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.users[user]; l != nil {
		return l.lines
	}
	return s.all
}

// Enter waits for a slot for a lease of a workspace. If ctx ends first, it returns the
// cause.
func (s *Slots) Enter(ctx context.Context, workspace, leaseID string) error {
	return s.enter(workspace, leaseID, func(l *Line) error { return l.Enter(ctx) })
}

// Try reports whether a lease of a workspace has got a slot.
func (s *Slots) Try(workspace, leaseID string) bool {
	return s.enter(workspace, leaseID, (*Line).tryEnter) == nil
}

// Squeeze gets a slot for a lease of a workspace even if there is none.
func (s *Slots) Squeeze(workspace, leaseID string) {
	user := s.userOf(workspace)
	for _, l := range s.use(user) {
		l.Squeeze()
	}
	s.note(user, leaseID)
}

// enter gets a place in each line, or in none.
func (s *Slots) enter(workspace, leaseID string, enter func(*Line) error) error {
	user := s.userOf(workspace)
	lines := s.use(user)
	for i, l := range lines {
		if err := enter(l); err != nil {
			for _, l := range lines[:i] {
				l.Leave()
			}
			s.unuse(user)
			return err
		}
	}
	s.note(user, leaseID)
	return nil
}

func (s *Slots) note(user, leaseID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[leaseID] = user
}

// Drop frees the slot of a lease whose run will not be made, if it has one.
func (s *Slots) Drop(leaseID string) {
	s.mu.Lock()
	user, has := s.pending[leaseID]
	delete(s.pending, leaseID)
	s.mu.Unlock()
	if has {
		s.leave(user)
	}
}

// leave gives the places of a slot back.
func (s *Slots) leave(user string) {
	for _, l := range s.lines(user) {
		l.Leave()
	}
	s.unuse(user)
}

// MarkWaiting reports whether the run of a workspace waits for a slot from now on:
// it did not do so before.
func (s *Slots) MarkWaiting(workspace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting[workspace] {
		return false
	}
	s.waiting[workspace] = true
	return true
}

// UnmarkWaiting says that the run of a workspace waits no longer.
func (s *Slots) UnmarkWaiting(workspace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, workspace)
}

// Slot is that of a run. It is safe for concurrent use.
type Slot struct {
	slots *Slots
	user  string
	has   bool // guarded by slots.mu
}

// Take returns the slot of the run of a lease, which has it from now on if the lease
// has one.
func (s *Slots) Take(leaseID string) *Slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, has := s.pending[leaseID]
	delete(s.pending, leaseID)
	return &Slot{slots: s, user: user, has: has}
}

// Has reports whether the run has a slot.
func (s *Slot) Has() bool {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	return s.has
}

// yield reports whether the run had the slot, which it has no longer.
func (s *Slot) yield() (had bool) {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	had, s.has = s.has, false
	return had
}

// Crowded reports whether others wait for the slot.
func (s *Slot) Crowded() bool {
	for _, l := range s.slots.lines(s.user) {
		if l.Crowded() {
			return true
		}
	}
	return false
}

// Lend gives the places of the slot back, if the run has it, until takeBack is called.
func (s *Slot) Lend() (takeBack func()) {
	if !s.Has() {
		return func() {}
	}
	lines := s.slots.lines(s.user)
	for _, l := range lines {
		l.Leave()
	}
	return func() {
		for _, l := range lines {
			l.Squeeze()
		}
	}
}

// Pass gives the slot, if the run has it, to the lease of the next run.
func (s *Slot) Pass(leaseID string) {
	if s.yield() {
		s.slots.note(s.user, leaseID)
	}
}

// Free frees the slot, if the run has it.
func (s *Slot) Free() {
	if s.yield() {
		s.slots.leave(s.user)
	}
}
