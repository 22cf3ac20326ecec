package transcript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// findNoContent demands content of texts.
func findNoContent(c *checker) {
	if !c.NoEmptyTexts || c.NoBlankTexts {
		return
	}
	entries := entryWalk{checker: c}
	for k, i := range c.sent {
		v := &c.msgs[i]
		switch {
		case v.kind != kindText || !v.isBlank() || entries.hasCalls(k):
		case c.format == origin.Gemini && v.isOwn && v.isAssistant: // as Gemini has said it
		case c.Format == origin.OpenAI && hasSubstitute(v.message):
		default:
			c.addFinding(i, ruleContent, "")
		}
	}
}

// findBlankTexts demands more than white space.
func findBlankTexts(c *checker) {
	if !c.NoBlankTexts {
		return
	}
	entries := entryWalk{checker: c}
	for k, i := range c.sent {
		if v := &c.msgs[i]; v.kind == kindText {
			if problem := c.blankText(&entries, k, v); problem != "" {
				c.addFinding(i, ruleEmpty, problem)
			}
		}
	}
}

// blankText returns what a text lacks. Anthropic makes exceptions: "all messages
// must have non-empty content except for the optional final assistant message".
func (c *checker) blankText(entries *entryWalk, k int, v *view) string {
	problem := emptyText(v, strings.TrimSpace)
	if problem == "" || c.Format != origin.Anthropic {
		return problem
	}
	switch {
	case problem == noContent && k == len(c.sent)-1 && v.isAssistant:
		return ""
	case v.isOwn && slices.ContainsFunc(v.parts, isServerTool): // the model says it between its own tools, and it is accepted
	case entries.hasCalls(k):
		// An empty text is not sent there. A text of nothing but space, which
		// models say before calls, is accepted.
		if content := v.content(); v.isBlank() || content[0] == '"' {
			return ""
		}
	default:
		return problem
	}
	return emptyText(v, func(text string) string { return text })
}

// findEmptyParts demands of contents of Gemini that no text is empty: "Unable to
// submit request because it has an empty text parameter" (langchainjs#9922,
// new-api#1260). What Gemini has sent itself is refused only by Vertex AI
// (deprecated-generative-ai-python#727). Parts with a signature have to go back.
func findEmptyParts(c *checker) {
	entries := entryWalk{checker: c}
	for k, i := range c.sent {
		v := &c.msgs[i]
		if v.kind != kindText || v.isOwn && !c.NoEmptyParts ||
			v.content() != `""` && !slices.ContainsFunc(v.parts, isEmptyPart) {
			continue
		}
		if v.isOwn || len(v.parts) > 1 || !entries.hasCalls(k) { // else it is not sent
			c.addFinding(i, ruleEmpty, "")
		}
	}
}

// isEmptyPart reports whether a part is an empty text of Gemini without a
// signature.
func isEmptyPart(part jsontext.Object) bool {
	return isTextPart(part) && part.String("text") == "" && part.String("thoughtSignature") == ""
}

// emptyText returns what a text message lacks, "" if it lacks nothing. A text
// of which trim leaves nothing is empty.
func emptyText(v *view, trim func(string) string) string {
	switch content := v.content(); {
	case v.isBlank():
		return noContent
	case content[0] == '"' && trim(content.Text()) == "":
		return "no text"
	}
	for i, part := range v.parts {
		if isTextPart(part) && trim(part.String("text")) == "" {
			return fmt.Sprintf("no text in part %d", i)
		}
	}
	return ""
}

// entryWalk says of the messages that are sent, in their order, whether their
// entry has calls. It keeps the last entry, because each of its messages asks.
type entryWalk struct {
	*checker
	end   int // of the entry, in sent
	calls bool
}

func (w *entryWalk) hasCalls(k int) bool {
	if w.sameEntry == nil {
		return false
	}
	sentMessage := func(k int) state.Message { return w.msgs[w.sent[k]].message }
	if k >= w.end {
		first, end := k, k+1
		for first > 0 && w.sameEntry(sentMessage(first-1), sentMessage(first)) {
			first--
		}
		for end < len(w.sent) && w.sameEntry(sentMessage(end-1), sentMessage(end)) {
			end++
		}
		w.end, w.calls = end, false
		for k := first; k < end && !w.calls; k++ {
			_, w.calls = sentMessage(k).(state.ToolCallMessage)
		}
	}
	return w.calls
}

// findBadParts demands that what came from the provider has an output, and parts
// in the words of its role and of its API. Such parts and results of other
// providers are not sent.
func findBadParts(c *checker) {
	for _, i := range c.sent {
		v := &c.msgs[i]
		if !v.isOwn {
			continue
		}
		if v.kind == kindResult && lacksOutput(v.message) && !c.needsNoOutput(v.message) &&
			(c.Format == origin.OpenAI || c.Format == origin.OpenAIResponses) {
			c.addFinding(i, ruleContent, "")
		}
		for n, part := range v.parts {
			if problem := c.badPart(v, part); problem != "" {
				c.addFinding(i, ruleContent, fmt.Sprintf("part %d %s", n, problem))
				break
			}
		}
	}
}

