package statetest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/agentstate/state/provider"
)

// memberPath is the place of members in a body: names, indexes, and nil for
// each element of an array.
type memberPath []any

var memberStep = regexp.MustCompile(`^(?:\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\*|[0-9]{1,9})\]|\[("(?:[^"\\]|\\.)*")\])`)

// parseMemberPath reads a path such as $.metadata.trace, $.messages[*].name or
// $.tools[0]["odd name"].
func parseMemberPath(text string) (memberPath, error) {
	var path memberPath
	if text == "" || text[0] != '$' {
		return nil, fmt.Errorf("%q: want a path such as $.metadata.trace", text)
	}
	for rest := text[1:]; rest != ""; {
		step := memberStep.FindStringSubmatch(rest)
		if step == nil {
			return nil, fmt.Errorf("%q: want a path such as $.metadata.trace, got %q", text, rest)
		}
		switch {
		case step[1] != "":
			path = append(path, step[1])
		case step[2] == "*":
			path = append(path, nil)
		case step[2] != "":
			index, err := strconv.Atoi(step[2])
			if err != nil {
				return nil, err
			}
			path = append(path, index)
		default:
			var name string
			if err := json.Unmarshal([]byte(step[3]), &name); err != nil {
				return nil, fmt.Errorf("%q: %w", text, err)
			}
			path = append(path, name)
		}
		rest = rest[len(step[0]):]
	}
	if len(path) == 0 {
		return nil, fmt.Errorf("%q: want a member, not the whole body", text)
	}
	return path, nil
}

// edit calls change with each value at the path, and puts what it returns in the
// place of the value, or removes the member. An element of an array becomes
// null instead, so that the others stay in their places.
func (p memberPath) edit(v any, change func(any) (any, bool)) {
	last := len(p) == 1
	switch v := v.(type) {
	case map[string]any:
		name, ok := p[0].(string)
		member, found := v[name]
		switch {
		case !ok || !found:
		case !last:
			p[1:].edit(member, change)
		default:
			if next, keep := change(member); keep {
				v[name] = next
			} else {
				delete(v, name)
			}
		}
	case []any:
		for i, element := range v {
			if index, ok := p[0].(int); p[0] != nil && (!ok || index != i) {
				continue
			}
			if !last {
				p[1:].edit(element, change)
			} else if next, keep := change(element); keep {
				v[i] = next
			} else {
				v[i] = nil
			}
		}
	}
}

// callIDs are the places where a request has the ids of calls. Members with
// these names in the input of a call or in a result are no such places.
var callIDs = map[*provider.Format][]memberPath{
	provider.OpenAI: {
		{"messages", nil, "tool_calls", nil, "id"},
		{"messages", nil, "tool_call_id"},
	},
	provider.OpenAIResponses: {{"input", nil, "call_id"}},
	provider.Anthropic: {
		{"messages", nil, "content", nil, "id"},
		{"messages", nil, "content", nil, "tool_use_id"},
	},
	provider.Gemini: {
		{"contents", nil, "parts", nil, "functionCall", "id"},
		{"contents", nil, "parts", nil, "functionResponse", "id"},
	},
}

// renameCalls gives the calls in a body ids by the order in which these appear.
// Ids that are equal stay equal, and others do not become so.
func renameCalls(f *provider.Format, body any) {
	names := map[string]string{}
	for _, path := range callIDs[f] {
		path.edit(body, func(id any) (any, bool) {
			text, ok := id.(string)
			if !ok {
				return id, true
			}
			if names[text] == "" {
				names[text] = fmt.Sprintf("call %d", len(names)+1)
			}
			return names[text], true
		})
	}
}

// unmatched are the members of a request to a model that do not change what it
// answers.
var unmatched = []memberPath{{"user"}, {"metadata"}, {"prompt_cache_key"}, {"safety_identifier"}}
