package main

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/runner"
	"google.golang.org/adk/v2/session"
	"google.golang.org/adk/v2/tool/toolconfirmation"
	"google.golang.org/genai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

// Answer answers the message of a run of the workspace of a session, see [Name].
// The reply is the last text. If another process has begun the run, the runner
// goes on behind the last step that was committed. The decisions of a message bring
// the results of calls that wait for them: see [tool.AnswerWith] and [tool.Refuse].
func Answer(ctx context.Context, run *workspace.Run, r *runner.Runner, sessions session.Service) error {
	app, user, id, err := parse(run.UserID())
	if err != nil {
		return err
	}
	input, err := inputOf(ctx, run, sessions, &session.GetRequest{AppName: app, UserID: user, SessionID: id})
	if err != nil {
		return err
	}
	for event, err := range r.Run(ctx, user, id, input, agent.RunConfig{}) {
		if err != nil {
			return err
		}
		if text := textOf(event); text != "" && !event.Partial {
			run.SetReply(text)
		}
	}
	return nil
}

// inputOf returns what a runner is given. It is nil if the session has it.
func inputOf(
	ctx context.Context, run *workspace.Run, sessions session.Service, req *session.GetRequest,
) (*genai.Content, error) {
	msg := run.Message()
	text, isText := msg.Content.(state.TextMessage)
	switch {
	case run.Step() > 0:
		return nil, nil
	case isText:
		return genai.NewContentFromText(text.Text(), genai.RoleUser), nil
	}
	got, err := sessions.Get(ctx, req)
	if err != nil {
		return nil, err
	}
	input := &genai.Content{Role: genai.RoleUser}
	for event := range got.Session.Events().All() {
		for _, part := range parts(event) {
			asks := part.FunctionCall
			if asks == nil || asks.Name != toolconfirmation.FunctionCallName {
				continue
			}
			call, err := toolconfirmation.OriginalCallFrom(asks)
			if err != nil {
				continue
			}
			if _, ok := answered(run, call.ID); ok {
				input.Parts = append(input.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{
					ID: asks.ID, Name: asks.Name, Response: map[string]any{"confirmed": true},
				}})
			}
		}
	}
	return input, nil
}

func textOf(event *session.Event) string {
	var text strings.Builder
	for _, part := range parts(event) {
		if !part.Thought {
			text.WriteString(part.Text)
		}
	}
	return text.String()
}

// answered returns the result that the message of a run has brought for a call
// with an id, which adk makes unique. The key of the result says which call was
// decided about.
func answered(run *workspace.Run, callID string) (state.ToolResultMessage, bool) {
	decided := map[string]bool{}
	for _, d := range run.Message().Decisions {
		decided[d.Key] = true
	}
	for _, m := range slices.Backward(state.Messages.GetOr(run.State(), nil)) {
		if r, ok := m.(state.ToolResultMessage); ok && decided[r.Call().Key] && r.Call().ID == callID {
			return r, true
		}
	}
	return state.ToolResultMessage{}, false
}

func parts(event *session.Event) []*genai.Part {
	if event.Content == nil {
		return nil
	}
	return event.Content.Parts
}

// onEvent records what an event says in the history and the conversation of the
// state, and begins the turn of its calls. The messages of the user are there
// already. Calls that wait for a person stay open.
func (k *Kit) onEvent(ctx agent.InvocationContext, event *session.Event) (*session.Event, error) {
	if _, ok := state.FromContext(ctx); !ok || event.Partial {
		return nil, nil
	}
	var said []state.Message
	var calls []state.ToolCall
	var results []state.ToolResultMessage
	for _, part := range parts(event) {
		call, r := part.FunctionCall, part.FunctionResponse
		switch {
		case part.Text != "" && !part.Thought && event.Content.Role == genai.RoleModel:
			said = append(said, state.AssistantText(part.Text))
		case call != nil && call.Name != toolconfirmation.FunctionCallName:
			input, err := state.JSONOf(call.Args)
			if err != nil {
				return nil, err
			}
			calls = append(calls, state.ToolCall{ID: call.ID, Name: call.Name, Input: input})
		case r != nil:
			if _, waits := event.Actions.RequestedToolConfirmations[r.ID]; waits {
				continue
			}
			result, err := resultOf(r)
			if err != nil {
				return nil, err
			}
			results = append(results, result)
		}
	}
	if len(calls) > 0 {
		said = append(said, state.ToolCalls(calls...))
	}
	here := place{ctx.InvocationID(), ctx.Branch(), ctx.Agent().Name()}
	t, err := k.newTurn(ctx, here.agent)
	if err == nil && len(said) > 0 {
		err = t.Said(ctx, state.InferenceResult{Output: said})
		k.mu.Lock()
		k.turns[here] = t
		k.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return nil, t.Answer(results...)
}

func resultOf(r *genai.FunctionResponse) (state.ToolResultMessage, error) {
	call := state.ToolCall{ID: r.ID, Name: r.Name}
	if text, ok := r.Response["error"].(string); ok {
		return state.ToolError(call, text), nil
	}
	content, err := state.JSONOf(r.Response)
	return state.ToolResult(call, content), err
}
