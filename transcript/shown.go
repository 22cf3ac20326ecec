package transcript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/excerpt"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// Shown returns messages as a model is shown them. Of a large result of a tool, that
// is a text: its beginning and its end, and between them a note of how many
// characters are left out, which names the tool recall of package loop if the agent
// has it. How much of a result is shown was decided when it was recorded, see
// [state.Limits].ResultBytes, so that the text is the same in each request. It cuts no
// character, and no mask of a secret. Images and other files stand behind it.
//
// The requests that package provider encodes have what Shown returns, and a Window
// and EstimateTokens count it. The messages themselves do not change.
func Shown(msgs []state.Message, recall bool) []state.Message {
	made := slices.Clone(msgs)
	for i, m := range msgs {
		made[i] = shown(m, recall)
	}
	return made
}

// shown is Shown for one message.
func shown(msg state.Message, recall bool) state.Message {
	m, _ := msg.(state.ToolResultMessage)
	number, _ := m.Extra(excerpt.Member)
	limit, err := strconv.Atoi(string(number))
	if err != nil {
		return msg
	}
	text, files := inside.TextAndFiles(m)
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	members = members.Without(excerpt.Member)
	if len(text) > limit && !isFile(m, text) {
		head, tail := excerpt.Ends(text, limit)
		note := fmt.Sprintf("\n[%d characters are left out here.", utf8.RuneCountInString(text[head:tail]))
		if recall {
			note += " The tool " + excerpt.Recall + " finds words in them."
		}
		content := jsontext.AppendQuote(nil, text[:head]+note+"]\n"+text[tail:])
		if len(files) > 0 {
			part := jsontext.Object{}.WithString("type", "text").With("text", content)
			content = jsontext.Array(append([][]byte{part.JSON()}, files...))
		}
		// In the words of a program: an output of another kind may need another form.
		members = members.Without(origin.OpenAI, origin.OpenAIResponses, origin.Anthropic,
			origin.Gemini).With("content", content)
	}
	made, err := inside.DecodeChecked(members.JSON())
	if err != nil {
		return msg
	}
	return made
}

// isFile reports whether a result with a text is nothing but images and other files,
// or the screen of a computer.
func isFile(m state.ToolResultMessage, text string) bool {
	return text == string(m.Content()) &&
		(areParts([]byte(text)) || strings.HasPrefix(text, `{"type":"computer_screenshot"`))
}
