package genkitstate_test

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/firebase/genkit/go/ai"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/genkitstate"
	"github.com/agentstate/state/provider/providertest"
)

func TestMessageFormat(t *testing.T) {
	data, err := os.ReadFile("testdata/messages.json")
	must(err)
	var conversation []*ai.Message
	must(json.Unmarshal(data, &conversation))
	providertest.RunMessages(t, genkitstate.Format, conversation)
}

// A conversation of Genkit comes back: numbers as they are spelled, and
// signatures as the bytes that Genkit's own JSON makes a text of.
func TestMessagesComeBack(t *testing.T) {
	want := []*ai.Message{
		ai.NewSystemTextMessage("Be brief."),
		ai.NewUserMessage(ai.NewTextPart("Look: <b>"), ai.NewMediaPart("image/png", "data:image/png;base64,aGk="), ai.NewResourcePart("file:///a")),
		{Role: ai.RoleModel, Metadata: map[string]any{"cache": map[string]any{"ttl": "300"}}, Content: []*ai.Part{
			ai.NewReasoningPart("Hm.", []byte("sig")),
			{Kind: ai.PartToolRequest, ToolRequest: &ai.ToolRequest{Name: "look", Ref: "c1", Input: map[string]any{"id": json.Number("9007199254740993")}},
				Metadata: map[string]any{"signature": []byte("sig")}},
			ai.NewToolRequestPart(&ai.ToolRequest{Name: "now"}),
		}},
		{Role: ai.RoleTool, Content: []*ai.Part{
			ai.NewToolResponsePart(&ai.ToolResponse{Name: "look", Ref: "c1", Output: map[string]any{"id": json.Number("9007199254740993")}}),
			ai.NewToolResponsePart(&ai.ToolResponse{Name: "now", Output: "noon", Content: []*ai.Part{ai.NewMediaPart("image/png", "https://example.org/noon.png")}}),
		}},
		ai.NewModelMessage(ai.NewTextPart(""), ai.NewCustomPart(map[string]any{"code": "x"}), ai.NewDataPart("d")),
	}
	for _, m := range want { // their JSON does not have it
		for _, p := range m.Content {
			if p.IsText() {
				p.ContentType = ""
			}
		}
	}
	msgs, err := genkitstate.Messages(want...)
	if err != nil {
		t.Fatal(err)
	}
	got, err := genkitstate.From(msgs...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			g, _ := json.Marshal(got[i])
			w, _ := json.Marshal(want[i])
			t.Errorf("message %d is\n%s\nwant\n%s", i, g, w)
		}
	}
}

// Calls of one turn, and results of one step, are one message each, whichever API
// they come from. A result that is an error says so to the model.
func TestFrom(t *testing.T) {
	a, b := state.ToolCall{ID: "a", Name: "f", Input: `{}`}, state.ToolCall{ID: "b", Name: "g"}
	msgs, err := genkitstate.From(state.AssistantText("Two."), state.ToolCalls(a, b), state.ToolResult(a, `[1.0]`), state.ToolError(b, "broken"))
	must(err)
	got, err := json.Marshal(msgs)
	must(err)
	want := `[{"content":[{"text":"Two."},{"toolRequest":{"input":{},"name":"f","ref":"a"}},{"toolRequest":{"input":{},"name":"g","ref":"b"}}],"role":"model"},` +
		`{"content":[{"toolResponse":{"name":"f","output":[1.0],"ref":"a"}},{"toolResponse":{"name":"g","output":{"error":"broken"},"ref":"b"}}],"role":"tool"}]`
	if !state.JSON(got).Equal(state.JSON(want)) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	again, err := genkitstate.Messages(msgs...)
	must(err)
	if r, ok := again[3].(state.ToolResultMessage); !ok || !r.IsError() || r.Text() != "broken" {
		t.Errorf("the error came back as %v", again[3])
	}
	if none, err := genkitstate.From(); len(none) != 0 || err != nil {
		t.Errorf("no messages: %v, %v", none, err)
	}
	if _, err := genkitstate.Messages(nil); err == nil {
		t.Error("a nil message was converted")
	}
	if _, err := genkitstate.Messages(ai.NewUserMessage(ai.NewToolRequestPart(&ai.ToolRequest{Input: make(chan int)}))); err == nil {
		t.Error("a channel was converted")
	}
}
