package runctx

import (
	"encoding/json"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// VerdictMember is the member of a result that says what was decided about its
// call, for pages: no provider is sent it.
const VerdictMember = "decision"

// Verdict is the value of the member.
type Verdict struct {
	Kind   string          `json:"kind"` // that of the decision, or VerdictExpired
	By     string          `json:"by,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Input  json.RawMessage `json:"input,omitempty"` // the arguments in place of those of the model
}

// The verdicts about calls that were not made.
const (
	VerdictRefused  = "refuse"
	VerdictAnswered = "answer"
	VerdictExpired  = "expired"
)

// Refusal returns the result of a call that was refused, which the model reads.
func Refusal(c state.ToolCall, by, reason string) state.ToolResultMessage {
	text := "The call was refused by a person."
	if reason != "" {
		text = "The call was refused by a person: " + reason
	}
	return Verdict{Kind: VerdictRefused, By: by, Reason: reason}.Of(state.ToolError(c, text))
}

// Answer returns the result that a decision gives a call.
func Answer(c state.ToolCall, by string, content state.JSON, failed bool) state.ToolResultMessage {
	m := state.ToolResult(c, content)
	if failed {
		if with, err := origin.WithMember(m, "is_error", []byte("true")); err == nil {
			m = with.(state.ToolResultMessage)
		}
	}
	return Verdict{Kind: VerdictAnswered, By: by}.Of(m)
}

// Expiry returns the result of a call about which nobody has decided in time, which
// the model reads.
func Expiry(c state.ToolCall) state.ToolResultMessage {
	return Verdict{Kind: VerdictExpired}.Of(state.ToolError(c,
		"The call was not made: nobody has decided about it in time."))
}

// Of returns a result with the verdict.
func (v Verdict) Of(m state.ToolResultMessage) state.ToolResultMessage {
	text, err := jsontext.Marshal(v)
	if err != nil {
		return m
	}
	with, err := origin.WithMember(m, VerdictMember, text)
	if err != nil {
		return m
	}
	return with.(state.ToolResultMessage)
}

// VerdictOf returns what was decided about the call of a result.
func VerdictOf(m state.ToolResultMessage) (v Verdict, ok bool) {
	text, ok := m.Extra(VerdictMember)
	return v, ok && json.Unmarshal([]byte(text), &v) == nil && v.Kind != ""
}
