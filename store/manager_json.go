package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

func decodeJSON(data []byte, dst any) error {
	// A Decoder stops at the end of the first value and ignores the rest.
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return &jsonError{err}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(dst); err != nil {
		return &jsonError{err}
	}
	return nil
}

// jsonError wraps an error of encoding/json, or of a method that encoding/json
// calls, with a text that does not contain the value.
type jsonError struct{ err error }

func (e *jsonError) Unwrap() error { return e.err }

func (e *jsonError) Error() string {
	var (
		syntax      *json.SyntaxError
		mismatch    *json.UnmarshalTypeError
		destination *json.InvalidUnmarshalError
		unsupported *json.UnsupportedTypeError
	)
	switch {
	case errors.As(e.err, &syntax):
		return fmt.Sprintf("not JSON, at byte %d", syntax.Offset)
	case errors.As(e.err, &mismatch):
		return fmt.Sprintf("the JSON does not fit a Go %v, at byte %d", mismatch.Type, mismatch.Offset)
	case errors.As(e.err, &destination):
		return "the destination is not a pointer, or is nil"
	case errors.As(e.err, &unsupported):
		return fmt.Sprintf("a Go %v cannot be encoded as JSON", unsupported.Type)
	}
	return "the value does not convert to or from JSON"
}