// badPart returns what is wrong with a part of a text that came from the
// provider.
func (r *rules) badPart(v *view, part jsontext.Object) string {
	switch r.Format {
	case origin.OpenAI:
		// "Missing required parameter: 'messages[0].content[0].type'"
		if isUntypedPart(part) {
			return "has no type"
		}
		if isItemPart(part) {
			return "is of the Responses API"
		}
	case origin.OpenAIResponses:
		if isForeignItemPart(v, part) {
			return "is not of the role"
		}
	case origin.Anthropic:
		// "'image' blocks are not permitted within assistant turns" (Semoss#2323)
		if isImagePart(part) && v.isAssistant {
			return "is an image"
		}
	}
	return ""
}

// lacksOutput reports whether m is a result without content: "Missing required
// parameter: 'input[0].output'". If it came from the provider, it is sent back
// as it is.
func lacksOutput(m state.Message) bool {
	result, ok := m.(state.ToolResultMessage)
	return ok && isMissing(result.Content())
}

// needsNoOutput reports whether the output of a result is optional: that of a patch,
// which has a status (ResponseInputItemApplyPatchCallOutputParam in openai-go
// v3.99.0; the output of all other items is required).
func (r *rules) needsNoOutput(m state.Message) bool {
	kept, _ := origin.Of(m, r.format)
	return kept.String("type") == "apply_patch_call_output"
}

// hasSubstitute reports whether a text of the assistant has another member that
// stands for its content, such as a refusal.
func hasSubstitute(m state.Message) bool {
	if !origin.FromAssistant(m) {
		return false
	}
	kept, _ := origin.Of(m, origin.OpenAI)
	for _, member := range kept.Object("more") {
		switch member.Name {
		case "content", "role", "name", "type", "id", "annotations", "cache_control":
			continue
		}
		switch string(member.Value) {
		case "null", "[]", "{}", `""`:
			continue
		}
		return true
	}
	return false
}

// isItemPart reports whether a part has a type that only the Responses API has:
// "Invalid value: 'input_text'. Supported values are: 'text', 'image_url', …".
func isItemPart(part jsontext.Object) bool {
	switch part.String("type") {
	case "input_text", "input_image", "input_file", "output_text":
		return true
	}
	return false
}

// isForeignItemPart reports whether a part of an item is an image of Chat
// Completions, or a part that the other side says: "Invalid value: 'output_text'.
// Supported values are: 'input_text', 'input_image', and 'input_file'". Texts of
// the right side have the type "text" in a message.
func isForeignItemPart(v *view, part jsontext.Object) bool {
	switch part.String("type") {
	case "image_url":
		return true
	case "output_text", "refusal":
		return !v.isAssistant
	case "input_text", "input_image", "input_file":
		return v.isAssistant
	}
	return false
}

// repairTexts drops the empty parts of texts, and texts that are empty then. A
// result without content stays, with an empty text.
func (r *repairer) repairTexts() {
	for _, refused := range r.refusals(ruleContent, ruleEmpty) {
		if isResult(refused.message) {
			r.reportChange(refused.entry, refused.rule, "now an empty text")
			refused.replaceMessage(origin.WithMember(refused.message, "content", []byte(`""`)))
			continue
		}
		if refused.rule == ruleContent && r.hasForeignParts(refused.message) {
			r.disown(refused.entry)
			continue
		}
		r.filterParts(refused, func(part jsontext.Object) bool {
			switch {
			case refused.rule == ruleEmpty && r.format == origin.Gemini && !r.NoBlankTexts:
				return !isEmptyPart(part)
			case refused.rule == ruleEmpty:
				return !isTextPart(part) || strings.TrimSpace(part.String("text")) != ""
			case r.format == origin.Anthropic:
				return !isImagePart(part)
			}
			return !isUntypedPart(part)
		})
	}
}

// hasForeignParts reports whether a text that came from OpenAI has parts in the
// words of its other API.
func (r *repairer) hasForeignParts(m state.Message) bool {
	v := r.view(m)
	return v.isOwn && slices.ContainsFunc(v.parts, func(part jsontext.Object) bool {
		switch r.format {
		case origin.OpenAI:
			return isItemPart(part)
		case origin.OpenAIResponses:
			return isForeignItemPart(&v, part)
		}
		return false
	})
}

// disown makes a text one that came from no provider, so that its parts are
// converted like those of a program.
func (r *repairer) disown(e *entry) {
	members, _ := jsontext.Members([]byte(e.message.Raw())) // checked when the message was made
	e.replaceMessage(state.DecodeMessage(members.Without(r.format).JSON()))
	r.reportChange(e, ruleContent, "its parts are converted")
}
