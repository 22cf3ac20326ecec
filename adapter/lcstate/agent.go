package lcstate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/memory"
	"github.com/tmc/langchaingo/schema"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// Agent is a chain that asks a model, makes the calls of its answer at the same
// time, and goes on until the answer has none. The conversation is that of the
// state in the context, with calls and results; each answer is a result of
// [state.History].
//
// The input "input" is what the user says. An empty one adds no message: the
// agent goes on with the conversation, as in a run of a workspace, where the
// message is in it, or after another agent. The output is "output".
//
// If a tool suspends its call, see [tool.Suspend], the agent ends with an error
// that is tool.ErrSuspended, and the call stays open until the Answers of a
// message of the workspace, or [state.History.Answer], bring its result. Then the
// agent goes on. Until then, the model is told that there is no result yet.
//
// In a run of a workspace, the agent commits each answer with calls and each
// step, so that a run that is taken over goes on there. With
// [workspace.PendingLeave], it makes the calls of an interrupted step again, with
// the same ids.
//
// The fields must not change when the agent is used. It may be used concurrently.
type Agent struct {
	// Name is the agent with whose rights the state is read and written (default:
	// those of the handle in the context). The model is shown the tools that it
	// may use.
	Name string

	LLM   llms.Model
	Tools []*tool.Tool

	// Prompt returns the system prompt, in which secrets are masked (default:
	// [state.State.Describe]). "" stands for none.
	Prompt func(ctx context.Context, st *state.State) string

	// Profile is what the provider demands (default: transcript.OpenAI). See
	// [Contents].
	Profile transcript.Profile

	// Trim shortens what the model is sent, which begins with the prompt (default:
	// nothing).
	Trim transcript.Trim

	// MaxIterations is the maximum number of answers of the model (default 50).
	// After that, the error is agents.ErrNotFinished.
	MaxIterations int
}

var _ chains.Chain = (*Agent)(nil)

// GetMemory returns an empty memory: the conversation is in the state.
func (a *Agent) GetMemory() schema.Memory { return memory.NewSimple() }

// GetInputKeys returns "input".
func (a *Agent) GetInputKeys() []string { return []string{"input"} }

// GetOutputKeys returns "output".
func (a *Agent) GetOutputKeys() []string { return []string{"output"} }

// Call runs the agent. The functions of package chains call it.
func (a *Agent) Call(
	ctx context.Context, inputs map[string]any, opts ...chains.ChainCallOption,
) (map[string]any, error) {
	r, err := a.begin(ctx, inputs, opts)
	if err != nil {
		return nil, err
	}
	for range cmp.Or(a.MaxIterations, 50) {
		if err := r.step(ctx); err != nil {
			return nil, err
		}
		output, err := r.ask(ctx)
		if err != nil {
			return nil, err
		}
		if len(r.calls) == 0 {
			return map[string]any{"output": output}, nil
		}
	}
	return nil, agents.ErrNotFinished
}

// agentRun is one call of an agent.
type agentRun struct {
	*Agent
	host, st *state.State
	options  []llms.CallOption
	names    provider.ToolNames // of tools that the provider knows under another name
	calls    []state.ToolCall   // to make in the next step
}

func (a *Agent) begin(ctx context.Context, inputs map[string]any, opts []chains.ChainCallOption) (*agentRun, error) {
	host, err := stateOf(ctx, "")
	if err != nil {
		return nil, err
	}
	input, ok := inputs["input"].(string)
	if !ok {
		return nil, fmt.Errorf("lcstate: the input is a %T, not a string", inputs["input"])
	}
	if input != "" {
		if err := state.Messages.Set(host, []state.Message{state.UserText(input)}); err != nil {
			return nil, err
		}
	}
	r := &agentRun{Agent: a, host: host, names: provider.ToolNames{}}
	r.st, _ = stateOf(ctx, a.Name)
	r.calls = openCalls(ctx, r.st)
	var offered []llms.Tool
	for _, t := range tool.Usable(r.st, a.Tools) {
		name := a.profile().ToolName(t.Name())
		r.names[name] = t.Name()
		function := &llms.FunctionDefinition{Name: name, Description: t.Description(), Parameters: parameters(t)}
		offered = append(offered, llms.Tool{Type: "function", Function: function})
	}
	r.options = append(chains.GetLLMCallOptions(opts...), llms.WithTools(offered))
	return r, nil
}

