package provider_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

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
