package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// chatWords has the rules about the words of Chat Completions.
type chatWords struct{}

func (chatWords) check(c *checker, k int) {
	i := c.sent[k]
	m := c.msgs[i]
	c.checkArguments(i, "function")
	if !c.isOwn(m) { // such parts and results of other providers are not sent
		return
	}
	if lacksOutput(m) {
		c.addFinding(i, ruleContent, noContent)
	}
	for n, part := range textParts(m) {
		// "Missing required parameter: 'messages[0].content[0].type'"
		if isUntypedPart(part) {
			c.addFinding(i, ruleContent, fmt.Sprintf("part %d has no type", n))
			break
		}
		if isItemPart(part) {
			c.addFinding(i, ruleContent, fmt.Sprintf("part %d is of the Responses API", n))
			break
		}
	}
}

// isItemPart reports whether a part has a type that only the Responses API has:
// "Invalid value: 'input_text'. Supported values are: 'text', 'image_url', …".
func isItemPart(part jsontext.Object) bool {
	switch part.String("type") {
	case "input_text", "input_image", "input_file", "output_text":
		return true
	}
	return false
}

// isForeignItemPart reports whether a part of an item is an image of Chat
// Completions, or a part that the other side says: "Invalid value: 'output_text'.
// Supported values are: 'input_text', 'input_image', and 'input_file'". Texts of
// the right side have the type "text" in a message.
func isForeignItemPart(m state.Message, part jsontext.Object) bool {
	switch part.String("type") {
	case "image_url":
		return true
	case "output_text", "refusal":
		return !origin.FromAssistant(m)
	case "input_text", "input_image", "input_file":
		return origin.FromAssistant(m)
	}
	return false
}

// checkArguments demands that the input of calls is spelled as a string: "Invalid
// type for 'messages[1].tool_calls[0].function.arguments': expected a string, but
// got an object instead". A call keeps another spelling, in an object with the
// names.
func (c *checker) checkArguments(i int, within ...string) {
	for _, call := range c.callsOf(i) {
		if call.Extra == "" {
			continue
		}
		extra, _ := jsontext.Members([]byte(call.Extra)) // checked when the message was made
		kept := extra.Object(c.format)
		for _, name := range within {
			kept = kept.Object(name)
		}
		switch jsontext.Kind(kept.Object("more").Get("arguments")) {
		case "object", "array", "number", "bool":
			c.addFinding(i, ruleArguments, describeCall(*call.ToolCall))
		}
	}
}

func (chatWords) end(*checker) {}

// lacksOutput reports whether m is a result without content: "Missing required
// parameter: 'input[0].output'". If it came from the provider, it is sent back
// as it is.
func lacksOutput(m state.Message) bool {
	result, ok := m.(state.ToolResultMessage)
	return ok && isMissing(result.Content())
}

// hasSubstitute reports whether a text of the assistant has another member that
// stands for its content, such as a refusal.
func hasSubstitute(m state.Message) bool {
	if !origin.FromAssistant(m) {
		return false
	}
	kept, _ := origin.Of(m, origin.OpenAI)
	for _, member := range kept.Object("more") {
		switch member.Name {
		case "content", "role", "name", "type", "id", "annotations", "cache_control":
			continue
		}
		switch string(member.Value) {
		case "null", "[]", "{}", `""`:
			continue
		}
		return true
	}
	return false
}

// itemWords has the rules about the items of the Responses API: the ids so far.
type itemWords map[string]bool

func (w itemWords) check(c *checker, k int) {
	i := c.sent[k]
	if c.isOwn(c.msgs[i]) && lacksOutput(c.msgs[i]) {
		c.addFinding(i, ruleContent, noContent)
	}
	switch m := c.msgs[i].(type) {
	case state.TextMessage:
		w.checkID(c, i, itemID(m))
		isForeign := func(part jsontext.Object) bool { return isForeignItemPart(m, part) }
		if n := slices.IndexFunc(textParts(m), isForeign); n >= 0 && c.isOwn(m) {
			c.addFinding(i, ruleContent, fmt.Sprintf("part %d is not of the role", n))
		}
	case state.ToolCallMessage:
		c.checkArguments(i)
		for _, call := range c.callsOf(i) {
			extra, _ := jsontext.Members([]byte(call.Extra)) // none if Extra is empty
			kept := extra.Object(origin.OpenAIResponses)
			w.checkID(c, i, kept.Object("more").String("id"))
		}
	case state.UnknownMessage:
		id := providerItem(m).String("id")
		w.checkID(c, i, id)
		// "Item 'rs_…' of type 'reasoning' was provided without its required
		// following item" (vercel/ai#7099, openai-node#1567). Only OpenAI checks
		// this; the ids of other servers with this format begin otherwise.
		_, typ := origin.ItemType(m)
		if typ == "reasoning" && strings.HasPrefix(id, "rs_") && !c.reasoningContinues(k) {
			c.addFinding(i, ruleReasoning, fmt.Sprintf("id %.60q, what followed it does not follow", id))
		}
	default:
		w.checkID(c, i, itemID(m))
	}
}

func (itemWords) end(*checker) {}

// checkID demands that no other item has the id: "Duplicate item found with id …"
// (vercel/ai#7883, vercel/ai#13307).
func (w itemWords) checkID(c *checker, i int, id string) {
	switch {
	case id == "":
	case w[id]:
		c.addFinding(i, ruleDuplicateItem, fmt.Sprintf("id %.60q", id))
	default:
		w[id] = true
	}
}

// reasoningContinues reports whether the message that is sent after the k-th
// can be the one that followed it when the model made it. It has to be the
// assistant's. A text has to be the very item; calls are accepted without the
// id of the item (software-agent-sdk#1754). At the end of a request, where nothing
// has to follow, xAI accepts it, whose ids begin like OpenAI's.
func (c *checker) reasoningContinues(k int) bool {
	if k+1 == len(c.sent) {
		return true
	}
	next := c.msgs[c.sent[k+1]]
	if _, ok := next.(state.TextMessage); ok && itemID(next) == "" {
		return false
	}
	return origin.FromAssistant(next)
}

// itemID returns the id of the item that a text or a result came from, "" if it
// has none.
func itemID(m state.Message) string {
	kept, _ := origin.Of(m, origin.OpenAIResponses)
	return kept.Object("more").String("id")
}
