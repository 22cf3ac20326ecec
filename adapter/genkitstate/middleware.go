package genkitstate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firebase/genkit/go/ai"
	"github.com/firebase/genkit/go/core"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
)

// defaultTurns is that of Genkit.
const defaultTurns = 5

// Options configures [Middleware].
type Options struct {
	// Window decides what of the messages of a request the model is sent (default:
	// the Window of the workspace in whose run it is made, or all of them). The
	// response has the request with all. A request in a tool is sent as it is.
	Window *transcript.Window
	// Context returns what the model should know of the state and what changes,
	// such as st.Describe() (default: nothing). It stands between <context> tags
	// behind the messages, at the end of what the user has said last or as a message
	// of the user. It is not kept: each request has the text of its time, and begins
	// like the one before.
	Context func(ctx context.Context, st *state.State) string
	// MaxTurns is the maximum number of steps of one Generate with calls of these
	// tools (default 5). ai.WithMaxTurns counts the steps with calls for Genkit.
	MaxTurns int
}

// Middleware returns middleware for ai.WithMiddleware that makes the calls of
// tools itself, in the place of Genkit: a Generate is a [loop.Turn] on the state
// of the context, without which it is an error. What the user and the model say is
// recorded, and the calls of one message are a step, whose results are in the
// order of the calls. A tool that fails, and one that does not exist, has a
// result that the model reads.
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
	t, err := loop.NewTurn(ctx, "", g.tools...)
	if err != nil {
		return nil, err
	}
	resp := &ai.ModelResponse{Request: req, FinishReason: ai.FinishReasonStop}
	s, err := g.resume(ctx, t, req)
	if err == nil {
		err = hear(t, req.Messages)
	}
	elsewhere := s.elsewhere(t)
	if s != nil && elsewhere && s.isIdle(t) {
		s = nil
	}
	if before := &req.Messages; err == nil {
		if s != nil {
			before = &s.before
		}
		if elsewhere { // what was said since stands behind the calls
			msgs := *before
			if *before, err = prompted(ctx, t, msgs); errors.Is(err, tool.ErrSuspended) {
				if s := stepOf(t, msgs); s != nil {
					g.left = s
					return s.leave(resp, s.open()), nil
				}
			}
		} else {
			*before, err = answered(t, *before)
		}
	}
	for err == nil {
		if s == nil {
			if resp, err = g.ask(ctx, t, req, cb); err != nil || len(resp.ToolRequests()) == 0 {
				return resp, err
			}
			if _, err = t.Next(); err != nil { // its calls are not made, and Genkit must not make them
				return nil, fmt.Errorf("genkitstate: %w", err)
			}
			s = newStep(req.Messages, resp.Message)
		}
		var left []*ai.Part
		if left, err = g.play(ctx, t, req, s, cb); err == nil && len(left) > 0 {
			g.left = s
			return s.leave(resp, left), nil
		}
		req.Messages, s = s.conversation(), nil // Genkit, too, extends its request
	}
	return nil, err
}

// prompted makes the calls that are left, and returns the conversation with their
// results.
func prompted(ctx context.Context, t *loop.Turn, msgs []*ai.Message) ([]*ai.Message, error) {
	own, err := Messages(msgs...)
	if err == nil {
		own, err = t.Prompt(ctx, inside.WithKeys(t.State(), own))
	}
	if err != nil {
		return nil, fmt.Errorf("genkitstate: %w", err)
	}
	own, _ = transcript.Repair(own, adjacent, transcript.Policy{})
	return From(own...)
}

// adjacent are the rules of the strictest provider for the places of results:
// Genkit does not move them.
var adjacent, _ = transcript.NewProfile(transcript.Rules{Name: "adjacent", AdjacentResults: true})

// answered returns messages with a result for each call. Of those that wait, it says
// that they do.
func answered(t *loop.Turn, msgs []*ai.Message) ([]*ai.Message, error) {
	for range transcript.ShapesFunc(msgs, Format.Shape).Pending() {
		own, err := Messages(msgs...)
		if err != nil {
			return nil, err
		}
		own, _ = transcript.Repair(inside.WithKeys(t.State(), own), adjacent,
			transcript.Policy{AnswerCalls: true, Suspended: t.Suspended()})
		return From(own...)
	}
	return msgs, nil
}

// hear records the messages of the user with which a conversation ends.
func hear(t *loop.Turn, msgs []*ai.Message) error {
	first := len(msgs)
	for first > 0 && msgs[first-1].Role == ai.RoleUser {
		first--
	}
	said, err := Messages(withoutPurpose(msgs[first:])...)
	if err != nil {
		return err
	}
	return t.Hear(said...)
}

