package traces

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/agentstate/state/internal/jsontext"
)

// yamlDepth and yamlNodes bound what the aliases of a YAML text may expand to.
const (
	yamlDepth = 500
	yamlNodes = 10_000_000
)

// yamlDocuments returns the documents of a YAML text as JSON. Numbers keep
// their spelling if JSON has it. A scalar of type binary becomes a string, or
// {"base64_string": "…"} if it is no text, as some recorders write it. Other
// tags are ignored.
func yamlDocuments(data []byte) ([][]byte, error) {
	var docs [][]byte
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		err := dec.Decode(&node)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		c := yamlConverter{left: yamlNodes}
		doc, err := c.append(nil, &node, 0)
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
}

type yamlConverter struct{ left int }

func (c *yamlConverter) append(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	c.left--
	if depth > yamlDepth || c.left < 0 {
		return nil, errors.New("yaml: too deep or too large")
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return c.append(dst, n.Content[0], depth+1)
	case yaml.AliasNode:
		return c.append(dst, n.Alias, depth+1)
	case yaml.SequenceNode:
		return c.appendList(dst, n, depth)
	case yaml.MappingNode:
		return c.appendObject(dst, n, depth)
	case yaml.ScalarNode:
		return appendScalar(dst, n), nil
	}
	return append(dst, "null"...), nil
}

func (c *yamlConverter) appendList(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	dst = append(dst, '[')
	for i, element := range n.Content {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = c.append(dst, element, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (c *yamlConverter) appendObject(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	dst = append(dst, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendQuote(dst, yamlName(n.Content[i])), ':')
		var err error
		if dst, err = c.append(dst, n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// yamlName returns the name of a member. A recorder in Python writes some names
// as objects: a list of the arguments that make the name.
func yamlName(key *yaml.Node) string {
	for key.Kind == yaml.SequenceNode && len(key.Content) == 1 {
		key = key.Content[0]
	}
	return key.Value
}

func appendScalar(dst []byte, n *yaml.Node) []byte {
	switch n.ShortTag() {
	case "!!null":
		return append(dst, "null"...)
	case "!!bool":
		return append(dst, strings.ToLower(n.Value)...)
	case "!!int", "!!float":
		return appendNumber(dst, n)
	case "!!binary", "!binary":
		return appendBinary(dst, n.Value)
	}
	return jsontext.AppendQuote(dst, n.Value)
}

func appendNumber(dst []byte, n *yaml.Node) []byte {
	if json.Valid([]byte(n.Value)) {
		return append(dst, n.Value...)
	}
	var number any // such as 0x1F, 1_000 or +1
	if n.Decode(&number) == nil {
		if data, err := json.Marshal(number); err == nil {
			return append(dst, data...)
		}
	}
	return jsontext.AppendQuote(dst, n.Value) // such as .inf
}

func appendBinary(dst []byte, text string) []byte {
	text = strings.Join(strings.Fields(text), "")
	data, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return jsontext.AppendQuote(dst, text)
	case utf8.Valid(data):
		return jsontext.AppendQuote(dst, string(data))
	}
	return append(dst, jsontext.Object{}.WithString("base64_string", text).JSON()...)
}
