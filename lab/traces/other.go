package traces

import (
	"fmt"
	"strings"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state/internal/jsontext"
)

// foreignKinds are the known kinds of JSON that package traces does not play.
// An array is recognised by its first element.
var foreignKinds = []struct {
	what string
	is   func(o jsontext.Object) bool
}{
	{"an evaluation set", loose.Has("eval_cases", "expected_tool_use")},
	{"a realtime session", func(o jsontext.Object) bool {
		events := loose.Elements(o.Get("events"))
		return len(events) > 0 && loose.Members(events[0]).Get("direction") != nil
	}},
	{"a Gemini interaction", func(o jsontext.Object) bool {
		return o.Get("steps") != nil && o.Get("status") != nil
	}},
	{"the stream of a Gemini interaction", loose.Has("event_type")},
	{"a Bedrock Converse response", func(o jsontext.Object) bool {
		return o.Get("stopReason") != nil && loose.Members(o.Get("output")).Get("message") != nil
	}},
	{"a Bedrock Converse request", func(o jsontext.Object) bool {
		part := firstElement(firstElement(o.Get("messages")).Get("content"))
		return len(part) > 0 && part.Get("type") == nil
	}},
	{"an Ollama chat exchange", func(o jsontext.Object) bool {
		return o.Get("done") != nil && loose.Has("message", "response")(o)
	}},
	{"embeddings", func(o jsontext.Object) bool {
		return loose.Text(o.Get("object")) == "list" && loose.Text(firstElement(o.Get("data")).Get("object")) == "embedding"
	}},
	{"the stream of a Bedrock Converse response", loose.Has("messageStart", "contentBlockStart", "contentBlockDelta")},
	{"JSON-RPC frames", loose.Has("jsonrpc")},
}

// foreignKind returns the foreign kind of an object, "" if it has none.
func foreignKind(o jsontext.Object) string {
	for _, other := range foreignKinds {
		if other.is(o) {
			return other.what
		}
	}
	return ""
}

// describe returns a short description of JSON that is not a recording.
func describe(data []byte) string {
	switch kind := jsontext.Kind(data); kind {
	case "array":
		list := loose.Elements(data)
		if len(list) == 0 {
			return "an empty array"
		}
		if what := foreignKind(loose.Members(list[0])); what != "" {
			return what
		}
		return "an array, and its first element is " + describe(list[0])
	case "object":
	default:
		return "JSON of type " + kind
	}
	o := loose.Members(data)
	if what := foreignKind(o); what != "" {
		return what
	}
	const most = 4
	var names []string
	for i, m := range o {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, fmt.Sprintf("%.40q", m.Name))
	}
	if len(names) == 0 {
		return "an empty object"
	}
	return "an object with " + strings.Join(names, ", ")
}
