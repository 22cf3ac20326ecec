package aguistate

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/page"
)

// A file that a user sends reaches the model where the format has a place for it,
// and a note where it has not. A client gets it again as it was sent.
func TestFilesOfAUser(t *testing.T) {
	m, err := workspace.Open(t.Context(), store.NewMemory(), &workspace.Options{})
	require.NoError(t, err)
	defer m.Close()
	for _, test := range []struct {
		name, part   string
		gemini, chat string // what is sent
		again        string // to a client, "" if it is the part
	}{
		{"a document", `{"type":"document","source":{"type":"data","value":"aGk=","mimeType":"application/pdf"}}`,
			`"mimeType":"application/pdf"`, `data:application/pdf;base64,aGk=`, ""},
		{"a document at an address", `{"type":"document","source":{"type":"url","value":"https://e.org/a.pdf","mimeType":"application/pdf"}}`,
			`"fileUri":"https://e.org/a.pdf"`, "[file left out]", ""},
		{"a sound", `{"type":"audio","source":{"type":"data","value":"aGk=","mimeType":"audio/mpeg"}}`,
			`"mimeType":"audio/mp3"`, `"input_audio"`, ""},
		{"a video", `{"type":"video","source":{"type":"data","value":"aGk=","mimeType":"video/mp4"}}`,
			`"mimeType":"video/mp4"`, "[video left out]", ""},
		{"a binary", `{"type":"binary","mimeType":"application/pdf","data":"aGk="}`,
			`"mimeType":"application/pdf"`, `data:application/pdf;base64,aGk=`, `{"type":"document","source":{"type":"data","value":"aGk=","mimeType":"application/pdf"}}`},
		{"a file that only the client has", `{"type":"document","source":{"type":"id","value":"f1"}}`, "[document left out]", "[document left out]", `{"type":"text","text":"[document left out]"}`},
		{"no source", `{"type":"video"}`, "[video left out]", "[video left out]", `{"type":"text","text":"[video left out]"}`},
		{"a part to come", `{"type":"hologram","data":"x"}`, "[content left out]", "[content left out]", `{"type":"text","text":"[content left out]"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var said content
			require.NoError(t, json.Unmarshal([]byte(`[{"type":"image","source":{"type":"url","value":"https://e.org/a.png"}},`+test.part+`]`), &said))
			for f, want := range map[*provider.Format]string{provider.Gemini: test.gemini, provider.OpenAI: test.chat} {
				var only content
				require.NoError(t, json.Unmarshal([]byte("["+test.part+"]"), &only))
				msg, err := only.said(&page.Source{})
				require.NoError(t, err)
				body, _, err := f.EncodeRequest(provider.Request{Messages: []state.Message{msg}})
				require.NoError(t, err)
				require.Contains(t, string(body), want, f)
			}
			want := test.part
			if test.again != "" {
				want = test.again
			}
			msg, err := said.said(&page.Source{})
			require.NoError(t, err)
			require.NoError(t, m.Update(t.Context(), test.name, func(w *workspace.Workspace) error {
				return state.Messages.Set(w.State(), []state.Message{msg})
			}))
			shown, err := (&page.Source{Manager: m}).Read(t.Context(), test.name)
			require.NoError(t, err)
			require.JSONEq(t, `[{"type":"image","source":{"type":"url","value":"https://e.org/a.png"}},`+want+`]`, string(encode(contentOf(shown.Items[0].Parts).shown())))
		})
	}
}
