package statetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/agentstate/state"
)

// errSchema is returned for a schema that cannot be used.
var errSchema = errors.New("invalid schema")

// checkInput returns why the schema of a tool does not accept the input of a
// call, or nil. A missing schema accepts every input, and a missing input is {}.
// Names of types in capitals, as Gemini writes them, count as those of JSON
// Schema.
func checkInput(schema, input state.JSON) error {
	if schema == "" {
		return nil
	}
	if input == "" {
		input = "{}"
	}
	var tree any
	if err := json.Unmarshal([]byte(schema), &tree); err != nil {
		return fmt.Errorf("%w: %w", errSchema, err)
	}
	lower, err := json.Marshal(lowerTypes(tree))
	if err != nil {
		return fmt.Errorf("%w: %w", errSchema, err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(lower, &s); err != nil {
		return fmt.Errorf("%w: %w", errSchema, err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errSchema, err)
	}
	var value any
	if err := json.Unmarshal([]byte(input), &value); err != nil {
		return fmt.Errorf("the input is not JSON: %w", err)
	}
	return resolved.Validate(value)
}

// lowerTypes writes the names of types in small letters.
func lowerTypes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if text, ok := member.(string); ok && name == "type" {
				v[name] = strings.ToLower(text)
				continue
			}
			v[name] = lowerTypes(member)
		}
	case []any:
		for i := range v {
			v[i] = lowerTypes(v[i])
		}
	}
	return v
}
