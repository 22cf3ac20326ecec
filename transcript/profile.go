package transcript

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// Profile is what a provider demands of a conversation. Profiles are compared
// with ==. The zero Profile has the rules that all providers have in common:
// calls and results belong together.
type Profile struct {
	rules     *rules
	continued bool
}

// The profiles of the formats of package provider.
var (
	// OpenAI is the profile of Chat Completions.
	OpenAI = Profile{rules: &rules{
		name: "OpenAI", format: origin.OpenAI,
		roles:       knownRoles,
		ids:         idsPending,
		maxIDBytes:  64, // OpenAI itself accepts only 40 at times (autogen#6377), others with the format more
		acceptsName: func(name string) bool { return consistsOf(name, 64, "_-") },
		// "An assistant message with 'tool_calls' must be followed by tool
		// messages": directly, whatever else there is.
		sameTurn: origin.Joins, adjacent: true,
		check: checkOpenAI,
	}}

	// OpenAIResponses is the profile of the Responses API.
	OpenAIResponses = Profile{rules: &rules{
		name: "OpenAIResponses", format: origin.OpenAIResponses,
		roles:       knownRoles,
		ids:         idsPending,
		maxIDBytes:  64, // "string too long. Expected a string with maximum length 64"
		acceptsName: func(name string) bool { return consistsOf(name, 64, "_-") },
		sameTurn:    origin.Joins,
		check:       checkOpenAIResponses,
	}}

	// Anthropic is the profile of the Messages API.
	Anthropic = Profile{rules: &rules{
		name: "Anthropic", format: origin.Anthropic,
		roles:       knownRoles,
		ids:         idsUnique,
		idChars:     "_-", // "String should match pattern '^[a-zA-Z0-9_-]+$'"
		acceptsName: func(name string) bool { return consistsOf(name, 128, "_-") },
		// "Each tool_use block must have a corresponding tool_result block in
		// the next message". Consecutive entries of one role are one message.
		sameTurn: isAssistantTurn, adjacent: true,
		check: checkAnthropic,
	}}

	// Gemini is the profile of generateContent.
	Gemini = Profile{rules: &rules{
		name: "Gemini", format: origin.Gemini,
		roles: knownRoles,
		ids:   idsFree,
		acceptsName: func(name string) bool {
			return consistsOf(name, 64, "_.:-") && (name[0] == '_' || isASCIILetter(name[0]))
		},
		// "Please ensure that the number of function response parts is equal to
		// the number of function call parts of the function call turn"
		// (gemini-cli#4217). Consecutive contents of one role are one turn.
		sameTurn: isAssistantTurn, adjacent: true,
		check: checkGemini,
	}}

	knownRoles = []string{"system", "developer", "user", "assistant"}

	// commonRules are those of the zero Profile.
	commonRules = &rules{
		name:        "none",
		acceptsName: func(name string) bool { return name != "" },
		sameTurn:    origin.Joins,
	}
)

// String returns the name of the format.
func (p Profile) String() string { return p.rulesOrCommon().name }

// Continued returns the profile for a conversation whose beginning the provider
// holds. Results may answer calls that the conversation does not contain.
func (p Profile) Continued() Profile {
	p.continued = true
	return p
}

func (p Profile) rulesOrCommon() *rules {
	if p.rules == nil {
		return commonRules
	}
	return p.rules
}

// Check returns what the provider would reject in a conversation, in the order
// of the messages. It returns nothing if the provider accepts the conversation.
// Items of other providers count as absent, because they are not sent.
func Check(msgs []state.Message, profile Profile) []Finding {
	return checkAll(msgs, profile.rulesOrCommon(), profile.continued)
}
