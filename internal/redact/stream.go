package redact

import "bytes"

const (
	// chunkBytes is how much of a long text is searched at once.
	chunkBytes = 32 << 10

	// contextBytes is how much of the text before a secret is looked at: two
	// characters, escaped twice.
	contextBytes = 2 * maxEscape * maxEscape

	// maxRestart bounds what is searched again because escape sequences of
	// different kinds overlap without end.
	maxRestart = 4 << 10
)

// A stream masks a text that comes in chunks. What is written is the same for
// every chunking.
//
// It searches the text that may still become a secret again with each chunk.
// That text begins where no escape sequence is cut, so that it is read as
// before.
type stream struct {
	scan scan
	out  masker

	text   []byte // what is searched
	safe   int    // all secrets that begin before it have been found
	masked int    // text is masked up to here, which may be behind safe
	fresh  int    // the number of bytes that have not been searched
}

// reset begins a text. source is the whole text if it is known.
func (s *stream) reset(r *Redactor, source string) {
	s.scan.r = r
	s.out.reset(source)
	s.text, s.safe, s.masked, s.fresh = s.text[:0], 0, 0, 0
}

// write adds text and writes all that no secret can begin in any more.
func (s *stream) write(text string) {
	s.add(text)
	// Searching again for each byte costs time, and may wait while there is
	// more that is held back.
	if held := len(s.text) - s.fresh - s.safe; held < contextBytes || s.fresh >= held/4 {
		s.search()
	}
}

// add adds text. What stands between two masks is a text of its own: a mask
// that is there already is never part of a secret.
func (s *stream) add(text string) {
	begin, from := 0, max(0, len(s.text)-len(mask)+1)
	s.text = append(s.text, text...)
	s.fresh += len(text)
	for {
		at := bytes.Index(s.text[from:], []byte(mask))
		if at < 0 {
			break
		}
		at += from
		s.advance(s.text[begin:at], false)
		s.out.keep(s.text[at : at+len(mask)])
		begin, from = at+len(mask), at+len(mask)
		s.safe, s.masked = 0, 0
	}
	if begin > 0 {
		s.text = s.text[:copy(s.text, s.text[begin:])]
		s.fresh = len(s.text)
	}
}

// search searches the text, behind which more may follow.
func (s *stream) search() {
	s.fresh = maskBeginning(s.text)
	s.advance(s.text[:len(s.text)-s.fresh], true)
	s.forget()
}

// end ends the text.
func (s *stream) end() {
	s.advance(s.text, false)
	s.out.end()
}

// advance searches text, which s.text begins with, and writes all that no
// secret can begin in any more. If it is open, more text may follow.
func (s *stream) advance(text []byte, open bool) {
	s.scan.find(text, s.safe, open)
	masks, safe := s.scan.masks(s.masked, open)
	safe = max(safe, s.safe)
	written := max(s.safe, s.masked)
	for _, m := range masks {
		if m.from >= safe {
			break
		}
		if m.from >= s.masked {
			s.out.keep(text[written:m.from])
			s.out.beginMask()
			written = m.from
		}
		if m.to > written {
			s.out.hide(text[written:m.to])
			written = m.to
		}
		s.masked = max(s.masked, m.to)
	}
	if safe > written {
		s.out.keep(text[written:safe])
	}
	s.safe = safe
}

// forget drops the text that is not looked at any more.
func (s *stream) forget() {
	from := s.safe - contextBytes
	if from < len(s.text)/2 {
		return
	}
	if whole := s.scan.wholeStart(from); from-whole < maxRestart {
		from = whole
	}
	s.text = s.text[:copy(s.text, s.text[from:])]
	s.safe, s.masked = s.safe-from, s.masked-from
}

// maskBeginning returns the length of the beginning of a mask at the end of
// text.
func maskBeginning(text []byte) int {
	for n := min(len(mask)-1, len(text)); n > 0; n-- {
		if string(text[len(text)-n:]) == mask[:n] {
			return n
		}
	}
	return 0
}
