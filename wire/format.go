package wire

import (
	"net/http"
	"strings"

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
