package genkitstate

import (
	"encoding/json"
	"errors"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
)

// Tools returns tools for ai.WithTools, by which Genkit offers them to a model:
// with their schemas, in which injected parameters do not occur. The calls are
// made by [Middleware]. Without it, each call is an interrupt.
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

// restart makes a call for which a person has decided with ai.WithToolRestarts.
// Genkit calls it for a call that is suspended, too, which is the interrupt.
func restart(ctx *ai.ToolContext, t *tool.Tool, input any) (json.RawMessage, error) {
	if !ctx.IsResumed() {
		return nil, ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"tool": t.Name()}})
	}
	st, ok := state.FromContext(ctx)
	if !ok {
		return nil, errNoState
	}
	args, err := state.JSONOf(input)
	if err != nil {
		return nil, err
	}
	call := state.ToolCall{Name: t.Name(), Input: args}
	for _, open := range st.History().Pending() { // Genkit does not tell which call it is
		if open.Name == call.Name && open.Input.Equal(args) {
			call = open
			break
		}
	}
	results, err := tool.Run(ctx, st, []*tool.Tool{t}, []state.ToolCall{call})
	if err != nil {
		return nil, err
	}
	parts, err := encodeResults(results)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		return nil, ctx.Interrupt(&ai.InterruptOptions{Metadata: map[string]any{"tool": t.Name()}})
	}
	return json.Marshal(parts[0].ToolResponse.Output)
}

// errNoState is returned for a context without a state.
var errNoState = errors.New("genkitstate: no state in the context: use state.NewContext")
