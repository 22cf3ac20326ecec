package workspace

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
)

// NumberedMessage is a message of the conversation of a workspace.
type NumberedMessage struct {
	Message state.Message
	// Number is given to the message when it is stored first. It is one more than
	// that of the message that was stored before, is never given again as long as
	// the workspace is neither reset nor deleted, and stays when the conversation
	// is edited or shortened. It is not the place of the message in the
	// conversation.
	Number int
	// Behind is the number of the message in front of it in the conversation, or 0
	// if it is the first one. A late result, which was stored after what follows
	// it, stands behind a lower number than Number - 1.
	Behind int
	Time   time.Time // when it was stored
	Run    string    // the ID of the Message whose run has stored it; empty if no run has
}

// Messages yields at most n messages of the conversation, or all if n is
// negative: those with the lowest numbers above after, in their order in the
// conversation. A caller that has seen all messages up to a number, and goes on
// with it, sees each later one once, including late results.
func (v *View) Messages(after, n int) iter.Seq[NumberedMessage] {
	return func(yield func(NumberedMessage) bool) {
		for _, m := range v.numbered(after, n) {
			if !yield(m) {
				return
			}
		}
	}
}

func (v *View) numbered(after, n int) []NumberedMessage {
	said := state.Messages.Or(v.orEmpty().state, nil)
	if len(said) != len(v.numbers) { // the schema has no place for the conversation
		return nil
	}
	list := make([]NumberedMessage, 0, len(said))
	behind := 0
	for i, number := range v.numbers {
		if number > after {
			by := v.origins.Of(number)
			list = append(list, NumberedMessage{said[i], number, behind, by.Time, by.Run})
		}
		behind = number
	}
	if n < 0 || n >= len(list) {
		return list
	}
	lowest := slices.SortedFunc(slices.Values(list), byNumber)[:n]
	return slices.DeleteFunc(list, func(m NumberedMessage) bool { return n == 0 || m.Number > lowest[n-1].Number })
}

func byNumber(a, b NumberedMessage) int { return cmp.Compare(a.Number, b.Number) }

// readNumbers reads the numbers of the conversation.
func (v *View) readNumbers(doc *document.Document) (err error) {
	if v.numbers, err = doc.Numbers(); err == nil {
		v.origins, err = doc.Origins()
	}
	return err
}

// numberedJSON is the JSON of a NumberedMessage.
type numberedJSON struct {
	Number  int             `json:"number"`
	Behind  int             `json:"behind"`
	Time    time.Time       `json:"time,omitzero"`
	Run     string          `json:"run,omitempty"`
	Message json.RawMessage `json:"message"`
}

func (m *NumberedMessage) json(redact func(string) string) numberedJSON {
	message, _ := maskedJSON(json.RawMessage(m.Message.Raw()), redact) // which is JSON
	return numberedJSON{m.Number, m.Behind, m.Time, redact(m.Run), message}
}
