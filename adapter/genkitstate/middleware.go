package genkitstate

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// defaultTurns is that of Genkit.
const defaultTurns = 5

// Options configures [Middleware].
type Options struct {
	// Trim returns those messages of a conversation that the model is sent
	// (default: all). It must not change its argument. See [Format].
	Trim func(msgs []*ai.Message) []*ai.Message
	// MaxTurns is the maximum number of steps of one Generate with calls of these
	// tools (default 5). ai.WithMaxTurns counts the steps with calls for Genkit.
	MaxTurns int
}

// Middleware returns middleware for ai.WithMiddleware that makes the calls of
// tools itself, in the place of Genkit: those of one message of the model are a
// step, made by [tool.Run] on the state of the context. It is an error if
// [state.FromContext] finds none. What the model has said is appended to the
// history of the state before its calls are made, and the results are added to
// it, in the order of the calls. What the user has said is added to the
// conversation of the state, if it does not end with it; in a run of a
// workspace, it is there. A tool that fails, and one that does not exist,
// has a result that the model reads.
//
// The model is offered the tools that the agent of the state may use, in a fixed
// order. Calls of other tools, which Genkit knows, go back to Genkit together
// with those that are suspended; the others of the message have been made then.
// Genkit calls its own tools and asks the model again, with all results in the
// order of the calls. For a suspended call, it returns a response that is
// interrupted, to be resumed as Genkit does it.
//
// If the conversation of a request ends with calls that have no result, they are
// made before the model is asked. So a conversation from a state continues in
// the middle of a step.
//
// In a run of package workspace, which the context carries, the run is committed
// before the calls of a step and after them.
func Middleware(tools []*tool.Tool, opts *Options) ai.ModelMiddleware {
	if opts == nil {
		opts = &Options{}
	}
	return func(next ai.ModelFunc) ai.ModelFunc { // once for each Generate
		g := &generation{tools: tools, opts: *opts, next: next}
		g.opts.MaxTurns = cmp.Or(g.opts.MaxTurns, defaultTurns)
		return g.generate
	}
}

// generation is one Generate of Genkit.
type generation struct {
	tools []*tool.Tool
	opts  Options
	next  ai.ModelFunc
	turns int   // steps so far
	left  *step // the step that Genkit continues
}

// generate asks the model and makes its calls until there is none, or one that
// Genkit has to make.
func (g *generation) generate(
	ctx context.Context, req *ai.ModelRequest, cb ai.ModelStreamCallback,
) (*ai.ModelResponse, error) {
	st, ok := state.FromContext(ctx)
	if !ok {
		return nil, errNoState
	}
	resp := &ai.ModelResponse{Request: req, FinishReason: ai.FinishReasonStop}
	s, err := g.resume(ctx, st, req)
	if err == nil {
		err = hear(ctx, st, req.Messages)
	}
	for err == nil {
		if s == nil {
			if resp, err = g.ask(ctx, st, req, cb); err != nil || len(resp.ToolRequests()) == 0 {
				return resp, err
			}
			s = newStep(req.Messages, resp.Message)
		}
		var left []*ai.Part
		if left, err = g.play(ctx, st, req, s, cb); err == nil && len(left) > 0 {
			g.left = s
			return s.leave(resp, left), nil
		}
		req.Messages, s = s.conversation(), nil // Genkit, too, extends its request
	}
	return nil, err
}

// hear adds the messages of the user with which a conversation ends to that of
// the state, if they are not in it and st may write it. In a run of a workspace
// and in a tool they are not those of the user.
func hear(ctx context.Context, st *state.State, msgs []*ai.Message) error {
	_, inRun := workspace.FromContext(ctx)
	_, inTool := tool.CallOf(ctx)
	writable := slices.ContainsFunc(st.Fields(), func(f state.FieldInfo) bool { return f.Name == state.Messages.Name && f.Writable })
	if inRun || inTool || !writable {
		return nil
	}
	first := len(msgs)
	for first > 0 && msgs[first-1].Role == ai.RoleUser {
		first--
	}
	var own []*ai.Message
	for _, m := range msgs[first:] {
		m := *m
		m.Content = slices.DeleteFunc(slices.Clone(m.Content), func(p *ai.Part) bool {
			return p.Metadata["purpose"] != nil // of Genkit: the form of the output, documents
		})
		own = append(own, &m)
	}
	said, err := Messages(own...)
	if err != nil {
		return err
	}
	known := state.Messages.Or(st, nil)
	n := min(len(said), len(known))
	for n > 0 && !slices.EqualFunc(known[len(known)-n:], said[:n], state.Message.Equal) {
		n--
	}
	if n == len(said) {
		return nil
	}
	return state.Messages.Set(st, said[n:])
}

