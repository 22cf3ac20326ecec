package transcript_test

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// Pictures count by their pixels, in the words of every format, and files that are
// not texts never as texts.
func TestEstimateOfMedia(t *testing.T) {
	sized := func(width, height int, encode func(*bytes.Buffer, image.Image) error) string {
		var b bytes.Buffer
		require.NoError(t, encode(&b, image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black})))
		return base64.StdEncoding.EncodeToString(b.Bytes())
	}
	asPNG := func(b *bytes.Buffer, m image.Image) error { return png.Encode(b, m) }
	asJPEG := func(b *bytes.Buffer, m image.Image) error { return jpeg.Encode(b, m, nil) }
	asGIF := func(b *bytes.Buffer, m image.Image) error { return gif.Encode(b, m, nil) }
	webp := base64.StdEncoding.EncodeToString([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\xff\x01\x00\xff\x01\x00")) // 512 by 512
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n<</Type /Pages /Count 2>>\n<</Type /Page>>\n<</Type/Page>>\n"))
	other := base64.StdEncoding.EncodeToString(make([]byte, 300_000))
	for name, c := range map[string]struct {
		data, mime string
		from, to   int
	}{
		"small PNG":   {sized(200, 200, asPNG), "image/png", 85, 110},
		"middle PNG":  {sized(512, 512, asPNG), "image/png", 340, 370},
		"JPEG":        {sized(1000, 750, asJPEG), "image/jpeg", 990, 1020},
		"GIF":         {sized(300, 300, asGIF), "image/gif", 110, 150},
		"huge":        {sized(6000, 6000, asPNG), "image/png", 1500, 1640},
		"WebP":        {webp, "image/webp", 340, 370},
		"two pages":   {pdf, "application/pdf", 3300, 3400},
		"other file":  {other, "application/zip", 1090, 1130},
		"cut picture": {sized(512, 512, asPNG)[:16], "image/png", 1090, 1130},
	} {
		for words, part := range map[string]string{
			"MCP":       `{"type":"image","mimeType":"` + c.mime + `","data":"` + c.data + `"}`,
			"resource":  `{"type":"resource","resource":{"uri":"a://b","mimeType":"` + c.mime + `","blob":"` + c.data + `"}}`,
			"chat":      `{"type":"image_url","image_url":{"url":"data:` + c.mime + `;base64,` + c.data + `"}}`,
			"file":      `{"type":"file","file":{"file_data":"data:` + c.mime + `;base64,` + c.data + `"}}`,
			"responses": `{"type":"input_image","image_url":"data:` + c.mime + `;base64,` + c.data + `"}`,
			"anthropic": `{"type":"image","source":{"type":"base64","media_type":"` + c.mime + `","data":"` + c.data + `"}}`,
			"gemini":    `{"inlineData":{"mimeType":"` + c.mime + `","data":"` + c.data + `"}}`,
		} {
			m, err := state.Parts("user", state.JSON(part))
			require.NoError(t, err)
			got := transcript.EstimateTokens(m)
			require.GreaterOrEqual(t, got, c.from, "%s in the words of %s", name, words)
			require.LessOrEqual(t, got, c.to+25, "%s in the words of %s: %.40s", name, words, c.data)
			result := state.ToolResult(state.ToolCall{ID: "1", Name: "f"}, state.JSON("["+part+"]"))
			require.LessOrEqual(t, transcript.EstimateTokens(result), c.to+30, "%s in the words of %s", name, words)
		}
	}
	text, err := state.Parts("user", state.JSON(`{"type":"resource","resource":{"uri":"a://b","text":"`+strings.Repeat("the quick brown fox ", 200)+`"}}`))
	require.NoError(t, err)
	require.InDelta(t, 800, transcript.EstimateTokens(text), 60)
}
