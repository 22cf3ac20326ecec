package gemini

import (
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/provider/internal/codec"
)

// Summarize reads a response or a chunk. Google counts thoughts
// beside the candidates, and the results of its own tools beside the prompt.
func (Format) Summarize(u *codec.Summary, body jsontext.Object) {
	var stop []byte
	_ = body.EachObject("candidates", func(_ []byte, candidate jsontext.Object) error { // as far as it can be read
		if index := candidate.Get("index"); jsontext.IsNull(index) || string(index) == "0" {
			stop = enumName(candidate.Get("finishReason"), finishReasons)
		}
		return nil
	})
	u.Identify(body.String("modelVersion"), body.String("responseId"), stop)
	usage := body.Object("usageMetadata")
	if usage == nil {
		return
	}
	input, output, tools := 0, 0, 0
	codec.SetCount(&input, usage, "promptTokenCount")
	codec.SetCount(&tools, usage, "toolUsePromptTokenCount")
	codec.SetCount(&output, usage, "candidatesTokenCount")
	codec.SetCount(&u.CacheRead, usage, "cachedContentTokenCount")
	codec.SetCount(&u.Reasoning, usage, "thoughtsTokenCount")
	if input > 0 {
		u.Input = input + tools
	}
	if n := output + u.Reasoning; n > 0 {
		u.Output = n
	}
}

// HasForm reports whether a body is a response or an event of one.
func (Format) HasForm(body jsontext.Object) bool {
	return body.Get("candidates") != nil || body.Get("usageMetadata") != nil || body.Get("promptFeedback") != nil
}
