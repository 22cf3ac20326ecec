package wire

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/agentstate/state/provider"
)

// FormatOf returns the format of a request by its method and the end of its
// path, nil if it is not a call of a model in a format of package provider:
//
//	POST …/chat/completions           provider.OpenAI
//	POST …/responses                  provider.OpenAIResponses
//	POST …/v1/messages                provider.Anthropic
//	POST …:generateContent            provider.Gemini
//	POST …:streamGenerateContent      provider.Gemini
func FormatOf(req *http.Request) *provider.Format {
	if req.Method != http.MethodPost {
		return nil
	}
	for _, end := range []struct {
		path   string
		format *provider.Format
	}{
		{"/chat/completions", provider.OpenAI},
		{"/responses", provider.OpenAIResponses},
		{"/v1/messages", provider.Anthropic}, // OpenAI has /v1/threads/…/messages
		{":generateContent", provider.Gemini},
		{streamedGemini, provider.Gemini},
	} {
		if strings.HasSuffix(req.URL.Path, end.path) {
			return end.format
		}
	}
	return nil
}

// streamedGemini is the end of the path of Gemini's streams. The body of the
// request does not ask for a stream, and that of the response may be JSON.
const streamedGemini = ":streamGenerateContent"

// otherPaths are the ends of paths at which models are called, and of which FormatOf
// does not know the format.
var otherPaths = []string{
	":rawPredict", ":streamRawPredict", // Anthropic's models at Vertex AI
	"/invoke", "/invoke-with-response-stream", "/converse", "/converse-stream", // Amazon Bedrock
	"/api/chat", "/api/generate", // Ollama
	"/v2/chat",                        // Cohere
	"/v1/completions", "/v1/complete", // of models without messages
	"/interactions", // Gemini
}

// watchPath tells the Logger once that a model is called which is sent no
// conversation.
func (t *Transport) watchPath(req *http.Request) {
	if t.Logger == nil || t.RecordOnly || req.Method != http.MethodPost || isOutside(req.Context()) {
		return
	}
	for _, end := range otherPaths {
		if strings.HasSuffix(req.URL.Path, end) && atomic.CompareAndSwapUint32(&t.toldPath, 0, 1) {
			t.Logger.WarnContext(req.Context(), "wire: the path of a request is not known: the model is sent no conversation, "+
				"and its answer is not recorded: use Transport.Formats if the body has a format of package provider", "path", req.URL.Path)
		}
	}
}
