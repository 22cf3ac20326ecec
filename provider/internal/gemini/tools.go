package gemini

import (
	"bytes"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// The members with the schema of a declaration. Google's own notation writes
// types in upper case; the others are JSON Schema.
const (
	ownSchema       = "parameters"
	jsonSchema      = "parametersJsonSchema"
	snakeJSONSchema = "parameters_json_schema"
)

// The members of an element with declarations.
const (
	declarations      = "functionDeclarations"
	snakeDeclarations = "function_declarations"
)

// decodeTool reads the declarations of an element. A tool keeps the difference
// of its declaration, and
//
//	in      the member with the declarations, unless it is functionDeclarations
//	schema  the member with the schema, unless it is parametersJsonSchema
//	sent    the schema, if it was in Google's own notation
//	begins  true for the first of an element after another one
//	tool    the other members of the element, of its first declaration
func decodeTool(element jsontext.Object) ([]codec.Tool, bool) {
	in := declarations
	if element.Get(in) == nil {
		in = snakeDeclarations
	}
	elements, err := element.Elements(in)
	if err != nil || len(elements) == 0 {
		return nil, false
	}
	tools := make([]codec.Tool, len(elements))
	for i, raw := range elements {
		declaration, err := jsontext.Members(raw)
		if err != nil {
			return nil, false
		}
		t, ok := decodeDeclaration(declaration)
		if !ok {
			return nil, false
		}
		if in != declarations {
			t.Kept = t.Kept.WithString("in", in)
		}
		tools[i] = t
	}
	first := &tools[0]
	if first.Kept = first.Kept.With("begins", []byte("true")); len(element) > 1 {
		first.Kept = first.Kept.With("tool", element.Without(in).JSON())
	}
	return tools, true
}

func decodeDeclaration(declaration jsontext.Object) (codec.Tool, bool) {
	schema := jsonSchema
	for _, name := range []string{snakeJSONSchema, ownSchema} {
		if declaration.Get(name) != nil {
			schema = name
		}
	}
	t, ok := codec.ToolWord{Schema: schema}.Read(declaration)
	if !ok {
		return t, false
	}
	if schema != jsonSchema {
		t.Kept = t.Kept.WithString("schema", schema)
	}
	if schema == ownSchema && t.Schema != nil {
		if standard := standardSchema(t.Schema); !bytes.Equal(standard, t.Schema) {
			t.Kept, t.Schema = t.Kept.With("sent", t.Schema), standard
		}
	}
	return t, true
}

// encodeTools writes declarations into the elements from which they came. Those
// of other formats follow in the element of the one before them.
func encodeTools(tools []codec.Tool) [][]byte {
	var elements [][]byte
	for i := 0; i < len(tools); {
		if item := tools[i].Item(); item != nil {
			elements, i = append(elements, item), i+1
			continue
		}
		first := tools[i].Kept
		in := declarations
		if name := first.String("in"); name != "" {
			in = name
		}
		group := [][]byte{encodeDeclaration(tools[i])}
		for i++; i < len(tools) && tools[i].Item() == nil && !tools[i].Kept.Bool("begins"); i++ {
			group = append(group, encodeDeclaration(tools[i]))
		}
		element := jsontext.Object{}.With(in, jsontext.Array(group))
		elements = append(elements, append(element, first.Object("tool")...).JSON())
	}
	return elements
}

func encodeDeclaration(t codec.Tool) []byte {
	schema := jsonSchema
	if name := t.Kept.String("schema"); name != "" {
		schema = name
	}
	if sent := t.Kept.Get("sent"); schema == ownSchema && sent != nil {
		if bytes.Equal(standardSchema(sent), t.Schema) {
			t.Schema = sent
		} else {
			schema = jsonSchema // it has been changed
		}
	}
	return codec.ToolWord{Schema: schema}.Write(t).JSON()
}

// standardSchema returns a schema in Google's own notation as JSON Schema: its
// types in lower case.
func standardSchema(schema []byte) []byte {
	members, err := jsontext.Members(schema)
	if err != nil {
		return schema
	}
	for i := range members {
		m := &members[i]
		switch m.Name {
		case "type":
			switch string(m.Value) {
			case `"STRING"`, `"NUMBER"`, `"INTEGER"`, `"BOOLEAN"`, `"ARRAY"`, `"OBJECT"`, `"NULL"`:
				m.Value = bytes.ToLower(m.Value)
			}
		case "properties", "defs", "$defs":
			properties, _ := jsontext.Members(m.Value) // none if it is not an object
			for i := range properties {
				properties[i].Value = standardSchema(properties[i].Value)
			}
			if properties != nil {
				m.Value = properties.JSON()
			}
		case "items", "additionalProperties":
			m.Value = standardSchema(m.Value)
		case "anyOf", "any_of", "prefixItems":
			schemas, err := jsontext.Elements(m.Value)
			for i := range schemas {
				schemas[i] = standardSchema(schemas[i])
			}
			if err == nil {
				m.Value = jsontext.Array(schemas)
			}
		}
	}
	return members.JSON()
}