// ask asks the model and records what it says.
func (g *generation) ask(
	ctx context.Context, st *state.State, req *ai.ModelRequest, cb ai.ModelStreamCallback,
) (*ai.ModelResponse, error) {
	sent := *req
	sent.Tools = g.usable(st, req.Tools)
	if g.opts.Trim != nil {
		sent.Messages = g.opts.Trim(req.Messages)
	}
	began := time.Now()
	resp, err := g.next(ctx, &sent, cb)
	if err != nil || resp.Message == nil {
		return resp, err
	}
	resp.Request = req // the whole conversation
	for _, call := range resp.ToolRequests() {
		call.Ref = cmp.Or(call.Ref, rand.Text()) // Genkit, too, gives each call one
	}
	output, err := Messages(resp.Message)
	if err != nil {
		return nil, err
	}
	err = st.History().Append(state.InferenceResult{Output: output, StartedAt: began})
	if err != nil {
		return nil, fmt.Errorf("genkitstate: record response: %w", err)
	}
	return resp, nil
}

// usable returns the definitions without those of tools that the agent may not
// use. Genkit has them in a random order.
func (g *generation) usable(st *state.State, defs []*ai.ToolDefinition) []*ai.ToolDefinition {
	hidden := map[string]bool{}
	for _, t := range g.tools {
		hidden[t.Name()] = true
	}
	for _, t := range tool.Usable(st, g.tools) {
		delete(hidden, t.Name())
	}
	defs = slices.DeleteFunc(slices.Clone(defs), func(d *ai.ToolDefinition) bool { return hidden[d.Name] })
	slices.SortFunc(defs, func(a, b *ai.ToolDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return defs
}

// play makes the calls of a step that have no result and are not for Genkit. It
// returns those that are left.
func (g *generation) play(
	ctx context.Context, st *state.State, req *ai.ModelRequest, s *step, cb ai.ModelStreamCallback,
) (left []*ai.Part, err error) {
	foreign := map[string]bool{}
	for _, d := range req.Tools {
		foreign[d.Name] = true
	}
	for _, t := range g.tools {
		delete(foreign, t.Name())
	}
	var calls []state.ToolCall
	for _, p := range s.open() {
		if foreign[p.ToolRequest.Name] {
			continue
		}
		input, err := state.JSONOf(p.ToolRequest.Input)
		if err != nil {
			return nil, fmt.Errorf("genkitstate: call of tool %q: %w", p.ToolRequest.Name, err)
		}
		calls = append(calls, state.ToolCall{ID: p.ToolRequest.Ref, Name: p.ToolRequest.Name, Input: input})
	}
	if len(calls) > 0 {
		g.turns++
	}
	if g.turns > g.opts.MaxTurns {
		return nil, core.NewError(core.ABORTED, "exceeded maximum tool call iterations (%d)", g.opts.MaxTurns)
	}
	if err := commit(ctx); err != nil {
		return nil, err
	}
	results, err := tool.Answer(ctx, st, g.tools, calls)
	if err != nil {
		return nil, fmt.Errorf("genkitstate: record results: %w", err)
	}
	parts, err := encodeResults(results)
	if err != nil {
		return nil, err
	}
	s.put(parts)
	if err := commit(ctx); err != nil {
		return nil, err
	}
	if cb != nil && len(parts) > 0 {
		if err := cb(ctx, &ai.ModelResponseChunk{Role: ai.RoleTool, Content: parts}); err != nil {
			return nil, fmt.Errorf("genkitstate: streaming callback: %w", err)
		}
	}
	return s.open(), nil
}
