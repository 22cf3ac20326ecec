package statemodel

import (
	"errors"
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

// reloaded is the state that Import reads from the Export of the state.
func (s *stateModel) reloaded(st *state.State) *stateModel {
	c := s.content
	for _, f := range allFields {
		if f.ephemeral {
			c = c.put(f.name, nil, false)
		}
	}
	r := &stateModel{
		st: st, content: c, version: s.version, from: s.version,
		past: map[uint64]stateContent{s.version: c}, changes: map[uint64][]fieldWrite{},
	}
	r.origin = r
	return r
}

// compare checks that a state is as its model says.
func (m *programRun) compare(s *stateModel) {
	t, kv, want := m.t, s.st.KV(), s.content.fields
	if got := s.st.Version(); got != s.version {
		t.Fatalf("version is %d, want %d", got, s.version)
	}
	all := kv.All()
	for name, v := range want {
		got, ok := all[name]
		if name == "secret" {
			v = state.Masked{}
		}
		if v = byName(v); !ok || !equalValues(v, got) {
			t.Fatalf("All has %q = %#v %v, want %#v", name, got, ok, v)
		}
	}
	if len(all) != len(want) || kv.Len() != len(want) {
		t.Fatalf("All has %v, Len is %d, want %v", all, kv.Len(), want)
	}
	if got := kv.Keys(); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("Keys are %v, want %v", got, want)
	}
	for _, f := range allFields {
		v, set := want[f.name]
		got, err := f.get(s.st)
		if set && (err != nil || !equalValues(v, got)) || !set && !errors.Is(err, state.ErrNotFound) {
			t.Fatalf("field %q is %#v %v, want %#v %v", f.name, got, err, v, set)
		}
	}
	if got := s.st.History().Results(); !equalValues(s.content.results, got) || s.st.History().Len() != len(got) {
		t.Fatalf("results are %v, want %v", got, s.content.results)
	}
	m.checkKeys(s.st)
}

// replay checks the journal: every version since the first is there, with the
// last write to each of its fields.
func (m *programRun) replay(s *stateModel, since uint64) {
	t := m.t
	if since < s.from {
		for _, err := range s.st.Changes(since) {
			require.ErrorIs(t, err, state.ErrCompacted)
		}
		return
	}
	got := map[uint64]map[string]state.Change{}
	last := since
	for c, err := range s.st.Changes(since) {
		require.NoError(t, err)
		if c.Version != last {
			require.Equal(t, last+1, c.Version, "the journal has a gap")
			last, got[c.Version] = c.Version, map[string]state.Change{}
		}
		if c.Field == "" {
			c.Field = historyName
		}
		got[c.Version][c.Field] = c
	}
	require.Equal(t, s.version, max(last, since), "the journal ends early")
	for v := since + 1; v <= s.version; v++ {
		want := map[string]fieldWrite{}
		for _, w := range s.changes[v] {
			want[w.field] = w
		}
		require.Len(t, got[v], len(want), "version %d: %v, want %v", v, got[v], want)
		for field, w := range want {
			c, ok := got[v][field]
			require.True(t, ok && c.Op == w.op, "version %d, field %q: %v, want %v", v, field, c, w)
			switch {
			case w.gone && field == historyName:
				require.Equal(t, []state.InferenceResult{}, c.Value)
			case w.gone:
				require.Nil(t, c.Value)
			case w.op == state.OpPop, c.Value == nil && field == historyName: // what was popped; no results
			case field == "secret":
				require.Equal(t, any(state.Masked{}), c.Value)
			default:
				require.True(t, equalValues(byName(w.value), c.Value), "version %d, field %q: %#v, want %#v",
					v, field, c.Value, w.value)
			}
		}
	}
}

// reload checks that what Export writes, Import reads.
func (m *programRun) reload(s *stateModel) {
	data, err := s.st.Export()
	require.NoError(m.t, err)
	st, err := state.Import(Schema, data)
	require.NoError(m.t, err)
	again, err := st.Export()
	require.NoError(m.t, err)
	if string(data) != string(again) {
		m.t.Fatalf("exported again: %s, want %s", again, data)
	}
	m.compare(s.reloaded(st))
}
