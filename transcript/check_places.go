package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// checkPlaces has the rules about who speaks when, about the content of texts,
// and about the words of the format. It visits each message once: long
// conversations do not fit into the caches of a processor.
func (c *checker) checkPlaces() {
	words := newWords(c.Format)
	turns := turnOrder{prompt: c.systemPromptLength()}
	for k := range c.sent {
		if words != nil {
			words.check(c, k)
		}
		turns.check(c, k)
		c.checkResultName(k)
		c.checkText(k)
	}
	if words != nil {
		words.end(c)
	}
}

// turnOrder demands that the system, the user and the assistant speak where the
// rules want them to.
type turnOrder struct {
	prompt     int // the number of messages that are the system prompt
	begun      bool
	before     state.Message
	beforeTurn state.Message // before the turn of the assistant that lasts
	afterUser  bool          // where Anthropic accepts a system message
}

func (o *turnOrder) check(c *checker, k int) {
	i := c.sent[k]
	m := c.msgs[i]
	if c.SystemFirst {
		o.checkSystem(c, k)
	}
	if !o.begun && !origin.IsSystem(m) {
		o.begun = true
		if c.UserFirst && !c.isUsers(m) {
			c.addFinding(i, ruleFirst, "the user does not begin")
		}
	}
	if !c.CallsAfterUser {
		return
	}
	if o.before == nil || !isAssistantTurn(o.before, m) {
		o.beforeTurn = o.before
	}
	o.before = m
	if _, isCall := m.(state.ToolCallMessage); isCall && (o.beforeTurn == nil || !c.isUsers(o.beforeTurn)) {
		c.addFinding(i, ruleCallTurn, "not after the user or results")
	}
}

// isUsers reports whether the user says m, or whether it is a result. It is not
// what others say, such as the agents of a framework with roles of their own, and
// not a reasoning: neither is a request that trims keep. A role that the provider
// does not know is a finding of its own, and is repaired to be the user's.
func (r *rules) isUsers(m state.Message) bool {
	if isResult(m) {
		return true
	}
	_, isText := m.(state.TextMessage)
	return (m.Role() == "user" || isText && !r.acceptsRole(m.Role())) && !isReasoning(m)
}

// checkSystem demands that system messages are at the beginning. Models of
// Anthropic that support others demand a user turn in front of it
// (pydantic-ai#6765), and accept several consecutive system messages. The result
// of one of the provider's own tools, at the end of the assistant's turn, is
// accepted like the user's.
func (o *turnOrder) checkSystem(c *checker, k int) {
	i := c.sent[k]
	m := c.msgs[i]
	if !origin.IsSystem(m) {
		o.afterUser = c.format == origin.Anthropic &&
			(isUserTurn(m) || c.keepsParts(m) && endsWithServerResult(m))
	} else if k >= o.prompt && !(o.afterUser && c.isOwn(m) && m.Role() == "system") {
		c.addFinding(i, ruleSystem, "in the middle")
		o.afterUser = false
	}
}

// systemPromptLength returns the number of sent messages that are the system
// prompt. A message that came from a provider whose prompt is not among the
// messages says whether it was in it.
func (c *checker) systemPromptLength() int {
	hasPrompt := c.format == origin.Anthropic || c.format == origin.Gemini
	for k, i := range c.sent {
		m := c.msgs[i]
		if !origin.IsSystem(m) {
			return k
		}
		if kept, own := origin.Of(m, c.format); hasPrompt && own && !strings.HasPrefix(kept.String("in"), "system") {
			return k
		}
	}
	return len(c.sent)
}

// checkResultName demands that results have the names of their calls.
func (c *checker) checkResultName(k int) {
	i := c.sent[k]
	if !c.ResultNames || c.answers[i] == none {
		return
	}
	if result, ok := c.msgs[i].(state.ToolResultMessage); ok {
		call, name := c.calls[c.answers[i]], result.Call().Name
		if name != call.Name {
			c.addFinding(i, ruleName, fmt.Sprintf("%s, answered as %.60q", describeCall(*call.ToolCall), name))
		}
	}
}

// checkText demands content of texts.
func (c *checker) checkText(k int) {
	m, ok := c.msgs[c.sent[k]].(state.TextMessage)
	switch {
	case !ok:
	case c.NoBlankTexts:
		c.checkBlankText(k, m)
	case c.NoEmptyTexts && isBlank(m) && !c.besideCalls(k) && !(c.format == origin.OpenAI && hasSubstitute(m)):
		c.addFinding(c.sent[k], ruleContent, noContent)
	}
}

// checkBlankText demands more than white space. Anthropic makes exceptions: "all
// messages must have non-empty content except for the optional final assistant
// message".
func (c *checker) checkBlankText(k int, m state.TextMessage) {
	i := c.sent[k]
	problem := emptyText(m, strings.TrimSpace)
	if problem == "" {
		return
	}
	if c.format == origin.Anthropic {
		last := k == len(c.sent)-1 && origin.FromAssistant(m)
		switch {
		case problem == noContent && last:
			return
		case c.isOwn(m) && hasServerTool(m):
			// The model says it between its own tools, and it is accepted.
			problem = emptyText(m, func(text string) string { return text })
		case c.besideCalls(k):
			// An empty text is not sent there. A text of nothing but space,
			// which models say before calls, is accepted.
			if content := m.Content(); isBlank(m) || content[0] == '"' {
				return
			}
			problem = emptyText(m, func(text string) string { return text })
		}
	}
	if problem != "" {
		c.addFinding(i, ruleEmpty, problem)
	}
}

// emptyText returns what a text message lacks, "" if it lacks nothing. A text
// of which trim leaves nothing is empty.
func emptyText(m state.TextMessage, trim func(string) string) string {
	switch content := m.Content(); {
	case isBlank(m):
		return noContent
	case content[0] == '"' && trim(content.Text()) == "":
		return "no text"
	}
	for i, part := range textParts(m) {
		if isTextPart(part) && trim(part.String("text")) == "" {
			return fmt.Sprintf("no text in part %d", i)
		}
	}
	return ""
}

// besideCalls reports whether the entry of the k-th message that is sent has
// calls. It must be asked in the order of the messages. The last entry is kept,
// because each of its messages asks.
func (c *checker) besideCalls(k int) bool {
	if c.sameEntry == nil {
		return false
	}
	sentMessage := func(k int) state.Message { return c.msgs[c.sent[k]] }
	if k >= c.entry.end {
		first, end := k, k+1
		for first > 0 && c.sameEntry(sentMessage(first-1), sentMessage(first)) {
			first--
		}
		for end < len(c.sent) && c.sameEntry(sentMessage(end-1), sentMessage(end)) {
			end++
		}
		c.entry = entrySpan{end: end}
		for k := first; k < end && !c.entry.hasCalls; k++ {
			_, c.entry.hasCalls = sentMessage(k).(state.ToolCallMessage)
		}
	}
	return c.entry.hasCalls
}

// newWords returns the rules about what only one format can say, nil if it has
// none.
func newWords(format string) formatWords {
	switch format {
	case origin.OpenAI:
		return chatWords{}
	case origin.OpenAIResponses:
		return itemWords{}
	case origin.Anthropic:
		return &blockWords{answered: map[string]bool{}, lastUser: none}
	case origin.Gemini:
		return &contentWords{}
	}
	return nil
}