func (a *Agent) profile() transcript.Profile {
	return cmp.Or(a.Profile, transcript.OpenAI)
}

// parameters returns the schema of a tool in the form that all clients take: some
// of them want a map, and do not know references.
func parameters(t *tool.Tool) map[string]any {
	schema, err := tool.Inline(t.Schema())
	if err != nil {
		schema = t.Schema()
	}
	var out map[string]any
	_ = json.Unmarshal([]byte(schema), &out) // a tool has an object
	return out
}

// openCalls returns the calls of earlier answers to the agent that an interrupted
// run has left without a result. Calls that wait for a person are not among them.
// Outside of workspaces there are none: open calls wait for History.Answer.
func openCalls(ctx context.Context, st *state.State) []state.ToolCall {
	run, ok := workspace.FromContext(ctx)
	if !ok {
		return nil
	}
	return st.History().Pending(run.Suspended()...)
}

// step makes the calls of the last answer.
func (r *agentRun) step(ctx context.Context) error {
	if len(r.calls) == 0 {
		return nil
	}
	results, err := tool.Answer(ctx, r.st, r.Tools, r.calls)
	if err != nil {
		return err
	}
	if err := commit(ctx); err != nil || len(results) == len(r.calls) {
		return err
	}
	return fmt.Errorf("lcstate: agent %q: %w", r.Name, tool.ErrSuspended)
}

// ask asks the model, records its answer and returns the text.
func (r *agentRun) ask(ctx context.Context) (string, error) {
	result := state.InferenceResult{Agent: r.st.Agent(), StartedAt: time.Now()}
	prompt := ""
	if r.Prompt == nil {
		prompt = r.st.Describe()
	} else {
		prompt = r.Prompt(ctx, r.st)
	}
	if prompt != "" {
		result.Prompt = []state.Message{state.SystemText(r.host.Redact(prompt))}
	}
	sent, err := r.sent(result.Prompt)
	if err != nil {
		return "", err
	}
	answer, err := r.LLM.GenerateContent(ctx, Contents(sent, r.profile()), r.options...)
	if err != nil {
		return "", err
	}
	if answer == nil || len(answer.Choices) == 0 {
		return "", errors.New("lcstate: the model has returned no choice")
	}
	var text, reasoning, stop string
	var calls []llms.ToolCall
	for _, c := range answer.Choices { // the client of Anthropic makes one of each block
		text, reasoning, stop = text+c.Content, reasoning+c.ReasoningContent, c.StopReason
		if calls = append(calls, c.ToolCalls...); len(c.ToolCalls) == 0 && c.FuncCall != nil {
			calls = append(calls, llms.ToolCall{FunctionCall: c.FuncCall})
		}
	}
	if stop = cmp.Or(stop, "stop"); len(calls) > 0 {
		stop = "" // the calls say it
	}
	said := llms.AIChatMessage{Content: text, ReasoningContent: reasoning, ToolCalls: calls}
	output, err := Format.Decode(modelAnswer{said, stop})
	if err != nil {
		return "", err
	}
	result.Output = r.names.Restore(output)
	if err := r.st.History().Append(result); err != nil {
		return "", err
	}
	if r.calls = transcript.Pending(result.Output); len(r.calls) > 0 {
		err = commit(ctx)
	}
	return text, err
}

// sent returns what the model is sent: the prompt and the conversation, trimmed
// and repaired.
func (r *agentRun) sent(prompt []state.Message) ([]state.Message, error) {
	msgs, err := state.Messages.Get(r.st)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return nil, err
	}
	msgs = slices.Concat(prompt, msgs)
	if r.Trim != nil {
		msgs = r.Trim(msgs)
	}
	if len(transcript.Check(msgs, r.profile())) == 0 {
		return msgs, nil
	}
	policy := transcript.Policy{AnswerCalls: true, Waiting: "There is no result yet. It will come in a later message."}
	for _, c := range transcript.ShapesOf(msgs).Pending() {
		policy.Suspended = append(policy.Suspended, c)
	}
	msgs, _ = transcript.Repair(msgs, r.profile(), policy)
	return msgs, nil
}

// commit stores what was done so far, in the run of a workspace.
func commit(ctx context.Context) error {
	if run, ok := workspace.FromContext(ctx); ok {
		return run.Commit(ctx)
	}
	return nil
}
