package state

import (
	"encoding/json"
	"reflect"

	"golang.org/x/exp/maps"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/redact"
)

// Redact returns text with every value of a Secret field that this handle may
// read replaced by [SECRET]. Use the host's handle, which knows all secrets: an
// agent's handle leaves secrets that the agent may not read, although a tool
// may have put them into the text.
//
// A value is also found if it is JSON-escaped or URL-, base64- or hex-encoded.
// Every string and number in a list or an object is masked, and so is every key
// of a map. A value of less than 6 bytes is masked only where it stands alone.
func (s *State) Redact(text string) string {
	h := s.on()
	var secrets []string
	for _, sp := range h.schema.fields {
		if !sp.form.Secret || !h.mayRead(sp) {
			continue
		}
		if c := h.branch.Slot(&sp.slot); c != nil {
			secrets = append(secrets, sp.leaves(c.Value)...)
		}
	}
	if len(secrets) == 0 {
		return text
	}
	return redact.New(secrets).Redact(text)
}

// leaves returns the texts of which a stored value consists.
func (sp *fieldSpec) leaves(stored any) []string {
	data, err := sp.form.AppendJSON(nil, stored)
	if err != nil {
		return nil
	}
	tree, err := jsontext.Decode(data, jsontext.Limits{})
	if err != nil {
		return nil
	}
	texts := appendLeaves(nil, tree)
	if object, ok := tree.(map[string]any); ok && sp.form.Type.Kind() == reflect.Map {
		texts = append(texts, maps.Keys(object)...)
	}
	if b, ok := sp.form.Share(stored).([]byte); ok {
		texts = append(texts, string(b))
	}
	return texts
}

// appendLeaves appends the strings and numbers in a JSON value.
func appendLeaves(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		texts = append(texts, v)
	case json.Number:
		texts = append(texts, v.String())
	case []any:
		for _, e := range v {
			texts = appendLeaves(texts, e)
		}
	case map[string]any:
		for _, e := range v {
			texts = appendLeaves(texts, e)
		}
	}
	return texts
}
