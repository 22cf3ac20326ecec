package adaptertest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
)

// A turn is what a model says in one message: a text, or calls without ids.
type turn struct {
	text  string
	calls []state.ToolCall
}

func call(name, input string) state.ToolCall {
	return state.ToolCall{Name: name, Input: state.JSON(input)}
}

// scripts are the turns of each agent. The names of the calls of a turn tell it
// from the others of the agent.
var scripts = map[string][]turn{
	"search": {
		{calls: []state.ToolCall{call("look_up", `{"topic":"forged","user":"mallory"}`), call("check_card", `{}`)}},
		{calls: []state.ToolCall{call("look_up", `{"topic":"delivery"}`), call("look_up", `{"topic":"returns"}`)}},
		{text: "It was delivered on Monday."},
	},
	"stock":  {{calls: []state.ToolCall{call("look_up", `{"topic":"stock"}`)}}, {text: "It is in stock."}},
	"policy": {{calls: []state.ToolCall{call("look_up", `{"topic":"policy"}`)}}, {text: "Refunds are fine."}},
	"billing": {
		{calls: []state.ToolCall{call("approve", `{"amount":30}`)}},
		{calls: []state.ToolCall{call("refund", `{"amount":30}`)}},
		{text: finalText},
	},
}

const finalText = "I have refunded 30 euros."

// next returns the turn that follows the last one in a conversation. Calls that
// were not completed are made again, with other ids.
func next(agent string, msgs []state.Message) (state.Message, error) {
	script, at := scripts[agent], 0
	last, completed := lastCalls(msgs)
	if last != nil {
		at = slices.IndexFunc(script, func(t turn) bool { return slices.Equal(names(t.calls), names(last)) })
		if at < 0 {
			return nil, fmt.Errorf("adaptertest: the model of %s made no calls %q", agent, names(last))
		}
		if completed {
			at++
		}
	}
	if script[at].text != "" {
		return state.AssistantText(script[at].text), nil
	}
	calls, id := slices.Clone(script[at].calls), lastID(agent, msgs)
	for i := range calls {
		id++
		calls[i].ID = fmt.Sprintf("call_%s_%d", agent, id)
	}
	return state.ToolCalls(calls...), nil
}

// lastCalls returns the calls whose results end a conversation, or nil, and
// whether they were completed.
func lastCalls(msgs []state.Message) (calls []state.ToolCall, completed bool) {
	i, completed := len(msgs), true
	for ; i > 0; i-- {
		result, ok := msgs[i-1].(state.ToolResultMessage)
		if !ok {
			break
		}
		completed = completed && !strings.Contains(result.Text(), "There is no result")
	}
	if i == len(msgs) {
		return nil, false
	}
	for ; i > 0; i-- {
		m, ok := msgs[i-1].(state.ToolCallMessage)
		if !ok {
			break
		}
		calls = append(m.Calls(), calls...)
	}
	return calls, completed
}

func names(calls []state.ToolCall) []string {
	var names []string
	for _, c := range calls {
		names = append(names, c.Name)
	}
	return names
}

// lastID returns the highest number of an id of an agent in a conversation.
func lastID(agent string, msgs []state.Message) int {
	last := 0
	for _, m := range msgs {
		m, ok := m.(state.ToolCallMessage)
		if !ok {
			continue
		}
		for _, c := range m.Calls() {
			n := 0
			if _, err := fmt.Sscanf(c.ID, "call_"+agent+"_%d", &n); err == nil {
				last = max(last, n)
			}
		}
	}
	return last
}
