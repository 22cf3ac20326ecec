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
	// "An assistant message with 'tool_calls' must be followed by tool messages":
	// directly, whatever else there is.
	results := c.adjacency(origin.Joins)
	for k, i := range c.sent {
		results.next(i)
		// "Invalid value for 'content': expected a string, got null"; "Invalid
		// 'messages[0].content': empty array"
		text, ok := c.msgs[i].(state.TextMessage)
		if lacks := c.lacksContent(i) || ok && text.Content() == "[]"; lacks && !c.besideCalls(k, origin.Joins) && !saysOtherwise(c.msgs[i]) {
			c.add(i, ruleContent, noContent)
		}
		// "Missing required parameter: 'messages[0].content[0].type'". Of what came
		// from elsewhere such parts are not sent.
		if n := slices.IndexFunc(partsOf(c.msgs[i]), isUntyped); n >= 0 && c.isOwn(c.msgs[i]) {
			c.add(i, ruleContent, fmt.Sprintf("part %d has no type", n))
		}
	}
}

func isUntyped(part jsontext.Object) bool { return part.String("type") == "" }

// lacksContent reports whether a text message has no content, or a result that
// came from the provider, to which it then goes back without one.
func (c *checker) lacksContent(i int) bool {
	switch m := c.msgs[i].(type) {
	case state.TextMessage:
		return isMissing(m.Content())
	case state.ToolResultMessage:
		return isMissing(m.Content()) && c.isOwn(m)
	}
	return false
}

func isMissing(content state.JSON) bool { return content == "" || content == "null" }

// saysOtherwise reports whether a text of the assistant's without content has
// another member that stands for it, such as a refusal.
func saysOtherwise(m state.Message) bool {
	if !origin.IsAssistants(m) {
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

// checkOpenAIResponses has the rules that only the Responses API has. Outputs may
// be anywhere after their calls.
func checkOpenAIResponses(c *checker) {
	seen := map[string]bool{}
	once := func(i int, id string) {
		// "Duplicate item found with id …" (vercel/ai#7883, vercel/ai#13307)
		switch {
		case id == "":
		case seen[id]:
			c.add(i, ruleDuplicateItem, fmt.Sprintf("id %.60q", id))
		default:
			seen[id] = true
		}
	}
	for k, i := range c.sent {
		// "Invalid type for 'input[0].content': expected one of an array of objects or
		// string, but got null", "Missing required parameter: 'input[0].output'"
		if text, ok := c.msgs[i].(state.TextMessage); c.lacksContent(i) || ok && text.Content() == "[]" {
			c.add(i, ruleContent, noContent)
		}
		switch m := c.msgs[i].(type) {
		case state.ToolCallMessage:
			for _, call := range c.of(i) {
				extra, _ := jsontext.Members([]byte(call.Extra)) // none if there is no more
				once(i, extra.Object(origin.OpenAIResponses).Object("more").String("id"))
			}
		case state.UnknownMessage:
			id := itemOf(m).String("id")
			once(i, id)
			// "Item 'rs_…' of type 'reasoning' was provided without its required
			// following item" (vercel/ai#7099, openai-node#1567)
			// It is OpenAI that keeps track; other servers of the format name their ids
			// otherwise.
			if _, typ := origin.Unknown(m); typ == "reasoning" && strings.HasPrefix(id, "rs_") && !c.goesOn(k) {
				c.add(i, ruleReasoning, fmt.Sprintf("id %.60q, what followed it does not follow", id))
			}
		default:
			once(i, itemID(m))
		}
	}
}

// goesOn reports whether what is sent after the k-th message can be what followed
// it when the model made it: something of the assistant's, and if that is a text,
// the very item. Calls are taken without the item's id, texts are not
// (software-agent-sdk#1754).
func (c *checker) goesOn(k int) bool {
	if k+1 == len(c.sent) {
		return false
	}
	next := c.msgs[c.sent[k+1]]
	if _, ok := next.(state.TextMessage); ok && itemID(next) == "" {
		return false
	}
	return origin.IsAssistants(next)
}

// itemID returns the id of the item that a text or a result came from, "" if it
// has none.
func itemID(m state.Message) string {
	kept, _ := origin.Of(m, origin.OpenAIResponses)
	return kept.Object("more").String("id")
}
