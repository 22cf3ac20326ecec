package workspace

import "maps"

// Stored returns what a run takes for the stored content.
func Stored(r *Run) (*Workspace, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	settings, err := decodeSettings(r.settings.stored)
	if err != nil {
		return nil, err
	}
	suspended := &suspendedCalls{now: maps.Clone(r.suspended.stored)}
	stored := &Workspace{user: r.user, state: r.storedState, memory: &Memory{entries: r.storedMemory}, settings: settings, suspended: suspended}
	return stored, nil
}

// NextNumber returns the number of what a run adds to the conversation next.
func NextNumber(r *Run) (int, error) { return r.nextNumber() }
