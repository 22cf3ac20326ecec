package transcript

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// Rules is what providers demand of a conversation, where they differ. The
// profiles of this package are made of Rules, and [NewProfile] makes one of
// others: for a server that speaks a known format and is stricter, or for a
// format of its own. The zero value demands what all providers do: calls have
// names and results, and results have calls.
//
// What a format means by its own words, such as the reasoning items of the
// Responses API or the search of Anthropic, follows from Format.
type Rules struct {
	// Name is what String of the Profile returns.
	Name string

	// Format is the format of the messages of the provider: "openai",
	// "openai_responses", "anthropic" or "gemini", or the name of a format that
	// provider.New makes. Items and reasoning of another format are not sent. An
	// empty Format stands for no format.
	Format string

	// Roles are the roles of texts. They include "user" and "assistant". Nil
	// stands for any.
	Roles []string

	// IDs are the ids that calls may have. RequireIDs demands one of every call,
	// which no call has that waits for its result at the same time. UniqueIDs
	// demands besides ids that no call before them has. Of its own calls,
	// Anthropic does not demand it.
	IDs                   Labels
	RequireIDs, UniqueIDs bool

	// Names are the names that tools may have. ResultNames demands that results
	// have the names of their calls.
	Names       Labels
	ResultNames bool

	// AdjacentResults demands results directly after the turn with their calls.
	// A turn is one entry of the conversation. With MergedTurns, successive
	// messages of the assistant are one turn.
	AdjacentResults, MergedTurns bool

	// SystemFirst demands system messages before all others, UserFirst that the
	// user speaks before the assistant does, UserLast that the assistant has not
	// the last word, and CallsAfterUser that a turn with calls follows the user
	// or results.
	SystemFirst, UserFirst, UserLast, CallsAfterUser bool

	// AssistantAfterResults demands that the assistant speaks after results:
	// "Unexpected role 'user' after role 'tool'" (hermes-agent#20154). Repair
	// puts a text of the assistant before the user's. A Trim may drop the text:
	// repair what it returns.
	AssistantAfterResults bool

	// ThinkingFirst demands what [Profile.Thinking] says, of requests with
	// thinking. Without it, Thinking changes nothing.
	ThinkingFirst bool

	// NoEmptyTexts refuses texts that are null or have no parts, except beside
	// calls in one entry. NoBlankTexts refuses them as well, and texts and parts
	// of nothing but white space. NoEmptyParts refuses the empty texts that Gemini
	// has sent itself, without a signature.
	NoEmptyTexts, NoBlankTexts, NoEmptyParts bool

	// Members are the members that a message of the assistant, and a call, may
	// have in Chat Completions besides those that all servers know: role, name,
	// content, tool_calls, id, type and function. Repair drops others, such as
	// annotations, a refusal that is null, empty tool_calls or the index of a
	// call. Nil stands for any.
	Members []string

	// ReasoningContent demands a member reasoning_content of each message of the
	// assistant in Chat Completions: "The reasoning_content in the thinking mode
	// must be passed back to the API" (pi#3636). Repair adds one with a space.
	ReasoningContent bool
}

// ErrInvalidRules is returned for rules that contradict themselves, or by which
// Repair could not make ids or names.
var ErrInvalidRules = errors.New("transcript: invalid rules")

// check returns a rule that is wrong, and what is wrong with it.
func (r Rules) check() (rule, problem string) {
	if r.Name == "" {
		return "Name", "is missing"
	}
	if len(r.Format) > maxFormat || !utf8.ValidString(r.Format) {
		return "Format", fmt.Sprintf("want UTF-8 of at most %d bytes", maxFormat)
	}
	for _, role := range []string{"user", "assistant"} {
		if r.Roles != nil && !slices.Contains(r.Roles, role) {
			return "Roles", fmt.Sprintf("%q is missing", role)
		}
	}
	if rule, problem = r.IDs.check(minIDs); rule != "" {
		return "IDs." + rule, problem
	}
	if rule, problem = r.Names.check(minNames); rule != "" {
		return "Names." + rule, problem
	}
	if r.UniqueIDs && !r.RequireIDs {
		return "UniqueIDs", "want RequireIDs"
	}
	return "", ""
}

const maxFormat = 64

// rules are the Rules of a profile, made ready for messages.
type rules struct {
	Rules
	format     string // the mark of messages that came from the provider
	ids, names *labels
	sameTurn   func(before, m state.Message) bool
	sameEntry  func(before, m state.Message) bool // nil if every message is an entry
}

func newRules(from Rules) *rules {
	from.Roles, from.Members = slices.Clone(from.Roles), slices.Clone(from.Members)
	r := &rules{
		Rules: from, format: origin.Mark(from.Format),
		ids: newLabels(from.IDs, maxNewID), names: newLabels(from.Names, maxNewName),
		sameTurn: origin.Joins, sameEntry: origin.Joins,
	}
	switch {
	case from.MergedTurns:
		r.sameTurn = isAssistantTurn
	case from.AdjacentResults && from.Format == origin.OpenAIResponses:
		r.sameTurn = areCalls // each of its items is an entry
	}
	switch from.Format {
	case origin.OpenAIResponses:
		r.sameEntry = nil
	case origin.Gemini:
		r.sameEntry = sameContent
	}
	return r
}

// acceptsID reports whether a call may have the id.
func (r *rules) acceptsID(id string) bool {
	if id == "" {
		return !r.RequireIDs
	}
	return r.ids.accept(id)
}

// acceptsRole reports whether a text may have the role.
func (r *rules) acceptsRole(role string) bool {
	return r.Roles == nil || slices.Contains(r.Roles, role)
}
