package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// findUnknownRoles demands roles that the provider knows.
func findUnknownRoles(c *checker) {
	for _, i := range c.sent {
		switch v := &c.msgs[i]; {
		case v.kind == kindText && !c.acceptsRole(v.role):
			c.addFinding(i, ruleRole, fmt.Sprintf("%.60q", v.role))
		case v.kind == kindCalls && v.role != "assistant":
			c.addFinding(i, ruleRole, fmt.Sprintf("%.60q of calls", v.role))
		}
	}
}

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

// findLateSystem demands that system messages are at the beginning. Models of
// Anthropic that support others demand a user turn in front of it
// (pydantic-ai#6765), and accept several consecutive system messages. The result
// of one of the provider's own tools, at the end of the assistant's turn, is
// accepted like the user's.
func findLateSystem(c *checker) {
	if !c.SystemFirst {
		return
	}
	prompt := c.systemPromptLength()
	// A turn of the user must not follow: pi#9548, claude-code#73821.
	beforeUser := func(k int) bool {
		for _, i := range c.sent[k:] {
			if v := &c.msgs[i]; !v.isSystem {
				return !v.isAssistant
			}
		}
		return false
	}
	afterUser := false // where Anthropic accepts a system message
	for k, i := range c.sent {
		switch v := &c.msgs[i]; {
		case !v.isSystem:
			afterUser = c.Format == origin.Anthropic &&
				(v.isUserTurn() || endsWithServerResult(v.parts) && v.keepsParts())
		case k < prompt: // it is the system prompt
		case afterUser && v.isOwn && v.role == "system" && !c.profile.NoMidSystem && !beforeUser(k): // it may stand here
		default:
			c.addFinding(i, ruleSystem, "")
			afterUser = false
		}
	}
}

// systemPromptLength returns the number of sent messages that are the system
// prompt. A message that came from a provider whose prompt is not among the
// messages says whether it was in it.
func (c *checker) systemPromptLength() int {
	hasPrompt := c.format == origin.Anthropic || c.format == origin.Gemini
	for k, i := range c.sent {
		if !c.msgs[i].isSystem {
			return k
		}
		if kept, own := origin.Of(c.msgs[i].message, c.format); hasPrompt && own &&
			!strings.HasPrefix(kept.String("in"), "system") {
			return k
		}
	}
	return len(c.sent)
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

// findBeginning demands that the user begins.
func findBeginning(c *checker) {
	if !c.UserFirst {
		return
	}
	for _, i := range c.sent {
		if !c.msgs[i].isSystem {
			if !c.isUsers(&c.msgs[i]) {
				c.addFinding(i, ruleFirst, "")
			}
			return
		}
	}
}

// findEarlyCalls demands that a turn with calls follows the user or results. A
// system message is no turn, as in findBeginning.
func findEarlyCalls(c *checker) {
	if !c.CallsAfterUser {
		return
	}
	var before, beforeTurn *view // the message, and the turn of the assistant
	for _, i := range c.sent {
		v := &c.msgs[i]
		if v.isSystem {
			continue
		}
		if before == nil || !before.isAssistant || !v.isAssistant {
			beforeTurn = before
		}
		before = v
		if v.kind == kindCalls && (beforeTurn == nil || !c.isUsers(beforeTurn)) {
			c.addFinding(i, ruleCallTurn, "")
		}
	}
}

// isUsers reports whether the user says m, or whether it is a result. It is not
// what others say, such as the agents of a framework with roles of their own, and
// not a reasoning: neither is a request that trims keep. A role that the provider
// does not know is a finding of its own, and is repaired to be the user's.
func (r *rules) isUsers(v *view) bool {
	return v.kind == kindResult ||
		(v.role == "user" || v.kind == kindText && !r.acceptsRole(v.role)) && !v.isReasoning()
}

// repairUserTurns inserts a text of the user before a turn that must follow
// one.
func (r *repairer) repairUserTurns() {
	rules := map[*entry]string{} // by refused entry
	for _, refused := range r.refusals(ruleFirst, ruleCallTurn) {
		rules[refused.entry] = refused.rule
	}
	if len(rules) == 0 {
		return
	}
	inserted := map[*entry]*entry{} // by the entry that begins the turn
	var before, start *entry
	for _, e := range r.entries {
		if !r.isSent(e.message) {
			continue
		}
		if before == nil || !r.sameTurn(before.message, e.message) {
			start = e
		}
		if before = e; rules[e] != "" && inserted[start] == nil {
			text := state.UserText(continueText)
			inserted[start] = &entry{message: text, original: start.original, added: true}
			r.addChange(start.original, rules[e], "put a user text before it")
		}
	}
	entries := make([]*entry, 0, len(r.entries)+len(inserted))
	for _, e := range r.entries {
		if text := inserted[e]; text != nil {
			entries = append(entries, text)
			if joined, _ := origin.Joined(e.message); joined {
				r.setJoined(e, false)
			}
		}
		entries = append(entries, e)
	}
	r.entries = entries
}

// findEarlyUser demands that the assistant speaks between results and the user.
func findEarlyUser(c *checker) {
	if !c.AssistantAfterResults {
		return
	}
	afterResult := false
	for _, i := range c.sent {
		isResult := c.msgs[i].kind == kindResult
		if afterResult && !isResult && c.msgs[i].isUserTurn() {
			c.addFinding(i, ruleAfterResults, "")
		}
		afterResult = isResult
	}
}

// repairAfterResults lets the assistant speak after results.
func (r *repairer) repairAfterResults() {
	for _, refused := range r.refusals(ruleAfterResults) {
		text := &entry{message: state.AssistantText(notedText), original: refused.original, added: true}
		r.entries = slices.Insert(r.entries, slices.Index(r.entries, refused.entry), text)
		r.reportChange(refused.entry, ruleAfterResults, "put a text of the assistant before it")
	}
}

// notedText is what the assistant says where the provider wants the assistant to
// speak.
const notedText = "Noted."

// findPrefill demands that the assistant has not the last word, of models and
// servers that do not continue what it says.
func findPrefill(c *checker) {
	if len(c.sent) == 0 || !c.UserLast && !c.profile.NoPrefill {
		return
	}
	last := c.sent[len(c.sent)-1]
	if c.msgs[last].isAssistant && !c.continues(&c.msgs[last]) {
		c.addFinding(last, rulePrefill, "")
	}
}

// continues reports whether the provider goes on with m, which ends with a tool
// of its own, or which Mistral is asked to continue.
func (r *rules) continues(v *view) bool {
	if kept, _ := origin.Of(v.message, r.format); kept.Object("more").Bool("prefix") {
		return true
	}
	own := v.isOwn || r.format == origin.Anthropic && origin.IsHandmade(v.message)
	return own && endsWithServerTool(v.parts)
}

// repairEnd lets the user have the last word.
func (r *repairer) repairEnd() {
	if len(r.refusals(rulePrefill)) > 0 {
		r.say(continueText, rulePrefill)
	}
}
