package traces_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/lab/traces"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// exchange is a recorded request, decoded, and its answer.
type exchange struct {
	file     string
	index    int
	api      string
	status   int
	response string
	msgs     []state.Message
	profile  transcript.Profile
}

// exchanges returns the recorded requests of the four formats.
func exchanges(t *testing.T) []exchange {
	t.Helper()
	formats := map[string]struct {
		*provider.Format
		transcript.Profile
	}{
		"openai_chat":            {provider.OpenAI, transcript.OpenAI},
		"openai_responses":       {provider.OpenAIResponses, transcript.OpenAIResponses},
		"anthropic_messages":     {provider.Anthropic, transcript.Anthropic},
		"gemini_generateContent": {provider.Gemini, transcript.Gemini},
	}
	var found []exchange
	for _, file := range traces.Find(recordingFolders()) {
		require.NoError(t, file.Err)
		if file.Skip != "" {
			continue
		}
		data, err := os.ReadFile(file.Path)
		require.NoError(t, err)
		var recorded struct {
			Exchanges []struct {
				API               string
				Status            int
				Request, Response json.RawMessage
			}
		}
		if json.Unmarshal(data, &recorded) != nil {
			continue // of another kind
		}
		for i, e := range recorded.Exchanges {
			format, known := formats[e.API]
			if !known || string(e.Request) == "null" {
				continue
			}
			request, err := format.DecodeRequest(e.Request)
			require.NoError(t, err, "%s, exchange %d", file.Path, i)
			profile := request.Profile(format.Profile)
			found = append(found, exchange{filepath.Base(file.Path), i, e.API, e.Status, string(e.Response), request.Messages, profile})
		}
	}
	require.NotEmpty(t, found)
	return found
}

// The option for models of Gemini 3 accepts what these have accepted.
func TestThoughtSignaturesAcceptsWhatGeminiAccepts(t *testing.T) {
	withCalls := 0
	for _, e := range exchanges(t) {
		if e.status != 200 || !strings.Contains(e.response, `"gemini-3`) {
			continue
		}
		if slices.ContainsFunc(e.msgs, func(m state.Message) bool { return m.Type() == "tool_call" }) {
			withCalls++
		}
		for _, finding := range transcript.Check(e.msgs, thoughtSignatures(e.profile)) {
			t.Errorf("%s, exchange %d: %s", e.file, e.index, finding)
		}
	}
	if withCalls == 0 && os.Getenv("STATE_TRACES") == "" {
		t.Skip("STATE_TRACES is not set, and the project's own recordings have no calls of Gemini 3")
	}
	require.NotZero(t, withCalls)
	t.Logf("%d requests with calls", withCalls)
}

// The result of a call is in the group of the call, in every recording.
func TestGroupsOfRecordings(t *testing.T) {
	calls := 0
	for _, e := range exchanges(t) {
		group := map[int]int{}
		for n, places := range transcript.Groups(e.msgs) {
			for _, i := range places {
				group[i] = n
			}
		}
		called := map[string]int{} // by name and id, the latest
		for i, m := range e.msgs {
			switch m := m.(type) {
			case state.ToolCallMessage:
				for _, call := range m.Calls() {
					called[call.Name+" "+call.ID] = i
				}
			case state.ToolResultMessage:
				if at, ok := called[m.Call().Name+" "+m.Call().ID]; ok {
					calls++
					require.Equal(t, group[at], group[i], "%s, exchange %d, messages %d and %d", e.file, e.index, at, i)
				}
			}
		}
	}
	t.Logf("results: %d", calls)
	require.NotZero(t, calls)
}
