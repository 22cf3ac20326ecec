package transcript

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// rule is what a provider may refuse, how it is found and how it is mended.
type rule struct {
	name string
	of   string // the format that has the rule, "" for one that others have too
	why  string // it is refused, the Detail of a finding that has no other
	find func(*checker)
	mend func(*repairer)
}

// allRules are the rules, in the order in which Repair mends. A step builds on
// those before it: roles and groups decide where results go, results decide
// which text is dropped, and all of these decide whose turn it is. A step may
// mend several rules, and a rule may be found in several ways.
var allRules = []rule{
	{ruleMessage, everyone, "nil or a zero value", findNothing, nil}, // a repair begins without these
	{ruleRole, everyone, "the provider does not know the role", findUnknownRoles, (*repairer).repairRoles},

	{ruleUnanswered, everyone, "a call has no result", findUnanswered, (*repairer).repairResults},
	{ruleOrphan, everyone, "a result has no earlier call", findOrphans, nil},
	{ruleNotAdjacent, everyone, "a result is in the wrong place", findMisplaced, nil},

	{ruleName, everyone, "the name of a call is missing, or not accepted", findBadNames, (*repairer).repairIdentities},
	{ruleName, everyone, "a result has another name than its call", findOtherNames, nil},
	{ruleID, everyone, "the id of a call is missing, or not accepted", findBadIDs, nil},
	{ruleID, everyone, "a result has another id than its call", findOtherIDs, nil},
	{ruleDuplicateID, everyone, "another call has the id", findRepeatedIDs, nil},

	{ruleContent, everyone, noContent, findBadParts, (*repairer).repairTexts},
	{ruleContent, everyone, noContent, findNoContent, nil},
	{ruleEmpty, everyone, "a text, or a part of it, is empty", findBlankTexts, nil},
	{ruleEmpty, origin.Gemini, "a text, or a part of it, is empty", findEmptyParts, nil},
	{ruleMember, origin.OpenAI, "the server does not know a member", findUnknownMembers, (*repairer).repairMembers},
	{ruleMember, origin.OpenAI, "reasoning_content is missing", findNoReasoning, (*repairer).repairReasoningContent},

	{
		ruleArguments, everyone, "the input of a call is not spelled as a string", findArguments,
		(*repairer).repairArguments,
	},
	{
		ruleCache, origin.Anthropic, "the prompt cache has too many breakpoints", findBreakpoints,
		(*repairer).repairBreakpoints,
	},
	{
		ruleSignature, origin.Gemini, "a call of the turn that goes on has no signature", findUnsigned,
		(*repairer).repairSignatures,
	},
	{ruleSystem, everyone, "in the middle", findLateSystem, (*repairer).repairSystems},
	{
		ruleServerTool, origin.Anthropic, "the provider's own tool lacks its call or result", findServerTools,
		(*repairer).repairServerTools,
	},
	{ruleDuplicateItem, origin.OpenAIResponses, "another item has the id", findRepeatedItems, (*repairer).repairItems},
	{
		ruleReasoning, origin.OpenAIResponses, "the message that followed reasoning is missing", findIdleReasoning,
		(*repairer).repairReasoning,
	},
	{
		ruleThinkingModel, origin.Anthropic, "another model thought it", findThinkingOfOthers,
		(*repairer).repairThinkingOfOthers,
	},
	{ruleThinkingLast, origin.Anthropic, "the turn ends with thinking", findThinkingLast, (*repairer).repairThinkingLast},
	{ruleThinking, everyone, "the turn does not begin with thinking", findThinking, (*repairer).repairThinking},
	{
		ruleNotAdjacent, origin.Gemini, "results with something else in their content", findMixedResults,
		(*repairer).repairJoined,
	},

	{ruleFirst, everyone, "the user does not begin", findBeginning, (*repairer).repairUserTurns},
	{ruleCallTurn, everyone, "not after the user or results", findEarlyCalls, nil},
	{ruleAfterResults, everyone, "the user speaks directly after results", findEarlyUser, (*repairer).repairAfterResults},
	{rulePrefill, everyone, "the assistant has the last word", findPrefill, (*repairer).repairEnd},
	{ruleNoMessages, everyone, "there is nothing but a system prompt", findNoMessages, (*repairer).repairNothing},
}

const everyone = "" // has the rule

// findNothing demands that there is a message.
func findNothing(c *checker) {
	for i := range c.msgs {
		if c.isNothing(i) {
			c.addFinding(i, ruleMessage, "")
		}
	}
}

// findNoMessages demands something besides the system prompt, where the prompt is
// none of the messages: "Invalid 'messages': empty array" (agent-framework#2384), "at
// least one message is required" (langchain#31657), "contents is not specified"
// (js-genai#912).
func findNoMessages(c *checker) {
	if c.profile.Continued {
		return
	}
	for _, i := range c.sent {
		kept, _ := origin.Of(c.msgs[i].message, c.format)
		if isPrompt := c.SystemFirst || kept.String("in") == "instructions"; !c.msgs[i].isSystem || !isPrompt {
			return
		}
	}
	c.addFinding(none, ruleNoMessages, "")
}

// repairNothing lets the user speak if the provider is sent nothing of what was
// said. It cannot say what is missing from a conversation that is empty.
func (r *repairer) repairNothing() {
	isEmpty := slices.ContainsFunc(r.check(r.messages(), r.profile), func(f Finding) bool {
		return f.Rule == ruleNoMessages
	})
	if last := len(r.joinedFrom) - 1; isEmpty && r.said {
		r.entries = append(r.entries, &entry{message: state.UserText(continueText), original: last, added: true})
		r.addChange(last, ruleNoMessages, "put a user text behind it")
	}
}
