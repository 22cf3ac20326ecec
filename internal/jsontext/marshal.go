package jsontext

import (
	"bytes"
	"encoding/json"
)

// Marshal returns the JSON of v as encoding/json writes it, but leaves <, > and
// & as they are: the texts are for models and stores, not for HTML pages.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
