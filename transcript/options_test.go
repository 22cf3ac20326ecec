package transcript_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

const (
	thought = `{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"…","signature":"c2ln"},{"type":"text","text":"I look."}],"anthropic":{}}`
	callIt  = `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","input":{"a":1}}]}`
	itsOwn  = `{"type":"tool_call","role":"assistant","tools":[{"id":"2","name":"f"}],"anthropic":{}}`
	given   = `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":"299.0"}`
	givenIt = `{"type":"tool_result","role":"tool_result","tool":{"id":"2","name":"f"},"content":"b"}`
)

// Some models of Anthropic do not continue what the assistant has begun to say.
func TestNoPrefill(t *testing.T) {
	strict := noPrefill(transcript.Anthropic)
	for _, row := range []struct {
		name string
		msgs []string
		want string
	}{
		{"the user at the end", []string{user, say, user}, ""},
		{"the assistant at the end", []string{user, say}, "1:prefill"},
		{"results at the end", []string{user, callIt, given}, ""},
		{"reasoning of others at the end", []string{user, `{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"x"}],"openai":{}}`}, ""},
		{"the provider's own tool goes on", []string{user, serverUse}, ""},
		{"another provider's own tool", []string{user, strings.ReplaceAll(serverUse, "anthropic", "openai")}, "1:prefill"},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := decodeAll(t, row.msgs...)
			require.Equal(t, row.want, refused(transcript.Check(msgs, strict)))
			require.Empty(t, transcript.Check(msgs, transcript.Anthropic))
			repaired, changes := transcript.Repair(msgs, strict, transcript.Policy{})
			require.Empty(t, transcript.Check(repaired, strict))
			require.Equal(t, row.want, ruled(changes))
			if row.want != "" {
				require.Equal(t, append(msgs[:len(msgs):len(msgs)], state.UserText("Continue.")), repaired)
			}
		})
	}
}

// With thinking, Anthropic demands that the turn which goes on begins with it.
func TestThinking(t *testing.T) {
	strict := thinking(transcript.Anthropic)
	require.Empty(t, transcript.Check(decodeAll(t, given), continued(strict)), "a result of a turn that the provider holds")
	for _, row := range []struct {
		name string
		msgs []string
		want string
	}{
		{"no turn goes on", []string{user, say, user}, ""},
		{"its own turn", []string{user, thought, itsOwn, givenIt}, ""},
		{"thinking once in a turn", []string{user, thought, itsOwn, givenIt, callIt, given}, ""},
		{"a foreign turn", []string{user, callIt, given}, "1:thinking"},
		{"a foreign turn that has ended", []string{user, callIt, given, say, user}, ""},
		{"a foreign turn with a text", []string{user, say, callIt, given}, "1:thinking"},
		{"a turn that begins foreign", []string{user, callIt, given, thought, itsOwn, givenIt}, "1:thinking"},
		{"thinking of another provider", []string{user, `{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"x"}],"openai":{}}`, callIt, given}, "2:thinking"},
		{"thinking that a program kept", []string{user, `{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"}]}`, callIt, given}, ""},
		{"what the assistant has begun to say", []string{user, say}, "1:thinking"},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := decodeAll(t, row.msgs...)
			require.Equal(t, row.want, refused(transcript.Check(msgs, strict)))
			for _, profile := range append([]transcript.Profile{thinking(transcript.OpenAI)}, everyProfile...) {
				require.Empty(t, transcript.Check(msgs, profile), profile)
			}
			repaired, changes := transcript.Repair(msgs, strict, transcript.Policy{})
			require.Empty(t, transcript.Check(repaired, strict))
			require.Equal(t, row.want == "", len(changes) == 0)
		})
	}
}

func TestThinkingRepaired(t *testing.T) {
	for _, row := range []struct {
		name string
		msgs []string
		want string
	}{
		{"calls become texts with their results", []string{user, say, callIt, given}, `text "user": "hello"
text "assistant": "hello"
text "user": "Result of f({\"a\":1}): 299.0"`},
		{"several, and thinking among them", []string{user, callIt, given, thought, itsOwn, givenIt}, `text "user": "hello"
text "user": "Result of f({\"a\":1}): 299.0"
text "assistant": "I look."
text "user": "Result of f: b"`},
		{"a result with a picture", []string{user, callIt, `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":[{"type":"text","text":"see"},{"type":"image","mimeType":"image/png","data":"aGk="}]}`}, `text "user": "hello"
text "user": "Result of f({\"a\":1}):\nsee"`},
		{"a result that is a list", []string{user, callIt, `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":[1,2]}`}, `text "user": "hello"
text "user": "Result of f({\"a\":1}): [1,2]"`},
		{"a text at the end", []string{user, say}, `text "user": "hello"
text "assistant": "hello"
text "user": "Continue."`},
	} {
		t.Run(row.name, func(t *testing.T) {
			repaired, changes := transcript.Repair(decodeAll(t, row.msgs...), thinking(transcript.Anthropic), transcript.Policy{})
			require.Equal(t, row.want, short(repaired))
			require.NotEmpty(t, changes)
			for _, change := range changes {
				require.Equal(t, "thinking", change.Rule)
			}
		})
	}
}

// optionCases are the profiles with the rules of some models and requests.
var optionCases = []propertyCase{
	{histories.Formats[2], noPrefill(transcript.Anthropic), transcript.Policy{}},
	{histories.Formats[2], noPrefill(transcript.Anthropic), transcript.Policy{AnswerCalls: true}},
	{histories.Formats[2], thinking(transcript.Anthropic), transcript.Policy{}},
	{histories.Formats[2], thinking(transcript.Anthropic), transcript.Policy{AnswerCalls: true}},
	{histories.Formats[3], thoughtSignatures(transcript.Gemini), transcript.Policy{}},
	{histories.Formats[3], thoughtSignatures(transcript.Gemini), transcript.Policy{AnswerCalls: true}},
	{histories.Formats[2], noPrefill(thinking(transcript.Anthropic)), transcript.Policy{AnswerCalls: true, KeepResults: true}},
}

// A repair for a model or a request with rules of its own is accepted, and a
// second one changes nothing.
func TestHistoriesRepairWithOptions(t *testing.T) {
	histories.Law[propertyCase]{
		Cases: optionCases, Parts: true,
		History: func(rng *rand.Rand, c propertyCase) []state.Message { return brokenFor(rng, c) },
		Obeys: func(c propertyCase, msgs []state.Message) error {
			repaired, _ := transcript.Repair(msgs, c.profile, c.policy)
			if err := accepted(repaired, c.profile); err != nil {
				return err
			}
			if again, changes := transcript.Repair(repaired, c.profile, c.policy); changes != nil || !same(again, repaired) {
				return accepted(again, c.profile)
			}
			return keepsTexts(msgs, repaired)
		},
	}.Hold(t)
}
