// Package runctx is what packages tool, wire and workspace know of each other's
// part of a context: tool and wire cannot import workspace.
package runctx

import (
	"context"
	"errors"
	"time"

	"github.com/agentstate/state"
)

// Run is a run of package workspace, as tools and models see it.
type Run interface {
	// State returns the host's handle on the state of the run.
	State() *state.State
	// Commit stores what has changed.
	Commit(ctx context.Context) error
	// Join is Commit behind the results of calls and in front of the next request of
	// a Loop: messages that wait for that join the run.
	Join(ctx context.Context) error
	// Suspend notes that a call waits for a result from outside. An approval of it
	// is void.
	Suspend(c state.ToolCall, s Suspension)
	// Waiting returns the calls that wait, without those that are approved.
	Waiting() []state.ToolCall
	// Approval returns the approval of a call that has waited, by its key.
	Approval(key string) (Approval, bool)
	// BeginOnce stores that the function of a call is about to be called, and what is
	// known if it waits later. The error is ErrBegun if that was stored before.
	BeginOnce(ctx context.Context, c state.ToolCall, s Suspension) error
	// Emit tells a piece of the text that a model is about to have said on the
	// State of the run, EmitThought one of what it thinks, and EmitInput one of the
	// arguments of a call. RestartText makes the next piece the first one.
	Emit(text string)
	EmitThought(text string)
	EmitInput(call int, name, text string)
	RestartText()
	// Report tells the log of the program of a call that has failed by a mistake of
	// the program.
	Report(c state.ToolCall, err error)
	// Memory returns what is remembered about the user, as a section of a system
	// prompt. Redact masks all secrets of the workspace in a text. WithMemory returns
	// a Redactor for the secrets of the memory besides others.
	Memory() string
	Redact(text string) string
	WithMemory(masks *state.Redactor) *state.Redactor
	// CacheKey returns a name for the conversation, by which a provider finds what
	// it has cached of it. Nobody can learn the user from it.
	CacheKey() string
	// Window returns the *transcript.Window of the workspace, which may be nil.
	// DeferWindow notes that the window of an agent is to be moved after the run.
	// extra is the number of tokens that a request has besides the conversation.
	Window() any
	DeferWindow(agent string, extra int)
	// Decided returns the calls that the message of the run has answered, approved
	// or refused.
	Decided() []state.ToolCall
	// Progress returns how many answers models have given in the run, and whether
	// the last one has no calls. SetProgress is stored by the next Commit.
	Progress() (answers int, ended bool)
	SetProgress(answers int, ended bool)
}

type runKey struct{}

// NewContext returns a context with a run. A nil run hides that of ctx.
func NewContext(ctx context.Context, run Run) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// RunOf returns the run of the first context that has one, or nil.
func RunOf(contexts ...context.Context) Run {
	for _, ctx := range contexts {
		if ctx == nil {
			continue
		}
		if run, _ := ctx.Value(runKey{}).(Run); run != nil {
			return run
		}
	}
	return nil
}

// Suspension says why a call waits, and who may decide about it.
type Suspension struct {
	Reason  string
	Expires time.Duration // how long it may wait, 0 for no limit
	// Digest is that of the arguments and of the injected values, which a person
	// is shown and approves.
	Digest string
	// Deciders are the agents that may decide, nil if the tool does not say.
	Deciders []string
	// IsClients says that the sender of the message has the tool.
	IsClients bool
	// HasBegun says that the function was called, and that its result is not known.
	HasBegun bool
}

// Approval is the approval of a call that has waited.
type Approval struct {
	By     string
	Input  state.JSON // the arguments in place of those of the model, or ""
	Digest string     // of what was approved, or "" if that is not known
	Again  bool       // also if the function was called before
}

// ErrBegun is returned by [Run.BeginOnce].
var ErrBegun = errors.New("the call was begun before, and its result is not known: it may have been made")

// ErrClients is why a call of a tool of the sender of the message waits.
var ErrClients = errors.New("the sender of the message has the tool")

type approvalKey struct{}

// WithCallTimeout returns a context in which the functions of tools have a time
// limit, unless their tools have one.
func WithCallTimeout(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, timeoutKey{}, d)
}

// CallTimeoutOf returns the limit that a context carries, or 0.
func CallTimeoutOf(ctx context.Context) time.Duration {
	d, _ := ctx.Value(timeoutKey{}).(time.Duration)
	return d
}

type timeoutKey struct{}

// WithApprovals returns a context in which calls are approved, by their keys.
func WithApprovals(ctx context.Context, approvals map[string]Approval) context.Context {
	return context.WithValue(ctx, approvalKey{}, approvals)
}

// ApprovalOf returns the approval of a call by its key: in a context, or in the run
// of one.
func ApprovalOf(key string, contexts ...context.Context) (Approval, bool) {
	for _, ctx := range contexts {
		if ctx == nil {
			continue
		}
		if approvals, _ := ctx.Value(approvalKey{}).(map[string]Approval); approvals != nil {
			if a, ok := approvals[key]; ok {
				return a, true
			}
		}
	}
	if run := RunOf(contexts...); run != nil {
		return run.Approval(key)
	}
	return Approval{}, false
}

type failureKey struct{}

// WithFailures returns a context in which note is told of requests to a model
// that have failed and may be made again, and after which time, if the provider
// says one. A request that is answered is told with a nil error, and an answer that
// is not recorded with a negative time.
func WithFailures(ctx context.Context, note func(err error, after time.Duration)) context.Context {
	return context.WithValue(ctx, failureKey{}, note)
}

// NoteFailure tells the context of a request that has failed.
func NoteFailure(ctx context.Context, err error, after time.Duration) {
	if note, ok := ctx.Value(failureKey{}).(func(error, time.Duration)); ok {
		note(err, after)
	}
}

// Unfinished is in an error of an agent whose answer has not ended well. The model
// that has called the agent as a tool reads what was said.
type Unfinished struct{ Said string }

func (e *Unfinished) Error() string { return "not finished" }

// Refused says to which model a request goes, and what it does not have of the
// conversation besides what is stored, because that was refused so many times.
type Refused struct {
	Provider string   // of which a hash is stored: an address may have a key
	Withheld []string // as in internal.Window
	Times    int
}

// RefusedKey is the key of a [Refused] in the context in which a request is made.
// Without one, nobody is to be shown what any provider has refused.
type RefusedKey struct{}
