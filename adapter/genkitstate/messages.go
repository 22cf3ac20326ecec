package genkitstate

import (
	"encoding/base64"
	"fmt"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// Format is the format of Genkit's requests and responses as JSON: those of
// models, which are [ai.ModelRequest], [ai.ModelResponse] and, in a stream,
// [ai.ModelResponseChunk].
var Format = provider.New("genkit", profile, codec{})

// profile is what models of all plugins take.
var profile = mustProfile(transcript.Rules{
	Name:            "genkit",
	Format:          "genkit",
	Roles:           []string{"system", "user", "assistant"},
	ResultNames:     true,
	AdjacentResults: true,
})

func mustProfile(rules transcript.Rules) transcript.Profile {
	p, err := transcript.NewProfile(rules)
	if err != nil {
		panic(err)
	}
	return p
}

// Messages returns the messages of a conversation of Genkit. From gives them
// back, with all parts and metadata.
func Messages(msgs ...*ai.Message) ([]state.Message, error) {
	body, err := state.JSONOf(ai.ModelRequest{Messages: msgs})
	if err != nil {
		return nil, fmt.Errorf("genkitstate: messages: %w", err)
	}
	request, err := Format.DecodeRequest([]byte(body))
	if err != nil {
		return nil, fmt.Errorf("genkitstate: messages: %w", err)
	}
	return request.Messages, nil
}

// From returns messages of any origin as a conversation of Genkit. Numbers keep
// their spelling, as json.Number, and signatures of thoughts are the bytes that
// plugins look for. What Genkit cannot express is left out: see
// [provider.Format.EncodeRequest] of Format, which reports it.
func From(msgs ...state.Message) ([]*ai.Message, error) {
	body, _, err := Format.EncodeRequest(provider.Request{Messages: msgs})
	if err != nil {
		return nil, fmt.Errorf("genkitstate: conversation: %w", err)
	}
	var request ai.ModelRequest
	var exact struct { // numbers are float64 in what a Part has decoded
		Messages []struct {
			Content []struct {
				ToolRequest  struct{ Input any }
				ToolResponse struct{ Output any }
			}
		}
	}
	if err := state.JSON(body).Decode(&request); err != nil {
		return nil, fmt.Errorf("genkitstate: conversation: %w", err)
	}
	if err := state.JSON(body).Decode(&exact); err != nil {
		return nil, fmt.Errorf("genkitstate: conversation: %w", err)
	}
	for i, m := range request.Messages {
		for k, p := range m.Content {
			switch {
			case p.IsToolRequest():
				p.ToolRequest.Input = exact.Messages[i].Content[k].ToolRequest.Input
			case p.IsToolResponse():
				p.ToolResponse.Output = exact.Messages[i].Content[k].ToolResponse.Output
			}
			if text, ok := p.Metadata["signature"].(string); ok {
				if signature, err := base64.StdEncoding.DecodeString(text); err == nil {
					p.Metadata["signature"] = signature
				}
			}
		}
	}
	return request.Messages, nil
}

// Shapes returns the shapes of the messages of a conversation, with which
// package transcript trims it:
//
//	msgs = transcript.Select(msgs, genkitstate.Shapes(msgs).KeepLast(20))
func Shapes(msgs []*ai.Message) transcript.Shapes {
	return transcript.ShapesFunc(msgs, shapeOf)
}

func shapeOf(m *ai.Message) transcript.Shape {
	shape := transcript.Shape{Role: string(m.Role), Reasoning: len(m.Content) > 0}
	if m.Role == ai.RoleModel {
		shape.Role = "assistant"
	}
	for _, p := range m.Content {
		switch {
		case p.IsToolRequest():
			shape.Calls = append(shape.Calls, state.ToolCall{ID: p.ToolRequest.Ref, Name: p.ToolRequest.Name})
		case p.IsToolResponse():
			shape.Answers = append(shape.Answers, state.ToolCall{ID: p.ToolResponse.Ref, Name: p.ToolResponse.Name})
		}
		shape.Reasoning = shape.Reasoning && p.IsReasoning()
	}
	return shape
}
