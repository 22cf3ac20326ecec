package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
)

// ownRecordings is the folder of the small recordings that the project has made
// itself. They need no provider and no network.
var ownRecordings = filepath.Join("testdata", "recordings")

// recordingsFolder is the folder that the tests read. Module lab runs them on a
// folder of recordings of real providers.
var recordingsFolder = flag.String("recordings", ownRecordings, "folder with recorded exchanges")

// exchange is a request and the response to it, as they were recorded.
type exchange struct {
	file     string
	index    int
	name     string // empty in recordings of real providers
	status   int    // 0 if not recorded
	request  []byte // nil if not recorded
	response []byte // nil if it was streamed
	stream   [][]byte
	broken   bool // the stream ends early or with a failure
}

// file is a recorded file.
type file struct {
	name string
	data []byte
}

// exchanges returns the recorded exchanges of an API, such as "openai_chat",
// without the streams that are broken.
func exchanges(t *testing.T, api string) []exchange {
	t.Helper()
	whole := slices.DeleteFunc(allExchanges(t, api), func(e exchange) bool { return e.broken })
	t.Logf("%d exchanges of %s", len(whole), api)
	return whole
}

// allExchanges returns the recorded exchanges of an API, regardless of the names
// of the files.
func allExchanges(t *testing.T, api string) []exchange {
	t.Helper()
	var found []exchange
	for _, f := range recordings(t, "") {
		var recorded struct {
			Exchanges []struct {
				API      string
				Name     string
				Status   int
				Broken   bool
				Request  json.RawMessage
				Response json.RawMessage
				Stream   []struct{ Data json.RawMessage }
			}
		}
		if json.Unmarshal(f.data, &recorded) != nil {
			continue // of another kind
		}
		for i, r := range recorded.Exchanges {
			if r.API != api {
				continue
			}
			e := exchange{file: f.name, index: i, name: r.Name, status: r.Status, response: r.Response, broken: r.Broken}
			if string(r.Request) != "null" {
				e.request = r.Request
			}
			for _, event := range r.Stream {
				e.stream = append(e.stream, eventOf(t, event.Data))
			}
			found = append(found, e)
		}
	}
	if len(found) == 0 && *recordingsFolder != ownRecordings {
		t.Skipf("no exchange of %s in %s", api, *recordingsFolder)
	}
	require.NotEmpty(t, found, "no exchange of %s", api)
	return found
}

// recordings returns the JSON files below a folder in the folder of recordings,
// none if there is no such folder.
func recordings(t *testing.T, folder string) []file {
	t.Helper()
	var files []file
	root := filepath.Join(*recordingsFolder, folder)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		data, err := os.ReadFile(path)
		files = append(files, file{filepath.Base(path), data})
		return err
	})
	if folder != "" && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	require.NotEmpty(t, files, "no file in %s", root)
	return files
}

// events returns the events in a file of the folder stream_….
func events(t *testing.T, f file) [][]byte {
	t.Helper()
	var recorded []json.RawMessage
	require.NoError(t, json.Unmarshal(f.data, &recorded), f.name)
	found := make([][]byte, len(recorded))
	for i, event := range recorded {
		found[i] = eventOf(t, event)
	}
	return found
}

// eventOf returns the data of an event. Data that is not an object was recorded
// as the text of a string.
func eventOf(t *testing.T, recorded []byte) []byte {
	t.Helper()
	if len(recorded) == 0 || recorded[0] != '"' {
		return recorded
	}
	var text string
	require.NoError(t, json.Unmarshal(recorded, &text))
	return []byte(text)
}

// jsonEqual requires two texts to be equal as JSON, numbers as they are spelled.
func jsonEqual(t *testing.T, want, got []byte, msgAndArgs ...any) {
	t.Helper()
	if !state.JSON(want).Equal(state.JSON(got)) {
		require.JSONEq(t, string(want), string(got), msgAndArgs...)
		require.Equal(t, string(want), string(got), msgAndArgs...) // equal but for the spelling of numbers
	}
}

