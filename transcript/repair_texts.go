package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// repairRoles gives messages a role that the provider knows.
func (r *repairer) repairRoles() {
	for _, refused := range r.refusals(ruleRole) {
		role := "user"
		if _, ok := refused.message.(state.ToolCallMessage); ok {
			role = "assistant"
		}
		r.setRole(refused, role)
	}
}

// repairSystems makes system messages user messages where the provider accepts
// no system message.
func (r *repairer) repairSystems() {
	for _, refused := range r.refusals(ruleSystem) {
		r.setRole(refused, "user")
	}
}

func (r *repairer) setRole(refused refusal, role string) {
	detail := fmt.Sprintf("role %.60q is now %q", refused.message.Role(), role)
	r.reportChange(refused.entry, refused.rule, detail)
	refused.replaceMessage(origin.WithMember(refused.message, "role", jsontext.AppendQuote(nil, role)))
}

// repairTexts drops the empty parts of texts, and texts that are empty then. A
// result without content stays, with an empty text.
func (r *repairer) repairTexts() {
	for _, refused := range r.refusals(ruleContent, ruleEmpty) {
		if isResult(refused.message) {
			r.reportChange(refused.entry, refused.rule, "now an empty text")
			refused.replaceMessage(origin.WithMember(refused.message, "content", []byte(`""`)))
			continue
		}
		if refused.rule == ruleContent && r.hasForeignParts(refused.message) {
			r.disown(refused.entry)
			continue
		}
		r.filterParts(refused, func(part jsontext.Object) bool {
			switch {
			case refused.rule == ruleEmpty:
				return !isTextPart(part) || strings.TrimSpace(part.String("text")) != ""
			case r.format == origin.Anthropic:
				return !isImagePart(part)
			}
			return !isUntypedPart(part)
		})
	}
}

// hasForeignParts reports whether a text that came from OpenAI has parts in the
// words of its other API.
func (r *repairer) hasForeignParts(m state.Message) bool {
	return r.isOwn(m) && slices.ContainsFunc(textParts(m), func(part jsontext.Object) bool {
		switch r.format {
		case origin.OpenAI:
			return isItemPart(part)
		case origin.OpenAIResponses:
			return isForeignItemPart(m, part)
		}
		return false
	})
}

// disown makes a text one that came from no provider, so that its parts are
// converted like those of a program.
func (r *repairer) disown(e *entry) {
	members, _ := jsontext.Members([]byte(e.message.Raw())) // checked when the message was made
	e.replaceMessage(state.DecodeMessage(members.Without(r.format).JSON()))
	r.reportChange(e, ruleContent, "its parts are converted")
}

// repairArguments lets the provider spell the input of calls.
func (r *repairer) repairArguments() {
	for _, refused := range r.refusals(ruleArguments) {
		m := refused.message.(state.ToolCallMessage)
		calls := callTexts(m)
		for i, text := range calls {
			call, _ := jsontext.Members(text) // checked when the message was made
			kept := call.Object(r.format)
			switch function := kept.Object("function"); {
			case r.format == origin.OpenAI && function != nil:
				kept = kept.With("function", withoutMore(function, "arguments").JSON())
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

// withoutMore returns what is kept without one of the members of the provider's
// JSON.
func withoutMore(kept jsontext.Object, name string) jsontext.Object {
	more := kept.Object("more")
	if more.Get(name) == nil {
		return kept
	}
	return kept.With("more", more.Without(name).JSON())
}

// repairServerTools drops calls and results of Anthropic's own tools that lack
// their counterpart.
func (r *repairer) repairServerTools() {
	refused := map[*entry]bool{}
	for _, one := range r.refusals(ruleServerTool) {
		refused[one.entry] = true
	}
	if len(refused) == 0 {
		return
	}
	answered := map[string]bool{} // of the calls
	var own []*entry
	for _, e := range r.entries {
		if !r.keepsParts(e.message) {
			continue
		}
		own = append(own, e)
		for _, part := range textParts(e.message) {
			call, result := serverToolIDs(part)
			if _, called := answered[result]; called {
				answered[result] = true
			} else if call != "" {
				answered[call] = false
			}
		}
	}
	called := map[string]bool{"": true} // so far
	isComplete := func(part jsontext.Object) bool {
		call, result := serverToolIDs(part)
		called[call] = true
		return called[result] && (call == "" || answered[call])
	}
	for _, e := range own {
		if refused[e] {
			r.filterParts(refusal{e, ruleServerTool}, isComplete)
			continue
		}
		for _, part := range textParts(e.message) {
			isComplete(part)
		}
	}
}

// filterParts keeps the parts of a text for which keep returns true. It drops
// the text if none is left.
func (r *repairer) filterParts(refused refusal, keep func(part jsontext.Object) bool) {
	var kept [][]byte
	content := refused.message.(state.TextMessage).Content()
	parts, _ := jsontext.Elements([]byte(content)) // none if it is not an array
	for _, part := range parts {
		if members, _ := jsontext.Members(part); keep(members) {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		r.dropEntry(refused.entry, refused.rule, "it says nothing")
		return
	}
	detail := fmt.Sprintf("dropped %d of %d parts", len(parts)-len(kept), len(parts))
	r.reportChange(refused.entry, refused.rule, detail)
	refused.replaceMessage(origin.WithMember(refused.message, "content", jsontext.Array(kept)))
}
