package tool

import (
	"errors"
	"fmt"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/fault"
)

// Decision is what a person, or a program, decides about a call that waits. It
// names the call by its key, [state.ToolCall].Key, which the list of waiting calls
// shows, and by nothing else: ids repeat, and several calls of a tool may wait.
// [Approve], [ApproveWith], [Refuse], [AnswerWith] and [MakeAgain] make decisions,
// and pages send their JSON.
//
// In a run of package workspace, the Decisions of a message decide; elsewhere, the
// method Decide of a turn of package loop does.
type Decision struct {
	Key  string       `json:"key"`
	Kind DecisionKind `json:"kind"`
	// Input are the arguments with which the call is made, for an approval of other
	// arguments than those of the model ("" for those). The schema of the tool
	// checks them. Parameters that the program injects stay injected.
	Input state.JSON `json:"input,omitempty"`
	// Reason says why the call is refused, for the model ("" for no reason).
	Reason string `json:"reason,omitempty"`
	// Result answers the call, and Failed makes the result an error.
	Result state.JSON `json:"result,omitempty"`
	Failed bool       `json:"failed,omitempty"`
}

// DecisionKind says what is decided.
type DecisionKind string

// The kinds of decisions.
const (
	DecisionApprove DecisionKind = "approve" // the call is made
	DecisionRefuse  DecisionKind = "refuse"  // the call is not made
	DecisionAnswer  DecisionKind = "answer"  // the call gets a result, and is not made
	DecisionAgain   DecisionKind = "again"   // the call of a tool with Once is made although it may have been made
)

// Approve approves a call.
func Approve(key string) Decision { return Decision{Key: key, Kind: DecisionApprove} }

// ApproveWith approves a call with other arguments.
func ApproveWith(key string, input state.JSON) Decision {
	return Decision{Key: key, Kind: DecisionApprove, Input: input}
}

// Refuse refuses a call, for a reason that the model reads, or "".
func Refuse(key, reason string) Decision {
	return Decision{Key: key, Kind: DecisionRefuse, Reason: reason}
}

// AnswerWith answers a call with a result.
func AnswerWith(key string, result state.JSON) Decision {
	return Decision{Key: key, Kind: DecisionAnswer, Result: result}
}

// MakeAgain lets a call of a tool with [Once] be made that was begun before and
// has no result.
func MakeAgain(key string) Decision { return Decision{Key: key, Kind: DecisionAgain} }

// Check returns what is wrong with the form of a decision, as an error that
// matches [state.ErrInvalid].
func (d Decision) Check() error {
	bad := func(format string, args ...any) error {
		return &kindError{state.ErrInvalid, fmt.Errorf("tool: decision: "+format, args...)}
	}
	switch {
	case !callkey.Valid(d.Key):
		return bad("%s is not the key of a call", fault.Quote(d.Key))
	case d.Input != "" && d.Kind != DecisionApprove:
		return bad("%s has an input, which is for %s", fault.Quote(string(d.Kind)), DecisionApprove)
	case d.Reason != "" && d.Kind != DecisionRefuse:
		return bad("%s has a reason, which is for %s", fault.Quote(string(d.Kind)), DecisionRefuse)
	case (d.Result != "" || d.Failed) && d.Kind != DecisionAnswer:
		return bad("%s has a result, which is for %s", fault.Quote(string(d.Kind)), DecisionAnswer)
	}
	switch d.Kind {
	case DecisionApprove:
		if d.Input != "" && !d.Input.Valid() {
			return bad("the input is not JSON")
		}
	case DecisionAnswer:
		if !d.Result.Valid() {
			return bad("the result is not JSON")
		}
	case DecisionRefuse, DecisionAgain:
	default:
		return bad("unknown kind %s", fault.Quote(string(d.Kind)))
	}
	return nil
}

// ErrExpired is returned for a decision about a call whose time to wait is over:
// see [Expires].
var ErrExpired = errors.New("tool: the call has expired")
