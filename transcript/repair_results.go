package transcript

import (
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// noResult is what an answer to a call without a result says.
const noResult = "There is no result: the call was not completed."

// results brings calls and results together: what has no counterpart goes or is
// given one, and results go where the provider wants them.
func (r *repairer) results() {
	p := pair(r.messages())
	answers := r.pairUp(&p)
	r.place(answers)
}

// pairUp drops or mends what has no counterpart, and tells of each result which
// call it answers. It returns the answers to put in, by the message they are for.
func (r *repairer) pairUp(p *pairing) map[*entry][]*entry {
	added := map[*entry][]*entry{}
	owners := make([]*entry, len(p.calls)) // of the calls, nil if dropped
	numbers := make([]int, len(p.calls))   // of the calls within their messages
	list := r.list[:0:0]
	for i, e := range r.list {
		switch m := e.m.(type) {
		case state.ToolCallMessage:
			left := r.calls(e, m, p.of(i), added)
			if left == nil {
				for k := len(list) - 1; k >= 0 && !list[k].tied && origin.IsAssistants(list[k].m) && isReasoning(list[k].m); k-- {
					list[k].tied = true
				}
				continue
			}
			for n, k := range left {
				owners[p.first[i]+k], numbers[p.first[i]+k] = e, n
			}
		case state.ToolResultMessage:
			e.answers = nil
			if number := p.answers[i]; number != none {
				e.answers, e.call = owners[number], numbers[number]
			} else if !r.orphan(e, m) {
				continue
			}
		}
		list = append(list, e)
	}
	r.list = list
	return added
}

// calls mends a message with calls. It returns which of the calls are left, nil
// if the message is to be dropped.
func (r *repairer) calls(e *entry, m state.ToolCallMessage, calls []call, added map[*entry][]*entry) []int {
	left := make([]int, 0, len(calls))
	for k, c := range calls {
		switch {
		case c.result != none:
		case r.policy&PolicyAnswerCalls != 0:
			// No call of the message is dropped then, and k remains its number.
			answer := state.ToolError(state.ToolCall{ID: c.ID, Name: c.Name}, noResult)
			added[e] = append(added[e], &entry{m: answer, place: e.place, added: true, answers: e, call: k})
			r.change(e.place, ruleUnanswered, "answered "+describe(*c.ToolCall))
		default:
			r.change(e.place, ruleUnanswered, "dropped "+describe(*c.ToolCall))
			continue
		}
		left = append(left, k)
	}
	switch {
	case len(left) == len(calls):
		return left
	case len(left) == 0:
		return nil
	}
	tools := toolsOf(m)
	some := make([][]byte, len(left))
	for n, k := range left {
		some[n] = tools[k]
	}
	e.replace(origin.With(m, "tools", jsontext.Array(some)))
	return left
}

// toolsOf returns the calls of a message as they are in it.
func toolsOf(m state.ToolCallMessage) [][]byte {
	members, _ := jsontext.Members([]byte(m.Raw())) // checked when the message was made
	tools, _ := jsontext.Elements(jsontext.Object(members).Get("tools"))
	return tools
}

// orphan mends a result without a call. It reports whether the entry stays.
func (r *repairer) orphan(e *entry, m state.ToolResultMessage) bool {
	switch call := m.Call(); {
	case r.profile.continued:
	case r.policy&PolicyKeepResults != 0:
		name := call.Name
		if name == "" {
			name = "a tool"
		}
		e.m = state.UserText("Result of " + name + ": " + m.Text())
		r.change(e.place, ruleOrphan, "made a text of the user's: "+describe(call))
	default:
		r.change(e.place, ruleOrphan, "dropped "+describe(call))
		return false
	}
	return true
}

// place puts results directly after the turn with their calls, and the answers
// that were added too. Results that are there already keep their order; so do
// all other messages.
func (r *repairer) place(added map[*entry][]*entry) {
	c := checker{rules: r.rules}
	sent := make([]bool, len(r.list))
	for i, e := range r.list {
		sent[i] = c.isSent(e.m)
	}
	places := map[*entry][]int{} // of the results, by the message with the calls
	for i, e := range r.list {
		if e.answers != nil {
			places[e.answers] = append(places[e.answers], i)
		}
	}
	list := make([]*entry, 0, len(r.list))
	done := make([]bool, len(r.list))
	put := func(i int) {
		if !done[i] {
			list, done[i] = append(list, r.list[i]), true
		}
	}
	for i := 0; i < len(r.list); i++ {
		if done[i] || isResult(r.list[i].m) || !sent[i] {
			put(i)
			continue
		}
		end := r.turnEnd(i, sent, done)
		turn := map[*entry]bool{}
		var results []int
		var answers []*entry
		for ; i < end; i++ {
			put(i)
			e := r.list[i]
			turn[e] = true
			results = append(results, places[e]...)
			answers = append(answers, added[e]...)
		}
		// What is in its place already, and what does not count.
		for k := end; k < len(r.list) && (done[k] || !sent[k] || isResult(r.list[k].m)); k++ {
			if e := r.list[k]; e.answers != nil && !done[k] && !turn[e.answers] {
				break
			} else if turn[e.answers] || e.answers == nil && isResult(r.list[k].m) {
				for ; i <= k; i++ {
					put(i)
				}
			}
		}
		if r.adjacent() {
			slices.Sort(results)
			for _, k := range results {
				if !done[k] {
					put(k)
					r.change(r.list[k].place, ruleNotAdjacent, "moved "+describe(r.list[k].m.(state.ToolResultMessage).Call()))
				}
			}
		}
		list = append(list, answers...)
		i--
	}
	r.list = list
}

// turnEnd returns where the turn ends that begins at i: at a result, or at what
// is of another turn.
func (r *repairer) turnEnd(i int, sent, done []bool) int {
	end, before := i+1, r.list[i].m
	for k := i + 1; k < len(r.list); k++ {
		switch {
		case done[k] || !sent[k]:
			continue
		case isResult(r.list[k].m) || !r.sameTurn(before, r.list[k].m):
			return end
		}
		end, before = k+1, r.list[k].m
	}
	return end
}

// adjacent reports whether the provider wants results directly after their
// calls.
func (r *repairer) adjacent() bool {
	return r.format == origin.OpenAI || r.format == origin.Anthropic || r.format == origin.Gemini
}

// sameTurn reports whether a message is of one turn with the one before it.
func (r *repairer) sameTurn(before, m state.Message) bool {
	if r.format == origin.Anthropic || r.format == origin.Gemini {
		return isAssistantsTurn(before, m)
	}
	return origin.Joins(before, m)
}
