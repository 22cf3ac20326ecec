package jsontext

import (
	"hash/maphash"
	"math/bits"

	"github.com/agentstate/state/internal/fault"
)

// HashMembers returns a hash of the object in a checked text. Texts of the same
// value have the same hash: space, the order of members and escapes do not count,
// but the spelling of numbers does. It calls visit with the place of each name,
// which has its quotes, and of each value, and reports whether the text is
// compact: whether it has no space between its tokens. It recurses once per
// level: the caller must have checked the text with a depth limit.
func HashMembers(seed maphash.Seed, data []byte, visit func(name, value Span)) (sum uint64, compact bool, err error) {
	h := hasher{cursor: cursor{data: data}, seed: seed}
	h.skipSpace()
	if h.peek() != '{' {
		return 0, false, &fault.Error{Path: "$", Want: "object", Got: Kind(data)}
	}
	sum, err = h.hashMembers(visit)
	return sum, !h.spaced && h.pos == len(data), err
}

// A hasher reads one text.
type hasher struct {
	cursor
	seed maphash.Seed
	buf  []byte // for strings with escapes
}

// One of these kinds is mixed into every hash, so that "1", 1 and [1] differ.
const (
	scalarKind = 0x9e3779b97f4a7c15
	stringKind = 0xc2b2ae3d27d4eb4f
	arrayKind  = 0x165667b19e3779f9
	objectKind = 0xd6e8feb86659fd93
)

func (h *hasher) hashValue() uint64 {
	switch h.peek() {
	case '"':
		return h.hashString()
	case '[':
		sum := uint64(arrayKind)
		_ = h.eachPart(']', func() error { // the text is checked: no errors
			sum = mixHashes(sum, h.hashValue())
			return nil
		})
		h.pos++
		return sum
	case '{':
		sum, _ := h.hashMembers(nil)
		return sum
	}
	start := h.pos
	if h.skipValue() != nil {
		h.pos = len(h.data)
	}
	return mixHashes(maphash.Bytes(h.seed, h.data[start:h.pos]), scalarKind)
}

func (h *hasher) hashMembers(visit func(name, value Span)) (uint64, error) {
	sum := uint64(0)
	err := h.eachPart('}', func() error {
		start := h.pos
		hash := h.hashString()
		name := Span{start, h.pos}
		h.skipColon()
		start = h.pos
		sum += mixHashes(hash, h.hashValue()) // a sum: order does not count
		if visit != nil {
			visit(name, Span{start, h.pos})
		}
		return nil
	})
	h.pos++
	return mixHashes(sum, objectKind), err
}

func (h *hasher) hashString() uint64 {
	raw, escaped := h.skipString()
	content := raw[1 : len(raw)-1]
	if escaped {
		h.buf = appendUnquoted(h.buf[:0], content)
		content = h.buf
	}
	return mixHashes(maphash.Bytes(h.seed, content), stringKind)
}

// mixHashes returns a hash of two hashes, the order of which counts.
func mixHashes(a, b uint64) uint64 {
	// The constants differ from the kinds. Otherwise a kind could make one
	// factor zero, and the product would not depend on the other.
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return hi ^ lo
}