// withoutPurpose returns messages without what Genkit adds to those of the user: the
// form of the output, and documents.
func withoutPurpose(msgs []*ai.Message) []*ai.Message {
	msgs = slices.Clone(msgs)
	for i, m := range msgs {
		if m.Role == ai.RoleUser && slices.ContainsFunc(m.Content, hasPurpose) {
			said := *m
			said.Content = slices.DeleteFunc(slices.Clone(m.Content), hasPurpose)
			msgs[i] = &said
		}
	}
	return msgs
}

func hasPurpose(p *ai.Part) bool { return p.Metadata["purpose"] != nil }

// ask asks the model and records what it says.
func (g *generation) ask(
	ctx context.Context, t *loop.Turn, req *ai.ModelRequest, cb ai.ModelStreamCallback,
) (*ai.ModelResponse, error) {
	sent := *req
	sent.Tools = usable(t, req.Tools)
	if err := g.prompt(ctx, t, &sent); err != nil {
		return nil, err
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
	result := state.InferenceResult{
		Output: output, StartedAt: began, Stop: stops[resp.FinishReason], StopWord: string(resp.FinishReason),
	}
	if result.Stop == state.StopUnknown && len(resp.ToolRequests()) > 0 { // plugins say so of calls
		result.Stop = state.StopCalls
	}
	if u := resp.Usage; u != nil {
		result.Usage = state.Usage{
			Input: u.InputTokens, Output: u.OutputTokens, CacheRead: u.CachedContentTokens, Reasoning: u.ThoughtsTokens,
		}
	}
	if err := t.Said(ctx, result); err != nil {
		return resp, err
	}
	identify(resp.Message, inside.RecordedCalls(t.State(), output))
	return resp, nil
}

// stops says what the words of Genkit mean for how an answer ended.
var stops = map[ai.FinishReason]state.Stop{
	ai.FinishReasonStop:        state.StopEnd,
	ai.FinishReasonLength:      state.StopLength,
	ai.FinishReasonBlocked:     state.StopFiltered,
	ai.FinishReasonInterrupted: state.StopEnd, // calls that Genkit leaves open
	ai.FinishReasonOther:       state.StopUnknown,
	ai.FinishReasonUnknown:     state.StopUnknown,
}

// keyMetadata is the metadata of a call that has its key: a response that a program
// holds may be older than a call that has its ref now.
const keyMetadata = "agentstate.dev/key"

// identify gives the calls of an answer the keys of those that were recorded, and
// the refs by which requests name them: Genkit tells calls apart by their refs.
func identify(said *ai.Message, calls []state.ToolCall) {
	for _, p := range said.Content {
		if !p.IsToolRequest() || len(calls) == 0 {
			continue
		}
		c := calls[0]
		calls = calls[1:]
		p.ToolRequest.Ref = callkey.IDOf(c.ID, c.Key)
		if p.Metadata = maps.Clone(p.Metadata); p.Metadata == nil {
			p.Metadata = map[string]any{}
		}
		p.Metadata[keyMetadata] = c.Key
	}
}

// keyOf returns the key of the call that a part makes, or "".
func keyOf(st *state.State, p *ai.Part) string {
	if key, _ := p.Metadata[keyMetadata].(string); key != "" {
		return key
	}
	return inside.KeyOfID(st, p.ToolRequest.Ref)
}

// prompt replaces the messages of a request by what the window shows of them, with
// the context behind them.
func (g *generation) prompt(ctx context.Context, t *loop.Turn, sent *ai.ModelRequest) error {
	behind := ""
	if g.opts.Context != nil {
		behind = "<context>\n" + strings.TrimSuffix(g.opts.Context(ctx, t.State()), "\n") + "\n</context>"
	}
	own, err := Messages(withoutPurpose(sent.Messages)...)
	if err != nil {
		return err
	}
	shown := t.Shown(own)
	if w := t.Window(ctx, g.opts.Window); w != nil {
		besides, err := state.JSONOf([]any{sent.Tools, sent.Docs, behind})
		if err != nil {
			return err
		}
		if shown, err = w.Show(ctx, t.State(), shown, transcript.EstimateTokens(state.UserText(string(besides)))); err != nil {
			return fmt.Errorf("genkitstate: %w", err)
		}
	}
	if shown, err = transcript.WithFiles(ctx, shown); err != nil {
		return fmt.Errorf("genkitstate: %w", err)
	}
	if !slices.Equal(shown, own) {
		if sent.Messages, err = encodeShown(shown, sent.Messages); err != nil {
			return err
		}
	}
	if behind == "" {
		return nil
	}
	last := len(sent.Messages) - 1
	if last < 0 || sent.Messages[last].Role != ai.RoleUser {
		sent.Messages = append(slices.Clip(sent.Messages), ai.NewUserTextMessage(behind))
		return nil
	}
	said := *sent.Messages[last]
	if n := len(said.Content); n > 0 && said.Content[n-1].IsText() { // a list of parts has another form than a text
		text := *said.Content[n-1]
		text.Text += "\n\n" + behind
		said.Content = append(slices.Clone(said.Content[:n-1]), &text)
	} else {
		said.Content = append(slices.Clip(said.Content), ai.NewTextPart(behind))
	}
	sent.Messages = append(slices.Clone(sent.Messages[:last]), &said)
	return nil
}

// encodeShown returns what is shown of messages, with what Genkit has added to the
// latest one of the user.
func encodeShown(shown []state.Message, msgs []*ai.Message) ([]*ai.Message, error) {
	own, err := From(shown...)
	if err != nil {
		return nil, err
	}
	if from, to := latestOfUser(msgs), latestOfUser(own); from != nil && to != nil {
		for _, p := range from.Content {
			if hasPurpose(p) {
				to.Content = append(to.Content, p)
			}
		}
	}
	return own, nil
}

func latestOfUser(msgs []*ai.Message) *ai.Message {
	for _, m := range slices.Backward(msgs) {
		if m.Role == ai.RoleUser {
			return m
		}
	}
	return nil
}

// usable returns the definitions without those of tools that the agent may not
// use. Genkit has them in a random order.
func usable(t *loop.Turn, defs []*ai.ToolDefinition) []*ai.ToolDefinition {
	offered := map[string]bool{}
	for _, usable := range t.Tools() {
		offered[usable.Name()] = true
	}
	defs = slices.DeleteFunc(slices.Clone(defs), func(d *ai.ToolDefinition) bool {
		return t.Has(d.Name) && !offered[d.Name]
	})
	slices.SortFunc(defs, func(a, b *ai.ToolDefinition) int { return cmp.Compare(a.Name, b.Name) })
	return defs
}

// play makes the calls of a step that have no result and are not for Genkit. It
// returns those that are left.
func (g *generation) play(
	ctx context.Context, t *loop.Turn, req *ai.ModelRequest, s *step, cb ai.ModelStreamCallback,
) (left []*ai.Part, err error) {
	var calls []state.ToolCall
	approvals, waiting := map[string]runctx.Approval{}, t.Suspended()
	for i, p := range s.message.Content {
		if !p.IsToolRequest() || s.results[i] != nil {
			continue
		}
		name := p.ToolRequest.Name
		key := keyOf(t.State(), p)
		if cut, ok := t.Answered(key); ok && !s.restarted[i] { // its answer was not finished
			encoded, err := From(cut)
			if err != nil {
				return nil, err
			}
			s.put(encoded[0].Content)
			continue
		}
		if !t.Has(name) && slices.ContainsFunc(req.Tools, func(d *ai.ToolDefinition) bool { return d.Name == name }) {
			continue // of Genkit
		}
		input, err := state.JSONOf(p.ToolRequest.Input)
		if err != nil {
			return nil, fmt.Errorf("genkitstate: call of tool %q: %w", name, err)
		}
		call := state.ToolCall{ID: p.ToolRequest.Ref, Name: name, Input: input, Key: key}
		switch waits := slices.ContainsFunc(waiting, func(w state.ToolCall) bool { return w.Key == call.Key }); {
		case s.restarted[i]: // a person has decided
			if approvals[call.Key] = (runctx.Approval{}); s.edited[i] {
				approvals[call.Key] = runctx.Approval{Input: input}
			}
		case waits:
			continue
		}
		calls = append(calls, call)
	}
	if len(calls) > 0 {
		g.turns++
	}
	if g.turns > g.opts.MaxTurns {
		return nil, core.NewError(core.ABORTED, "exceeded maximum tool call iterations (%d)", g.opts.MaxTurns)
	}
	results, err := t.Run(runctx.WithApprovals(ctx, approvals), calls...)
	if err != nil {
		return nil, fmt.Errorf("genkitstate: make the calls: %w", err)
	}
	var parts []*ai.Part
	for _, r := range results {
		encoded, _, err := Format.Encode(inside.WithWireIDs([]state.Message{r.Message})...) // whole, for the program
		if err != nil {
			return nil, err
		}
		parts = append(parts, encoded[0].Content...)
	}
	s.put(parts)
	if cb != nil && len(parts) > 0 {
		err = cb(ctx, &ai.ModelResponseChunk{Role: ai.RoleTool, Content: parts})
	}
	return s.open(), err
}
