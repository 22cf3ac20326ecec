package statetest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
)

// secrets masks the values of the Secret fields of some states in what the kit
// prints. It reads the fields each time, whatever the rights of the handles, and
// remembers what it has read: a value that is replaced later stays masked. It
// is safe for concurrent use. A nil *secrets masks nothing.
type secrets struct {
	mu      sync.Mutex
	states  []*state.State
	values  []leaf
	known   map[leaf]bool
	finder  *finder        // of the values, nil if there are new ones
	numbers map[string]int // of those that were found
}

// newSecrets returns the secrets of states.
func newSecrets(states ...*state.State) *secrets {
	s := &secrets{known: map[leaf]bool{}, numbers: map[string]int{}}
	s.add(states...)
	return s
}

// add adds the secrets of more states.
func (s *secrets) add(states ...*state.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range states {
		if st != nil && !slices.Contains(s.states, st) {
			s.states = append(s.states, st)
		}
	}
}

// addValue adds a value that is secret although no state has it, such as the
// one that a test wants.
func (s *secrets) addValue(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.know(v)
}

// mask returns text with [SECRET 1], [SECRET 2] … in place of the secrets and
// their pieces, in the order in which they are found first and in all the
// encodings in which NoLeak finds them. Equal values have equal numbers. Values
// that overlap become one mask.
func (s *secrets) mask(text string) string {
	if s == nil || text == "" {
		return text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.states {
		internal.Hidden(st, "", func(_ string, _ bool, value any) { s.know(value) })
	}
	if len(s.values) == 0 {
		return text
	}
	if s.finder == nil {
		s.finder = newFinder(s.values)
	}
	finds, _ := s.finder.find(text)
	return replaceFinds(text, finds, func(f find) string { return s.label(s.values[f.value].text) })
}

func (s *secrets) know(value any) {
	leavesOf(value, func(l leaf, searchable bool) {
		if searchable && isSearchable(l) && !s.known[l] {
			s.known[l] = true
			s.values = append(s.values, l)
			s.finder = nil
		}
	})
}

// label returns the mask of a value. The caller holds the mutex.
func (s *secrets) label(value string) string {
	n, ok := s.numbers[value]
	if !ok {
		n = len(s.numbers) + 1
		s.numbers[value] = n
	}
	return "[SECRET " + strconv.Itoa(n) + "]"
}

// minDigits is the least number of digits of a number that is looked for.
const minDigits = 4

// isSearchable reports whether texts that have the value by chance are few
// enough to look for it.
func isSearchable(l leaf) bool {
	if !l.number {
		return l.text != ""
	}
	digits := 0
	for _, c := range []byte(l.text) {
		if isDigit(c) {
			digits++
		}
	}
	return digits >= minDigits
}

// replaceFinds returns text with a label in place of each group of finds that
// overlap: that of the longest value which is found as a whole.
func replaceFinds(text string, finds []find, label func(find) string) string {
	var b strings.Builder
	end := 0
	for _, group := range grouped(finds) {
		b.WriteString(text[end:group.from])
		b.WriteString(label(group))
		end = group.to
	}
	b.WriteString(text[end:])
	return b.String()
}

// grouped returns the finds in order, those that overlap as one.
func grouped(finds []find) []find {
	finds = slices.Clone(finds)
	slices.SortStableFunc(finds, func(a, b find) int { return cmp.Compare(a.from, b.from) })
	var groups []find
	for _, f := range finds {
		if len(groups) == 0 || f.from >= groups[len(groups)-1].to {
			groups = append(groups, f)
			continue
		}
		group := &groups[len(groups)-1]
		to := max(group.to, f.to)
		if f.whole && !group.whole || f.whole == group.whole && f.bytes > group.bytes {
			f.from = group.from
			*group = f
		}
		group.to = to
	}
	return groups
}
