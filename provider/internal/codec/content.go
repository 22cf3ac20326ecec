package codec

import (
	"slices"

	"github.com/agentstate/state/internal/jsontext"
)

// content is what an entry says.
type content struct {
	value []byte // if that is all: a text, null or []
	parts [][]byte
	there bool // it is content without a value
}

// add adds content. Where content may be a text, a text that is not the only
// content becomes a part, unless it is empty.
func (c *content) add(t *Table, added content) {
	if jsontext.Kind(added.value) == "string" && !t.Bare {
		added = content{parts: [][]byte{t.TextPart(added.value).JSON()}}
	}
	switch {
	case added.isEmpty():
		return
	case c.saysNothing():
		*c = added
		return
	case added.saysNothing():
		return
	}
	*c = content{parts: append(c.allParts(t), added.allParts(t)...)}
}

// allParts returns the parts, of a text its part.
func (c *content) allParts(t *Table) [][]byte {
	if c.value != nil {
		return [][]byte{t.TextPart(c.value).JSON()}
	}
	return c.parts
}

func (c *content) isEmpty() bool { return c.value == nil && len(c.parts) == 0 && !c.there }

// saysNothing reports whether content has no text and no parts.
func (c *content) saysNothing() bool { return IsEmpty(c.value) && len(c.parts) == 0 }

// isBlank reports whether content is nothing but empty texts.
func (c *content) isBlank() bool {
	return c.saysNothing() || c.value == nil && !slices.ContainsFunc(c.parts, func(part []byte) bool { return string(part) != `{"text":""}` })
}

// json returns the content, nil if there is none.
func (c *content) json() []byte {
	if c.value != nil || len(c.parts) == 0 {
		return c.value
	}
	return jsontext.Array(c.parts)
}
