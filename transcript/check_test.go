package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

var everyProfile = []transcript.Profile{transcript.OpenAI, transcript.OpenAIResponses, transcript.Anthropic, transcript.Gemini}

// refused returns the index and the rule of each finding.
func refused(findings []transcript.Finding) string {
	var short []string
	for _, f := range findings {
		short = append(short, fmt.Sprintf("%d:%s", f.Message, f.Rule))
	}
	return strings.Join(short, " ")
}

type checkRow struct {
	name   string
	script string
	want   string
}

func checkScripts(t *testing.T, profile transcript.Profile, rows []checkRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(profile.String()+"/"+row.name, func(t *testing.T) {
			findings := transcript.Check(script(t, row.script), profile)
			require.Equal(t, row.want, refused(findings))
			if row.want == "" {
				require.Nil(t, findings)
			}
		})
	}
}

// messagesRow is a row like checkRow for messages that script cannot write.
type messagesRow struct {
	name string
	msgs []string
	want string
}

func checkMessages(t *testing.T, profile transcript.Profile, rows []messagesRow) {
	t.Helper()
	for _, row := range rows {
		t.Run(profile.String()+"/"+row.name, func(t *testing.T) {
			require.Equal(t, row.want, refused(transcript.Check(decodeAll(t, row.msgs...), profile)))
		})
	}
}

// All providers reject these.
func TestCheckCallsAndResults(t *testing.T) {
	for _, profile := range append(everyProfile, transcript.Profile{}) {
		checkScripts(t, profile, []checkRow{
			{"nothing", "", "-1:no-messages"},
			{"a conversation", "s u a u", ""},
			{"that ends with calls and results", "s u c1,2 r2 r1", ""},
			{"several rounds", "u a c1 r1 c2 r2 a u", ""},
			{"a call without result", "u c1", "1:unanswered-call"},
			{"one of two", "u c1,2 r2", "1:unanswered-call"},
			{"a result without call", "u r1", "1:orphan-result"},
			{"a second result", "u c1 r1 r1", "3:orphan-result"},
			{"a call without name", "u c1= r1=", "1:name"},
		})
	}
}

func TestCheckContinued(t *testing.T) {
	orphan := script(t, "r1 u c2 r2")
	require.Equal(t, "0:orphan-result", refused(transcript.Check(orphan, transcript.OpenAIResponses)))
	require.Nil(t, transcript.Check(orphan, continued(transcript.OpenAIResponses)))
	require.Equal(t, "1:unanswered-call", refused(transcript.Check(script(t, "r1 c2"), continued(transcript.OpenAIResponses))))
}

// refusing returns the profiles that refuse a call, and requires their finding.
func refusing(t *testing.T, call state.ToolCall, finding string) string {
	t.Helper()
	var names []string
	for _, profile := range everyProfile {
		findings := transcript.Check([]state.Message{state.UserText("go"), state.ToolCalls(call), state.ToolResult(call, `""`)}, profile)
		if len(findings) > 0 {
			require.Equal(t, finding, refused(findings))
			names = append(names, profile.String())
		}
	}
	return strings.Join(names, " ")
}

func TestCheckIDs(t *testing.T) {
	for _, row := range []struct {
		id   string
		want string // the profiles that refuse it
	}{
		{"call_Ab-9", ""},
		{"", "OpenAI OpenAIResponses Anthropic"},
		{strings.Repeat("x", 64), ""},
		{strings.Repeat("x", 65), "OpenAI OpenAIResponses"},
		{"functions.f:0", "Anthropic"}, // as Kimi has them
		{"ä", "Anthropic"},
	} {
		require.Equal(t, row.want, refusing(t, state.ToolCall{ID: row.id, Name: "f"}, "1:id"), row.id)
	}
}

