package transcript

import (
	"slices"
	"strings"

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
	for start > 0 && (c.msgs[c.sent[start-1]].isAssistant || c.msgs[c.sent[start-1]].kind == kindResult) {
		start--
	}
	for start < len(c.sent) && c.msgs[c.sent[start]].kind == kindResult { // of a turn that is not here
		start++
	}
	if start == len(c.sent) || beginsWithReasoning(c.msgs[c.sent[start]].parts) {
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

// findThinkingOfOthers demands of a model of Anthropic that no other model has
// thought; see [Profile.Model]. The first message of an answer says which model
// made it.
func findThinkingOfOthers(c *checker) {
	asked := modelName(c.profile.Model)
	if !strings.HasPrefix(asked, "claude") {
		return
	}
	made := "" // by which model, of the turn
	for _, i := range c.sent {
		v := &c.msgs[i]
		if model, ok := v.message.Extra("model"); ok {
			made = modelName(model.Text())
		} else if !v.isAssistant {
			made = ""
		}
		if made != "" && made != asked && v.keepsParts() && slices.ContainsFunc(v.parts, origin.IsReasoning) {
			c.addFinding(i, ruleThinkingModel, "")
		}
	}
}

// repairThinkingOfOthers drops what another model thought.
func (r *repairer) repairThinkingOfOthers() {
	for _, refused := range r.refusals(ruleThinkingModel) {
		r.filterParts(refused, func(part jsontext.Object) bool { return !origin.IsReasoning(part) })
	}
}

// findThinkingLast demands that a turn does not end with thinking: "The final block
// in an assistant message cannot be `thinking`" (forgecode#3071, hermes-agent#13010).
// CLIProxyAPI#5321 has seen it accepted in front of a turn of the user.
func findThinkingLast(c *checker) {
	last := none // the message with the thinking at the end of the turn so far
	for k, i := range c.sent {
		v := &c.msgs[i]
		switch {
		case v.kind == kindText && v.isBlank(): // it ends nothing
		case v.isAssistant && len(v.parts) > 0 && v.keepsParts() && withoutLastThinking(v) >= 0:
			last = i
		default:
			last = none
		}
		if end := k+1 == len(c.sent) || !c.msgs[c.sent[k+1]].isAssistant; end && last != none {
			c.addFinding(last, ruleThinkingLast, "")
			last = none
		}
	}
}

// withoutLastThinking returns how many parts a text has before the thinking at its
// end, -1 if there is none. Parts that are not sent do not count: what another
// provider has thought, and what no format has.
func withoutLastThinking(v *view) int {
	parts := v.parts
	n, isSent := len(parts), false
	for ; n > 0; n-- {
		part := parts[n-1]
		if !origin.IsReasoning(part) && !(origin.IsHandmade(v.message) && !origin.IsKnown("assistant", part)) {
			break
		}
		isSent = isSent || origin.InWords(origin.Anthropic, "assistant", part)
	}
	if !isSent {
		return none
	}
	return n
}

// repairThinkingLast drops thinking that led to nothing. The turn may end with other
// thinking then.
func (r *repairer) repairThinkingLast() {
	for refusals := r.refusals(ruleThinkingLast); len(refusals) > 0; refusals = r.refusals(ruleThinkingLast) {
		for _, refused := range refusals {
			v := r.view(refused.message)
			left := withoutLastThinking(&v)
			r.filterParts(refused, func(jsontext.Object) bool {
				left--
				return left >= 0
			})
		}
		r.entries = slices.DeleteFunc(r.entries, func(e *entry) bool { return e.dropped })
	}
}
