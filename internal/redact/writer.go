package redact

import (
	"errors"
	"io"
	"io/fs"
)

// ErrClosed is what a Writer returns after Close.
var ErrClosed = fs.ErrClosed

// A Writer masks what is written to it and passes it on. It is not safe for
// concurrent use.
type Writer struct {
	stream stream
	next   io.Writer
	err    error // of next, or ErrClosed
	steps  int   // for tests
}

// Writer returns a Writer that passes masked text on to next.
func (r *Redactor) Writer(next io.Writer) *Writer {
	w := &Writer{next: next}
	w.stream.reset(r, "")
	return w
}

// Write passes on what cannot be a part of a secret any more. After an error
// nothing is written, and every further Write returns the error.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	for from := 0; from < len(p); from += chunkBytes {
		w.stream.write(string(p[from:min(len(p), from+chunkBytes)]))
		if w.flush(); w.err != nil {
			return from, w.err
		}
	}
	return len(p), nil
}

// Close passes on the rest. It does not close the next writer.
func (w *Writer) Close() error {
	if w.err == nil {
		w.stream.end()
		w.flush()
	}
	err := w.err
	w.steps = w.stream.scan.steps
	if w.stream = (stream{}); err == nil {
		w.err = ErrClosed
	}
	if errors.Is(err, ErrClosed) {
		return nil
	}
	return err
}

// flush passes on what the stream has written.
func (w *Writer) flush() {
	out := w.stream.out.dst
	if len(out) == 0 {
		return
	}
	w.stream.out.dst = out[:0]
	w.err = io.ErrShortWrite // unless next returns: what it had is lost
	n, err := w.next.Write(out)
	if err == nil && n < len(out) {
		err = io.ErrShortWrite
	}
	w.err = err
}
