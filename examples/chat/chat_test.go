package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// run runs the program with an input, and returns what it prints.
func run(t *testing.T, input string) string {
	in, inWriter, err := os.Pipe()
	require.NoError(t, err)
	out, outWriter, err := os.Pipe()
	require.NoError(t, err)
	stdin, stdout := os.Stdin, os.Stdout
	t.Cleanup(func() { os.Stdin, os.Stdout = stdin, stdout })
	os.Stdin, os.Stdout = in, outWriter
	_, err = io.WriteString(inWriter, input)
	require.NoError(t, err)
	require.NoError(t, inWriter.Close())
	main()
	require.NoError(t, outWriter.Close())
	printed, err := io.ReadAll(out)
	require.NoError(t, err)
	return string(printed)
}

func TestTheScriptedServerKeepsTasks(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("ANTHROPIC_API_KEY", "")
	require.Equal(t, `> I have noted it.
> I have noted it.
> map[buy milk:open call "Ann":open]
`, run(t, "buy milk\ncall \"Ann\"\n"))
}

// Both SDKs send the instructions, the fields, the tools and the conversation.
func TestTheSDKsSendWhatTheStateHas(t *testing.T) {
	var bodies []map[string]any
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		bodies = append(bodies, body)
		w.Header().Set("Content-Type", "text/event-stream")
		if req.URL.Path == "/v1/messages" {
			io.WriteString(w, `event: message_start
data: {"type":"message_start","message":{"id":"1","type":"message","role":"assistant","content":[]}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello!"}}

event: message_stop
data: {"type":"message_stop"}

`)
			return
		}
		send(w, object{"content": "Hello!"}, "stop")
	}))
	defer server.Close()
	for _, vendor := range []string{"OPENAI", "ANTHROPIC"} {
		t.Run(vendor, func(t *testing.T) {
			bodies = nil
			t.Setenv("OPENAI_API_KEY", "")
			t.Setenv("ANTHROPIC_API_KEY", "")
			t.Setenv(vendor+"_API_KEY", "key")
			t.Setenv(vendor+"_BASE_URL", server.URL)
			require.Equal(t, "> Hello!\n> Hello!\n> map[]\n", run(t, "Hi!\nAre you there?\n"))
			require.Len(t, bodies, 2)
			sent := fmt.Sprint(bodies[1])
			for _, want := range []string{instructions, "tasks", "add_task", "finish_task", "Hi!", "Hello!", "Are you there?"} {
				require.Contains(t, sent, want)
			}
		})
	}
}
