package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace/internal/document"
)

// Loop returns a function for Options.Run that lets the agents of a loop work on
// the State of the run.
//
//	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema, Run: workspace.Loop(&loop.Loop{
//		Agents: map[string]loop.Agent{"support": {Ask: ask, Tools: tools}},
//	})})
//
// It commits what a model has said before calls are made, and their results
// before a model is asked again. A process that takes the run over makes the
// calls that are left, with their keys: the Key of [tool.CallOf] is an idempotency
// key. A model is asked again only if its answer
// was not committed, and never after the last word.
//
// A run ends when calls wait for a person, too. The Decisions of a later message
// decide.
//
// The tools of the sender, see [Run.ClientTools], are offered to each agent that has
// no tool of that name.
//
// The reply is the last text that a model has said. If the last answer is one that
// was not finished, see [loop.ErrStopped], the message is handled all the same, and
// Stop of its [Outcome] says how the answer has ended. Errors that may pass are
// waited out as [loop.Agent] says, while the run is under way. Any other error
// fails the message.
func Loop(l *loop.Loop) func(context.Context, *Run) error {
	return func(ctx context.Context, run *Run) error {
		reply, err := withClientTools(l, run).Run(ctx, run.State())
		if reply != "" {
			run.SetReply(reply)
		}
		if stop := (*loop.StopError)(nil); errors.As(err, &stop) {
			run.noteStop(stop.Stop)
		}
		if errors.Is(err, tool.ErrSuspended) || errors.Is(err, loop.ErrStopped) { // the Outcome says so
			return nil
		}
		return err
	}
}

// turnRun is a run as turns of agents see it: a [runctx.Run].
type turnRun struct{ *Run }

// Join is Commit in front of the next request of a Loop: messages that want to join
// the run are stored with what has changed.
func (r turnRun) Join(ctx context.Context) error { return r.commitWith(ctx, nil, true) }

func (r turnRun) Suspend(c state.ToolCall, s runctx.Suspension) {
	r.suspended.note(r.state, c, r.suspensionOf(s))
}

func (r turnRun) suspensionOf(s runctx.Suspension) document.Suspension {
	out := r.suspension()
	out.Reason, out.Digest, out.Client, out.Begun = r.Redact(s.Reason), s.Digest, s.IsClients, s.HasBegun
	if s.Expires > 0 {
		out.Until, out.Clock = out.At.Add(s.Expires), r.m.cacheSalt
	}
	if s.Deciders != nil {
		out.Deciders = &s.Deciders
	}
	return out
}

func (r turnRun) Waiting() []state.ToolCall {
	var calls []state.ToolCall
	for _, s := range r.Suspended() {
		calls = append(calls, s.ToolCall)
	}
	return calls
}

func (r turnRun) Approval(key string) (runctx.Approval, bool) {
	was, _ := r.suspended.get(key)
	if was.Approval == nil {
		return runctx.Approval{}, false
	}
	return runctx.Approval{
		By: was.Approval.By, Input: was.Approval.Input, Digest: was.Digest, Again: was.Approval.Again,
	}, true
}

func (r turnRun) BeginOnce(ctx context.Context, c state.ToolCall, s runctx.Suspension) error {
	if indexOfCall(openCalls(r.state), c.Key) < 0 {
		return fmt.Errorf("workspace: a call of a tool with Once must be recorded before it is made: %w",
			state.ErrUnknownCall)
	}
	if err := r.suspended.begin(c.Key, r.suspensionOf(s)); err != nil {
		return err
	}
	return r.Commit(ctx)
}

func (r turnRun) Report(c state.ToolCall, err error) {
	about, masked := alarmDenied, error(&maskedError{r.Redact(err.Error()), err})
	if p := (*tool.PanicError)(nil); errors.As(err, &p) {
		about = alarmPanic.of("tool")
		masked = &panicError{
			text: fmt.Sprintf("%v: %s", masked, r.Redact(fmt.Sprint(p.Value))), stack: r.Redact(string(p.Stack)),
		}
	}
	r.m.raise(r.ctx, about, r.user, masked, slog.String("run", r.runID), slog.String("tool", c.Name),
		slog.String("call", c.Key))
}

