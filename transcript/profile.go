package transcript

import (
	"fmt"
	"strings"

	"github.com/agentstate/state/internal/origin"
)

// Profile is what a provider demands of a conversation. Profiles are compared
// with ==. The zero Profile is nobody's: its rules are those that all providers
// have in common, that calls and results belong together.
type Profile struct {
	rules     *rules
	continued bool
}

// The profiles of the formats of package provider.
var (
	// OpenAI is the profile of Chat Completions.
	OpenAI = Profile{rules: &rules{
		name: "OpenAI", format: origin.OpenAI,
		roles:    []string{"system", "developer", "user", "assistant"},
		ids:      idsPending,
		maxID:    64, // OpenAI itself takes 40 at times (autogen#6377), others with that format more
		goodName: func(name string) bool { return madeOf(name, 64, false, "_-") },
		check:    checkOpenAI,
	}}

	// OpenAIResponses is the profile of the Responses API.
	OpenAIResponses = Profile{rules: &rules{
		name: "OpenAIResponses", format: origin.OpenAIResponses,
		roles:    []string{"system", "developer", "user", "assistant"},
		ids:      idsPending,
		maxID:    64, // "string too long. Expected a string with maximum length 64"
		goodName: func(name string) bool { return madeOf(name, 64, false, "_-") },
		check:    checkOpenAIResponses,
	}}

	// Anthropic is the profile of the Messages API.
	Anthropic = Profile{rules: &rules{
		name: "Anthropic", format: origin.Anthropic,
		roles:    []string{"system", "developer", "user", "assistant"},
		ids:      idsUnique,
		idChars:  "_-", // "String should match pattern '^[a-zA-Z0-9_-]+$'"
		goodName: func(name string) bool { return madeOf(name, 128, false, "_-") },
		check:    checkAnthropic,
	}}

	// Gemini is the profile of generateContent.
	Gemini = Profile{rules: &rules{
		name: "Gemini", format: origin.Gemini,
		roles:    []string{"system", "developer", "user", "assistant"},
		ids:      idsFree,
		goodName: func(name string) bool { return madeOf(name, 64, true, "_.:-") },
		check:    checkGemini,
	}}
)

// String returns the name of the format.
func (p Profile) String() string {
	if p.rules == nil {
		return "none"
	}
	return p.rules.name
}

// Continued returns the profile for a conversation whose beginning the provider
// holds: results may answer calls that it does not have.
func (p Profile) Continued() Profile {
	p.continued = true
	return p
}

// common is what the zero Profile demands.
var common = &rules{
	goodName: func(name string) bool { return name != "" },
}

// demands returns the rules of the profile.
func (p Profile) demands() *rules {
	if p.rules == nil {
		return common
	}
	return p.rules
}

// rules is what differs between the providers.
type rules struct {
	name     string
	format   string   // the member of messages that came from there
	roles    []string // of what is said; nil if any
	ids      identity
	maxID    int    // bytes, if not 0
	idChars  string // besides letters and digits, if not any
	goodName func(string) bool
	check    func(*checker)
}

// identity is what a provider demands of the ids of calls.
type identity uint8

const (
	idsFree    identity = iota // nothing
	idsPending                 // there is one, and no other call that waits for its result has it
	idsUnique                  // besides, no call from elsewhere has one that was used before
)

// goodID reports whether a call may have the id.
func (r *rules) goodID(id string) bool {
	switch {
	case r.ids == idsFree:
		return true
	case id == "", r.maxID > 0 && len(id) > r.maxID:
		return false
	}
	return r.idChars == "" || madeOf(id, len(id), false, r.idChars)
}

// goodRole reports whether somebody may have the role who says a text.
func (r *rules) goodRole(role string) bool {
	for _, known := range r.roles {
		if role == known {
			return true
		}
	}
	return r.roles == nil
}

// madeOf reports whether text has 1 to max bytes, all of them ASCII letters,
// digits or in chars, and if it is a word begins with a letter or "_".
func madeOf(text string, max int, word bool, chars string) bool {
	if text == "" || len(text) > max {
		return false
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_' && word:
		case word && i == 0:
			return false
		case c >= '0' && c <= '9', strings.IndexByte(chars, c) >= 0:
		default:
			return false
		}
	}
	return true
}

// Finding is something that a provider refuses.
type Finding struct {
	Message int    // its place
	Rule    string // a short fixed name, such as "unanswered-call"
	Detail  string // which call, id, role …; never content
}

// The rules.
const (
	ruleMessage       = "message"         // it is none
	ruleRole          = "role"            // the provider does not know the role
	ruleName          = "name"            // of a call: missing, or not one the provider takes
	ruleID            = "id"              // of a call: missing, or not one the provider takes
	ruleDuplicateID   = "duplicate-id"    // another call has the id
	ruleUnanswered    = "unanswered-call" // a call has no result
	ruleOrphan        = "orphan-result"   // a result has no call before it
	ruleNotAdjacent   = "not-adjacent"    // a result is not where the provider wants it
	ruleCallTurn      = "call-turn"       // calls are not where the provider wants them
	ruleContent       = "content"         // a text has no content
	ruleEmpty         = "empty"           // a text, or a part of it, says nothing
	ruleFirst         = "first"           // the conversation does not begin with the user
	ruleSystem        = "system"          // the system speaks in the middle
	ruleReasoning     = "reasoning"       // what followed reasoning is missing
	ruleDuplicateItem = "duplicate-item"  // another item has the id
	ruleServerTool    = "server-tool"     // the provider's own tool lacks its call or result
)

func (f Finding) String() string {
	s := fmt.Sprintf("message %d: %s", f.Message, f.Rule)
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}
