package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// findArguments demands that the input of calls is spelled as a string: "Invalid
// type for 'messages[1].tool_calls[0].function.arguments': expected a string, but
// got an object instead". A call keeps another spelling, in Chat Completions in
// an object "function".
func findArguments(c *checker) {
	if c.Format != origin.OpenAI && c.Format != origin.OpenAIResponses {
		return
	}
	for _, call := range c.calls {
		if call.Extra == "" {
			continue
		}
		kept := jsontext.MemberOf([]byte(call.Extra), c.format)
		if function := memberAt(kept, "in", "function"); jsontext.Kind(function) == "object" {
			kept = function
		}
		switch jsontext.Kind(memberAt(kept, "more", "arguments")) {
		case "object", "array", "number", "bool":
			c.addFinding(call.message, ruleArguments, describeCall(*call.ToolCall))
		}
	}
}

// repairArguments lets the provider spell the input of calls.
func (r *repairer) repairArguments() {
	for _, refused := range r.refusals(ruleArguments) {
		m := refused.message.(state.ToolCallMessage)
		calls := callTexts(m)
		for i, text := range calls {
			call, _ := jsontext.Members(text) // checked when the message was made
			kept := call.Object(r.format)
			in := kept.Object("in")
			switch function := in.Object("function"); {
			case function != nil:
				kept = kept.With("in", in.With("function", withoutMore(function, "arguments").JSON()).JSON())
			case kept != nil:
				kept = withoutMore(kept, "arguments")
			default:
				continue
			}
			calls[i] = call.With(r.format, kept.JSON()).JSON()
		}
		r.reportChange(refused.entry, ruleArguments, "now a string")
		refused.replaceMessage(origin.WithMember(m, "tools", jsontext.Array(calls)))
	}
}

// findRepeatedItems demands that no two items have one id: "Duplicate item found
// with id …" (vercel/ai#7883, vercel/ai#13307).
func findRepeatedItems(c *checker) {
	known := map[string]bool{}
	note := func(i int, id string) {
		if id != "" && known[id] {
			c.addFinding(i, ruleDuplicateItem, fmt.Sprintf("id %.60q", id))
		}
		known[id] = true
	}
	for _, i := range c.sent {
		switch v := &c.msgs[i]; v.kind {
		case kindCalls:
			for _, call := range c.callsOf(i) {
				note(i, idAt([]byte(call.Extra), origin.OpenAIResponses, "more", "id"))
			}
		case kindItem:
			note(i, providerItem(v.message).String("id"))
		default:
			note(i, itemID(v.message))
		}
	}
}

// idAt returns the text at a path in an object, "" if there is none.
func idAt(object []byte, path ...string) string {
	id := memberAt(object, path...)
	if jsontext.Kind(id) != "string" {
		return ""
	}
	return jsontext.Unquote(id)
}

// memberAt returns the value at a path in an object, nil if there is none.
func memberAt(object []byte, path ...string) []byte {
	for _, name := range path {
		object = jsontext.MemberOf(object, name)
	}
	return object
}

// itemID returns the id of the item that a text or a result came from, "" if it
// has none.
func itemID(m state.Message) string {
	kept, _ := m.Extra(origin.OpenAIResponses)
	return idAt([]byte(kept), "more", "id")
}

// repairItems makes the ids of items unique. It drops an item that is there
// already. Texts and calls, which may be new, lose the id.
func (r *repairer) repairItems() {
	for _, refused := range r.refusals(ruleDuplicateItem) {
		e := refused.entry
		if _, ok := e.message.(state.UnknownMessage); ok {
			r.dropEntry(e, ruleDuplicateItem, "it is there already")
			continue
		}
		r.reportChange(e, ruleDuplicateItem, "dropped the id of the item")
		if m, ok := e.message.(state.ToolCallMessage); ok {
			calls := callTexts(m)
			for i, call := range calls {
				calls[i] = withoutItemID(call)
			}
			e.replaceMessage(origin.WithMember(m, "tools", jsontext.Array(calls)))
			continue
		}
		e.replaceMessage(state.DecodeMessage(withoutItemID([]byte(e.message.Raw()))))
	}
}

// withoutItemID returns a message or a call without the id of its item.
func withoutItemID(text []byte) []byte {
	members, _ := jsontext.Members(text) // checked when the message was made
	kept := members.Object(origin.OpenAIResponses)
	if kept.Object("more").Get("id") == nil {
		return text
	}
	return members.With(origin.OpenAIResponses, withoutMore(kept, "id").JSON()).JSON()
}

// findIdleReasoning demands the item that followed reasoning: "Item 'rs_…' of
// type 'reasoning' was provided without its required following item"
// (vercel/ai#7099, openai-node#1567). Only OpenAI checks this; the ids of other
// servers with this format begin otherwise.
func findIdleReasoning(c *checker) {
	for k, i := range c.sent {
		m := c.msgs[i].message
		if c.msgs[i].kind != kindItem {
			continue
		}
		_, typ := origin.ItemType(m)
		id := providerItem(m).String("id")
		if typ == "reasoning" && strings.HasPrefix(id, "rs_") && !c.reasoningContinues(k) {
			c.addFinding(i, ruleReasoning, fmt.Sprintf("id %.60q, what followed it does not follow", id))
		}
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
	next := &c.msgs[c.sent[k+1]]
	return next.isAssistant && (next.kind != kindText || itemID(next.message) != "")
}

// repairReasoning drops reasoning that led to nothing, and the reasoning
// directly before it.
func (r *repairer) repairReasoning() {
	refused := map[*entry]bool{}
	for _, one := range r.refusals(ruleReasoning) {
		refused[one.entry] = true
	}
	followed := false    // by another message of the assistant
	droppedNext := false // the next message
	for k := len(r.entries) - 1; k >= 0; k-- {
		e := r.entries[k]
		idle := droppedNext || e.idle && !followed
		if refused[e] || idle && origin.FromAssistant(e.message) && isReasoning(e.message) {
			r.dropEntry(e, ruleReasoning, "nothing follows from it")
			droppedNext = true
			continue
		}
		droppedNext, followed = false, origin.FromAssistant(e.message)
	}
}
