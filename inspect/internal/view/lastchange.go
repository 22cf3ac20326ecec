package view

import (
	"context"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/work"
)

// lastChange describes the last change of a field.
type lastChange struct {
	Version uint64 `json:"version,omitempty"`
	// Before is set instead if the records that were read do not have the change:
	// it was made before that version.
	Before uint64 `json:"before,omitempty"`
	Agent  text   `json:"agent,omitempty"` // empty for the host
	Cause  text   `json:"cause,omitempty"`
	// Here says that it was changed in the version that is shown.
	Here bool `json:"here,omitempty"`
}

// lastChanges returns the last change of each field up to the version that is
// shown. It looks at the newest maxRecords records.
func (src *Source) lastChanges(ctx context.Context, s *shown) (map[string]lastChange, error) {
	s.cached.mu.Lock()
	defer s.cached.mu.Unlock()
	if s.cached.last != nil {
		return s.cached.last, nil
	}
	last := map[string]lastChange{}
	version, missing := s.view.Version, s.storedFields()
	rest, err := src.recordsBack(ctx, s.ID, s.Oldest, version, func(r work.Record) bool {
		for _, e := range r.Effects {
			part, name := partOf(e)
			if isVersion(e) || e.Part == "message" { // the list of the messages names their author
				continue
			}
			if part == "conversation" {
				name = state.Messages.Name
			} else if part != "field" {
				continue
			}
			if _, known := last[name]; !known {
				last[name] = lastChange{
					Version: r.Version, Agent: s.mask.name(e.Agent), Cause: s.mask.id(e.Cause), Here: r.Version == version,
				}
				delete(missing, name)
			}
		}
		return len(missing) > 0
	})
	if err != nil {
		return nil, err
	}
	if rest > 0 {
		for name := range missing {
			last[name] = lastChange{Before: rest + 1}
		}
	}
	s.cached.last = last
	return last, nil
}

// storedFields returns the names of the fields that are set.
func (s *shown) storedFields() map[string]bool {
	names := map[string]bool{}
	for _, f := range s.view.State().Fields() {
		if f.Set && !f.Ephemeral {
			names[f.Name] = true
		}
	}
	for _, name := range s.view.Unknown {
		names[name] = true
	}
	return names
}
