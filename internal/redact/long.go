package redact

import (
	"math/bits"
	"slices"
)

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