// Decided returns the calls that the message of the run has decided, as the
// conversation has them.
func (r turnRun) Decided() (calls []state.ToolCall) {
	keys := r.message.decided()
	if len(keys) == 0 {
		return nil
	}
	for _, c := range inside.CallsOf(state.Messages.GetOr(r.state, nil)...) {
		if slices.Contains(keys, c.Key) {
			calls = append(calls, c)
		}
	}
	return calls
}

func (r turnRun) WithMemory(masks *state.Redactor) *state.Redactor { return r.memory.redactor(masks) }

func (r turnRun) Memory() string { return r.Redact(r.memory.Prompt()) }

// CacheKey returns the key under which a provider caches the conversation. It
// does not tell the user's id.
func (r turnRun) CacheKey() string {
	sum := sha256.Sum256([]byte(r.m.cacheSalt + r.user))
	return hex.EncodeToString(sum[:16])
}

func (r turnRun) RestartText() { r.live.restart() }

func (r turnRun) Progress() (answers int, ended bool) { return r.progress() }

func (r turnRun) SetProgress(answers int, ended bool) {
	r.progressMu.Lock()
	defer r.progressMu.Unlock()
	r.answers, r.isAnswered = answers, ended
}

func (r *Run) progress() (answers int, ended bool) {
	r.progressMu.Lock()
	defer r.progressMu.Unlock()
	return r.answers, r.isAnswered
}

// noteStop notes how a Loop has ended.
func (r *Run) noteStop(stop state.Stop) {
	r.progressMu.Lock()
	defer r.progressMu.Unlock()
	r.loopStop = stop
}

// stopOf returns how a Loop has ended, or the last answer in a State, if a model has
// answered in the run and has not said all, or "".
func (r *Run) stopOf(st *state.State) state.Stop {
	r.progressMu.Lock()
	stop := r.loopStop
	r.progressMu.Unlock()
	if stop != "" {
		return stop
	}
	if answers, _ := r.progress(); answers == 0 {
		return ""
	}
	last, _ := st.History().Last()
	switch last.Stop {
	case state.StopEnd, state.StopCalls:
		return ""
	}
	return last.Stop
}

// stopped is the stopOf with which the run has been finished.
func (r *Run) stopped() state.Stop {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop
}

// ClientTools returns the tools of the sender of the message. A call of one is
// suspended: a decision of a later message brings its result. Loop offers them to
// its agents; other programs give them to a [loop.Turn].
func (r *Run) ClientTools() []*tool.Tool {
	tools, _ := toolsOf(r.message.Tools) // which were checked when the message was accepted
	return tools
}

// withClientTools returns a loop whose agents have the tools of the sender as well.
func withClientTools(l *loop.Loop, r *Run) *loop.Loop {
	tools := r.ClientTools()
	if len(tools) == 0 {
		return l
	}
	with := *l
	with.Agents = maps.Clone(l.Agents)
	for name, agent := range with.Agents {
		others := slices.DeleteFunc(slices.Clone(tools), func(t *tool.Tool) bool {
			return slices.ContainsFunc(agent.Tools, func(o *tool.Tool) bool { return o != nil && o.Name() == t.Name() })
		})
		agent.Tools = slices.Concat(agent.Tools, others)
		with.Agents[name] = agent
	}
	return &with
}

// Window returns the window of the workspace, or nil.
func (r turnRun) Window() any { return r.m.opts.Window }

// DeferWindow notes that the window of an agent is to be moved after the run, and
// how many tokens its latest request had besides the conversation.
func (r turnRun) DeferWindow(agent string, extra int) { r.dueWindows.Store(agent, extra) }
