package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// chatMessage returns the message that a recorded response holds, nil if it has
// none.
func chatMessage(t *testing.T, response []byte) []byte {
	t.Helper()
	var body struct {
		Choices []struct{ Message json.RawMessage }
	}
	require.NoError(t, json.Unmarshal(response, &body))
	if len(body.Choices) == 0 {
		return nil
	}
	return body.Choices[0].Message
}

// chatResponse requires a recorded response to be decoded, and its output to be
// its message again.
func chatResponse(t *testing.T, name string, response []byte) (messages int) {
	t.Helper()
	result, err := provider.OpenAI.DecodeResponse(response)
	require.NoError(t, err, name)
	require.Equal(t, string(response), result.Raw, name)
	entries, omitted := chatEntries(t, result.Output)
	require.Empty(t, omitted, name)
	if sent := chatMessage(t, response); sent != nil {
		require.Len(t, entries, 1, name)
		jsonEqual(t, sent, []byte(entries[0]), name)
	} else {
		require.Empty(t, entries, name)
	}
	return len(result.Output)
}

func TestOpenAITraces(t *testing.T) {
	var requests, responses, failures, streams, messages int
	for _, e := range exchanges(t, "openai_chat") {
		if e.request != nil {
			request, err := provider.OpenAI.DecodeRequest(e.request)
			require.NoError(t, err, "%s %d", e.file, e.index)
			again, omitted, err := provider.OpenAI.EncodeRequest(request)
			require.NoError(t, err, "%s %d", e.file, e.index)
			require.Empty(t, omitted, "%s %d", e.file, e.index)
			jsonEqual(t, e.request, again, "%s %d", e.file, e.index)
			requests++
			messages += len(request.Messages)
		}
		var failed *provider.ResponseError
		var body struct{ Error, Choices json.RawMessage }
		_ = json.Unmarshal(e.response, &body) // fails for a stream
		switch {
		case e.stream != nil:
			s := provider.OpenAI.Stream()
			for _, event := range e.stream {
				if err := s.Event(event); err != nil {
					require.ErrorAs(t, err, &failed, "%s %d", e.file, e.index)
				}
			}
			result, err := s.Result()
			require.NotEmpty(t, result.Output, "%s %d", e.file, e.index)
			if failed != nil {
				require.ErrorAs(t, err, &failed)
				failures++
			} else {
				require.NoError(t, err, "%s %d", e.file, e.index)
			}
			streams++
			messages += len(result.Output)
		case e.status >= 400 || body.Error != nil && body.Choices == nil: // some servers answer 200
			_, err := provider.OpenAI.DecodeResponse(e.response)
			require.ErrorAs(t, err, &failed, "%s %d", e.file, e.index)
			require.NotEmpty(t, failed.Code)
			require.NotEmpty(t, failed.Message)
			failures++
		default:
			messages += chatResponse(t, e.file, e.response)
			responses++
		}
	}
	for _, f := range recordings(t, "raw_openai_chat") {
		if _, err := provider.OpenAI.DecodeResponse(f.data); err != nil {
			var failed *provider.ResponseError
			require.ErrorAs(t, err, &failed, f.name)
			failures++
			continue
		}
		messages += chatResponse(t, f.name, f.data)
		responses++
	}
	for _, f := range recordings(t, "stream_openai_chat") {
		s := provider.OpenAI.Stream()
		for _, event := range events(t, f) {
			require.NoError(t, s.Event(event), f.name)
		}
		result, err := s.Result()
		require.NoError(t, err, f.name)
		require.NotEmpty(t, result.Output, f.name)
		streams++
		messages += len(result.Output)
	}
	t.Logf("%d requests, %d responses, %d streams and %d failures with %d messages", requests, responses, streams, failures, messages)
}

// The runs of τ-bench are conversations of this format.
func TestOpenAITracesOfRuns(t *testing.T) {
	runs := recordings(t, "tau_airline")
	if len(runs) == 0 {
		t.Skip("no runs of τ-bench in the recordings")
	}
	entries := 0
	for _, f := range runs {
		var run struct{ Traj json.RawMessage }
		require.NoError(t, json.Unmarshal(f.data, &run), f.name)
		body := append(append([]byte(`{"messages":`), run.Traj...), '}')
		request, err := provider.OpenAI.DecodeRequest(body)
		require.NoError(t, err, f.name)
		require.GreaterOrEqual(t, len(request.Messages), bytes.Count(run.Traj, []byte(`"role":`)), f.name)
		again, omitted, err := provider.OpenAI.EncodeRequest(request)
		require.NoError(t, err, f.name)
		require.Empty(t, omitted, f.name)
		jsonEqual(t, body, again, f.name)
		entries += len(request.Messages)
	}
	t.Logf("%d messages", entries)
}

func FuzzDecodeOpenAI(f *testing.F) {
	for _, seed := range []string{
		string(chatRequest(`{"role":"system","content":"a"}`, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}`)),
		string(chatRequest(`{"role":"assistant","content":"a","refusal":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"}}]}`, `{"role":"tool","tool_call_id":"1","name":"f","content":""}`)),
		string(chatRequest(`{"role":"assistant","content":"","tool_calls":[],"function_call":{"name":"f","arguments":""}}`, `{"role":"function","name":"f","content":null}`)),
		string(chatRequest(`{"role":"assistant"}`, `{"role":"assistant","tool_calls":[{"id":null,"type":"custom","custom":{"input":{}}},{"function":{"arguments":null}}]}`)),
		`{"id":"x","created":1e9,"choices":[{"message":{"role":"assistant","content":[{"type":"thinking"}]},"finish_reason":7}]}`,
		`{"error":{"type":7,"message":null},"choices":null}`,
		"data: " + delta(`{"role":"assistant","content":"a","tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{"}},{"function":{"arguments":"}"}}]},"finish_reason":"stop"`) + "\n\ndata: [DONE]\r\r",
		"data: " + delta(`{"content":[{}],"audio":{"data":"a"},"function_call":{"name":""}}`) + "\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if request, err := provider.OpenAI.DecodeRequest(data); err == nil {
			requireDecodable(t, request.Messages)
			again, omitted, err := provider.OpenAI.EncodeRequest(request)
			require.NoError(t, err)
			require.Empty(t, omitted)
			require.True(t, state.JSON(data).Equal(state.JSON(again)), "%s", again)
		} else {
			typed(t, err)
		}
		result, err := provider.OpenAI.DecodeResponse(data)
		requireDecodable(t, result.Output)
		typed(t, err)
		require.Equal(t, string(data), result.Raw)

		s := provider.OpenAI.Stream()
		n, err := s.Write(data)
		require.NoError(t, err)
		require.Equal(t, len(data), n)
		result, err = s.Result()
		typed(t, err)
		require.Equal(t, string(data), result.Raw)
	})
}

// typed requires that an error is of a type of the package.
func typed(t *testing.T, err error) {
	t.Helper()
	var bad *provider.Error
	var failed *provider.ResponseError
	require.True(t, err == nil || errors.As(err, &bad) || errors.As(err, &failed) || errors.Is(err, provider.ErrIncomplete), "%v", err)
}
