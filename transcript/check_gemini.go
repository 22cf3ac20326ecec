package transcript

import (
	"github.com/agentstate/state"
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
