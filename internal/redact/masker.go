package redact

// mask is written in place of a secret.
const mask = "[SECRET]"

// maxLiteral is the length up to which a number is held back, because a later
// part of it may be a secret. A text with a longer one does not count as JSON.
const maxLiteral = 128

// A masker writes a text with masks.
//
// As long as the text is JSON, the result is JSON: a string with a mask stays a
// string, and a number, true, false or null with a mask becomes a string.
// Punctuation is kept, and a secret that is punctuation is not masked there.
type masker struct {
	json jsonReader

	source string // what is written, if it may come out as it is
	same   int    // so many bytes of source have come out as they are
	dst    []byte // what has been written, once something else was

	written bool   // the mask, into the present string or literal
	begun   bool   // the mask is written
	literal []byte // what other text would be written for the literal that is read
	masked  bool   // a part of it
}

// reset begins a text. If it is not known, source is empty.
func (m *masker) reset(source string) {
	m.json.reset()
	m.source, m.same, m.dst = source, 0, m.dst[:0]
	m.literal, m.masked = m.literal[:0], false
}

// beginMask begins another mask.
func (m *masker) beginMask() {
	m.written, m.begun = false, false
	if m.json.state == jsonTop {
		m.json.state = jsonDead // the secret itself may be JSON
	}
}

// keep writes text that is not masked.
func (m *masker) keep(text []byte) {
	kept := 0 // text is written up to here
	for i, b := range text {
		if m.json.state == jsonDead {
			break
		}
		switch class := m.json.step(b); class {
		case jsonLiteral:
			m.emit(text[kept:i])
			kept = i + 1
			m.addLiteral(b)
		default:
			if len(m.literal) > 0 {
				m.endLiteral(class)
			}
		}
	}
	m.emit(text[kept:])
}

// hide writes text of the present mask.
func (m *masker) hide(text []byte) {
	for i := range text {
		if m.json.state == jsonDead {
			if !m.begun {
				m.emitMask()
			}
			return
		}
		class := m.json.step(text[i])
		if class != jsonLiteral && len(m.literal) > 0 {
			m.endLiteral(class)
		}
		switch class {
		case jsonPunctuation:
			m.emit(text[i : i+1])
			m.written = false
		case jsonLiteral:
			m.masked = true
			if !m.written {
				m.written, m.begun = true, true
				m.addLiteral([]byte(mask)...)
			}
		case jsonContent:
			m.emitMask()
		}
	}
	if m.json.state == jsonDead && !m.begun {
		m.emitMask()
	}
}

// addLiteral adds to the literal that is read.
func (m *masker) addLiteral(text ...byte) {
	m.literal = append(m.literal, text...)
	if len(m.literal) > maxLiteral {
		m.json.state = jsonDead
		m.end()
	}
}

// endLiteral ends the literal that is read, before a byte of a class.
func (m *masker) endLiteral(class jsonClass) {
	if m.masked && class != jsonNone {
		m.change()
		m.dst = append(append(append(m.dst, '"'), mask...), '"')
		m.literal = m.literal[:0]
	}
	m.end()
}

// end ends the text, or what is JSON of it. A literal that is not complete is
// written as in other text.
func (m *masker) end() {
	if m.masked {
		m.change()
	}
	m.emit(m.literal)
	m.literal, m.masked = m.literal[:0], false
}

// emitMask writes the present mask, unless it is written.
func (m *masker) emitMask() {
	if !m.written {
		m.written, m.begun = true, true
		m.change()
		m.dst = append(m.dst, mask...)
	}
}

// emit writes text as it is.
func (m *masker) emit(text []byte) {
	if m.source != "" {
		m.same += len(text)
		return
	}
	m.dst = append(m.dst, text...)
}

// change notes that what is written next differs from the source.
func (m *masker) change() {
	if m.source != "" {
		m.dst = append(m.dst, m.source[:m.same]...)
		m.source = ""
	}
}
