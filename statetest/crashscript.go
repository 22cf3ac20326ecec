package statetest

import (
	"slices"

	"github.com/agentstate/state/provider"
)

// sharedScript is the script of all processes of a case.
type sharedScript struct {
	*script
	format *provider.Format
}

// scriptMark is how far a script had come.
type scriptMark struct {
	given    []int // how often each reply was given
	requests int
}

// mark returns how far the script has come, for rewind.
func (s *sharedScript) mark() scriptMark {
	s.mu.Lock()
	defer s.mu.Unlock()
	mark := scriptMark{make([]int, len(s.replies)), len(s.requests)}
	for i, e := range s.replies {
		mark.given[i] = e.given
	}
	return mark
}

// rewind makes the replies since a mark be left again. An equal request takes
// them anew.
func (s *sharedScript) rewind(mark scriptMark) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.replies {
		if i < len(mark.given) {
			e.given = mark.given[i]
		}
	}
	s.answers = slices.DeleteFunc(s.answers, func(g *given) bool { return g.number > mark.requests })
}
