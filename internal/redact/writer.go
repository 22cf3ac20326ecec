package redact

import (
	"io"
	"io/fs"
)

const (
	// chunkBytes is how much of a long text is searched at once.
	chunkBytes = 32 << 10

	// contextBytes is how much of the text before a secret is looked at: two
	// characters.
	contextBytes = 2 * maxEscape
)

// A Writer masks what is written to it and passes it on. However the text is
// split, the result is that of Redact for the whole text. It is not safe for
// concurrent use.
//
// It holds back what may still become a secret, and searches it again with the
// next part of the text.
type Writer struct {
	next io.Writer
	err  error // of next, or fs.ErrClosed
	scan scan
	out  masker

	text   []byte // what is searched
	left   rune   // what stands before it
	safe   int    // all secrets that begin before it have been found
	masked int    // text is masked up to here, which may be behind safe
	fresh  int    // the number of bytes that have not been searched
}

// Writer returns a Writer that passes masked text on to next.
func (r *Redactor) Writer(next io.Writer) *Writer {
	return &Writer{next: next, scan: scan{r: r}}
}

// Write passes on what cannot be a part of a secret any more. After an error
// nothing is written, and every further Write returns the error.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	for from := 0; from < len(p); from += chunkBytes {
		chunk := p[from:min(len(p), from+chunkBytes)]
		w.text = append(w.text, chunk...)
		// Searching again for each byte costs time, and may wait while there is
		// more that is held back.
		if w.fresh += len(chunk); w.fresh < (len(w.text)-w.fresh)/4 && len(w.text) > 10*contextBytes {
			continue
		}
		if w.advance(true); w.err != nil {
			return from, w.err
		}
	}
	return len(p), nil
}

// Close passes on the rest. It does not close the next writer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.advance(false)
	}
	w.text, w.out = nil, masker{}
	if w.err == nil {
		w.err = fs.ErrClosed
	}
	if w.err == fs.ErrClosed {
		return nil
	}
	return w.err
}

// advance searches the text and passes on all that no secret can begin in any
// more. If it is open, more text may follow.
func (w *Writer) advance(open bool) {
	text := w.text
	w.fresh = 0
	if open {
		w.fresh = maskBeginning(text)
		text = text[:len(text)-w.fresh]
	}
	masks, safe := w.scan.find(text, w.safe, w.left, open)
	w.mask(text, masks, safe)
	if open {
		w.forget()
	} else {
		w.out.end()
	}
	w.flush()
}

// mask writes the text before safe with masks. It writes a mask that begins
// there to its end.
func (w *Writer) mask(text []byte, masks []span, safe int) {
	written := max(w.safe, w.masked)
	for _, m := range masks {
		if m.from >= safe {
			break
		}
		if m.from >= w.masked {
			w.out.keep(text[written:m.from])
			w.out.beginMask()
			written = m.from
		}
		if m.to > written {
			w.out.hide(text[written:m.to])
			written = m.to
		}
		w.masked = max(w.masked, m.to)
	}
	if safe > written {
		w.out.keep(text[written:safe])
	}
	w.safe = safe
}

// forget drops the text that is not looked at any more. What is left begins
// where no escape sequence is cut, so that it is read as before.
func (w *Writer) forget() {
	from := w.scan.begin // of the last piece
	switch context := w.scan.widen(span{max(from, w.safe-contextBytes), w.safe}).from; {
	case context > from:
		from, w.left = context, noRune
	case from > 0:
		w.left = maskRune
	}
	w.text = w.text[:copy(w.text, w.text[from:])]
	w.safe, w.masked = w.safe-from, max(0, w.masked-from)
}

// flush passes on what has been written.
func (w *Writer) flush() {
	out := w.out.text
	if len(out) == 0 {
		return
	}
	w.out.text = out[:0]
	w.err = io.ErrShortWrite // unless next returns: what it had is lost
	n, err := w.next.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	w.err = err
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
