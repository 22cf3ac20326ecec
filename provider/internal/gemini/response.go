package gemini

import (
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider/internal/codec"
)

// EncodeResponse returns a response with one candidate.
func (f Format) EncodeResponse(e *codec.Encoder, r codec.Reply, msgs []state.Message) (jsontext.Object, error) {
	body := f.EncodeMessages(e, msgs)
	contents, _ := body.Elements("contents")
	if len(contents) > 1 || len(body) > 1 {
		return nil, codec.ErrNotOneResponse
	}
	content := []byte(`{"role":"model"}`)
	if len(contents) == 1 {
		content = contents[0]
		members, err := jsontext.Members(content)
		if err != nil || members.String("role") != "model" {
			return nil, codec.ErrNotOneResponse
		}
		content = members.With("parts", withoutPlaceholders(members)).JSON()
	}
	candidate := jsontext.Object{}.With("content", content).WithString("finishReason", r.Stop("STOP", "STOP", "MAX_TOKENS")).
		With("index", []byte("0"))
	output := r.Output
	if output >= 0 {
		output -= max(0, r.Reasoning)
	}
	usage := codec.WithCount(nil, "promptTokenCount", r.Input)
	usage = codec.WithCount(usage, "cachedContentTokenCount", r.CacheRead)
	usage = codec.WithCount(usage, "candidatesTokenCount", output)
	usage = codec.WithCount(usage, "thoughtsTokenCount", r.Reasoning)
	usage = codec.WithCount(usage, "totalTokenCount", codec.Sum(r.Input, r.Output))
	response := jsontext.Object{}.With("candidates", jsontext.Array([][]byte{candidate.JSON()})).With("usageMetadata", usage.JSON()).
		WithString("modelVersion", r.Model).WithString("responseId", r.ID)
	if !r.Created.IsZero() {
		response = response.WithString("createTime", r.Created.UTC().Format(time.RFC3339))
	}
	return response, nil
}

// withoutPlaceholders returns the parts of a content without the signatures that
// only requests have. Clients decode the signatures of a response, and this text
// is not in base64.
func withoutPlaceholders(content jsontext.Object) []byte {
	parts, err := content.Elements("parts")
	if err != nil {
		return content.Get("parts")
	}
	for i, raw := range parts {
		part, err := jsontext.Members(raw)
		if err == nil && part.String("thoughtSignature") == origin.NoSignature {
			parts[i] = part.Without("thoughtSignature").JSON()
		}
	}
	return jsontext.Array(parts)
}
