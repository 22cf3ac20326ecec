package redact

import (
	"math/bits"
	"slices"
)

// An automaton finds all of many patterns in one pass over a text, by the
// method of Aho and Corasick. First all patterns are added, then the states are
// linked. After that it does not change.
//
// A state stands for the longest beginning of a pattern that ends where the
// text has been read. The states form a tree by the bytes of the patterns. A
// state without a child for the next byte falls back to that of a shorter
// beginning.
type automaton struct {
	states []state // states[0] is the root: no pattern has begun
	first  [256]int32
	pairs  [1 << 16 / 64]uint64 // a bit for each two bytes with which a pattern may begin
}

// A state refers to other states by index. No link leads to the root, so that 0
// means none. Its size times the length of the patterns is most of the memory
// that a Redactor takes.
type state struct {
	child, sibling int32 // the children of a state are a list
	fallback       int32 // the state of the next shorter beginning
	match          int32 // the state of the longest pattern that ends here
	depth          int32 // the length of the beginning
	b              byte  // with which the state is reached
	kind           kind  // of the pattern that ends here
}

// A kind is what a match of a pattern means. Two patterns with the same text
// have both kinds.
type kind uint8

const (
	certainKind kind = 1 << iota // the pattern is masked wherever it is
	tokenKind                    // only as a whole token
	numberKind                   // only as a whole number
	headKind                     // it is the beginning of long patterns
)

// addPattern adds a pattern and returns its state.
func (a *automaton) addPattern(pattern string, k kind) int32 {
	at := int32(0)
	for i := range len(pattern) {
		next := a.childOf(at, pattern[i])
		if next == 0 {
			next = int32(len(a.states))
			a.states = append(a.states, state{b: pattern[i], sibling: a.states[at].child, depth: int32(i + 1)})
			a.states[at].child = next
			if at == 0 {
				a.first[pattern[i]] = next
			}
		}
		at = next
	}
	a.states[at].kind |= k
	a.addPair(pattern)
	return at
}

// addPair notes how the pattern begins. A pattern of one byte begins with that
// byte and any other.
func (a *automaton) addPair(pattern string) {
	pair := int(pattern[0]) << 8
	if len(pattern) > 1 {
		pair |= int(pattern[1])
		a.pairs[pair/64] |= 1 << (pair % 64)
		return
	}
	for i := range 256 / 64 {
		a.pairs[pair/64+i] = ^uint64(0)
	}
}

// linkStates completes the automaton. It goes from the root down, because the
// links of a state depend on those of shorter beginnings.
func (a *automaton) linkStates() {
	a.states = append(make([]state, 0, len(a.states)), a.states...) // without what append has reserved
	queue := make([]int32, 1, len(a.states))
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for c := a.states[at].child; c != 0; c = a.states[c].sibling {
			s := &a.states[c]
			if at != 0 {
				s.fallback = a.nextState(a.states[at].fallback, s.b)
			}
			s.match = a.states[s.fallback].match
			if s.kind != 0 {
				s.match = c
			}
			queue = append(queue, c)
		}
	}
}

func (a *automaton) childOf(at int32, b byte) int32 {
	if at == 0 {
		return a.first[b]
	}
	c := a.states[at].child
	for c != 0 && a.states[c].b != b {
		c = a.states[c].sibling
	}
	return c
}

// nextState returns the state after one more byte of the text.
func (a *automaton) nextState(at int32, b byte) int32 {
	for {
		if c := a.childOf(at, b); c != 0 || at == 0 {
			return c
		}
		at = a.states[at].fallback
	}
}

// eachMatch calls accept for the patterns that end at each place of text, the
// longest first, until accept reports true: a shorter pattern that ends at the
// same place lies inside the longer one. It returns the place from which on
// text may be the beginning of a pattern.
func (a *automaton) eachMatch(text []byte, accept func(state int32, from, to int) bool) (partial int) {
	at := int32(0)
	for i := 0; i < len(text); i++ {
		if at == 0 { // skip the text in which no pattern can begin, which is most
			for ; i+1 < len(text); i++ {
				if pair := int(text[i])<<8 | int(text[i+1]); a.pairs[pair/64]&(1<<(pair%64)) != 0 {
					break
				}
			}
		}
		at = a.nextState(at, text[i])
		for m := a.states[at].match; m != 0; m = a.states[a.states[m].fallback].match {
			if accept(m, i+1-int(a.states[m].depth), i+1) {
				break
			}
		}
	}
	return len(text) - int(a.states[at].depth)
}

// The automaton has only the head of a long pattern. The rest is compared by
// its sum, so that a secret of megabytes takes less memory than it is long, and
// a repetitive one takes no more time than others.
type longPatterns struct {
	lengths map[int32][]int  // of the patterns, by the state of their head
	whole   map[longKey]bool // true for a pattern, false for a beginning of one
}

type longKey struct {
	length int
	sum    uint64
}

// addPattern adds a pattern. Beginnings whose lengths are powers of two tell
// whether the end of a text may be a beginning of the pattern.
func (l *longPatterns) addPattern(head int32, pattern string) {
	sum := uint64(0)
	for i := range len(pattern) {
		sum = addToSum(sum, pattern[i])
		if n := i + 1; n&i == 0 && n > headBytes {
			if _, ok := l.whole[longKey{n, sum}]; !ok {
				l.whole[longKey{n, sum}] = false
			}
		}
	}
	l.whole[longKey{len(pattern), sum}] = true
	if !slices.Contains(l.lengths[head], len(pattern)) {
		l.lengths[head] = append(l.lengths[head], len(pattern))
	}
}

// mayGoOn reports whether the rest of a text, which begins with a head, may be
// the beginning of a pattern. It looks at half of the rest or more.
func (l *longPatterns) mayGoOn(t *textSums, from int) bool {
	n := 1 << (bits.Len(uint(len(t.text)-from)) - 1)
	if n <= headBytes {
		return true
	}
	_, ok := l.whole[longKey{n, t.of(from, from+n)}]
	return ok
}

// A sum is the value of a polynomial modulo 1<<64. Two texts with the same sum
// can be constructed: one of them is masked without need if the other is a
// secret.
func addToSum(sum uint64, b byte) uint64 { return sum*sumBase + uint64(b) + 1 }

const sumBase = 0x9e3779b97f4a7c15

// textSums has the sums of the beginnings of a text, which are made when they
// are needed.
type textSums struct {
	text []byte
	sums []uint64
}

func (t *textSums) set(text []byte) { t.text, t.sums = text, append(t.sums[:0], 0) }

// of returns the sum of text[from:to].
func (t *textSums) of(from, to int) uint64 {
	for i := len(t.sums) - 1; i < to; i++ {
		t.sums = append(t.sums, addToSum(t.sums[i], t.text[i]))
	}
	power, square := uint64(1), uint64(sumBase)
	for n := to - from; n > 0; n >>= 1 {
		if n&1 == 1 {
			power *= square
		}
		square *= square
	}
	return t.sums[to] - t.sums[from]*power
}
