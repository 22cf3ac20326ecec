package workspace

import (
	"context"
	"maps"
)

// Stored returns what a run takes for the stored content, and checks what its
// document keeps.
func Stored(r *Run) (*Workspace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	settings, err := decodeSettings(r.settings.stored)
	if err != nil {
		return nil, err
	}
	suspended := &suspendedCalls{now: maps.Clone(r.suspended.stored)}
	stored := &Workspace{user: r.user, state: r.storedState, memory: &Memory{entries: r.storedMemory}, settings: settings, suspended: suspended}
	return stored, r.doc.Check()
}

// CheckCached checks what the document keeps that a Manager caches.
func CheckCached(ctx context.Context, m *Manager, user string) error {
	l, err := m.ledger(user)
	if err != nil {
		return err
	}
	_, doc, err := l.ReadPresent(ctx)
	if err != nil {
		return err
	}
	return doc.Check()
}

// NextNumber returns the number of what a run adds to the conversation next.
func NextNumber(r *Run) (int, error) { return r.nextNumber() }
