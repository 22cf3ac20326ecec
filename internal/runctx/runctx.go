// Package runctx is what packages tool, wire and workspace know of each other's
// part of a context: tool and wire cannot import workspace.
package runctx

import (
	"context"
	"slices"
	"time"

	"github.com/agentstate/state"
)

// Run is a run of package workspace, as tools and models see it.
type Run interface {
	// State returns the host's handle on the state of the run.
	State() *state.State
	// Commit stores what has changed.
	Commit(ctx context.Context) error
	// Suspend notes that a call waits for a result from outside, why, and for how
	// long, or 0.
	Suspend(c state.ToolCall, reason string, expires time.Duration)
	// Waiting returns the calls that wait, without those that are approved.
	Waiting() []state.ToolCall
	// Approved reports whether a call that has waited was approved, and by whom.
	Approved(c state.ToolCall) (by string, ok bool)
	// Emit tells a piece of the text that a model is about to have said on the
	// State of the run. RestartText makes the next piece the first one.
	Emit(text string)
	RestartText()
	// Describe returns what a model should know of the workspace with the rights
	// of a handle on its State.
	Describe(st *state.State) string
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

type approvalKey struct{}

type approval struct {
	by   string
	keys []string
}

// WithApproval returns a context in which calls with these ids, or names if they
// have no ids, are approved.
func WithApproval(ctx context.Context, by string, keys []string) context.Context {
	return context.WithValue(ctx, approvalKey{}, approval{by, keys})
}

// Approved reports whether a call is approved, and by whom: by a context, or in
// the run of one.
func Approved(c state.ToolCall, contexts ...context.Context) (by string, ok bool) {
	for _, ctx := range contexts {
		if ctx == nil {
			continue
		}
		if a, ok := ctx.Value(approvalKey{}).(approval); ok && slices.Contains(a.keys, Key(c)) {
			return a.by, true
		}
	}
	if run := RunOf(contexts...); run != nil {
		return run.Approved(c)
	}
	return "", false
}

// Key returns the key of a call: its id, or its name if the provider gives calls
// no ids.
func Key(c state.ToolCall) string {
	if c.ID == "" {
		return c.Name
	}
	return c.ID
}

// Expiry returns the result of a call about which nobody has decided in time, which
// the model reads.
func Expiry(c state.ToolCall) state.ToolResultMessage {
	return state.ToolError(c, "The call was not made: nobody has decided about it in time.")
}

// Refusal returns the result of a call that was refused, which the model reads.
func Refusal(c state.ToolCall) state.ToolResultMessage {
	return state.ToolError(c, "The call was refused by a person.")
}

type failureKey struct{}

// WithFailures returns a context in which note is told of requests to a model
// that have failed and may be made again, and after which time, if the provider
// says one. A request that is answered is told with a nil error.
func WithFailures(ctx context.Context, note func(err error, after time.Duration)) context.Context {
	return context.WithValue(ctx, failureKey{}, note)
}

// NoteFailure tells the context of a request that has failed.
func NoteFailure(ctx context.Context, err error, after time.Duration) {
	if note, ok := ctx.Value(failureKey{}).(func(error, time.Duration)); ok {
		note(err, after)
	}
}
