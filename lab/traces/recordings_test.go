package traces_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentstate/state/lab/traces"
	"github.com/stretchr/testify/require"
)

// ownRecordings holds the small recordings that the project has made itself.
const ownRecordings = "../../provider/testdata/recordings"

// recordingFolders returns the folders with recordings: the project's own, and the
// one that STATE_TRACES names, which has recordings of real agents and providers.
func recordingFolders() []string {
	if folder := os.Getenv("STATE_TRACES"); folder != "" {
		return []string{ownRecordings, folder}
	}
	return []string{ownRecordings}
}

// TestRecordings plays every recorded conversation through a State, checks the
// State at every step, and puts everything that went over the wire through the
// packages provider and transcript. Nothing may fail, and nothing that a provider
// accepted may be found wrong.
func TestRecordings(t *testing.T) {
	if os.Getenv("STATE_TRACES") == "" {
		t.Log("STATE_TRACES is not set: only the project's own recordings are played")
	}
	for _, folder := range recordingFolders() {
		t.Run(filepath.Base(folder), func(t *testing.T) { playFolder(t, folder) })
	}
}

func playFolder(t *testing.T, folder string) {
	played := map[string]*traces.Stats{}
	found := recorded{}
	for _, file := range traces.Find([]string{folder}) {
		if file.Skip != "" {
			continue
		}
		t.Run(filepath.Base(file.Path), func(t *testing.T) {
			require.NoError(t, file.Err)
			data, err := os.ReadFile(file.Path)
			require.NoError(t, err)
			file := traces.PlayFile(data, traces.Options{Verify: true})
			require.NoError(t, file.Err)
			require.Positive(t, len(file.Kinds)+len(file.Others), "nothing was found in it")
			for kind, stats := range file.Kinds {
				require.Positive(t, stats.Runs, kind)
				require.Zero(t, stats.False, kind)
				require.Zero(t, stats.Failures, kind)
				if played[kind] == nil {
					played[kind] = &traces.Stats{}
				}
				played[kind].Add(*stats)
			}
			found.count(data)
		})
	}
	require.NotEmpty(t, played, "no conversation in %q", folder)
	for kind, n := range found {
		require.Contains(t, played, kind)
		require.GreaterOrEqual(t, played[kind].Runs, n.files, kind)
		if n.requests+n.responses+n.streams > 0 {
			got := bodies{n.files, played[kind].Requests.Good, played[kind].Responses.Good, played[kind].Streams.Good}
			require.Equal(t, n, got, kind)
		}
	}
}

// TestCodecs runs the tests of package provider on the recordings of STATE_TRACES.
// These tests know what providers accept and how streams are put together, and
// read the project's own recordings otherwise.
func TestCodecs(t *testing.T) {
	folder := os.Getenv("STATE_TRACES")
	if folder == "" {
		t.Skip("STATE_TRACES is not set: package provider tests its codecs on the project's own recordings")
	}
	folder, err := filepath.Abs(folder)
	require.NoError(t, err)
	cmd := exec.Command("go", "test", "-vet=off", "-run", "Traces|Deltas", "./provider", "-v", "-recordings", folder)
	cmd.Dir = filepath.Join("..", "..")
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Contains(t, string(output), "--- PASS: TestTracesCarried", "%s", output)
	// Of Bedrock, no streams are recorded.
	rest := strings.ReplaceAll(string(output), "--- SKIP: TestTableOnTraces/Streams", "")
	require.NotContains(t, rest, "--- SKIP", "%s", output)
}

// recorded counts the bodies of each kind, without the help of package traces.
type recorded map[string]bodies

type bodies struct{ files, requests, responses, streams int }

// count adds the bodies in a file.
func (r recorded) count(data []byte) {
	var file any
	if json.Unmarshal(data, &file) != nil {
		return
	}
	if list, ok := file.([]any); ok {
		for _, element := range list {
			if event, ok := element.(map[string]any); ok {
				r.add(streamKind(event), bodies{files: 1})
				return
			}
		}
		return
	}
	object, _ := file.(map[string]any)
	exchanges, ok := object["exchanges"].([]any)
	if !ok {
		r.add(objectKind(object), bodies{files: 1})
	}
	kinds := map[string]string{
		"openai_chat": "OpenAI chat exchange", "openai_responses": "OpenAI Responses exchange",
		"anthropic_messages": "Anthropic exchange", "gemini_generateContent": "Gemini exchange",
	}
	seen := map[string]bool{}
	for _, element := range exchanges {
		x, _ := element.(map[string]any)
		api, _ := x["api"].(string)
		var n bodies
		for part, count := range map[string]*int{"request": &n.requests, "response": &n.responses, "stream": &n.streams} {
			if x[part] != nil {
				*count = 1
			}
		}
		if body, ok := x["response"].(map[string]any); ok && !isAnswer(body) || x["status"] != 200.0 {
			n.responses = 0 // the answer is no model's
		}
		if failedStream(x["stream"]) {
			n.streams = 0
		}
		kind := kinds[api]
		if !seen[kind] {
			seen[kind], n.files = true, 1
		}
		r.add(kind, n)
	}
}

// failedStream reports whether a stream ends with the report of a failure.
func failedStream(stream any) bool {
	events, _ := stream.([]any)
	if len(events) == 0 {
		return false
	}
	last, _ := events[len(events)-1].(map[string]any)
	data, _ := last["data"].(map[string]any)
	return data["type"] == "response.failed"
}

func isAnswer(body map[string]any) bool {
	for _, name := range []string{"choices", "output", "content", "candidates", "promptFeedback"} {
		if _, ok := body[name]; ok {
			return true
		}
	}
	return false
}

// add adds to the sum of a kind. It ignores the kind "".
func (r recorded) add(kind string, n bodies) {
	if kind == "" {
		return
	}
	sum := r[kind]
	sum.files += n.files
	sum.requests += n.requests
	sum.responses += n.responses
	sum.streams += n.streams
	r[kind] = sum
}

func objectKind(o map[string]any) string {
	var event map[string]any
	if events, ok := o["events"].([]any); ok && len(events) > 0 {
		event, _ = events[0].(map[string]any)
	}
	switch {
	case o["traj"] != nil:
		return "τ-bench"
	case o["history"] != nil && o["trajectory"] != nil:
		return "SWE-agent"
	case o["messages"] != nil && o["trajectory_format"] != nil:
		return "mini-swe-agent"
	case event["author"] != nil:
		return "ADK session"
	case o["object"] == "response":
		return "OpenAI Responses response"
	case o["choices"] != nil:
		return "OpenAI chat response"
	case o["candidates"] != nil:
		return "Gemini response"
	case o["type"] == "message":
		return "Anthropic response"
	}
	return ""
}

func streamKind(event map[string]any) string {
	typ, _ := event["type"].(string)
	switch {
	case strings.HasPrefix(typ, "response."):
		return "OpenAI Responses stream"
	case event["choices"] != nil:
		return "OpenAI chat stream"
	case event["candidates"] != nil:
		return "Gemini stream"
	case typ == "message_start":
		return "Anthropic stream"
	}
	return ""
}
