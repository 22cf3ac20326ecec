package fault

import (
	"regexp"
	"strings"
)

// stackBegin is where a stack begins as debug.Stack writes it, or as a list of
// functions and their files.
var stackBegin = regexp.MustCompile(`(?m)\bgoroutine \d+ \[|^\S+\n\s+\S+\.go:\d+`)

// CutStack splits the text of an error in front of the line in which the stack of
// a goroutine begins. A text without one is returned as it is.
func CutStack(text string) (before, stack string) {
	at := stackBegin.FindStringIndex(text)
	if at == nil {
		return text, ""
	}
	if line := strings.LastIndexByte(text[:at[0]], '\n'); line > 0 {
		at[0] = line
	}
	return strings.TrimRight(text[:at[0]], " \n,:;"), strings.TrimLeft(text[at[0]:], "\n")
}

// Line returns a text as one line.
func Line(text string) string {
	if !strings.ContainsAny(text, "\r\n") {
		return text
	}
	return strings.Join(strings.Fields(text), " ")
}
