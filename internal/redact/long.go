package redact

import (
	"math/bits"
	"math/rand/v2"
)

const (
	// longBytes is the length above which the automaton has only the head of a
	// pattern. The rest is compared by hashes, so that a secret of megabytes
	// takes less memory than it is long, and repetitive ones take no more time.
	longBytes = 48

	// sumStep is the distance of the beginnings of a long pattern whose hashes
	// are kept. They tell whether the end of a text may be its beginning.
	sumStep = 256
)

// A longPattern is a pattern of which the automaton has the head.
type longPattern struct {
	length int
	sum    uint64
	sums   []uint64 // of the beginnings of sumStep, 2 sumStep … bytes
}

func newLongPattern(pattern string) longPattern {
	p := longPattern{length: len(pattern)}
	p.sums = make([]uint64, 0, len(pattern)/sumStep)
	for i := range len(pattern) {
		p.sum = addToSum(p.sum, pattern[i])
		if (i+1)%sumStep == 0 {
			p.sums = append(p.sums, p.sum)
		}
	}
	return p
}

// A sum is the value of a polynomial modulo a prime. Its argument is random, so
// that an attacker cannot construct two texts with the same sum.
const sumPrime = 1<<61 - 1

var sumBase = rand.Uint64N(sumPrime-1<<32) + 1<<32

func addToSum(sum uint64, b byte) uint64 {
	return reduceSum(multiplySums(sum, sumBase) + uint64(b) + 1)
}

// multiplySums returns the product of two sums.
func multiplySums(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return reduceSum(low&sumPrime + (high<<3 | low>>61))
}

func reduceSum(n uint64) uint64 {
	n = n&sumPrime + n>>61
	if n >= sumPrime {
		n -= sumPrime
	}
	return n
}

// textSums has the sums of the beginnings of a text, so that the sum of any
// part takes a bounded number of steps.
type textSums struct {
	text   []byte
	sums   []uint64 // of the beginnings of 0, stride, 2 stride … bytes
	powers []uint64 // of sumBase, by bits of the exponent
}

const stride = 16

// of returns the sum of a part of the text.
func (t *textSums) of(from, to int) uint64 {
	below := multiplySums(t.until(from), t.power(to-from))
	return reduceSum(t.until(to) + sumPrime - below)
}

// until returns the sum of the first n bytes.
func (t *textSums) until(n int) uint64 {
	if len(t.sums) == 0 {
		t.sums = append(t.sums, 0)
	}
	for i := len(t.sums); i <= n/stride; i++ {
		sum := t.sums[i-1]
		for _, b := range t.text[(i-1)*stride : i*stride] {
			sum = addToSum(sum, b)
		}
		t.sums = append(t.sums, sum)
	}
	sum := t.sums[n/stride]
	for _, b := range t.text[n/stride*stride : n] {
		sum = addToSum(sum, b)
	}
	return sum
}

// power returns sumBase to the power of n.
func (t *textSums) power(n int) uint64 {
	if len(t.powers) == 0 {
		t.powers = append(t.powers, sumBase)
		for range 63 {
			last := t.powers[len(t.powers)-1]
			t.powers = append(t.powers, multiplySums(last, last))
		}
	}
	result := uint64(1)
	for i := 0; n>>i > 0; i++ {
		if n>>i&1 == 1 {
			result = multiplySums(result, t.powers[i])
		}
	}
	return result
}

// set begins the sums of another text.
func (t *textSums) set(text []byte) { t.text, t.sums = text, t.sums[:0] }

// matches reports whether the pattern stands at a place of the text.
func (p *longPattern) matches(t *textSums, at int) bool {
	return at+p.length <= len(t.text) && t.of(at, at+p.length) == p.sum
}

// mayContinue reports whether the text from a place on may be the beginning of
// the pattern. It may report true if only the last sumStep bytes are not.
func (p *longPattern) mayContinue(t *textSums, at int) bool {
	n := len(t.text) - at
	if n >= p.length {
		return false
	}
	k := n / sumStep
	return k == 0 || t.of(at, at+k*sumStep) == p.sums[k-1]
}
