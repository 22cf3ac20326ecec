package otelstate

import (
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentstate/state/tool"
)

// maxConversations and maxCalled bound how many conversations, and calls in
// each, are remembered with what their spans start with. Spans of programs that
// have more cost a little more.
const (
	maxConversations = 256
	maxCalled        = 32
)

// conversations remembers the conversations of users.
type conversations struct {
	mu   sync.Mutex
	list map[string]*conversation
}

// conversation is what the spans of a user start with. It is made once, because
// most spans are not sampled.
type conversation struct {
	attrs []attribute.KeyValue
	plain []trace.SpanStartOption // without further attributes
	run   spanStart

	mu     sync.Mutex
	called map[called]spanStart
}

// spanStart is what a span starts with.
type spanStart struct {
	name string
	opts []trace.SpanStartOption
}

// called is a tool that an agent calls, or an agent that is invoked if tool is
// nil.
type called struct {
	tool  *tool.Tool
	agent string
	kind  string // gen_ai.operation.name
}

// conversationOf returns the conversation of a user.
func (t *Tracer) conversationOf(userID string) *conversation {
	if userID == "" {
		return t.nobody
	}
	c := &t.names
	c.mu.Lock()
	known := c.list[userID]
	c.mu.Unlock()
	if known != nil {
		return known
	}
	made := t.newConversation(t.opts.Conversation(userID))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.list == nil || len(c.list) >= maxConversations {
		c.list = map[string]*conversation{}
	}
	c.list[userID] = made
	return made
}

func (t *Tracer) newConversation(id string) *conversation {
	c := &conversation{attrs: text(nil, keyConversation, id)}
	if len(c.attrs) > 0 {
		c.plain = []trace.SpanStartOption{trace.WithAttributes(c.attrs...)}
	}
	attrs := append([]attribute.KeyValue{attribute.String(keyOperation, operationWorkflow)}, c.attrs...)
	c.run = c.newStart(operationWorkflow, t.opts.Workflow, text(attrs, keyWorkflow, t.opts.Workflow))
	return c
}

func (c *conversation) newStart(operation, name string, attrs []attribute.KeyValue) spanStart {
	return spanStart{
		name: strings.TrimSuffix(operation+" "+name, " "),
		opts: []trace.SpanStartOption{trace.WithAttributes(attrs...)},
	}
}

// startOf returns what the span of a call starts with.
func (c *conversation) startOf(key called) spanStart {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.called[key]; ok {
		return s
	}
	attrs := append([]attribute.KeyValue{attribute.String(keyOperation, key.kind)}, c.attrs...)
	attrs = text(attrs, keyAgent, key.agent)
	name := key.agent
	if key.kind == operationTool {
		name = toolName(key.tool)
		attrs = append(attrs, attribute.String(keyTool, name), attribute.String(keyToolType, toolFunction))
	}
	s := c.newStart(key.kind, name, attrs)
	if c.called == nil || len(c.called) >= maxCalled {
		c.called = map[called]spanStart{}
	}
	c.called[key] = s
	return s
}

// toolName returns the name of a tool. A name that the model has made up is
// content, and there may be any number of them.
func toolName(t *tool.Tool) string {
	if t == nil {
		return other
	}
	return t.Name()
}
