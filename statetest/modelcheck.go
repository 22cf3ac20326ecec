package statetest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// check reports what the provider would refuse in a request, and calls that are
// not as the model made them.
func (m *Model) check(name string, r plainRequest) {
	m.report.Helper()
	findings := transcript.Check(r.Messages, provider.Request{
		Messages: r.Messages, Settings: r.Settings,
	}.Profile(r.Format.Profile()))
	// A conversation that grows has the findings of its beginning each time.
	if len(findings) > 0 && !m.script.findings.Swap(true) {
		marked := map[int]bool{}
		text := ""
		for _, finding := range findings {
			marked[finding.Message] = true
			text += "\n    " + finding.String()
		}
		m.errorf("%s, would be refused by %s:\n%s%s", name, r.Format, m.outline(r.Messages, marked), text)
	}
	for _, made := range m.script.changedCalls(r.Request) {
		c := made.got
		id := strings.TrimPrefix(strconv.Quote(c.ID)+" ", `"" `)
		problem := fmt.Sprintf("the call %sis not the one that the model made:\n    - %s %s\n    + %s %s", id,
			made.Name, made.Input, c.Name, c.Input)
		if made.cut {
			problem = fmt.Sprintf("the stream with the call %sof %s broke off, and the conversation has what came of it: %s",
				id, made.Name, c.Input)
		}
		m.errorf("%s: %s\n%s", name, problem, m.outline(r.Messages, map[int]bool{made.message: true}))
	}
}

// repeat is how often an agent has asked the same in a row.
type repeat struct {
	request plainRequest
	from    *scripted // of the last answer, nil if there was none
	counted int       // a reply that is given several times counts once
	all     int
}

const (
	maxEqual   = 3   // equal requests in a row that may have answers
	fatalEqual = 100 // by then the program does not stop by itself
)

// countEqual counts a request of an agent that gets a reply, or none if that is
// nil.
func (s *script) countEqual(plain plainRequest, from *scripted) repeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.repeats[plain.Agent]
	if last == nil || !last.request.equal(plain) {
		last = &repeat{request: plain}
		s.repeats[plain.Agent] = last
	}
	last.all++
	if s.turn != nil && from != nil && (from.fail != nil || from.isCut) {
		return *last // processes that take over ask again as well
	}
	if from == nil || from.times == 0 || from.times == 1 || from != last.from {
		last.counted++
	}
	last.from = from
	return *last
}

// reportEqual reports that a program asks the same again and again. It ends the
// goroutine of a test that would not stop otherwise.
func (m *Model) reportEqual(name string, r Request, same repeat) {
	m.report.Helper()
	text := fmt.Sprintf("%s, is the same as the %d requests before it", name, same.all-1)
	switch {
	case same.counted == maxEqual+1:
		m.errorf("%s:\n%s", text, m.outline(r.Messages, nil))
	case same.all == fatalEqual:
		m.errorf("%s: the program does not stop", text)
	}
	if t, ok := m.report.(testing.TB); ok && same.all >= fatalEqual {
		t.FailNow()
	}
}
