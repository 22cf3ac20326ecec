package store

import (
	"cmp"
	"context"
)

// memoryAnnouncement is a name that is present.
type memoryAnnouncement struct {
	handle *Memory
	lost   chan struct{}
}

// Announce implements [Presence]. An announcement is lost only when its handle
// is closed.
func (m *Memory) Announce(ctx context.Context, name string) (lost <-chan struct{}, withdraw func() error, err error) {
	a := &memoryAnnouncement{handle: m, lost: make(chan struct{})}
	m.data.mu.Lock()
	defer m.data.mu.Unlock()
	err = cmp.Or(CheckKey(name), m.checkUsable(ctx))
	if err == nil && m.data.present[name] != nil {
		err = ErrConflict
	}
	if err != nil {
		return nil, nil, memoryError("announce", name, err)
	}
	m.data.present[name] = a
	return a.lost, func() error { a.withdraw(name); return nil }, nil
}

func (a *memoryAnnouncement) withdraw(name string) {
	d := a.handle.data
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.present[name] == a {
		delete(d.present, name)
	}
}

// loseAnnouncements ends the announcements of a handle. The caller holds the
// lock of the data.
func (m *Memory) loseAnnouncements() {
	for name, a := range m.data.present {
		if a.handle == m {
			delete(m.data.present, name)
			close(a.lost)
		}
	}
}

// IsPresent implements [Presence]. It reports exactly which names are
// announced.
func (m *Memory) IsPresent(ctx context.Context, name string) (bool, error) {
	if err := cmp.Or(CheckKey(name), m.checkUsable(ctx)); err != nil {
		return false, memoryError("is present", name, err)
	}
	m.data.mu.RLock()
	defer m.data.mu.RUnlock()
	return m.data.present[name] != nil, nil
}
