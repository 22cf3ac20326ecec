package provider_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
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
