package fault

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckName returns nil if text is a name: one line of visible text without
// space around it, which in prompts, logs and keys cannot be taken for another
// name. Otherwise it returns the error at path. Names of fields, agents and
// functions have to pass.
func CheckName(path, text string) *Error {
	// IsPrint knows only one space. A variation selector changes how the
	// character before it looks, if at all.
	err := checkText(path, text, func(r rune) bool {
		return unicode.IsPrint(r) && IsVisible(r) && !unicode.Is(unicode.Variation_Selector, r)
	})
	if err == nil && strings.Trim(text, " ") != text {
		err = &Error{Path: path, Want: "a name without space around it", Got: "outer space"}
	}
	return err
}

// CheckTitle is CheckName for names that people and models give in their own
// language, such as those of memories. Characters that join others or keep them
// apart are part of some scripts, and so are spaces of other kinds.
func CheckTitle(path, text string) *Error {
	return checkText(path, text, func(r rune) bool {
		return !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) && r != '\u2028' && r != '\u2029' &&
			r != '\ufeff'
	})
}

// checkText returns an error if text is empty or has a character that is not
// accepted.
func checkText(path, text string, accepts func(rune) bool) *Error {
	if text == "" {
		return &Error{Path: path, Want: "a name", Got: "nothing"}
	}
	if !utf8.ValidString(text) {
		return &Error{Path: path, Want: "valid UTF-8", Got: "other bytes"}
	}
	for _, r := range text {
		if printable := ' ' <= r && r <= '~'; !printable && !accepts(r) {
			return &Error{Path: path, Want: "one line of visible text", Got: fmt.Sprintf("%U", r)}
		}
	}
	return nil
}

// IsVisible reports whether r shows as something, if only as a space. Control
// and format characters, such as those that reverse the text around them, are
// not visible, and neither are fillers and unassigned code points.
func IsVisible(r rune) bool {
	const blankBraille = '\u2800'
	return unicode.IsGraphic(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) && r != blankBraille
}

// AppendVisible appends text with the characters that are not visible escaped
// as in JSON. JSON text means the same as before.
func AppendVisible(dst []byte, text string) []byte {
	for _, r := range text {
		switch {
		case IsVisible(r):
			dst = utf8.AppendRune(dst, r)
		case r < 0x10000:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			r -= 0x10000
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return dst
}

// Call returns how errors show a call of a tool: its id, which some providers do
// not give, and the name of the tool.
func Call(id, name string) string {
	text := "call"
	if id != "" {
		text += " " + Quote(id)
	}
	if name != "" {
		text += " of " + Quote(name)
	}
	return text
}

// listedNames is the most names that an error lists.
const listedNames = 8

// Suggest returns the end of an error about an unknown name: the known name
// that is probably meant, or else all known names if they are few.
func Suggest(name string, known []string) string {
	best, least := "", 3 // mistakes
	for _, k := range known {
		if n := distance(fold(name), fold(k)); n < least && n*3 < len(k)+2 {
			best, least = k, n
		}
	}
	switch {
	case best != "":
		return "; did you mean " + Quote(best) + "?"
	case len(known) == 0 || len(known) > listedNames:
		return ""
	}
	if len(known) == 1 {
		return "; there is " + Quote(known[0])
	}
	list := make([]string, len(known))
	for i, k := range known {
		list[i] = Quote(k)
	}
	return "; there are " + strings.Join(list, ", ")
}

// fold removes what is often different in names that mean the same.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return r
	}, strings.ToLower(Clip(name)))
}

// distance returns the number of bytes to insert, delete or replace between two
// names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
