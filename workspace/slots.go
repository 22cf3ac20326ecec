package workspace

import (
	"context"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// slots counts the runs that a Manager holds. Each has a slot, which the next
// run of the same workspace inherits unless other users wait for one.
type slots struct {
	line   *line
	leases map[string]bool // those with a slot whose run is not made yet; guarded by Manager.mu
	users  map[string]bool // those whose run waits for a slot; guarded by Manager.mu
}

func newSlots(n int) slots {
	return slots{newLine(n), map[string]bool{}, map[string]bool{}}
}

// waitForSlot waits for a slot. A caller in a run gets one at once: its run
// waits for what it begins, and has a slot itself.
func (m *Manager) waitForSlot(ctx context.Context, leaseID string) error {
	if run, ok := FromContext(ctx); ok && run.m == m && run.leaseValid() {
		m.slots.line.Squeeze()
	} else if err := m.slots.line.Enter(ctx); err != nil {
		return err
	}
	m.noteSlot(leaseID)
	return nil
}

// lendSlot lends the slot of the run that ctx carries to what the run waits for,
// which may need one, until takeBack is called.
func (m *Manager) lendSlot(ctx context.Context) (takeBack func()) {
	if run, ok := FromContext(ctx); !ok || run.m != m || !run.hasSlot() {
		return func() {}
	}
	m.slots.line.Leave()
	return m.slots.line.Squeeze
}

// trySlot reports whether the lease has got a slot.
func (m *Manager) trySlot(leaseID string) bool {
	if !m.slots.line.TryEnter() {
		return false
	}
	m.noteSlot(leaseID)
	return true
}

func (m *Manager) noteSlot(leaseID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots.leases[leaseID] = true
}

// takeSlot takes the slot of the run's lease, if it has one.
func (r *Run) takeSlot() {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.slot = r.m.slots.leases[r.lease.id]
	delete(r.m.slots.leases, r.lease.id)
}

func (r *Run) hasSlot() bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.slot
}

// passSlot gives the slot of the run to the lease of the next one, if that has
// begun at a head. Nobody has a vacant lease.
func (r *Run) passSlot(nextID string, h *ledger.Head) {
	if nextID == "" || h.Run == nil || h.Run.LeaseID != nextID {
		r.m.freeSlot(nextID) // see nextLease
		return
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.slot {
		r.m.slots.leases[nextID], r.slot = true, false
	}
}

// freeSlot frees the slot of a run that has ended.
func (r *Run) freeSlot() {
	r.m.mu.Lock()
	has := r.slot
	r.slot = false
	r.m.mu.Unlock()
	if has {
		r.m.slots.line.Leave()
	}
}

// freeSlot frees the slot of a lease without a run, if it has one.
func (m *Manager) freeSlot(leaseID string) {
	m.mu.Lock()
	has := m.slots.leases[leaseID]
	delete(m.slots.leases, leaseID)
	m.mu.Unlock()
	if has {
		m.slots.line.Leave()
	}
}

// markWaiting reports whether the run of a user waits for a slot from now on: it
// did not do so before.
func (m *Manager) markWaiting(user string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slots.users[user] {
		return false
	}
	m.slots.users[user] = true
	return true
}

func (m *Manager) unmarkWaiting(user string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.slots.users, user)
}
