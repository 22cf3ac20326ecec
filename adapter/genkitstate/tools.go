package genkitstate

import (
	"encoding/json"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentstate/state/tool"
)

// Tools returns tools for ai.WithTools, by which Genkit offers them to a model:
// with their schemas, in which injected parameters do not occur. The calls are
// made by [Middleware], also those that ai.WithToolRestarts names: a stream of
// Genkit tells of these twice, before they are made and with their results.
func Tools(tools ...*tool.Tool) []ai.ToolRef {
	refs := make([]ai.ToolRef, len(tools))
	for i, t := range tools {
		var schema map[string]any
		_ = t.Schema().Decode(&schema) // of an object
		refs[i] = ai.NewTool(t.Name(), t.Description(), func(ctx *ai.ToolContext, input any) (json.RawMessage, error) {
			return restart(ctx, t, input)
		}, ai.WithInputSchema(schema))
	}
	return refs
}

// restarted is the member of the output of a call that a person has restarted
// with ai.WithToolRestarts. It has the input if the person has replaced it.
const restarted = "genkitstate_restarted"

// restart leaves a call that a person has restarted to [Middleware], which knows
// which call it is. Genkit calls it for a call that is suspended, too, which is
// the interrupt.
func restart(ctx *ai.ToolContext, t *tool.Tool, input any) (json.RawMessage, error) {
	if !ctx.IsResumed() {
		return nil, ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"tool": t.Name()}})
	}
	if ctx.OriginalInput == nil { // input has lost the spelling of its numbers
		input = nil
	}
	return json.Marshal(map[string]any{restarted: input})
}

// restartedInput reports whether a result says that its call was restarted, and
// returns the input that has replaced that of the call, or nil.
func restartedInput(result *ai.Part) (input any, ok bool) {
	if !result.IsToolResponse() {
		return nil, false
	}
	output, _ := result.ToolResponse.Output.(map[string]any)
	input, ok = output[restarted]
	return input, ok && len(output) == 1
}
