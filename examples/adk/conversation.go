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
// goes on behind the last step that was committed. The answers of a message are
// the results of the calls that wait for them.
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
			if err == nil && answer(msg.Answers, call.ID) != nil {
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

// answered returns the result of a call that the message of a run has brought.
func answered(ctx context.Context, callID string) *state.ToolResultMessage {
	run, ok := workspace.FromContext(ctx)
	if !ok {
		return nil
	}
	return answer(run.Message().Answers, callID)
}

func answer(answers []state.ToolResultMessage, callID string) *state.ToolResultMessage {
	i := slices.IndexFunc(answers, func(r state.ToolResultMessage) bool { return r.Call().ID == callID })
	if i < 0 {
		return nil
	}
	return &answers[i]
}

func parts(event *session.Event) []*genai.Part {
	if event.Content == nil {
		return nil
	}
	return event.Content.Parts
}

// record adds what an event says to the conversation of the state. The messages
// of the user are there already. Calls that wait for a person stay open.
func record(ctx agent.InvocationContext, event *session.Event) (*session.Event, error) {
	st, ok := state.FromContext(ctx)
	if !ok || event.Partial {
		return nil, nil
	}
	var msgs []state.Message
	var calls []state.ToolCall
	for _, part := range parts(event) {
		call, r := part.FunctionCall, part.FunctionResponse
		switch {
		case part.Text != "" && !part.Thought && event.Content.Role == genai.RoleModel:
			msgs = append(msgs, state.AssistantText(part.Text))
		case call != nil && call.Name != toolconfirmation.FunctionCallName:
			input, err := state.JSONOf(call.Args)
			if err != nil {
				return nil, err
			}
			calls = append(calls, state.ToolCall{ID: call.ID, Name: call.Name, Input: input})
		case r != nil:
			_, waits := event.Actions.RequestedToolConfirmations[r.ID]
			if waits || answered(ctx, r.ID) != nil {
				continue
			}
			result, err := resultOf(r)
			if err != nil {
				return nil, err
			}
			msgs = append(msgs, result)
		}
	}
	if len(calls) > 0 {
		msgs = append(msgs, state.ToolCalls(calls...))
	}
	if len(msgs) == 0 {
		return nil, nil
	}
	return nil, state.Messages.Set(st.As(ctx.Agent().Name()), msgs)
}

func resultOf(r *genai.FunctionResponse) (state.ToolResultMessage, error) {
	call := state.ToolCall{ID: r.ID, Name: r.Name}
	if text, ok := r.Response["error"].(string); ok {
		return state.ToolError(call, text), nil
	}
	content, err := state.JSONOf(r.Response)
	return state.ToolResult(call, content), err
}