var updateGolden = flag.Bool("update", false, "write what the recordings decode to into testdata/golden")

// TestRecordings decodes the recordings of the project's own making. What they
// decode to is in testdata/golden: a codec that drops or moves something in both
// directions would pass a round trip. After an intended change, run the test with
// -update and read the difference.
func TestRecordings(t *testing.T) {
	if *recordingsFolder != ownRecordings {
		t.Skip("only the project's own recordings have golden files")
	}
	for _, target := range targets {
		t.Run(target.api, func(t *testing.T) {
			recorded := allExchanges(t, target.api)
			require.GreaterOrEqual(t, len(recorded), 24)
			var got bytes.Buffer
			for _, e := range recorded {
				require.NotEmpty(t, e.name, "exchange %d", e.index)
				fmt.Fprintf(&got, "== %s\n", e.name)
				writeAsked(t, &got, target.format, e)
				writeAnswer(t, &got, target.format, e)
			}
			path := filepath.Join("testdata", "golden", target.api+".txt")
			if *updateGolden {
				require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got.String())
		})
	}
}

// writeAsked writes what a request decodes to and requires that it is encoded
// as it was.
func writeAsked(t *testing.T, to *bytes.Buffer, format *provider.Format, e exchange) {
	t.Helper()
	request, err := format.DecodeRequest(e.request)
	require.NoError(t, err, e.name)
	again, omitted, err := format.EncodeRequest(request)
	require.NoError(t, err, e.name)
	require.Empty(t, omitted, e.name)
	jsonEqual(t, e.request, again, e.name)
	for _, tool := range request.Tools {
		fmt.Fprintf(to, "tool %q %q %s %s\n", tool.Name, tool.Description, tool.Schema, tool.Extra)
	}
	fmt.Fprintf(to, "settings: %s\n", request.Settings)
	writeMessages(to, request.Messages)
}

// writeAnswer writes what a response or a stream decodes to. What it said,
// encoded for the next request and decoded again, must be the same.
func writeAnswer(t *testing.T, to *bytes.Buffer, format *provider.Format, e exchange) {
	t.Helper()
	var result state.InferenceResult
	var err error
	if e.stream == nil {
		result, err = format.DecodeResponse(e.response)
		require.Equal(t, string(e.response), result.Raw, e.name)
	} else {
		stream := format.Stream()
		for _, event := range e.stream {
			_ = stream.Event(event) // Result reports the error
		}
		result, err = stream.Result()
		require.Equal(t, string(bytes.Join(e.stream, []byte("\n")))+"\n", result.Raw, e.name)
	}
	if e.stream != nil {
		require.Equal(t, e.broken, err != nil, "%s: %v", e.name, err)
	}
	var failed *provider.ResponseError
	switch {
	case errors.As(err, &failed):
		fmt.Fprintf(to, "error %s: %s\n", failed.Code, failed.Message)
	case errors.Is(err, provider.ErrIncomplete):
		fmt.Fprintln(to, "incomplete")
	default:
		require.NoError(t, err, e.name)
	}
	if result.ID != "" {
		fmt.Fprintf(to, "answer %s", result.ID)
		if !result.CreatedAt.IsZero() {
			fmt.Fprintf(to, " of %s", result.CreatedAt.Format("2006-01-02T15:04:05.999999999Z07:00"))
		}
		to.WriteByte('\n')
	}
	writeMessages(to, result.Output)

	body, omitted, err := format.EncodeRequest(provider.Request{Messages: result.Output})
	require.NoError(t, err, e.name)
	require.Empty(t, omitted, e.name)
	request, err := format.DecodeRequest(body)
	require.NoError(t, err, e.name)
	again, _, err := format.EncodeRequest(request)
	require.NoError(t, err, e.name)
	jsonEqual(t, body, again, e.name)
}

func writeMessages(to *bytes.Buffer, messages []state.Message) {
	for _, m := range messages {
		fmt.Fprintf(to, "  %s\n", m.Raw())
	}
}
