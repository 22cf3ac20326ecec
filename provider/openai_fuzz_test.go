package provider_test

import (
	"errors"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

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
