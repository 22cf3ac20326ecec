package codec

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// Stops says what the words mean with which an API says how an answer ended.
type Stops map[string]state.Stop

// ChatStops are the words of Chat Completions in finish_reason.
var ChatStops = Stops{
	// github.com/openai/openai-go/v3 v3.99.0 of 2026-11-12, ChatCompletionChoice.
	"stop":           state.StopEnd,
	"length":         state.StopLength,
	"tool_calls":     state.StopCalls,
	"function_call":  state.StopCalls,
	"content_filter": state.StopFiltered,
	// mistralai/client-python 2.5.1 of 2026-06-30, ChatCompletionChoiceFinishReason.
	"model_length": state.StopLength,
	"error":        state.StopFailed,
	// vllm-project/vllm, RequestFinishedReason: the server has ended the request.
	"abort": state.StopFailed,
	// DeepSeek's reference of Create Chat Completion: the servers are overloaded.
	"insufficient_system_resource": state.StopFailed,
}

// ResponsesStops are the words of the Responses API: the reason of an incomplete
// response, or else the status.
var ResponsesStops = Stops{
	// github.com/openai/openai-go/v3 v3.99.0 of 2026-11-12, ResponseIncompleteDetails.
	"max_output_tokens": state.StopLength,
	"max_messages":      state.StopLength,
	"content_filter":    state.StopFiltered,
	"steered":           state.StopInterrupted, // by what the user says meanwhile
	// Of the same, ResponseStatus.
	"completed":  state.StopEnd,
	"failed":     state.StopFailed,
	"cancelled":  state.StopInterrupted,
	"incomplete": state.StopUnknown, // without a reason
}

// AnthropicStops are the words of the Messages API in stop_reason.
var AnthropicStops = Stops{
	// github.com/anthropics/anthropic-sdk-go v1.84.0 of 2026-10-20, StopReason.
	"end_turn":                      state.StopEnd,
	"stop_sequence":                 state.StopEnd,
	"tool_use":                      state.StopCalls,
	"pause_turn":                    state.StopPaused,
	"max_tokens":                    state.StopLength,
	"model_context_window_exceeded": state.StopLength,
	"refusal":                       state.StopRefused,
	// Of the same, BetaStopReason: pause_after_compaction was asked for.
	"compaction": state.StopPaused,
}

// GeminiStops are the words of generateContent in finishReason.
var GeminiStops = Stops{
	// google.golang.org/genai v1.77.0 of 2026-10-29, FinishReason.
	"STOP":                     state.StopEnd,
	"MAX_TOKENS":               state.StopLength,
	"CONTINUATION":             state.StopLength, // who has its token can go on
	"LANGUAGE":                 state.StopRefused,
	"SAFETY":                   state.StopFiltered,
	"RECITATION":               state.StopFiltered,
	"BLOCKLIST":                state.StopFiltered,
	"PROHIBITED_CONTENT":       state.StopFiltered,
	"SPII":                     state.StopFiltered,
	"IMAGE_SAFETY":             state.StopFiltered,
	"IMAGE_PROHIBITED_CONTENT": state.StopFiltered,
	"IMAGE_RECITATION":         state.StopFiltered,
	"MALFORMED_FUNCTION_CALL":  state.StopFailed,
	"UNEXPECTED_TOOL_CALL":     state.StopFailed,
	"TOO_MANY_TOOL_CALLS":      state.StopFailed,
	"NO_IMAGE":                 state.StopFailed,
	"OTHER":                    state.StopUnknown,
	"IMAGE_OTHER":              state.StopUnknown,
}

// GeminiBlocks are the words of generateContent in blockReason, of a prompt that
// was not answered.
var GeminiBlocks = Stops{
	// google.golang.org/genai v1.77.0 of 2026-10-29, BlockedReason.
	"SAFETY":             state.StopFiltered,
	"OTHER":              state.StopFiltered,
	"BLOCKLIST":          state.StopFiltered,
	"PROHIBITED_CONTENT": state.StopFiltered,
	"IMAGE_SAFETY":       state.StopFiltered,
	"MODEL_ARMOR":        state.StopFiltered,
	"JAILBREAK":          state.StopFiltered,
}

// Of returns what a word means, and nothing for a word that says nothing. A gateway
// passes the word of the provider behind it, so what s does not have may be a word
// of another API.
func (s Stops) Of(word string) state.Stop {
	if word == "" || word == "null" {
		return ""
	}
	for _, words := range []Stops{s, ChatStops, AnthropicStops, GeminiStops, ResponsesStops} {
		if known, ok := words[word]; ok {
			return known
		}
	}
	return state.StopUnknown
}

// StopOf returns the word of a response for how it ended, and what that means for
// its messages.
func (r *Response) StopOf(output []state.Message) (stop state.Stop, word string) {
	if word = state.JSON(r.Stop).Text(); jsontext.IsNull(r.Stop) || word == "null" {
		word = ""
	}
	calls := false
	for _, m := range output {
		calls = calls || m.Type() == TypeCall
	}
	stop = r.Stops.Of(word)
	switch {
	case stop == state.StopEnd && r.Refused && !calls:
		stop = state.StopRefused
	case stop == state.StopEnd && calls:
		stop = state.StopCalls
	case stop == state.StopCalls && !calls:
		stop = state.StopEnd
	}
	return stop, word
}

// HasRefusal reports whether the content of an entry has a part in which the
// model declines to answer, as OpenAI's APIs have it.
func HasRefusal(entry jsontext.Object) bool {
	refused := false
	_ = entry.EachObject("content", func(_ []byte, part jsontext.Object) error { // none if it is a text
		refused = refused || part.String("type") == "refusal"
		return nil
	})
	return refused
}
