package traces

import (
	"fmt"
	"strings"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state/internal/jsontext"
)

// others are kinds of JSON that are no conversation of a known format. Several
// come in arrays; these are told by the first element.
var others = []struct {
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
	{"the stream of a Bedrock Converse response", loose.Has("messageStart", "contentBlockStart", "contentBlockDelta")},
	{"JSON-RPC frames", loose.Has("jsonrpc")},
}

// otherOf says what an object is if it is of a kind that is known and no
// conversation, "" if it is not.
func otherOf(o jsontext.Object) string {
	for _, other := range others {
		if other.is(o) {
			return other.what
		}
	}
	return ""
}

// describe says what a JSON text is that is no trace.
func describe(data []byte) string {
	switch kind := jsontext.Kind(data); kind {
	case "array":
		list := loose.Elements(data)
		if len(list) == 0 {
			return "an empty array"
		}
		if what := otherOf(loose.Members(list[0])); what != "" {
			return what
		}
		return "an array, and its first element is " + describe(list[0])
	case "object":
	default:
		return "JSON of type " + kind
	}
	o := loose.Members(data)
	if what := otherOf(o); what != "" {
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
