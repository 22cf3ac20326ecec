package statetest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
)

// A test that asks a model once, when it is recorded with a key:
//
//	OPENAI_API_KEY=… STATETEST_UPDATE=1 go test -run '^TestExampleCassette$'
//
// From then on it needs no key and no network. An SDK takes the transport as
// that of its http.Client.
func TestExampleCassette(t *testing.T) {
	if *update {
		t.Skip("this recording was written by hand")
	}
	client := &http.Client{Transport: statetest.Cassette(t, "refund.json", nil)}

	res, err := client.Post("https://api.openai.com/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"gpt-5-mini","messages":[{"role":"user","content":"Is order #W1 refunded?"}]}`))
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)

	answer, err := provider.OpenAI.DecodeResponse(body)
	require.NoError(t, err)
	require.Len(t, answer.Output, 1)
	require.Equal(t, "Yes, on Monday.", answer.Output[0].(state.TextMessage).Text())
}
