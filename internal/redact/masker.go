package redact

import "encoding/json"

// A masker writes a text with masks.
//
// As long as the text is JSON, the result is JSON: a string with a mask stays a
// string, and a number, true, false or null with a mask becomes a string.
// Punctuation is kept, and a secret that is punctuation is not masked there. The
// text has to be one object or array, or a sequence of them. The masker reads
// it byte by byte, and tells strings from what is between them. Whether values,
// commas and colons are in order makes no difference.
type masker struct {
	text    []byte // what has been written
	written bool   // the mask, since the last punctuation

	state jsonState
	depth int // the number of open objects and arrays

	literal []byte // that is read
	plain   []byte // what is written for it if it is not JSON
	masked  bool   // a part of it
}

type jsonState uint8

const (
	jsonBetween jsonState = iota
	jsonString
	jsonEscape // after "\" in a string
	jsonLiteral
	jsonDead // it is not JSON
)

// maxLiteral is the length up to which a number is held back, because a later
// part of it may be a secret. A text with a longer one does not count as JSON.
const maxLiteral = 128

// A jsonClass is what a byte of JSON is part of.
type jsonClass uint8

const (
	classPunctuation jsonClass = iota // also quotes and white space
	classContent                      // of a string
	classLiteral                      // a number, true, false or null
	classNone                         // the text is not JSON
)

// reset begins another text.
func (m *masker) reset() {
	*m = masker{text: m.text[:0], literal: m.literal[:0], plain: m.plain[:0]}
}

// keep writes text that is not masked.
func (m *masker) keep(text []byte) {
	kept := 0 // text is written up to here
	for i, b := range text {
		class := m.read(b)
		if class == classNone {
			break
		}
		if class == classLiteral {
			m.text = append(m.text, text[kept:i]...)
			m.plain = append(m.plain, b)
			kept = i + 1
		}
	}
	m.text = append(m.text, text[kept:]...)
}

// beginMask begins another mask.
func (m *masker) beginMask() {
	m.written = false
	if m.depth == 0 {
		m.state = jsonDead // the secret itself may be JSON
	}
}

// hide writes text of the present mask.
func (m *masker) hide(text []byte) {
	for _, b := range text {
		switch m.read(b) {
		case classNone:
			m.text = m.appendMask(m.text)
			return
		case classContent:
			m.text = m.appendMask(m.text)
		case classLiteral:
			m.plain = m.appendMask(m.plain)
			m.masked = true
		case classPunctuation:
			m.text = append(m.text, b)
			m.written = false
		}
	}
}

// appendMask appends the present mask, unless it is written.
func (m *masker) appendMask(dst []byte) []byte {
	if m.written {
		return dst
	}
	m.written = true
	return append(dst, mask...)
}

// end ends the text, or a literal.
func (m *masker) end() {
	m.text = append(m.text, m.plain...)
	m.literal, m.plain, m.masked = m.literal[:0], m.plain[:0], false
}

// read reads a byte. It writes a literal that ends before the byte.
func (m *masker) read(b byte) jsonClass {
	switch m.state {
	case jsonDead:
		return classNone
	case jsonEscape:
		m.state = jsonString
		return classContent
	case jsonString:
		switch b {
		case '"':
			m.state = jsonBetween
			return classPunctuation
		case '\\':
			m.state = jsonEscape
		}
		return classContent
	}
	switch b {
	case ' ', '\t', '\r', '\n', ',', ':', '"', '{', '[', '}', ']':
		m.endLiteral()
		return m.readPunctuation(b)
	}
	if m.depth == 0 || len(m.literal) == maxLiteral {
		return m.die()
	}
	m.state = jsonLiteral
	m.literal = append(m.literal, b)
	return classLiteral
}

// endLiteral ends the literal that is read, if there is one.
func (m *masker) endLiteral() {
	if m.state != jsonLiteral {
		return
	}
	if m.state = jsonBetween; !json.Valid(m.literal) {
		m.state = jsonDead
	} else if m.masked {
		m.plain = append(append(append(m.plain[:0], '"'), mask...), '"')
	}
	m.end()
}

// readPunctuation reads a byte between strings and literals.
func (m *masker) readPunctuation(b byte) jsonClass {
	switch {
	case m.state == jsonDead:
		return classNone
	case b == '{' || b == '[':
		m.depth++
	case b == ' ' || b == '\t' || b == '\r' || b == '\n':
	case m.depth == 0:
		return m.die()
	case b == '}' || b == ']':
		m.depth--
	case b == '"':
		m.state = jsonString
	}
	return classPunctuation
}

// die notes that the text is not JSON.
func (m *masker) die() jsonClass {
	m.end()
	m.state = jsonDead
	return classNone
}
