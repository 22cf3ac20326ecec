package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// roles gives roles that the provider knows.
func (r *repairer) roles() {
	for _, refused := range r.refused(ruleRole) {
		role := "user"
		if _, ok := refused.m.(state.ToolCallMessage); ok {
			role = "assistant"
		}
		r.setRole(refused, role)
	}
}

// systems makes the user say what the system says where it cannot.
func (r *repairer) systems() {
	for _, refused := range r.refused(ruleSystem) {
		r.setRole(refused, "user")
	}
}

func (r *repairer) setRole(refused refusal, role string) {
	r.changed(refused.entry, refused.rule, fmt.Sprintf("role %.60q is now %q", refused.m.Role(), role))
	refused.replace(origin.With(refused.m, "role", jsontext.AppendQuote(nil, role)))
}

// texts drops the parts of texts that say nothing, and the texts that then are
// empty. A result without content stays, with an empty text.
func (r *repairer) texts() {
	for _, refused := range r.refused(ruleContent, ruleEmpty) {
		if isResult(refused.m) {
			r.changed(refused.entry, refused.rule, "now an empty text")
			refused.replace(origin.With(refused.m, "content", []byte(`""`)))
			continue
		}
		r.keepParts(refused, func(part jsontext.Object) bool {
			if r.format == origin.OpenAI {
				return !isUntyped(part)
			}
			return !isTextPart(part) || strings.TrimSpace(part.String("text")) != ""
		})
	}
}

// serverTools drops calls and results of Anthropic's own tools that lack their
// counterpart.
func (r *repairer) serverTools() {
	refused := map[*entry]bool{}
	for _, one := range r.refused(ruleServerTool) {
		refused[one.entry] = true
	}
	if len(refused) == 0 {
		return
	}
	answered := map[string]bool{} // of the calls
	var own []*entry
	for _, e := range r.list {
		if _, ok := origin.Of(e.m, r.format); !ok {
			continue
		}
		own = append(own, e)
		for _, part := range partsOf(e.m) {
			call, result := serverTool(part)
			if _, called := answered[result]; called {
				answered[result] = true
			} else if call != "" {
				answered[call] = false
			}
		}
	}
	called := map[string]bool{"": true}
	complete := func(part jsontext.Object) bool {
		call, result := serverTool(part)
		called[call] = true
		return called[result] && (call == "" || answered[call])
	}
	for _, e := range own {
		if refused[e] {
			r.keepParts(refusal{e, ruleServerTool}, complete)
			continue
		}
		for _, part := range partsOf(e.m) {
			complete(part)
		}
	}
}

// keepParts keeps the parts of a text for which it is true, and drops the text if
// there are none.
func (r *repairer) keepParts(refused refusal, is func(part jsontext.Object) bool) {
	var kept [][]byte
	parts, _ := jsontext.Elements([]byte(refused.m.(state.TextMessage).Content())) // none if it is no array
	for _, part := range parts {
		if members, _ := jsontext.Members(part); is(members) {
			kept = append(kept, part)
		}
	}
	if len(kept) == 0 {
		r.drop(refused.entry, refused.rule, "it says nothing")
		return
	}
	r.changed(refused.entry, refused.rule, fmt.Sprintf("dropped %d of %d parts", len(parts)-len(kept), len(parts)))
	refused.replace(origin.With(refused.m, "content", jsontext.Array(kept)))
}
