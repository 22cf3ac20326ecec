package converse_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/agentstate/state"
	"github.com/agentstate/state/lab/converse"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/provider/providertest"
	"github.com/stretchr/testify/require"
)

func TestCodec(t *testing.T) {
	providertest.Run(t, converse.Format, os.DirFS("testdata/recordings"))
}

// The laws hold for what Bedrock was sent and has answered. No stream is among
// these recordings.
func TestCodecOnTraces(t *testing.T) {
	folder := os.Getenv("STATE_TRACES")
	if folder == "" {
		t.Skip("STATE_TRACES is not set: the codec is tested on the project's own recordings")
	}
	recordings := fstest.MapFS{}
	for _, kind := range []string{"exchange_bedrock_converse", "raw_bedrock"} {
		files, err := filepath.Glob(filepath.Join(folder, kind, "*.json"))
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			recordings[kind+"/"+filepath.Base(file)] = &fstest.MapFile{Data: data}
		}
	}
	entries, err := fs.Glob(recordings, "*/*.json")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(entries), 19)
	providertest.Run(t, converse.Format, recordings)
}

// A conversation with Bedrock goes on with Anthropic, and back.
func TestCarry(t *testing.T) {
	request, err := converse.Format.DecodeRequest([]byte(`{"messages":[
		{"role":"user","content":[{"text":"What is this?"},{"image":{"format":"png","source":{"bytes":"aGk="}}}]},
		{"role":"assistant","content":[{"text":"I look."},{"toolUse":{"toolUseId":"t1","name":"look","input":{"at":1}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"a kiwi"}]}},{"text":"Well?"}]}]}`))
	require.NoError(t, err)
	body, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: request.Messages, Settings: `{"model":"m","max_tokens":9}`})
	require.NoError(t, err)
	require.Empty(t, omitted)
	require.JSONEq(t, `{"model":"m","max_tokens":9,"messages":[
		{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},
		{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"look","input":{"at":1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a kiwi"}]},{"type":"text","text":"Well?"}]}]}`, string(body))

	handmade := []state.Message{
		state.SystemText("Be brief."), state.UserText("Look."), state.ToolCalls(state.ToolCall{ID: "t1", Name: "look"}),
		state.ToolResult(state.ToolCall{ID: "t1", Name: "look"}, "a kiwi"), state.UserText("Well?"),
	}
	body, omitted, err = converse.Format.EncodeRequest(provider.Request{Messages: handmade})
	require.NoError(t, err)
	require.Empty(t, omitted)
	require.JSONEq(t, `{"system":[{"text":"Be brief."}],"messages":[{"role":"user","content":[{"text":"Look."}]},
		{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"look","input":{}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"a kiwi"}]}},{"text":"Well?"}]}]}`, string(body))
}
