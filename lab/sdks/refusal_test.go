package sdks

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/loop"
	stateprovider "github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/wire"
)

// refusing is a provider that refuses requests with a text.
type refusing struct {
	next        http.RoundTripper
	words, text string
	status      int
	bodies      []string
}

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.bodies = append(r.bodies, string(body))
	if strings.Contains(string(body), r.words) {
		return &http.Response{
			StatusCode: r.status, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
			Body: io.NopCloser(strings.NewReader(r.text)),
		}, nil
	}
	req = req.Clone(req.Context())
	req.Body = io.NopCloser(bytes.NewReader(body))
	return r.next.RoundTrip(req)
}

// No SDK sees that a picture was refused, and each sees the refusal of a word of the
// user, once.
func TestRefusals(t *testing.T) {
	formats := map[string]*stateprovider.Format{
		"chat": stateprovider.OpenAI, "responses": stateprovider.OpenAIResponses,
		"anthropic": stateprovider.Anthropic, "gemini": stateprovider.Gemini,
	}
	errors := map[string]string{
		"chat":      `{"error":{"message":"You uploaded an unsupported image.","type":"invalid_request_error","param":null,"code":"invalid_image_format"}}`,
		"responses": `{"error":{"message":"The image is too large.","type":"invalid_request_error","param":"input","code":"image_too_large"}}`,
		"anthropic": `{"type":"error","error":{"type":"invalid_request_error","message":"Could not process image"}}`,
		"gemini":    `{"error":{"code":400,"message":"Provided image is not valid.","status":"INVALID_ARGUMENT"}}`,
	}
	each(t, func(t *testing.T, s sdk, streamed bool) {
		m := statetest.NewModel(t, formats[s.api], statetest.Say("One."), statetest.Say("Two."))
		r := &refusing{next: m, words: "QkFE", text: errors[s.api], status: http.StatusBadRequest}
		whole, stream := s.open(t, "https://model.test", &http.Client{Transport: &wire.Transport{Base: r}})
		ask := whole
		if streamed {
			ask = stream
		}
		st := state.New(nil)
		l := &loop.Loop{Agents: map[string]loop.Agent{"": {Ask: func(ctx context.Context, _ *loop.Turn) error { return ask(ctx, "", never) }}}}
		say := func(parts ...state.JSON) (string, error) {
			require.NoError(t, state.Messages.Set(st, []state.Message{must(state.Parts("user", parts...))}))
			return l.Run(t.Context(), st)
		}
		reply, err := say(`{"type":"text","text":"What is it?"}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,QkFEcGljdHVyZQ=="}}`)
		require.NoError(t, err)
		require.Equal(t, "One.", reply)
		require.Len(t, r.bodies, 2)
		require.Contains(t, r.bodies[1], "It was withheld")

		r.words = "Foul"
		_, err = say(`{"type":"text","text":"Foul words."}`)
		require.Error(t, err)
		r.words = "QkFE"
		reply, err = say(`{"type":"text","text":"And now?"}`)
		require.NoError(t, err)
		require.Equal(t, "Two.", reply)
	})
}
