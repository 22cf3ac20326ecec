package provider_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// Images, sounds and files of every format are encoded for Anthropic, in texts and
// in results, as far as it can express them.
func TestMediaForAnthropic(t *testing.T) {
	const png = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`
	const pdf = `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aGk="},"title":"a.pdf"}`
	const plain = `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hi"}}`
	tests := []struct {
		name, part string
		want       string // a block, or the text that stands for the part
		omitted    string // besides a part that is left out
	}{
		{"OpenAI image", `{"type":"image_url","image_url":{"url":"https://e.org/a.png","detail":"low"}}`, `{"type":"image","source":{"type":"url","url":"https://e.org/a.png"}}`, "member image_url.detail of part 0"},
		{"OpenAI image as base64", `{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}`, png, ""},
		{"OpenAI image of another spelling", `{"type":"image_url","image_url":"data:image/JPG;base64,aGk="}`, `{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"aGk="}}`, ""},
		{"OpenAI image that the API does not take", `{"type":"image_url","image_url":{"url":"data:image/bmp;base64,aGk="}}`, `[image left out]`, ""},
		{"OpenAI image in a data URL without base64", `{"type":"image_url","image_url":{"url":"data:image/svg+xml,%3Csvg/%3E"}}`, `[image left out]`, ""},
		{"OpenAI sound", `{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}}`, `[audio left out]`, ""},
		{"OpenAI file", `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,aGk="}}`, pdf, ""},
		{"OpenAI file of unknown kind", `{"type":"file","file":{"filename":"a","file_data":"aGk="}}`, `[file left out]`, ""},
		{"OpenAI file that it holds", `{"type":"file","file":{"file_id":"f"}}`, `[file left out]`, ""},
		{"OpenAI file of another kind", `{"type":"file","file":"f"}`, `[file left out]`, ""},
		{"Responses image", `{"type":"input_image","image_url":"data:image/png;base64,aGk="}`, png, ""},
		{"Responses image that it holds", `{"type":"input_image","file_id":"f","image_url":null}`, `[image left out]`, ""},
		{"Responses file", `{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,aGk="}`, pdf, ""},
		{"Responses file by its URL", `{"type":"input_file","file_url":"https://e.org/a.pdf"}`, `{"type":"document","source":{"type":"url","url":"https://e.org/a.pdf"}}`, ""},
		{"Responses text", `{"type":"input_file","file_data":"data:text/csv;charset=utf-8;base64,aGk="}`, plain, ""},
		{"Responses text that is not UTF-8", `{"type":"input_file","file_data":"data:text/plain;base64,/w=="}`, `[file left out]`, ""},
		{"Responses text that is not base64", `{"type":"input_file","file_data":"data:text/plain;base64,?"}`, `[file left out]`, ""},
		{"Gemini image", `{"inlineData":{"mimeType":"image/png","data":"aGk="}}`, png, ""},
		{"Gemini image, spelled otherwise", `{"inline_data":{"mime_type":"image/png","data":"aGk="}}`, png, ""},
		{"Gemini file", `{"inlineData":{"mimeType":"application/pdf","data":"aGk=","displayName":"a.pdf"}}`, pdf, ""},
		{"Gemini image by its URL", `{"fileData":{"mimeType":"image/webp","fileUri":"https://e.org/a"}}`, `{"type":"image","source":{"type":"url","url":"https://e.org/a"}}`, ""},
		{"Gemini file in a bucket", `{"fileData":{"mimeType":"application/pdf","fileUri":"gs://b/a"}}`, `[file left out]`, ""},
		{"Gemini sound", `{"file_data":{"mime_type":"audio/mpeg","file_uri":"https://e.org/a"}}`, `[audio left out]`, ""},
		{"Gemini text by its URL", `{"fileData":{"mimeType":"text/plain","fileUri":"https://e.org/a"}}`, `[file left out]`, ""},
		{"Gemini, neither", `{"executableCode":{"code":"1"}}`, `[content left out]`, ""},
		{"Anthropic, made by hand", png, png, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			content, omitted := "["+test.want+"]", []string{}
			if strings.HasPrefix(test.want, "[") {
				content = strconv.Quote(test.want)
				omitted = append(omitted, "part of type")
			}
			if test.omitted != "" {
				omitted = append(omitted, test.omitted)
			}
			says := func(message, entries string) {
				t.Helper()
				encoded, left, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: messagesOf(t, "["+message+"]")})
				require.NoError(t, err)
				jsonEqual(t, []byte(`{"messages":[`+entries+`]}`), encoded)
				require.Len(t, left, len(omitted))
				for i, what := range omitted {
					require.Contains(t, left[i].What, what)
				}
			}
			says(`{"type":"text","role":"user","content":[`+test.part+`]}`, `{"role":"user","content":`+content+`}`)
			says(`{"type":"tool_result","role":"tool_result","tool":{"type":"tool","id":"a","name":"f"},"content":[`+test.part+`],"openai":{}}`,
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":`+content+`}]}`)
		})
	}
}

