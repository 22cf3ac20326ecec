package provider_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/traces"
	"github.com/stretchr/testify/require"
)

// exchange is a request and the response to it, as they were recorded.
type exchange struct {
	file     string
	index    int
	status   int    // 0 if not recorded
	request  []byte // nil if not recorded
	response []byte // nil if it was streamed
	stream   [][]byte
}

// file is a recorded file.
type file struct {
	name string
	data []byte
}

// exchanges returns what was recorded of an API, such as "openai_chat", in the
// folder STATE_TRACES, whatever the names of its files.
func exchanges(t *testing.T, api string) []exchange {
	t.Helper()
	var found []exchange
	for _, f := range recordings(t, "") {
		var recorded struct {
			Exchanges []struct {
				API      string
				Status   int
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
			e := exchange{file: f.name, index: i, status: r.Status, response: r.Response}
			if string(r.Request) != "null" {
				e.request = r.Request
			}
			for _, event := range r.Stream {
				e.stream = append(e.stream, eventOf(t, event.Data))
			}
			found = append(found, e)
		}
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("STATE_TRACES"), "exchange_"+api)); err == nil {
		require.NotEmpty(t, found, "there is a folder for exchanges of %s", api)
	}
	t.Logf("%d exchanges of %s", len(found), api)
	return found
}

// recordings returns the files in the folder STATE_TRACES, or in the folder of
// the name that is in there.
func recordings(t *testing.T, folder string) []file {
	t.Helper()
	root := os.Getenv("STATE_TRACES")
	if root == "" {
		t.Skip("set STATE_TRACES to a folder with recorded requests and responses to read them")
	}
	path := filepath.Join(root, folder)
	if _, err := os.Stat(path); folder != "" && os.IsNotExist(err) {
		t.Logf("there is no folder %s in %s", folder, root)
		return nil
	}
	var files []file
	for _, found := range traces.Find([]string{path}) {
		require.NoError(t, found.Err)
		if found.Skip != "" {
			continue
		}
		data, err := os.ReadFile(found.Path)
		require.NoError(t, err)
		files = append(files, file{filepath.Base(found.Path), data})
	}
	require.NotEmpty(t, files, "no file in %s", path)
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

// eventOf returns the data of an event: what is no object was recorded as the
// text of a string.
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
