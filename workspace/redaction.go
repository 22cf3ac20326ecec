package workspace

import (
	"encoding/json"

	"github.com/agentstate/state/internal/jsontext"
)

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
