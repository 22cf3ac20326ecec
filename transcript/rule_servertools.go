package transcript

import (
	"fmt"

	"github.com/agentstate/state/internal/jsontext"
)

// findServerTools demands that the calls and the results of the provider's own
// tools are complete:
//
//   - "Each advisor_tool_result block must have a corresponding server_tool_use
//     block before it" (claude-code#95406)
//   - "web_search tool use with id … was found without a corresponding
//     web_search_tool_result block" (anthropic-sdk-python#961, #1339). In the last
//     turn the result may be missing, because the provider continues that turn.
func findServerTools(c *checker) {
	var calls []serverCall
	answered := map[string]bool{} // of the calls so far
	lastUser := none              // after the first call
	for _, i := range c.sent {
		v := &c.msgs[i]
		if len(calls) > 0 && v.role == "user" {
			lastUser = i
		}
		if len(v.parts) == 0 || !v.keepsParts() {
			continue
		}
		for _, part := range v.parts {
			call, result := serverToolIDs(part)
			_, called := answered[result]
			switch {
			case call != "":
				calls, answered[call] = append(calls, serverCall{call, i}), false
			case called:
				answered[result] = true
			case result != "":
				c.addFinding(i, ruleServerTool, fmt.Sprintf("no call %.60q", result))
			}
		}
	}
	for _, call := range calls {
		if !answered[call.id] && call.message < lastUser {
			c.addFinding(call.message, ruleServerTool, fmt.Sprintf("no result of call %.60q", call.id))
		}
	}
}

type serverCall struct {
	id      string
	message int
}

// repairServerTools drops calls and results of Anthropic's own tools that lack
// their counterpart.
func (r *repairer) repairServerTools() {
	refused := map[*entry]bool{}
	for _, one := range r.refusals(ruleServerTool) {
		refused[one.entry] = true
	}
	if len(refused) == 0 {
		return
	}
	answered := map[string]bool{} // of the calls
	own := map[*entry][]jsontext.Object{}
	for _, e := range r.entries {
		v := r.view(e.message)
		if !v.keepsParts() {
			continue
		}
		own[e] = v.parts
		for _, part := range v.parts {
			call, result := serverToolIDs(part)
			if _, called := answered[result]; called {
				answered[result] = true
			} else if call != "" {
				answered[call] = false
			}
		}
	}
	called := map[string]bool{"": true} // so far
	isComplete := func(part jsontext.Object) bool {
		call, result := serverToolIDs(part)
		called[call] = true
		return called[result] && (call == "" || answered[call])
	}
	for _, e := range r.entries {
		if refused[e] {
			r.filterParts(refusal{e, ruleServerTool}, isComplete)
			continue
		}
		for _, part := range own[e] {
			isComplete(part)
		}
	}
}
