package sdks

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/wire"
)

// Amazon Bedrock signs the bodies of its requests, and wire does not know its paths:
// they pass as they are, nothing is recorded, and the Logger is told so once.
func TestBedrockPasses(t *testing.T) {
	const prompt = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":16,"messages":[{"role":"user","content":"Where is #1?"}]}`
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/converse") {
			io.WriteString(w, `{"output":{"message":{"role":"assistant","content":[{"text":"Found it."}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2},"metrics":{"latencyMs":1}}`)
			return
		}
		io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"Found it."}],"stop_reason":"end_turn"}`)
	}))
	defer server.Close()
	var log bytes.Buffer
	client := bedrockruntime.New(bedrockruntime.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("id", "key", ""),
		HTTPClient: &http.Client{Transport: &wire.Transport{Base: unpooled(t), Logger: slog.New(slog.NewTextHandler(&log, nil))}},
	})
	st := state.New(nil)
	require.NoError(t, st.UserSays("Where is #1?"))
	ctx := state.NewContext(t.Context(), st)

	invoked, err := client.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{ModelId: aws.String("anthropic.claude"), Body: []byte(prompt), ContentType: aws.String("application/json")})
	require.NoError(t, err)
	require.Contains(t, string(invoked.Body), "Found it.")
	require.Equal(t, []string{prompt}, bodies)
	said, err := client.Converse(ctx, &bedrockruntime.ConverseInput{ModelId: aws.String("anthropic.claude"), Messages: []types.Message{
		{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: "Where is #1?"}}},
	}})
	require.NoError(t, err)
	require.Equal(t, types.StopReasonEndTurn, said.StopReason)

	require.Zero(t, st.History().Len())
	require.Len(t, state.Messages.GetOr(st, nil), 1)
	require.Equal(t, 1, strings.Count(log.String(), "is not known"), log.String())
	require.Contains(t, log.String(), "/invoke")
}
