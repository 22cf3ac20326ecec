package provider_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// carriedParts are what the table of the guide has a row for.
var carriedParts = []struct{ name, part string }{
	{"text", `{"type":"text","text":"x"}`},
	{"image as data", `{"type":"image","mimeType":"image/png","data":"aGk="}`},
	{"image by URL", `{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}`},
	{"sound as data (WAV, MP3)", `{"type":"audio","mimeType":"audio/wav","data":"aGk="}`},
	{"sound as data (others)", `{"type":"audio","mimeType":"audio/ogg","data":"aGk="}`},
	{"PDF as data", `{"type":"resource","resource":{"mimeType":"application/pdf","blob":"aGk="}}`},
	{"PDF by URL", `{"type":"document","source":{"type":"url","url":"https://e.org/a.pdf"}}`},
	{"text file as data", `{"type":"file","file":{"file_data":"data:text/csv;base64,aGk="}}`},
	{"other file as data", `{"type":"file","file":{"file_data":"data:application/zip;base64,aGk="}}`},
	{"text resource of MCP", `{"type":"resource","resource":{"mimeType":"text/plain","text":"x"}}`},
	{"link to a resource of MCP", `{"type":"resource_link","uri":"file:///a","name":"a"}`},
}

// carries reports in which messages a format has a place for a part.
func carries(t *testing.T, f *provider.Format, part string) string {
	t.Helper()
	var places []string
	for _, place := range []struct{ name, message string }{
		{"user", `{"type":"text","role":"user","content":[` + part + `]}`},
		{"assistant", `{"type":"text","role":"assistant","content":[` + part + `]}`},
		{"result", `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":[` + part + `]}`},
	} {
		body, omitted, err := f.EncodeRequest(provider.Request{Messages: []state.Message{message(t, place.message)}})
		require.NoError(t, err)
		if len(omitted) == 0 {
			places = append(places, place.name)
		} else {
			require.Contains(t, string(body), " left out]")
		}
	}
	switch len(places) {
	case 0:
		return "–"
	case 3:
		return "everywhere"
	}
	return strings.Join(places, ", ")
}

// The table of the guide says what each format can carry.
func TestTableOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../docs/guide/conversations.md")
	require.NoError(t, err)
	table := "| part | OpenAI | OpenAIResponses | Anthropic | Gemini |\n|---|---|---|---|---|\n"
	for _, row := range carriedParts {
		table += "| " + row.name + " |"
		for _, to := range targets {
			table += fmt.Sprintf(" %s |", carries(t, to.format, row.part))
		}
		table += "\n"
	}
	require.Contains(t, string(guide), table, "the table is\n%s", table)
}

// The content of MCP is what a tool returns.
func TestContentOfMCP(t *testing.T) {
	result := func(parts string) []state.Message {
		return []state.Message{message(t, `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":[`+parts+`]}`)}
	}
	for _, row := range []struct {
		parts, anthropic string
		omitted          []string
	}{
		{`{"type":"text","text":"a","annotations":{"priority":1}},{"type":"image","mimeType":"image/jpeg","data":"aGk="}`,
			`[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"aGk="}}]`, []string{"member annotations of part 0"}},
		{`{"type":"audio","mimeType":"audio/wav","data":"aGk="}`, `"[audio left out]"`, []string{"part of type audio"}},
		{`{"type":"resource","resource":{"uri":"file:///d/a.pdf","mimeType":"application/pdf","blob":"aGk="}}`,
			`[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"aGk="},"title":"a.pdf"}]`, nil},
		{`{"type":"resource","resource":{"uri":"file:///a.bin","mimeType":"application/zip","blob":"aGk="}}`, `"[file left out]"`, []string{"part of type resource"}},
		{`{"type":"resource","resource":{"uri":"file:///a.txt","mimeType":"text/plain","text":"hi"}}`, `[{"type":"text","text":"hi"}]`, []string{"member resource.uri of part 0"}},
		{`{"type":"resource_link","uri":"file:///a.txt","name":"a","mimeType":"text/plain"}`, `[{"type":"text","text":"a: file:///a.txt"}]`, []string{"member mimeType of part 0"}},
		{`{"type":"image","mimeType":"image/png"}`, `"[{\"type\":\"image\",\"mimeType\":\"image/png\"}]"`, nil}, // not a picture
	} {
		body, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{Messages: result(row.parts)})
		require.NoError(t, err)
		jsonEqual(t, []byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":`+row.anthropic+`}]}]}`), body)
		var what []string
		for _, o := range omitted {
			what = append(what, o.What)
		}
		require.Equal(t, row.omitted, what, row.parts)
	}
}