// An image that is in the message goes through every format and back.
func TestMediaThroughFormats(t *testing.T) {
	formats := []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini}
	byHand := messagesOf(t, `[{"type":"text","role":"user","content":[{"type":"text","text":"What is it?"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}]`)
	through := func(f *provider.Format, from provider.Request) (body []byte, decoded provider.Request) {
		body, omitted, err := f.EncodeRequest(provider.Request{Messages: from.Messages})
		require.NoError(t, err)
		require.Empty(t, omitted)
		decoded, err = f.DecodeRequest(body)
		require.NoError(t, err)
		return body, decoded
	}
	for _, one := range formats {
		body, request := through(one, provider.Request{Messages: byHand})
		require.Contains(t, string(body), "aGk=")
		for _, other := range formats {
			_, there := through(other, request)
			back, _ := through(one, there)
			require.JSONEq(t, string(body), string(back), "%s, %s and back", one, other)
		}
	}
}

// A text is a text in every format, whichever format the part is from.
func TestTextsForEveryFormat(t *testing.T) {
	for _, part := range []string{
		`{"type":"text","text":"hello"}`,
		`{"type":"input_text","text":"hello"}`,
		`{"type":"output_text","text":"hello","annotations":[]}`,
		`{"text":"hello"}`,
		`{"text":"hello","thought":false}`,
	} {
		for _, format := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
			msgs := messagesOf(t, `[{"type":"text","role":"user","content":[`+part+`]}]`)
			body, omitted, err := format.EncodeRequest(provider.Request{Messages: msgs})
			require.NoError(t, err)
			require.Empty(t, omitted, "%s for %s", part, format)
			decoded, err := format.DecodeRequest(body)
			require.NoError(t, err)
			require.Equal(t, "hello", decoded.Messages[0].(state.TextMessage).Text(), "%s for %s", part, format)
		}
	}
}

// A part is read in the words of any format.
func TestReadPart(t *testing.T) {
	pdf := provider.Part{Kind: provider.PartFile, MIME: "application/pdf", Data: "aGk="}
	for part, want := range map[state.JSON]provider.Part{
		`{"type":"output_text","text":"hi"}`:                                                          {Kind: provider.PartText, Text: "hi"},
		`{"type":"input_image","image_url":"https://e.org/a"}`:                                        {Kind: provider.PartImage, URL: "https://e.org/a"},
		`{"type":"image","mimeType":"image/png","data":"aGk="}`:                                       {Kind: provider.PartImage, MIME: "image/png", Data: "aGk="},
		`{"type":"input_audio","input_audio":{"format":"wav","data":"aGk="}}`:                         {Kind: provider.PartAudio, MIME: "audio/wav", Data: "aGk="},
		`{"inlineData":{"mimeType":"application/pdf","data":"aGk="}}`:                                 pdf,
		`{"type":"input_file","file_data":"data:application/pdf;base64,aGk="}`:                        pdf,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aGk="}}`: pdf,
	} {
		got, ok := provider.ReadPart(part)
		require.True(t, ok, part)
		require.Equal(t, want, got, part)
	}
	for _, part := range []state.JSON{``, `null`, `[]`, `{"type":"thinking","thinking":"hm"}`, `{"type":"input_file","file_id":"f"}`} {
		_, ok := provider.ReadPart(part)
		require.False(t, ok, part)
	}
}
