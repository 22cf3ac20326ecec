package provider

import "github.com/agentstate/state/provider/internal/codec"

// Delta is a piece of a streamed response, as it comes.
type Delta struct {
	Kind DeltaKind

	// Text is what is new. The pieces of an input make its JSON. The first
	// piece of an input comes when the call begins, and may be empty.
	Text string

	// Call is the call of an input: how many calls began before it. CallID and
	// Name are known when the call begins. CallID is empty if the provider gives
	// calls no ids.
	Call   int
	CallID string
	Name   string
}

// DeltaKind is what a [Delta] is a piece of.
type DeltaKind uint8

// The kinds of deltas.
const (
	DeltaText     = DeltaKind(codec.DeltaText)     // a text, or a refusal
	DeltaThinking = DeltaKind(codec.DeltaThinking) // the model's thinking, or a summary of it
	DeltaInput    = DeltaKind(codec.DeltaInput)    // the input of a call that the client is to run
)

func (k DeltaKind) String() string {
	switch k {
	case DeltaText:
		return "text"
	case DeltaThinking:
		return "thinking"
	case DeltaInput:
		return "input"
	}
	return "none"
}

// emit passes a piece to OnDelta.
func (s *Stream) emit(d codec.Delta) {
	if s.OnDelta != nil {
		s.OnDelta(Delta{Kind: DeltaKind(d.Kind), Text: d.Text, Call: d.Call, CallID: d.ID, Name: d.Name})
	}
}
