package statemodel

import (
	"errors"
	"maps"
	"slices"

	"github.com/agentstate/state"
)

// stateModel is a State and the content that it should have.
type stateModel struct {
	st      *state.State
	content stateContent
	version uint64
	ended   error // what a write gets

	from    uint64 // the version it began with
	past    map[uint64]stateContent
	writes  []fieldWrite            // as a later Join sees them
	changes map[uint64][]fieldWrite // as Changes shows them

	origin *stateModel // the imported state that it comes from, nil for the first
	parent *stateModel // of a fork
	base   stateContent
}

func (s *stateModel) commit(next stateContent, writes, changes []fieldWrite) {
	s.version++
	for _, w := range writes {
		w.version = s.version
		s.writes = append(s.writes, w)
	}
	s.content, s.past[s.version], s.changes[s.version] = next, next, changes
}

// do is a version made of plain writes; nothing changes if one fails.
func (s *stateModel) do(writes ...fieldWrite) error {
	next := s.content
	for _, w := range writes {
		var err error
		if next, err = w.on(next); err != nil {
			return err
		}
		if err := next.valid(w.field); err != nil {
			return err
		}
	}
	if s.ended != nil {
		return s.ended
	}
	if len(writes) > 0 {
		s.commit(next, writes, writes)
	}
	return nil
}

// frozen returns a state that stays as s is, or was.
func (s *stateModel) frozen(st *state.State) *stateModel {
	return &stateModel{
		st: st, origin: s.origin, content: s.content, version: s.version, ended: state.ErrReadOnly,
		from: s.from, past: maps.Clone(s.past), changes: maps.Clone(s.changes),
	}
}

func (s *stateModel) fork(st *state.State) *stateModel {
	return &stateModel{
		st: st, origin: s.origin, content: s.content, version: s.version, from: s.version,
		past: map[uint64]stateContent{s.version: s.content}, changes: map[uint64][]fieldWrite{},
		parent: s, base: s.content,
	}
}

// since returns what was written to a field after a version, and whether that
// overwrites it, and comes from Update.
func (s *stateModel) since(field string, version uint64) (writes []fieldWrite, over, computed bool) {
	for _, w := range s.writes {
		if w.field != field || w.version <= version {
			continue
		}
		if w.overwrites() {
			over, computed = true, w.computed
		}
		writes = append(writes, w)
	}
	return writes, over, computed
}

// parentSince is since for the parent of branches, which remembers nothing of a
// field beyond the last version in which it was unset: not that it became so in
// an Update, and if it was unset at the fork too, nothing at all.
func (s *stateModel) parentSince(field string, b *stateModel) (writes []fieldWrite, over, computed bool) {
	unset := b.from
	for v := unset + 1; v <= s.version; v++ {
		if _, set := s.past[v].get(field); !set {
			unset = v
		}
	}
	latest, latestOver, computed := s.since(field, unset)
	if _, set := b.base.get(field); !set {
		return latest, latestOver, computed
	}
	writes, over, _ = s.since(field, b.from)
	return writes, over, computed
}

// joinSide is the part that the parent or a branch has in a field.
type joinSide struct {
	writes         []fieldWrite
	value          any
	set            bool
	over, computed bool
}

// join joins branches into s, or changes nothing.
func (s *stateModel) join(branches []*stateModel) error {
	for i, b := range branches {
		if b.parent != s || slices.Contains(branches[:i], b) {
			return errAny
		}
	}
	for _, b := range branches {
		if b.ended != nil {
			return b.ended
		}
	}
	if s.ended != nil {
		return s.ended
	}
	var fields []string
	for _, b := range branches {
		for _, w := range b.writes {
			if !slices.Contains(fields, w.field) {
				fields = append(fields, w.field)
			}
		}
	}
	next := s.content
	var writes, changes []fieldWrite
	var conflicts []string
	var failed error
	for _, field := range fields {
		value, set, net, shown, err := s.joinField(field, branches)
		switch {
		case errors.Is(err, state.ErrConflict):
			conflicts = append(conflicts, field)
			continue
		case err != nil:
			failed = errAny
			continue
		}
		next = next.put(field, value, set)
		writes, changes = append(writes, net...), append(changes, shown...)
	}
	if failed != nil {
		return failed
	}
	if len(conflicts) > 0 {
		return state.ErrConflict
	}
	for _, b := range branches {
		b.ended = state.ErrReadOnly
	}
	if len(changes) > 0 {
		s.commit(next, writes, changes)
	}
	return nil
}

func (s *stateModel) joinField(
	field string, branches []*stateModel,
) (value any, set bool, net, shown []fieldWrite, err error) {
	parent := joinSide{}
	parent.value, parent.set = s.content.get(field)
	parentWrote, anyOver := false, false
	var sides []joinSide
	for _, b := range branches {
		side := joinSide{}
		side.writes, side.over, side.computed = b.since(field, b.from)
		side.value, side.set = b.content.get(field)
		if len(side.writes) == 0 || side.over && b.content.same(b.base, field) {
			continue // it has no part, or left what it found
		}
		sides = append(sides, side)
		anyOver = anyOver || side.over
		shown = append(shown, side.writes...)
		w, over, computed := s.parentSince(field, b)
		isAsFound := over && s.content.same(b.base, field)
		if len(w) > 0 && !isAsFound {
			parentWrote = true
			parent.over, parent.computed = parent.over || over, parent.computed || computed
			anyOver = anyOver || over
		}
	}
	if len(sides) == 0 {
		return parent.value, parent.set, nil, nil, nil
	}
	if !anyOver {
		c := s.content
		for _, w := range shown {
			if c, err = w.on(c); err != nil {
				return nil, false, nil, nil, err
			}
		}
		value, set = c.get(field)
		return value, set, shown, shown, c.valid(field)
	}
	if parentWrote {
		sides = slices.Insert(sides, 0, parent)
	}
	win := sides[0]
	switch handler := fieldNamed(field).handler; {
	case len(sides) == 1, handler == "first_wins":
	case handler == "last_wins":
		win = sides[len(sides)-1]
	default:
		for _, side := range sides {
			if !side.over || side.computed || !sameField(field, side.value, side.set, win.value, win.set) {
				return nil, false, nil, nil, state.ErrConflict
			}
		}
	}
	return win.value, win.set, shown, shown, nil
}
