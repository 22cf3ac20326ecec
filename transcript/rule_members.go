package transcript

import (
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// plainMembers are members of Chat Completions that all servers know.
var plainMembers = []string{"role", "name", "content", "id", "type", "function", "custom"}

// ownMembers are the members that a program, or another provider, may set on what
// the assistant says, and that Chat Completions has.
var ownMembers = []string{"refusal", "audio", "reasoning", "reasoning_content", "reasoning_details"}

// findUnknownMembers demands that what the assistant says, and its calls, have no
// members that the server does not know; see [Rules.Members].
func findUnknownMembers(c *checker) {
	if c.Members == nil {
		return
	}
	for _, i := range c.sent {
		if !c.msgs[i].isAssistant {
			continue
		}
		if _, unknown := c.knownMembers(c.msgs[i].message); len(unknown) > 0 {
			c.addFinding(i, ruleMember, fmt.Sprintf("%.60q", unknown[0]))
		}
	}
}

// repairMembers drops members that the server does not know.
func (r *repairer) repairMembers() {
	for _, refused := range r.refusals(ruleMember) {
		if known, unknown := r.knownMembers(refused.message); len(unknown) > 0 {
			r.reportChange(refused.entry, ruleMember, fmt.Sprintf("dropped %.60q", unknown))
			refused.replaceMessage(state.DecodeMessage(known.JSON()))
		}
	}
}

// knownMembers returns a message without the members that the server does not
// know, and their names.
func (r *rules) knownMembers(m state.Message) (known jsontext.Object, unknown []string) {
	if r.Members == nil {
		return nil, nil
	}
	isUnknown := func(member jsontext.Member) bool {
		is := !slices.Contains(plainMembers, member.Name) && !slices.Contains(r.Members, member.Name)
		if is {
			unknown = append(unknown, member.Name)
		}
		return is
	}
	inKept := func(o jsontext.Object) jsontext.Object {
		kept := o.Object(r.format)
		more, n := slices.Clone(kept.Object("more")), len(unknown)
		if more = slices.DeleteFunc(more, isUnknown); len(unknown) == n {
			return o
		}
		return o.With(r.format, kept.With("more", more.JSON()).JSON())
	}
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	known = slices.DeleteFunc(inKept(members), func(member jsontext.Member) bool {
		return slices.Contains(ownMembers, member.Name) && isUnknown(member)
	})
	if calls, ok := m.(state.ToolCallMessage); ok {
		texts := callTexts(calls)
		for i, text := range texts {
			call, _ := jsontext.Members(text) // checked when the message was made
			texts[i] = inKept(call).JSON()
		}
		known = known.With("tools", jsontext.Array(texts))
	}
	return known, unknown
}

// findNoReasoning demands reasoning of what the assistant says; see
// [Rules.ReasoningContent].
func findNoReasoning(c *checker) {
	if !c.ReasoningContent {
		return
	}
	first, found := none, true // the first message of the entry, and whether a message of it has reasoning
	end := func() {
		if !found {
			c.addFinding(first, ruleMember, "reasoning_content is missing")
		}
		found = true
	}
	var before state.Message
	for _, i := range c.sent {
		m := c.msgs[i].message
		if !origin.Joins(before, m) {
			end()
			first, found = i, !c.msgs[i].isAssistant
		}
		kept, _ := origin.Of(m, c.format)
		_, set := m.Extra("reasoning_content")
		found, before = found || set || kept.Object("more").String("reasoning_content") != "", m
	}
	end()
}

// repairReasoningContent adds reasoning that says nothing. Moonshot takes an empty
// text for a missing one (pi#4178).
func (r *repairer) repairReasoningContent() {
	if !r.ReasoningContent {
		return
	}
	for _, refused := range r.refusals(ruleMember) {
		r.reportChange(refused.entry, ruleMember, "with reasoning_content")
		refused.replaceMessage(origin.WithMember(refused.message, "reasoning_content", []byte(`" "`)))
	}
}
