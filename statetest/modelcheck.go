package statetest

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// check reports what the provider would refuse in a request, and calls that are
// not as the model made them.
func (m *Model) check(ctx context.Context, number int, r asked, plain Request) {
	m.report.Helper()
	request := provider.Request{Messages: r.Messages, Settings: r.Settings}
	refusal := refusalBy(r.Format, request, func(text string) string { return m.mask(ctx, text) })
	if refusal != "" && m.script.isFirstFinding() {
		m.errorf(ctx, "statetest: request %d, %s, %s", number, r.by(), refusal)
	}
	m.checkCalls(ctx, number, r, plain)
}

// refusalBy returns why the provider would refuse the conversation of a request,
// or "".
func refusalBy(f *provider.Format, r provider.Request, mask func(string) string) string {
	findings := transcript.Check(r.Messages, r.Profile(f.Profile()))
	if len(findings) == 0 {
		return ""
	}
	marked := map[int]bool{}
	lines := make([]string, len(findings))
	for i, finding := range findings {
		marked[finding.Message] = true
		lines[i] = finding.String()
	}
	return fmt.Sprintf("would be refused by %s:\n%s\n    %s", f, outline(r.Messages, marked, mask),
		strings.Join(lines, "\n    "))
}

// isFirstFinding reports whether no request had findings before. A conversation
// that grows has those of its beginning each time.
func (s *script) isFirstFinding() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.findings
	s.findings = true
	return first
}

// checkCalls reports calls of the model that the conversation has otherwise.
func (m *Model) checkCalls(ctx context.Context, number int, r asked, plain Request) {
	m.report.Helper()
	mask := func(text string) string { return m.mask(ctx, text) }
	for _, made := range m.script.changedCalls(r.Request, plain) {
		c := made.got
		problem := fmt.Sprintf("the call %sis not the one that the model made:\n    - %s %s\n    + %s %s", idName(c.ID),
			made.Name, mask(string(made.Input)), c.Name, mask(string(c.Input)))
		if made.cut {
			problem = fmt.Sprintf("the stream with the call %sof %s broke off, and the conversation has what came of it: %s",
				idName(c.ID), made.Name, mask(string(c.Input)))
		}
		m.errorf(ctx, "statetest: request %d, %s: %s\n%s", number, r.by(), problem,
			m.outline(ctx, r.Messages, map[int]bool{made.message: true}))
	}
}

func idName(id string) string {
	if id == "" {
		return ""
	}
	return strconv.Quote(id) + " "
}

// repeat is how often an agent has asked the same in a row.
type repeat struct {
	request  Request // in its plain form
	reply    *scripted
	answered bool // all but the last have had a reply
	counted  int  // a reply that is given several times counts once
	all      int
}

const (
	maxEqual   = 3   // equal requests in a row that may have answers
	fatalEqual = 100 // by then the program does not stop by itself
)

// repeated counts a request that is about to get a reply, and returns why it
// does not get it: because it is the same as those before it.
func (m *Model) repeated(ctx context.Context, number int, r asked, plain Request) (refusal string) {
	m.report.Helper()
	same := m.script.countEqual(plain, m.script.next(r.Request, plain))
	switch {
	case same.all >= fatalEqual && (same.reply == nil || same.all >= same.reply.times):
		m.fatalf(ctx, same.all == fatalEqual,
			"statetest: request %d, %s, is the same as the %d requests before it: the program does not stop",
			number, r.by(), same.all-1)
	case same.counted <= maxEqual:
		return ""
	case same.counted == maxEqual+1:
		had := ""
		if same.answered {
			had = ", which all had a reply"
		}
		m.errorf(ctx, "statetest: request %d, %s, is the same as the %d requests before it%s:\n%s",
			number, r.by(), same.all-1, had, m.outline(ctx, r.Messages, nil))
	}
	return fmt.Sprintf("this request has come %d times in a row", same.all)
}

// countEqual counts a request of an agent which is about to get the reply, or
// none if that is nil.
func (s *script) countEqual(plain Request, reply *scripted) repeat {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.repeats[plain.Agent]
	if last == nil || !last.request.equal(plain) {
		last = &repeat{request: plain, answered: true}
		s.repeats[plain.Agent] = last
	} else {
		last.answered = last.answered && last.reply != nil
	}
	last.all++
	if reply == nil || reply.times == 0 || reply.times == 1 || reply != last.reply {
		last.counted++
	}
	last.reply = reply
	return *last
}