func TestCheckNames(t *testing.T) {
	for _, row := range []struct {
		name string
		want string // the profiles that refuse it
	}{
		{"get_weather-2", ""},
		{"2nd", "Gemini"},
		{"-f", "Gemini"},
		{"_f", ""},
		{"google.search:1", "OpenAI OpenAIResponses Anthropic"},
		{"get weather", "OpenAI OpenAIResponses Anthropic Gemini"},
		{"é", "OpenAI OpenAIResponses Anthropic Gemini"},
		{strings.Repeat("f", 64), ""},
		{strings.Repeat("f", 65), "OpenAI OpenAIResponses Gemini"},
		{strings.Repeat("f", 129), "OpenAI OpenAIResponses Anthropic Gemini"},
	} {
		require.Equal(t, row.want, refusing(t, state.ToolCall{ID: "1", Name: row.name}, "1:name"), row.name)
	}
}

func TestCheckRoles(t *testing.T) {
	msgs := decodeAll(t, user, `{"type":"text","role":"Orchestrator (-> WebSurfer)","content":"look"}`)
	call := decodeAll(t, user, `{"type":"tool_call","role":"model","tools":[{"id":"1","name":"f"}]}`,
		`{"type":"tool_result","role":"user","tool":{"id":"1","name":"f"},"content":""}`)
	for _, profile := range everyProfile {
		findings := transcript.Check(msgs, profile)
		require.Equal(t, "1:role", refused(findings), profile)
		require.Equal(t, `message 1: role: "Orchestrator (-> WebSurfer)"`, findings[0].String())
		require.Equal(t, "1:role", refused(transcript.Check(call, profile)), profile)
	}
	require.Nil(t, transcript.Check(msgs, transcript.Profile{}))
	// Repair makes it the user's: that the user does not begin is no finding.
	require.Equal(t, "0:role", refused(transcript.Check([]state.Message{msgs[1], msgs[0]}, transcript.Gemini)))
}

func TestCheckWhatIsNoMessage(t *testing.T) {
	msgs := []state.Message{nil, state.UserText("go"), state.TextMessage{}, state.ToolCallMessage{}, state.ToolResultMessage{}, state.UnknownMessage{}}
	for _, profile := range append(everyProfile, transcript.Profile{}) {
		require.Equal(t, "0:message 2:message 3:message 4:message 5:message", refused(transcript.Check(msgs, profile)), profile)
	}
}

// Messages that are not sent count as absent: items and reasoning of other
// providers, and messages with no calls.
func TestCheckPassesOverWhatIsNotSent(t *testing.T) {
	for _, between := range []string{
		`{"type":"openai_responses.web_search_call","role":"assistant","item":{"type":"web_search_call","id":"ws_1"}}`,
		`{"type":"summary","role":"user","text":"what went before"}`,
		`{"type":"text","role":"assistant","content":[{"type":"thinking","thinking":"…","signature":"c2ln"}],"anthropic":{}}`,
		`{"type":"tool_call","role":"assistant","tools":[]}`,
	} {
		msgs := script(t, "u c1 r1 a")
		first := append([]state.Message{decode(t, between)}, msgs...)
		inside := []state.Message{msgs[0], msgs[1], decode(t, between), msgs[2], msgs[3]}
		for _, profile := range []transcript.Profile{transcript.OpenAI, transcript.Gemini} {
			require.Nil(t, transcript.Check(first, profile), "%s: %s", profile, between)
			require.Nil(t, transcript.Check(inside, profile), "%s: %s", profile, between)
		}
	}
}

func TestProfiles(t *testing.T) {
	require.False(t, continued(transcript.OpenAI) == transcript.OpenAI)
	require.False(t, transcript.OpenAI == transcript.OpenAIResponses)
	require.Equal(t, "none", transcript.Profile{}.String())
	require.Equal(t, "Gemini", continued(transcript.Gemini).String())
}

// A finding quotes the id and the name, cut to a limit, and none of the content.
func TestFindingString(t *testing.T) {
	call := state.ToolCall{ID: strings.Repeat("\n", 100), Name: "f", Input: `{"password":"hunter2"}`}
	findings := transcript.Check([]state.Message{state.ToolCalls(call)}, transcript.Profile{})
	require.Len(t, findings, 1)
	require.Equal(t, `message 0: unanswered-call: call "`+strings.Repeat(`\n`, 60)+`" of "f"`, findings[0].String())
	require.Equal(t, "message 3: first", transcript.Finding{Message: 3, Rule: "first"}.String())
}
