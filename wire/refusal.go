package wire

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/origin"
)

// refusals are the errors by which providers refuse what a conversation has, as they
// were reported up to 2026-11-27: the names of formats, the status, and words of the
// body, as a regular expression: a gateway may quote the provider. isMedium says that
// it is a picture or file.
var refusals = []struct {
	formats  string
	status   int
	isMedium bool
	words    string
}{
	// Image: github.com/anthropics/claude-code/issues/1747, 2025-07-31.
	// PDF: github.com/anthropics/anthropic-sdk-python/issues/903, 2025-03-12.
	{"Anthropic", 400, true, `(?i)could not process (image|pdf)`},
	// github.com/anthropics/claude-code/issues/43487, 2026-04-04.
	{"Anthropic", 400, false, `(?i)content filtering policy`},
	// github.com/anthropics/anthropic-sdk-python/issues/938, 2025-04-14.
	{"Anthropic", 413, true, `request_too_large`},
	// ResponseErrorCode in openai-go v3.96.0: five codes begin with invalid_, six with
	// image_.
	{
		"OpenAI OpenAIResponses", 400, true,
		`"(invalid_image|invalid_base64_image|image_|unsupported_image|empty_image|failed_to_download_image)`,
	},
	// Another code: github.com/CosmosShadow/gptpdf/issues/6, 2024-06-30.
	// A model for texts: roboflow/awesome-openai-vision-api-experiments/issues/11,
	// 2023-11-21; DeepSeek: github.com/rikkahub/rikkahub/issues/1433, 2026-07-03.
	// Ollama: github.com/ollama/ollama/issues/7247, 2024-10-17.
	{
		"OpenAI OpenAIResponses", 400, true,
		`(?i)unsupported image|image_url is only supported|unknown variant .{0,2}image_url|invalid image input`,
	},
	// OpenRouter, a model for texts: github.com/nexu-io/nexu/issues/733, 2026-04-01.
	{"OpenAI OpenAIResponses", 404, true, `support image input`},
	// ResponseErrorCode in openai-go v3.96.0, and
	// Azure: github.com/openai/openai-python/issues/331, 2023-03-22.
	{"OpenAI OpenAIResponses", 400, false, `"(invalid_prompt|content_filter)`},
	// github.com/google-gemini/gemini-cli/issues/5064, 2025-07-28, and 27244,
	// 2026-05-19; github.com/charmbracelet/crush/issues/995, 2025-09-08. Behind a
	// gateway: github.com/egoist/chatwise-releases/issues/799, 2025-05-27.
	{"Gemini OpenAI", 400, true, `(?i)unable to process input image|provided image is not valid|unsupported mime type`},
}

// partPath is how errors name a part of a conversation: messages.3.content.1.image,
// messages[3].content[1] or input[4]. For example, that is how a picture is too
// large: github.com/anthropics/claude-code/issues/4778, 2025-08-04.
var partPath = regexp.MustCompile(`\b(messages|input|contents)[.\[]\d[\w.\[\]]*`)

// aboutContainer is an error of a container, and not of one that is missing, which
// names container_id.
var aboutContainer = regexp.MustCompile(`(?i)\bcontainer\b`)

var pathName = regexp.MustCompile(`\w+`)

// modelSetting is the model that a request names: texts have escaped quotes.
var modelSetting = regexp.MustCompile(`"model"\s*:\s*"[^"]*"`)

// toWithhold returns what of the conversation is to be withheld because the provider
// has refused the request. The body of the response stays whole.
func (c *call) toWithhold(resp *http.Response) []string {
	msgs := state.Messages.GetOr(c.st, nil)
	if resp.StatusCode < 400 || resp.StatusCode >= 500 || len(c.sent.history) == 0 || len(msgs) == 0 ||
		// else an earlier message may have failed
		c.refused.Times == 3 || c.refused.Times == 2 && !isUserText(msgs[len(msgs)-1]) {
		return nil
	}
	text, _ := io.ReadAll(resp.Body) // as the SDK does
	resp.Body = &wholeBody{bytes.NewReader(text), resp.Body}
	if id := c.sent.container; id != "" && (strings.Contains(string(text), id) || aboutContainer.Match(text)) {
		return []string{callkey.Derive(c.refused.Provider) + " " + containerPiece + id} // of another account, or deleted
	}
	isListed, isMedium := false, false
	for _, r := range refusals {
		if r.status == resp.StatusCode && slices.Contains(strings.Fields(r.formats), c.format.String()) &&
			regexp.MustCompile(r.words).Match(text) {
			isListed, isMedium = true, isMedium || r.isMedium
		}
	}
	before := slices.Concat(inside.Windows().GetOr(c.st, nil)[""].Withheld, c.refused.Withheld)
	pick := func(fits func(origin.Piece) bool) (ids []string) {
		for _, p := range origin.Pieces(msgs) {
			if id := callkey.Derive(c.refused.Provider) + " " + p.ID; fits(p) && !slices.Contains(before, id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	isNew := func(p origin.Piece) bool { return !slices.ContainsFunc(msgs[p.Message+1:], origin.FromAssistant) }
	path := pathName.FindAllString(partPath.FindString(string(text)), -1)
	said := origin.Said(c.body, path...)
	named := pick(func(p origin.Piece) bool {
		return len(path) > 0 && slices.Contains(said, p.Says) && (!p.IsWords || isNew(p))
	})
	media := pick(func(p origin.Piece) bool { return p.IsMedium && isNew(p) })
	if len(media) == 0 && (isMedium || len(named) > 0) { // what was accepted is refused beside others, or by another model
		media = pick(func(p origin.Piece) bool { return p.IsMedium })
	}
	switch {
	case c.refused.Times == 0 && len(named) > 0:
		return named
	case c.refused.Times == 0 && isListed && len(media) > 0:
		return media
	case !isListed && len(named) == 0:
		return nil
	}
	// results, and what the user has said without an answer
	newest := slices.Concat(named, media, pick(func(p origin.Piece) bool {
		return isNew(p) && (p.IsWords && isUserText(msgs[p.Message]) || isListed && !p.IsWords && !p.IsMedium)
	}))
	if !isListed || len(newest) > 0 {
		return newest
	}
	// late results, and what the model has said last
	return pick(func(p origin.Piece) bool { return !p.IsWords || isNew(p) })
}
