package traces

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/lab/traces/loose"
)

// threads groups exchanges into conversations. Each request repeats the whole
// conversation or names the response that it continues. If several agents take
// part, each has its own conversation.
type threads []*thread

// openThreads limits how many of the latest conversations an exchange may
// continue, because a file may hold thousands.
const openThreads = 200

// thread is a conversation.
type thread struct {
	run  *Run
	last *exchange
	said []state.Message // since the last step
}

// add adds an exchange to the latest conversation that it continues, or to a
// new one.
func (ts *threads) add(x *exchange) {
	for i := len(*ts) - 1; i >= max(0, len(*ts)-openThreads); i-- {
		if news, ok := (*ts)[i].continued(x); ok {
			(*ts)[i].add(x, news)
			return
		}
	}
	t := &thread{run: &Run{Kind: x.kind(), Path: x.path()}}
	t.add(x, x.asked.Messages)
	*ts = append(*ts, t)
}

func (ts threads) end() []*Run {
	var runs []*Run
	for _, t := range ts {
		t.run.Rest = t.said
		runs = append(runs, t.run)
	}
	return runs
}

// continued returns the messages that a request adds to the thread. It returns
// false if the request does not continue the thread.
func (t *thread) continued(x *exchange) (news []state.Message, ok bool) {
	if t.last.wire != x.wire || t.last.request == nil || x.request == nil || t.last.requestErrs != nil || x.requestErrs != nil {
		return nil, false
	}
	msgs := x.asked.Messages
	if after := loose.Text(loose.Members([]byte(x.asked.Settings)).Get("previous_response_id")); after != "" {
		return msgs, after == t.last.result.ID
	}
	before := t.last.asked.Messages
	if len(msgs) < len(before) || len(before) == 0 {
		return nil, false
	}
	for i, m := range before {
		if !m.Equal(msgs[i]) {
			return nil, false
		}
	}
	return afterOutput(msgs[len(before):], t.last.result.Output)
}

// afterOutput returns the messages that follow the output of a model, if msgs
// begin with it. It compares only text and calls, because applications seldom
// repeat everything in a response.
func afterOutput(msgs, output []state.Message) (rest []state.Message, ok bool) {
	for _, m := range output {
		if !hasContent(m) {
			continue
		}
		for len(msgs) > 0 && !hasContent(msgs[0]) && msgs[0].Type() != "tool_result" {
			msgs = msgs[1:]
		}
		if len(msgs) == 0 || !sameContent(m, msgs[0]) {
			return nil, false
		}
		msgs = msgs[1:]
	}
	return msgs, true
}

// hasContent reports whether a message has text or a call.
func hasContent(m state.Message) bool {
	switch m := m.(type) {
	case state.TextMessage:
		return m.Text() != ""
	case state.ToolCallMessage:
		return len(m.Calls()) > 0
	}
	return false
}

func sameContent(a, b state.Message) bool {
	switch a := a.(type) {
	case state.TextMessage:
		b, ok := b.(state.TextMessage)
		return ok && a.Role() == b.Role() && a.Text() == b.Text()
	case state.ToolCallMessage:
		b, ok := b.(state.ToolCallMessage)
		if !ok || len(a.Calls()) != len(b.Calls()) {
			return false
		}
		others := b.Calls()
		for i, call := range a.Calls() {
			if call.ID != others[i].ID || call.Name != others[i].Name || !call.Input.Equal(others[i].Input) {
				return false
			}
		}
		return true
	}
	return false
}

// add adds an exchange with the new messages of its request: the results of the
// calls before it, messages of others, and the turn of the model. Without a
// turn, the messages belong to the next exchange.
func (t *thread) add(x *exchange, news []state.Message) {
	if n := len(t.run.Steps); n > 0 && len(t.said) == 0 {
		step := &t.run.Steps[n-1]
		for len(news) > 0 {
			result, ok := news[0].(state.ToolResultMessage)
			if !ok {
				break
			}
			step.Results = append(step.Results, result)
			news = news[1:]
		}
	}
	t.run.Entries++
	t.run.exchanges = append(t.run.exchanges, x)
	t.last = x
	t.said = append(t.said, news...)
	if x.answered {
		t.run.Steps = append(t.run.Steps, Step{
			Path: x.responsePath, Said: t.said, Agent: "assistant",
			Output: x.result.Output, Raw: x.result.Raw, Time: x.result.CreatedAt,
		})
		t.said = nil
	}
}
