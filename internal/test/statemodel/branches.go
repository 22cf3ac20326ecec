package statemodel

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

func (m *programRun) lookBack(s *stateModel, o programStep) {
	version := s.version + 1 - min(uint64(o.at), s.version+1)
	past, err := s.st.At(version)
	switch {
	case version > s.version:
		require.ErrorIs(m.t, err, state.ErrNotFound)
	case version < s.from:
		require.ErrorIs(m.t, err, state.ErrCompacted)
	default:
		require.NoError(m.t, err)
		// Secrets are as they are now.
		now, ok := s.content.get("secret")
		content := s.past[version].put("secret", now, ok)
		m.add(&stateModel{
			st: past, origin: s.origin, content: content, version: version, ended: state.ErrReadOnly, from: version,
			past: map[uint64]stateContent{version: content}, changes: map[uint64][]fieldWrite{},
		})
	}
}

// join joins, in any order, some of the state's branches, and sometimes others.
func (m *programRun) join(s *stateModel, o programStep) {
	var own []*stateModel
	for _, b := range m.states {
		if b.parent == s && b.ended == nil || o.fail {
			own = append(own, b)
		}
	}
	var branches []*stateModel
	for _, at := range o.with {
		if len(own) > 0 {
			b := own[at%len(own)]
			branches = append(branches, b)
			if !o.fail {
				own = slices.DeleteFunc(own, func(x *stateModel) bool { return x == b })
			}
		}
	}
	handles := make([]*state.State, len(branches))
	for i, b := range branches {
		handles[i] = b.st
	}
	m.agree(o, s.join(branches), s.st.Join(handles...))
}

// race writes a field in branches of the state, and in the state itself, and
// joins them.
func (m *programRun) race(s *stateModel, o programStep) {
	sides := []*stateModel{}
	for range o.at {
		sides = append(sides, s.fork(s.st.Fork()))
	}
	sides = append(sides, s)
	for _, w := range o.inner {
		m.step(sides[w.on], w)
	}
	var branches []*stateModel
	var handles []*state.State
	for _, i := range o.with {
		m.compare(sides[i])
		branches, handles = append(branches, sides[i]), append(handles, sides[i].st)
	}
	m.agree(o, s.join(branches), s.st.Join(handles...))
	for _, b := range branches { // joined or not, they stay what they were
		m.compare(b)
	}
}

func (m *programRun) revert(s *stateModel, o programStep) {
	to := m.states[o.at%len(m.states)]
	want := s.ended
	switch {
	case to.ended == nil || to.origin != s.origin:
		want = errAny
	case want == nil:
		var writes []fieldWrite
		for _, field := range append(s.content.names(), to.content.names()...) {
			v, set := to.content.get(field)
			w := fieldWrite{op: state.OpRevert, field: field, value: v, gone: !set}
			seen := slices.ContainsFunc(writes, func(w fieldWrite) bool { return w.field == field })
			if field != "secret" && !seen && !s.content.same(to.content, field) {
				writes = append(writes, w)
			}
		}
		// Validation was asked when the values were written.
		if len(writes) > 0 {
			next := s.content
			for _, w := range writes {
				next, _ = w.on(next)
			}
			s.commit(next, writes, writes)
		}
	}
	m.agree(o, want, s.st.Revert(to.st))
}

func (m *programRun) transaction(s *stateModel, o programStep) {
	runs := 0
	var tx *stateModel
	got := s.st.Update(func(st *state.State) error {
		runs++
		require.Equal(m.t, 1, runs, "%v: nothing makes fn run again", o)
		tx = s.fork(st)
		tx.parent = nil // it cannot be joined
		m.states = append(m.states, tx)
		for _, in := range o.inner {
			m.step(tx, in)
			m.compare(tx)
		}
		if o.fail {
			return errUpdate
		}
		return nil
	})
	want := s.ended
	if want == nil {
		require.Equal(m.t, 1, runs)
		tx.ended = state.ErrReadOnly
		switch {
		case o.fail:
			want = errUpdate
		case len(tx.writes) > 0 || tx.version > tx.from:
			writes := slices.Clone(tx.writes)
			for i := range writes {
				writes[i].computed = writes[i].computed || writes[i].overwrites()
			}
			var changes []fieldWrite
			for v := tx.from + 1; v <= tx.version; v++ {
				changes = append(changes, tx.changes[v]...)
			}
			s.commit(tx.content, writes, changes)
		}
	} else {
		require.Zero(m.t, runs)
	}
	m.agree(o, want, got)
}
