package tool

import (
	"errors"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

const (
	inlineLevels = 3       // how often a definition stands inside itself
	inlineBytes  = 1 << 20 // the most that a schema may grow to
)

// Inline returns a JSON schema without $defs and $ref, for models and providers
// that do not know these keywords. A type that contains itself is written out
// three levels deep. Below that, any object or array is accepted, with the
// description of the type: the model can still write deeper values, and the tool
// still checks them. Inline fails if
// schema is not an object in JSON, refers to something that is not in its
// $defs, or grows beyond 1 MiB.
func Inline(schema state.JSON) (state.JSON, error) {
	if err := jsontext.Check([]byte(schema), argumentLimits); err != nil {
		return "", errInline("the schema is not JSON")
	}
	root, err := jsontext.Members([]byte(schema))
	if err != nil || jsontext.Kind([]byte(schema)) != "object" {
		return "", errInline("the schema is not a JSON object")
	}
	in := inliner{levels: map[string]int{}}
	if defs := root.Get("$defs"); defs != nil {
		if in.defs, err = jsontext.Members(defs); err != nil {
			return "", errInline("$defs is not an object")
		}
	}
	text, err := in.value(root.Without("$defs").JSON())
	return state.JSON(text), err
}

func errInline(problem string) error {
	return &kindError{ErrInvalidTool, errors.New("tool: inline: " + problem)}
}

// An inliner replaces the references in one schema.
type inliner struct {
	defs   jsontext.Object
	levels map[string]int // how often each definition is open
	grown  int
}

// value returns any part of a schema with its references replaced.
func (in *inliner) value(text []byte) ([]byte, error) {
	if in.grown += len(text); in.grown > 32*inlineBytes {
		return nil, errInline("the schema is too large without $ref")
	}
	switch jsontext.Kind(text) {
	case "array":
		elements, err := jsontext.Elements(text)
		for i := range elements {
			if err == nil {
				elements[i], err = in.value(elements[i])
			}
		}
		return jsontext.Array(elements), err
	case "object":
		object, err := jsontext.Members(text)
		if err != nil {
			return nil, err
		}
		if ref := object.Get("$ref"); ref != nil && jsontext.Kind(ref) == "string" {
			return in.reference(object)
		}
		return in.object(object)
	}
	return text, nil
}

func (in *inliner) object(object jsontext.Object) ([]byte, error) {
	parts := make(jsontext.Object, len(object))
	for i, m := range object {
		part, err := in.value(m.Value)
		if err != nil {
			return nil, err
		}
		parts[i] = jsontext.Member{Name: m.Name, Value: part}
	}
	text := parts.JSON()
	if len(text) > inlineBytes {
		return nil, errInline("the schema is too large without $ref")
	}
	return text, nil
}

// reference returns the definition that an object refers to. The other members
// of the object, such as a description, are kept.
func (in *inliner) reference(object jsontext.Object) ([]byte, error) {
	name, local := strings.CutPrefix(jsontext.Unquote(object.Get("$ref")), definitions)
	name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	text := in.defs.Get(name)
	if !local || text == nil {
		return nil, errInline("a $ref to something that is not in $defs")
	}
	definition, err := jsontext.Members(text)
	if err != nil {
		return nil, errInline("a definition is not an object")
	}
	if in.levels[name] >= inlineLevels {
		definition = innermost(name, definition)
	}
	for _, m := range object.Without("$ref") {
		definition = definition.With(m.Name, m.Value)
	}
	in.levels[name]++
	defer func() { in.levels[name]-- }()
	return in.object(definition)
}

// innermost returns what stands for a definition that is open too often: what
// tells the model which values there are, without their parts.
func innermost(name string, definition jsontext.Object) jsontext.Object {
	return jsontext.Object{}.
		With("type", definition.Get("type")).
		With("title", definition.Get("title")).
		WithString("description", "Another "+name+", as described above.").
		With("description", definition.Get("description"))
}
