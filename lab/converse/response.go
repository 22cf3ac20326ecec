package converse

import (
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// DecodeResponse reads a response. It has no id and no time.
func (codec) DecodeResponse(body state.JSON) (provider.Response, error) {
	members := objectOf(body)
	message := objectOf(members["output"])["message"]
	if objectOf(message) == nil {
		if members.isText("message") {
			return provider.Response{}, &provider.ResponseError{Code: members.text("__type"), Message: members.text("message")}
		}
		return provider.Response{}, &provider.Error{Path: "$.output.message", Problem: "want an object"}
	}
	r := provider.Response{StopReason: stopReasonOf(members)}
	if e := entryOf(message); len(e.Parts) > 0 {
		r.Entries = []provider.Entry{e}
	}
	return r, nil
}

func stopReasonOf(members object) string {
	switch reason := members.text("stopReason"); reason {
	case "end_turn":
		return "stop"
	case "tool_use":
		return "tool"
	default:
		return reason
	}
}

func (codec) EncodeResponse(r provider.Response) (state.JSON, error) {
	message := encode(object{"role": `"assistant"`, "content": "[]"})
	for _, e := range r.Entries {
		message = e.JSON
	}
	reason := r.StopReason
	switch reason {
	case "stop":
		reason = "end_turn"
	case "tool":
		reason = "tool_use"
	case "length":
		reason = "max_tokens"
	}
	body := object{"output": encode(object{"message": message}), "stopReason": state.JSONText(reason), "metrics": `{"latencyMs":0}`}
	if u := r.Usage; u.Input >= 0 && u.Output >= 0 {
		usage := map[string]int{
			"inputTokens":  u.Input - max(0, u.CacheRead) - max(0, u.CacheWrite),
			"outputTokens": u.Output, "totalTokens": u.Input + u.Output,
		}
		if u.CacheRead >= 0 {
			usage["cacheReadInputTokens"] = u.CacheRead
		}
		if u.CacheWrite >= 0 {
			usage["cacheWriteInputTokens"] = u.CacheWrite
		}
		body["usage"] = encode(usage)
	}
	return encode(body), nil
}

// ReadUsage reads the usage of a response, or of the last event of a stream.
// Tokens of the cache are not among the input tokens.
func (codec) ReadUsage(u *provider.Usage, body state.JSON) bool {
	members := objectOf(body)
	isEvent := false
	for _, name := range events {
		isEvent = isEvent || objectOf(members[name]) != nil
	}
	if !isEvent && objectOf(members["output"]) == nil {
		return false
	}
	if metadata := objectOf(members["metadata"]); isEvent && metadata != nil {
		members = metadata
	}
	reason := stopReasonOf(members)
	if stop := objectOf(members["messageStop"]); stop != nil {
		reason = stopReasonOf(stop)
	}
	if reason != "" {
		u.StopReason = reason
	}
	usage := objectOf(members["usage"])
	if n, ok := count(usage["inputTokens"]); ok {
		u.Input = n
		for name, part := range map[string]*int{"cacheReadInputTokens": &u.CacheRead, "cacheWriteInputTokens": &u.CacheWrite} {
			if n, ok := count(usage[name]); ok {
				*part = n
				u.Input += n
			}
		}
	}
	if n, ok := count(usage["outputTokens"]); ok {
		u.Output = n
	}
	return true
}

func count(value state.JSON) (int, bool) {
	n, err := strconv.Atoi(string(value))
	return n, err == nil && n >= 0
}

// events are the members of events.
var events = []string{"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"}

// failureOf returns the failure that an event reports, such as
// throttlingException.
func failureOf(event object) error {
	for name, value := range event {
		if strings.HasSuffix(name, "Exception") {
			return &provider.ResponseError{Code: name, Message: objectOf(value).text("message")}
		}
	}
	return nil
}
