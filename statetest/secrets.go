package statetest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/redact"
	"github.com/agentstate/state/statetest/internal/kit"
)

// secrets masks the values of the Secret fields of some states in what the kit
// prints. It reads the fields each time, whatever the rights of the handles, and
// remembers what it has read: a value that is replaced later stays masked. It
// is safe for concurrent use. A nil *secrets masks nothing.
type secrets struct {
	mu      sync.Mutex
	states  []*state.State
	values  []secret // the longest first
	numbers map[string]int
}

// secret is one value, with a Redactor of its own: its mask has a number.
type secret struct {
	leaf
	redactor *redact.Redactor
}

func init() { kit.NewMasks = func() kit.Masks { return newSecrets() } }

// newSecrets returns the secrets of states.
func newSecrets(states ...*state.State) *secrets {
	s := &secrets{numbers: map[string]int{}}
	s.Add(states...)
	return s
}

// Add adds the secrets of more states.
func (s *secrets) Add(states ...*state.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range states {
		if st != nil && !slices.Contains(s.states, st) {
			s.states = append(s.states, st)
		}
	}
}

const (
	plainMask = "[SECRET]"
	keptMask  = "[SECRET\x00]" // stands for a mask that a text has already
)

// Mask returns text with [SECRET 1], [SECRET 2] … in place of the secrets, in the
// encodings that a Redactor finds, and of pieces of them. Equal values have
// equal numbers.
func (s *secrets) Mask(text string) string {
	if s == nil || text == "" {
		return text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.states {
		internal.Hidden(st, "", func(_ string, _ bool, value any) {
			leavesOf(value, func(l leaf, searchable bool) {
				if searchable && isSearchable(l) {
					s.know(l)
				}
			})
		})
	}
	if len(s.values) == 0 {
		return text
	}
	text = strings.ReplaceAll(text, plainMask, keptMask)
	for _, v := range s.values {
		masked := v.redactor.Redact(text)
		masked = replaceSpans(masked, pieces(fold(masked), fold(v.text)), plainMask)
		if masked != text {
			text = strings.ReplaceAll(masked, plainMask, s.label(v.text))
		}
	}
	return strings.ReplaceAll(text, keptMask, plainMask)
}

// replaceSpans returns a text with one mask in place of spans that overlap.
func replaceSpans(text string, spans [][2]int, mask string) string {
	slices.SortFunc(spans, func(a, b [2]int) int { return cmp.Compare(b[0], a[0]) })
	end := len(text)
	for _, span := range spans {
		if span[1] <= end {
			text = text[:span[0]] + mask + text[span[1]:]
			end = span[0]
		}
	}
	return text
}

// know adds a value.
func (s *secrets) know(l leaf) {
	at, found := slices.BinarySearchFunc(s.values, l, func(v secret, l leaf) int {
		return cmp.Or(cmp.Compare(len(l.text), len(v.text)), cmp.Compare(v.text, l.text))
	})
	if !found {
		r := redact.New([]redact.Secret{{Text: l.text, Number: l.number}})
		s.values = slices.Insert(s.values, at, secret{l, r})
	}
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
	for i := range len(l.text) {
		if isDigit(l.text, i) {
			digits++
		}
	}
	return digits >= minDigits
}
