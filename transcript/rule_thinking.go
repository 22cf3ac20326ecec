package transcript

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// findThinking demands of the turn that the request continues that it begins with
// thinking, see [Profile.Thinking].
func findThinking(c *checker) {
	if !c.profile.Thinking || !c.ThinkingFirst {
		return
	}
	start := len(c.sent)
	for start > 0 && (origin.FromAssistant(c.msgs[c.sent[start-1]]) || isResult(c.msgs[c.sent[start-1]])) {
		start--
	}
	for start < len(c.sent) && isResult(c.msgs[c.sent[start]]) { // of a turn that is not here
		start++
	}
	if start == len(c.sent) || beginsWithReasoning(c.msgs[c.sent[start]]) {
		return
	}
	c.addFinding(c.sent[start], ruleThinking, "")
}

// repairThinking replaces the calls and results of a turn that should begin with
// thinking by texts of the user with the results. Nothing of the turn goes on
// then, and the model can think about what it reads.
func (r *repairer) repairThinking() {
	refused := r.refusals(ruleThinking)
	if len(refused) == 0 {
		return
	}
	inTurn, ended := false, false
	for _, e := range r.entries {
		inTurn = inTurn || e == refused[0].entry
		if !inTurn {
			continue
		}
		switch m := e.message.(type) {
		case state.ToolCallMessage:
			r.dropEntry(e, ruleThinking, "its results are texts")
		case state.ToolResultMessage:
			r.reportChange(e, ruleThinking, "made a user text: "+describeCall(m.Call()))
			e.replaceMessage(resultText(r.callOf(e, m), m))
			ended = true
		}
	}
	if !ended {
		r.say(continueText, ruleThinking)
	}
}

// callOf returns the call that a result answers, with its input.
func (r *repairer) callOf(e *entry, m state.ToolResultMessage) state.ToolCall {
	if e.answers != nil {
		if caller, ok := e.answers.message.(state.ToolCallMessage); ok {
			if calls := caller.Calls(); e.call < len(calls) {
				return calls[e.call]
			}
		}
	}
	return m.Call()
}

// resultText returns a text of the user with the result of a call. Parts stay
// parts. Any other content that is not a string is quoted as JSON.
func resultText(call state.ToolCall, m state.ToolResultMessage) (state.Message, error) {
	m, title := shown(m, false).(state.ToolResultMessage), resultTitle(call)
	parts, _ := jsontext.Elements([]byte(m.Content())) // none if it is not an array
	for _, raw := range parts {
		if part, _ := jsontext.Members(raw); !origin.IsContent(part) {
			parts = nil
			break
		}
	}
	if len(parts) == 0 {
		return state.UserText(title + " " + m.Content().Text()), nil
	}
	text := jsontext.Object{}.WithString("type", "text").WithString("text", title)
	content := jsontext.Array(append([][]byte{text.JSON()}, parts...))
	made := jsontext.Object{}.WithString("type", "text").WithString("role", "user").With("content", content)
	for mark := range origin.Marks(m) {
		if mark != origin.Gemini { // whose results have no parts
			made = append(made, jsontext.Member{Name: mark, Value: []byte("{}")}) // the parts are in its words
		}
	}
	return state.DecodeMessage(made.JSON())
}
