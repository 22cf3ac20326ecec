package fault

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckName returns nil if text is a name: one line of visible text, so that it
// can stand in prompts, logs and keys. Otherwise it returns the error at path.
// Names of fields, agents, functions and memories have to pass.
func CheckName(path, text string) *Error {
	if text == "" {
		return &Error{Path: path, Want: "a name", Got: "nothing"}
	}
	if !utf8.ValidString(text) {
		return &Error{Path: path, Want: "valid UTF-8", Got: "other bytes"}
	}
	if i := strings.IndexFunc(text, isInvisible); i >= 0 {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return &Error{Path: path, Want: "one line of visible text", Got: fmt.Sprintf("%U", r)}
	}
	return nil
}

// isInvisible reports whether r is a control character, ends a line or changes
// how the text around it is shown.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\ufeff'
}
