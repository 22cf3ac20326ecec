package jsontext

import (
	"hash/maphash"
	"math/bits"
)

// Hash returns a hash of the value in a checked text. Texts of the same value
// have the same hash: space, the order of members and the spelling of strings
// do not count, the spelling of numbers does. It recurses once per level, so
// the text should have been checked with a depth limit.
func Hash(seed maphash.Seed, data []byte) uint64 {
	h := hasher{scanner: scanner{data: data}, seed: seed}
	h.space()
	return h.value()
}

type hasher struct {
	scanner
	seed maphash.Seed
	buf  []byte // a string with escapes, unescaped
}

// A kind is mixed into every hash, so that "1", 1 and [1] differ.
const (
	scalarKind = 0x9e3779b97f4a7c15
	stringKind = 0xc2b2ae3d27d4eb4f
	arrayKind  = 0x165667b19e3779f9
	objectKind = 0xd6e8feb86659fd93
)

func (h *hasher) value() uint64 {
	switch h.peek() {
	case '"':
		return h.string()
	case '[':
		sum := uint64(arrayKind)
		_ = h.each(']', func() error { // the text is checked: no errors
			sum = mix(sum, h.value())
			return nil
		})
		h.pos++
		return sum
	case '{':
		sum := uint64(0)
		_ = h.each('}', func() error {
			name := h.string()
			h.colon()
			sum += mix(name, h.value()) // a sum, since order does not count
			return nil
		})
		h.pos++
		return mix(sum, objectKind)
	}
	start := h.pos
	if h.skip() != nil {
		h.pos = len(h.data)
	}
	return mix(maphash.Bytes(h.seed, h.data[start:h.pos]), scalarKind)
}

func (h *hasher) string() uint64 {
	raw, escaped := h.skipString()
	content := raw[1 : len(raw)-1]
	if escaped {
		h.buf = appendUnquoted(h.buf[:0], content)
		content = h.buf
	}
	return mix(maphash.Bytes(h.seed, content), stringKind)
}

func mix(a, b uint64) uint64 {
	// Constants other than the kinds: a factor of zero would lose the other.
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return hi ^ lo
}
