package traces_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/lab/traces"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

var formatsOfAPIs = map[string]*provider.Format{
	"openai_chat": provider.OpenAI, "openai_responses": provider.OpenAIResponses,
	"anthropic_messages": provider.Anthropic, "gemini_generateContent": provider.Gemini,
}

// TestTokensOfRecordings says how far what a window takes a request for is from
// what the provider has reported, for requests of more than 1 000 tokens: without
// a report by four bytes for a token, and with that of the request before by the
// messages that came since.
func TestTokensOfRecordings(t *testing.T) {
	var alone, reported []float64
	for _, folder := range recordingFolders() {
		for _, file := range traces.Find([]string{folder}) {
			data, err := os.ReadFile(file.Path)
			if file.Skip != "" || err != nil {
				continue
			}
			var recording struct {
				Exchanges []struct {
					API               string
					Request, Response json.RawMessage
				}
			}
			if json.Unmarshal(data, &recording) != nil {
				continue
			}
			var before provider.Request
			var answer state.InferenceResult
			for _, x := range recording.Exchanges {
				format := formatsOfAPIs[x.API]
				if format == nil {
					continue
				}
				request, err := format.DecodeRequest(x.Request)
				if err != nil {
					continue
				}
				result, err := format.DecodeResponse(x.Response)
				if err != nil || result.Usage.Input == 0 {
					continue
				}
				n, is := len(before.Messages), float64(result.Usage.Input)
				if is > 1000 {
					alone = append(alone, math.Abs(float64(len(x.Request))/4-is)/is)
				}
				if n > 0 && n < len(request.Messages) && is > 1000 && slices.EqualFunc(before.Messages, request.Messages[:n], state.Message.Equal) &&
					sameTools(before, request) {
					taken := tokensOf(t, before, answer, request, len(x.Request))
					reported = append(reported, math.Abs(float64(taken)-is)/is)
				}
				before, answer = request, result
			}
		}
	}
	if len(reported) == 0 {
		t.Skip("no recording has two requests of one conversation with more than 1 000 tokens: set STATE_TRACES")
	}
	t.Logf("without a report: %s", spread(alone))
	t.Logf("with a report:    %s", spread(reported))
	require.Less(t, quantile(reported, 0.5), 0.05)
}

func sameTools(a, b provider.Request) bool {
	return slices.EqualFunc(a.Tools, b.Tools, func(a, b provider.Tool) bool { return a.Name == b.Name })
}

// tokensOf returns for how many tokens a window takes a request, if it has been told
// of those of the one before: the smallest Max with which it does not move.
func tokensOf(t *testing.T, before provider.Request, answer state.InferenceResult, request provider.Request, bytes int) int {
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, before.Messages))
	answer.History = before.Messages
	require.NoError(t, st.History().Append(answer))
	extra := bytes
	for _, m := range request.Messages {
		extra -= len(m.Raw())
	}
	extra = max(extra, 0) / 4
	since := request.Messages[len(before.Messages):]
	for len(since) > 0 && since[0].Role() == "assistant" { // the answer itself
		since = since[1:]
	}
	require.NoError(t, state.Messages.Set(st, since))
	least, most := 1, 1<<20
	for least < most {
		max := (least + most) / 2
		w := &transcript.Window{Max: max, Keep: max}
		moved := false
		w.Summarize = func(context.Context, transcript.Past) (string, error) { moved = true; return "", nil }
		_, err := w.Messages(t.Context(), st, extra)
		if moved || err != nil {
			least = max + 1
		} else {
			most = max
		}
	}
	return least
}

func quantile(errs []float64, q float64) float64 {
	slices.Sort(errs)
	return errs[min(int(q*float64(len(errs))), len(errs)-1)]
}

func spread(errs []float64) string {
	within := 0
	for _, e := range errs {
		if e <= 0.05 {
			within++
		}
	}
	return fmt.Sprintf("%d requests, %.0f %% within 5 %%, half within %.1f %%, 95 %% within %.1f %%",
		len(errs), 100*float64(within)/float64(len(errs)), 100*quantile(errs, 0.5), 100*quantile(errs, 0.95))
}
