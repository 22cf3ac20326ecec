package traces

import (
	"time"

	"github.com/agentstate/state/lab/traces/loose"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
)

// conversation collects the steps of a run as its entries are read, in order.
type conversation struct {
	run        *Run
	said       []state.Message // since the last turn and its results
	unanswered []*call         // in the order in which they were called
}

// call is a call without a result so far.
type call struct {
	state.ToolCall
	raw   []byte // as it is in the message
	step  int
	agent string
}

// say adds a message of somebody who is no model.
func (c *conversation) say(e *entry, m state.Message) {
	c.said = append(c.said, m)
	e.msgs = append(e.msgs, m)
}

// turn adds what a model said: a step of its own.
func (c *conversation) turn(e *entry, agent string, at time.Time, output ...state.Message) {
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

// answer adds a tool result with the members of its message besides the call,
// which it finds. What is known of the call is what the result says: an id, a
// name, the agent who called, or nothing.
func (c *conversation) answer(e *entry, id, name, agent string, own, rest jsontext.Object) error {
	tool := toolOf(id, name)
	answered := c.take(id, name, agent)
	if answered != nil {
		tool = answered.raw
	}
	own = append(own[:1:1].With("tool", tool), own[1:]...)
	m, err := message("tool_result", own, rest)
	if err != nil {
		return err
	}
	last := len(c.run.Steps) - 1
	if answered == nil || answered.step != last || len(c.said) > 0 {
		// Not a result of the turn before it. The conversation keeps its order.
		c.say(e, m)
		return nil
	}
	c.run.Steps[last].Results = append(c.run.Steps[last].Results, m.(state.ToolResultMessage))
	e.step = last
	e.msgs = append(e.msgs, m)
	return nil
}

// toolOf returns what is known of a call that is not there.
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

// take removes the call that a result answers and returns it, nil if there is
// none. An id says little: models give one to several calls, and some give
// none. So it is the call that fits best, in the latest turn that has one as
// good, and there the first.
func (c *conversation) take(id, name, agent string) *call {
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

// read adds what one entry holds. The entry belongs to the step that is next, if
// it is not part of the last one.
func (c *conversation) read(path string, raw []byte, f *log) error {
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
