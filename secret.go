package state

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strconv"

	"golang.org/x/exp/maps"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/redact"
)

// mask is what is shown in place of a secret.
const mask = "[SECRET]"

// Masked stands for the value of a Secret field where values are listed. It does
// not hold the value, and no write accepts it.
type Masked struct{}

// String returns "[SECRET]".
func (Masked) String() string { return mask }

// GoString returns "[SECRET]".
func (Masked) GoString() string { return mask }

// LogValue returns "[SECRET]".
func (Masked) LogValue() slog.Value { return slog.StringValue(mask) }

// MarshalJSON returns "[SECRET]" as a JSON string.
func (Masked) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, mask), nil }

// Redact returns text with every value of a Secret field that this handle may
// read replaced by [SECRET]. Use the host's handle, which knows all secrets: an
// agent's masks nothing that the agent may not read, although a tool may have
// put it into the text. A value is found also where it is JSON-escaped or URL-, base64- or
// hex-encoded. Of a value that is a list or an object, every string and number
// in it is masked and so are the keys of a map. What is shorter than 6 bytes is masked only where it stands
// alone.
func (s *State) Redact(text string) string {
	h := s.on()
	var secrets []string
	for slot, sp := range h.schema.specs {
		if !sp.secret || !h.mayRead(slot) {
			continue
		}
		if e := h.branch.load(slot); e != nil {
			secrets = append(secrets, sp.leaves(e.value)...)
		}
	}
	if len(secrets) == 0 {
		return text
	}
	return redact.New(secrets).Redact(text)
}

// leaves returns the texts of which a stored value is made.
func (sp *spec) leaves(stored any) []string {
	data, err := sp.appendJSON(nil, stored)
	if err != nil {
		return nil
	}
	tree, err := jsontext.Decode(data, jsontext.Limits{})
	if err != nil {
		return nil
	}
	var texts []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			texts = append(texts, v)
		case json.Number:
			texts = append(texts, v.String())
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(tree)
	if object, ok := tree.(map[string]any); ok && sp.typ.Kind() == reflect.Map {
		texts = append(texts, maps.Keys(object)...)
	}
	if sp.plan.Type().Kind() == reflect.Slice && sp.list == nil { // bytes
		if b, ok := sp.share(stored).([]byte); ok {
			texts = append(texts, string(b))
		}
	}
	return texts
}
