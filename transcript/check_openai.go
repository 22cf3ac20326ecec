package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// checkOpenAI has the rules that only Chat Completions has.
func checkOpenAI(c *checker) {
	for k, i := range c.sent {
		m := c.msgs[i]
		// "Invalid value for 'content': expected a string, got null"; "Invalid
		// 'messages[0].content': empty array"
		if c.lacksContent(m) && !c.besideCalls(k, origin.Joins) && !hasSubstitute(m) {
			c.addFinding(i, ruleContent, noContent)
		}
		// "Missing required parameter: 'messages[0].content[0].type'". Such
		// parts of other providers are not sent.
		if n := slices.IndexFunc(textParts(m), isUntypedPart); n >= 0 && c.isOwn(m) {
			c.addFinding(i, ruleContent, fmt.Sprintf("part %d has no type", n))
		}
	}
}

// lacksContent reports whether m is a text without content, or a result without
// content that came from the provider. Such a result is sent back as it is.
func (r *rules) lacksContent(m state.Message) bool {
	switch m := m.(type) {
	case state.TextMessage:
		return isBlank(m)
	case state.ToolResultMessage:
		return isMissing(m.Content()) && r.isOwn(m)
	}
	return false
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

// checkOpenAIResponses has the rules that only the Responses API has. Outputs
// may be anywhere after their calls.
func checkOpenAIResponses(c *checker) {
	seen := map[string]bool{}
	checkItemID := func(i int, id string) {
		// "Duplicate item found with id …" (vercel/ai#7883, vercel/ai#13307)
		switch {
		case id == "":
		case seen[id]:
			c.addFinding(i, ruleDuplicateItem, fmt.Sprintf("id %.60q", id))
		default:
			seen[id] = true
		}
	}
	for k, i := range c.sent {
		// "Invalid type for 'input[0].content': expected one of an array of
		// objects or string, but got null", "Missing required parameter:
		// 'input[0].output'"
		if c.lacksContent(c.msgs[i]) {
			c.addFinding(i, ruleContent, noContent)
		}
		switch m := c.msgs[i].(type) {
		case state.ToolCallMessage:
			for _, call := range c.callsOf(i) {
				extra, _ := jsontext.Members([]byte(call.Extra)) // none if Extra is empty
				kept := extra.Object(origin.OpenAIResponses)
				checkItemID(i, kept.Object("more").String("id"))
			}
		case state.UnknownMessage:
			id := providerItem(m).String("id")
			checkItemID(i, id)
			// "Item 'rs_…' of type 'reasoning' was provided without its
			// required following item" (vercel/ai#7099, openai-node#1567). Only
			// OpenAI checks this; the ids of other servers with this format
			// begin otherwise.
			_, typ := origin.ItemType(m)
			if typ == "reasoning" && strings.HasPrefix(id, "rs_") && !c.reasoningContinues(k) {
				c.addFinding(i, ruleReasoning, fmt.Sprintf("id %.60q, what followed it does not follow", id))
			}
		default:
			checkItemID(i, itemID(m))
		}
	}
}

// reasoningContinues reports whether the message that is sent after the k-th
// can be the one that followed it when the model made it. It has to be the
// assistant's. A text has to be the very item; calls are accepted without the
// id of the item (software-agent-sdk#1754).
func (c *checker) reasoningContinues(k int) bool {
	if k+1 == len(c.sent) {
		return false
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
