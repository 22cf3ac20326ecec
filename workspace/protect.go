package workspace

import (
	"encoding/json"
	"errors"

	"github.com/agentstate/state/internal/jsontext"
)

type panicError struct{ text string }

func (e *panicError) Error() string { return e.text }

func (e *panicError) Is(target error) bool { return target == errPanic }

// usable returns an error of the user. It panics if that panics when it is used,
// as a nil pointer in an error does.
func usable(err error) error {
	if err != nil {
		_ = err.Error()
		_ = errors.Is(err, ErrClosed)
	}
	return err
}

// masked is shown in place of a secret.
const masked = "[SECRET]"

// maskedJSON returns the JSON of v in which redact has masked secrets.
func maskedJSON(v any, redact func(string) string) (json.RawMessage, error) {
	data, err := jsontext.Marshal(v)
	if err != nil {
		return nil, err
	}
	if data = []byte(redact(string(data))); !json.Valid(data) {
		return jsontext.AppendQuote(nil, masked), nil // a secret that is a piece of JSON
	}
	return data, nil
}
