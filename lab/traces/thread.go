package traces

import (
	"github.com/agentstate/state"
	"github.com/agentstate/state/lab/traces/loose"
)

// threads puts exchanges in conversations. An application sends the whole
// conversation again with every request, or says which response it goes on from;
// of several agents each has a conversation of its own.
type threads []*thread

// thread is a conversation as it grows.
type thread struct {
	run  *Run
	last *exchange
	said []state.Message // since the last step
}

// add adds an exchange to the latest conversation that it continues, or begins
// a new one.
func (ts *threads) add(x *exchange) {
	for i := len(*ts) - 1; i >= 0; i-- {
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

// continued returns what is new in a request since the exchange before it.
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
	return after(msgs[len(before):], t.last.result.Output)
}

// after returns the messages that follow what a model said, if they begin with
// it. Applications seldom repeat all that was in a response, so what counts is
// the text and the calls.
func after(msgs, output []state.Message) (rest []state.Message, ok bool) {
	for _, m := range output {
		if !speaks(m) {
			continue
		}
		for len(msgs) > 0 && !speaks(msgs[0]) && msgs[0].Type() != "tool_result" {
			msgs = msgs[1:]
		}
		if len(msgs) == 0 || !saysTheSame(m, msgs[0]) {
			return nil, false
		}
		msgs = msgs[1:]
	}
	return msgs, true
}

// speaks reports whether there is text or a call in a message.
func speaks(m state.Message) bool {
	switch m := m.(type) {
	case state.TextMessage:
		return m.Text() != ""
	case state.ToolCallMessage:
		return len(m.Calls()) > 0
	}
	return false
}

func saysTheSame(a, b state.Message) bool {
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

// add adds an exchange with what is new in its request: results of the calls
// before it, what others said, and the model's turn. A request that brought no
// turn leaves what it said to the next.
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

// alone returns the run of an exchange that is all there is.
func alone(x *exchange) *Run {
	x.decode()
	var ts threads
	ts.add(x)
	return ts.end()[0]
}
