package transcript

import (
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// tokensInNext returns how many tokens the request of a result and its answer have
// in the next request, as the provider has reported them. If the provider has
// called its own tools, it has asked the model again with each result, and its
// report is the sum of these requests.
func tokensInNext(r state.InferenceResult) int {
	tokens := r.Usage.Input
	if calls, results := served(r.Output); calls > 0 {
		tokens = tokens/(calls+1) + results/2 // a request has half of the results on average, the next all
	}
	return tokens + r.Usage.Output - r.Usage.Reasoning + thought(r)
}

// thought returns how many tokens of reasoning the next requests have, until the
// user speaks again: OpenAI, Anthropic and Gemini drop it then.
func thought(r state.InferenceResult) int {
	if slices.ContainsFunc(r.Output, hasReasoning) {
		return r.Usage.Reasoning
	}
	return 0
}

// served returns how many calls of a provider's own tools an answer has, and how
// many tokens their results have.
func served(output []state.Message) (calls, tokens int) {
	for _, m := range output {
		if item, ok := m.(state.UnknownMessage); ok && strings.HasSuffix(item.Type(), "_call") {
			calls, tokens = calls+1, tokens+EstimateTokens(m)
		}
		for _, part := range partsOf(m) {
			if _, result := serverToolIDs(part); result != "" {
				calls, tokens = calls+1, tokens+valueTokens("", part.JSON(), memberTokens)
			}
		}
	}
	return calls, tokens
}

// hasReasoning reports whether a message has reasoning that goes back to the
// model.
func hasReasoning(m state.Message) bool {
	if calls, ok := m.(state.ToolCallMessage); ok {
		return slices.ContainsFunc(sharedCalls(calls), isSigned)
	}
	return isReasoning(m) || slices.ContainsFunc(partsOf(m), origin.IsReasoning)
}

// isRequest reports whether the user speaks in a message.
func isRequest(m state.Message) bool { return m.Type() == "text" && m.Role() == "user" }
