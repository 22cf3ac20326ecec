package transcript

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
)

// contentWords has the rules about the contents of generateContent. A content
// with several responses has nothing else (gemini-cli#16135, gemini-cli#17068;
// with one response, other parts are accepted).
type contentWords struct {
	before     state.Message
	responses  int // of the content so far
	signatures signatures
}

func (w *contentWords) check(c *checker, k int) {
	i := c.sent[k]
	m := c.msgs[i]
	joined := w.before != nil && sameContent(w.before, m)
	if !joined {
		w.responses = 0
	}
	if c.profile.signatures {
		w.signatures.check(c, i, joined)
	}
	if isResult(m) {
		w.responses++
	} else if w.responses > 1 && isResult(w.before) {
		c.addFinding(i, ruleNotAdjacent, "results with something else in their content")
	}
	w.before = m
}

func (w *contentWords) end(c *checker) { w.signatures.end(c) }

// sameContent reports whether a message is in one content of Gemini with the
// message before it. A message that came from Gemini says so itself. Otherwise
// results share a content with nothing but results, and the rest is as for
// other providers.
func sameContent(before, m state.Message) bool {
	if _, said := origin.Joined(m); said {
		if _, own := origin.Of(m, origin.Gemini); own {
			return origin.Joins(before, m)
		}
	}
	if isResult(m) || isResult(before) {
		return isResult(m) && isResult(before)
	}
	return origin.Joins(before, m)
}
