package lcstate_test

import (
	"bytes"
	"slices"
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

// The client is told how closely the model is to look at a picture.
func TestContentsKeepDetail(t *testing.T) {
	picture, err := state.Parts("user",
		`{"type":"image_url","image_url":{"url":"https://a.test/a.png","detail":"low"}}`,
		`{"type":"image_url","image_url":{"url":"https://a.test/b.png"}}`,
		`{"type":"input_image","image_url":"https://a.test/c.png","detail":"high"}`,
	)
	check(t, err)
	var got []llms.ContentPart
	for _, c := range lcstate.Contents([]state.Message{picture}, transcript.OpenAI) {
		got = append(got, c.Parts...)
	}
	want := []llms.ContentPart{
		llms.ImageURLContent{URL: "https://a.test/a.png", Detail: "low"},
		llms.ImageURLContent{URL: "https://a.test/b.png"},
		llms.ImageURLContent{URL: "https://a.test/c.png", Detail: "high"},
	}
	if !slices.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
}
