package lcstate_test

import (
	"bytes"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/agentstate/state"
	"github.com/agentstate/state/adapter/lcstate"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/transcript"
)

// Each client gets the form of contents that it reads.
func TestContents(t *testing.T) {
	msgs, err := lcstate.FromChatMessages(everything[:5])
	check(t, err)
	picture, err := state.Parts("user",
		`{"type":"text","text":"What is it?"}`,
		`{"type":"image","mimeType":"image/png","data":"aGk="}`,
		`{"type":"image_url","image_url":{"url":"https://a.test/b.png","detail":"low"}}`,
		`{"type":"audio","mimeType":"audio/wav","data":"aGk="}`,
	)
	check(t, err)
	msgs = append(msgs, picture, state.Text("moderator", "Order!"))
	for _, p := range []transcript.Profile{transcript.OpenAI, transcript.Anthropic, transcript.Gemini} {
		var shown bytes.Buffer
		llms.ShowMessageContents(&shown, lcstate.Contents(msgs, p))
		statetest.Golden(t, "contents_"+p.String()+".txt", shown.String())
	}
}
