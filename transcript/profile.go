package transcript

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/agentstate/state/internal/origin"
)

// Profile is what a provider demands of a conversation: [Rules], and what a model
// or a request demands besides. Profiles are compared with ==. The zero Profile
// has the rules that all providers have in common: calls and results belong
// together.
type Profile struct {
	rules *rules // of newProfile, nil for those of the zero Profile

	// Continued says that the provider holds the beginning of the conversation.
	// Results may answer calls that the conversation does not contain.
	Continued bool

	// NoPrefill is for a model that does not continue what the assistant has
	// begun to say: "This model does not support assistant message prefill. The
	// conversation must end with a user message." Of Anthropic's models, the
	// older ones do. It is also right for a server that demands that the user
	// has the last word. A conversation whose last message is the assistant's,
	// as after an interrupted run, has the finding "prefill", and Repair appends
	// a text "Continue.".
	NoPrefill bool

	// Thinking is for a request of the Messages API with thinking of the type
	// "enabled": "When thinking is enabled, a final assistant message must start
	// with a thinking block (preceeding the lastmost set of tool_use and
	// tool_result blocks)". The turn that the request continues must begin with
	// Anthropic's own thinking. A turn that another provider began, or that was
	// made without thinking, has the finding "thinking". Repair replaces its
	// calls and results by texts of the user with the results. A Trim may drop
	// the beginning of a turn: repair what it returns. Other APIs ignore it.
	Thinking bool

	// ThoughtSignatures is for a model of Gemini that demands them, as those of
	// Gemini 3 do: "Function call is missing a thought_signature in functionCall
	// parts" (5ire#405). In the turn that the request continues, the first call
	// of each content must have one. A call that came from Gemini without one
	// has the finding "signature", and Repair gives it the signature that Google
	// documents for such calls. Calls from elsewhere always get it when they are
	// encoded. Other APIs ignore it.
	ThoughtSignatures bool
}

// The profiles of the formats of package provider.
var (
	// OpenAI is the profile of Chat Completions.
	OpenAI = newProfile(Rules{
		Name: "OpenAI", Format: origin.OpenAI, Roles: knownRoles,
		RequireIDs: true,
		IDs:        Labels{MaxBytes: 64}, // OpenAI itself accepts only 40 at times (autogen#6377), others with the format more
		Names:      Labels{Chars: "a-zA-Z0-9_-", MaxBytes: 64},
		// "An assistant message with 'tool_calls' must be followed by tool
		// messages": directly, whatever else there is.
		AdjacentResults: true,
		// "Invalid value for 'content': expected a string, got null"; "Invalid
		// 'messages[0].content': empty array"
		NoEmptyTexts: true,
	})

	// OpenAIResponses is the profile of the Responses API. Outputs may be
	// anywhere after their calls.
	OpenAIResponses = newProfile(Rules{
		Name: "OpenAIResponses", Format: origin.OpenAIResponses, Roles: knownRoles,
		RequireIDs: true,
		IDs:        Labels{MaxBytes: 64}, // "string too long. Expected a string with maximum length 64"
		Names:      Labels{Chars: "a-zA-Z0-9_-", MaxBytes: 64},
		// "Invalid type for 'input[0].content': expected one of an array of
		// objects or string, but got null"
		NoEmptyTexts: true,
	})

	// Anthropic is the profile of the Messages API.
	Anthropic = newProfile(Rules{
		Name: "Anthropic", Format: origin.Anthropic, Roles: knownRoles,
		// "tool_use ids must be unique" (claude-code#20901). It has accepted an
		// id again after the answer, but not all of its models may.
		RequireIDs: true, UniqueIDs: true,
		IDs:   Labels{Chars: "a-zA-Z0-9_-"}, // "String should match pattern '^[a-zA-Z0-9_-]+$'"
		Names: Labels{Chars: "a-zA-Z0-9_-", MaxBytes: 128},
		// "Each tool_use block must have a corresponding tool_result block in
		// the next message". Consecutive entries of one role are one message.
		AdjacentResults: true, MergedTurns: true,
		// "role 'system' is not supported on this model" (claude-code#61412)
		SystemFirst:   true,
		ThinkingFirst: true,
		// "text content blocks must be non-empty", "text content blocks must
		// contain non-whitespace text"
		NoBlankTexts: true,
	})

	// Gemini is the profile of generateContent.
	Gemini = newProfile(Rules{
		Name: "Gemini", Format: origin.Gemini, Roles: knownRoles,
		Names:       Labels{Chars: "a-zA-Z0-9_.:-", First: "a-zA-Z_", MaxBytes: 64},
		ResultNames: true,
		// "Please ensure that the number of function response parts is equal to
		// the number of function call parts of the function call turn"
		// (gemini-cli#4217). Consecutive contents of one role are one turn.
		AdjacentResults: true, MergedTurns: true,
		SystemFirst: true, // "Please use a valid role: user, model" (openagent#1666)
		UserFirst:   true, // "first content should be with role 'user'"
		// "Please ensure that function call turn comes immediately after a user
		// turn or after a function response turn" (gemini-cli#11814)
		CallsAfterUser: true,
		// "contents.parts must not be empty" (vercel/ai#3775), "must include at
		// least one parts field" (genkit#3690). A part with an empty text is
		// accepted.
		NoEmptyTexts: true,
	})

	knownRoles = []string{"system", "developer", "user", "assistant"}
)

// String returns the name of the format.
func (p Profile) String() string { return p.rulesOrCommon().Name }

// ToolName returns the name under which the provider accepts a tool: name
// itself, or one that begins like it and ends with a number that is computed from
// it. Different names stay different. [Repair] gives calls and results these
// names, and Request.RenameTools of package provider the tools of a request.
func (p Profile) ToolName(name string) string {
	r := p.rulesOrCommon()
	if r.names.accept(name) {
		return name
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // never fails
	return r.names.newLabel(name, "unnamed", 1+hash.Sum64()%(nameNumbers-1), nameDigits)
}

// The numbers at the end of new names. Two names with one beginning get the same
// number with a probability of one to a hundred million.
const (
	nameNumbers = 100_000_000
	nameDigits  = 8
)

// Rules returns a copy of the rules of the profile, to change and to give to
// [NewProfile]. Fields such as [Profile.NoPrefill] are not in it.
func (p Profile) Rules() Rules {
	rules := p.rulesOrCommon().Rules
	rules.Roles = slices.Clone(rules.Roles)
	return rules
}

// NewProfile returns a profile of the rules, which it copies. An error is
// [ErrInvalidRules] and names the rule. Profiles of two calls are not equal.
func NewProfile(rules Rules) (Profile, error) {
	if rule, problem := rules.check(); rule != "" {
		return Profile{}, fmt.Errorf("%w: %s: %s", ErrInvalidRules, rule, problem)
	}
	return newProfile(rules), nil
}

func newProfile(rules Rules) Profile { return Profile{rules: newRules(rules)} }

func (p Profile) rulesOrCommon() *rules {
	if p.rules == nil {
		return common
	}
	return p.rules
}

// common are the rules of the zero Profile.
var common = newRules(Rules{Name: "none"})
