package traces

import (
	"time"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// conversation collects the steps of a run while its entries are read in order.
type conversation struct {
	run        *Run
	said       []state.Message // since the last turn and its results
	unanswered []*call         // in the order of the calls
}

// call is a call that has no result yet.
type call struct {
	state.ToolCall
	raw   []byte // the JSON in the message
	step  int
	agent string
}

// addMessage adds a message that is not a model's.
func (c *conversation) addMessage(e *entry, m state.Message) {
	c.said = append(c.said, m)
	e.msgs = append(e.msgs, m)
}

// addTurn adds the output of a model, as a new step.
func (c *conversation) addTurn(e *entry, agent string, at time.Time, output ...state.Message) {
	step := len(c.run.Steps)
	c.run.Steps = append(c.run.Steps, Step{
		Path: e.path, Said: c.said, Agent: agent, Output: output, Raw: string(e.raw), Time: at,
	})
	c.said = nil
	e.step = step
	e.msgs = append(e.msgs, output...)
	for _, m := range output {
		calls, ok := m.(state.ToolCallMessage)
		if !ok {
			continue
		}
		tools := loose.Elements(loose.Members([]byte(m.Raw())).Get("tools"))
		for i, tc := range calls.Calls() {
			c.unanswered = append(c.unanswered, &call{tc, tools[i], step, agent})
		}
	}
}

// addResult adds a tool result and finds its call. The result may give an id, a
// name and the agent that called, or none of them. own and rest are the members
// of the message apart from the call.
func (c *conversation) addResult(e *entry, id, name, agent string, own, rest jsontext.Object) error {
	tool := toolOf(id, name)
	answered := c.takeCall(id, name, agent)
	if answered != nil {
		tool = answered.raw
	}
	own = append(own[:1:1].With("tool", tool), own[1:]...)
	m, err := newMessage("tool_result", own, rest)
	if err != nil {
		return err
	}
	last := len(c.run.Steps) - 1
	if answered == nil || answered.step != last || len(c.said) > 0 {
		// It is not a result of the last turn. The conversation keeps its
		// order.
		c.addMessage(e, m)
		return nil
	}
	c.run.Steps[last].Results = append(c.run.Steps[last].Results, m.(state.ToolResultMessage))
	e.step = last
	e.msgs = append(e.msgs, m)
	return nil
}

// toolOf returns the call of a result whose call is not in the recording.
func toolOf(id, name string) []byte {
	var tool jsontext.Object
	if id != "" {
		tool = tool.WithString("id", id)
	}
	if name != "" {
		tool = tool.WithString("name", name)
	}
	return tool.JSON()
}

// takeCall removes the call that a result answers and returns it, nil if there
// is none. An id is not enough: some models give the same id to several calls,
// and some give none. takeCall therefore takes the call that matches best.
// Among equal matches it takes the first one of the latest turn.
func (c *conversation) takeCall(id, name, agent string) *call {
	best, bestScore := -1, -1
	for i, u := range c.unanswered {
		if id != "" && u.ID != "" && u.ID != id || name != "" && u.Name != "" && u.Name != name && u.ID != id {
			continue
		}
		score := 0
		if id != "" && u.ID == id {
			score += 4
		}
		if agent != "" && u.agent == agent {
			score += 2
		}
		if name != "" && u.Name == name {
			score++
		}
		if score > bestScore || score == bestScore && u.step > c.unanswered[best].step {
			best, bestScore = i, score
		}
	}
	if best < 0 {
		return nil
	}
	found := c.unanswered[best]
	c.unanswered = append(c.unanswered[:best], c.unanswered[best+1:]...)
	return found
}

// read adds an entry. An entry that is not part of the last step belongs to the
// next one.
func (c *conversation) read(path string, raw []byte, f *logFormat) error {
	e := entry{path: path, raw: raw, step: len(c.run.Steps)}
	if err := f.read(c, &e, loose.Members(raw)); err != nil {
		return err
	}
	c.run.entries = append(c.run.entries, e)
	return nil
}

// end returns the run.
func (c *conversation) end() *Run {
	c.run.Rest = c.said
	return c.run
}
