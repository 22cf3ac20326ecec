package transcript

import (
	"cmp"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/origin"
)

// A call has a result, and a result has a call before it.
//
//   - OpenAI: "An assistant message with 'tool_calls' must be followed by tool
//     messages responding to each 'tool_call_id'"; "messages with role 'tool' must
//     be a response to a preceeding message with 'tool_calls'"
//   - OpenAIResponses: "No tool output found for function call …"; "No tool call
//     found for function call output with call_id …"
//   - Anthropic: "tool_use ids were found without tool_result blocks immediately
//     after"; "unexpected tool_use_id found in tool_result blocks"
//   - Gemini: "the number of function response parts is equal to the number of
//     function call parts of the function call turn"

// findUnanswered demands a result for each call.
func findUnanswered(c *checker) {
	for _, call := range c.calls {
		if call.result == none {
			c.addFinding(call.message, ruleUnanswered, describeCall(*call.ToolCall))
		}
	}
}

// findOrphans demands a call for each result, unless the provider may hold it.
func findOrphans(c *checker) {
	if c.profile.Continued {
		return
	}
	for i, number := range c.answers {
		if result, ok := c.msgs[i].message.(state.ToolResultMessage); ok && number == none && inside.IsMessage(result) {
			c.addFinding(i, ruleOrphan, describeCall(result.Call()))
		}
	}
}

// findMisplaced demands that results come directly after the turn with their
// calls, before anything else.
func findMisplaced(c *checker) {
	if !c.AdjacentResults {
		return
	}
	turns := make([]int, len(c.msgs)) // of each message, the start of its turn
	turn := none
	var before state.Message
	for _, i := range c.sent {
		m := c.msgs[i].message
		if result, ok := m.(state.ToolResultMessage); ok {
			if number := c.answers[i]; number != none && turns[c.calls[number].message] != turn {
				c.addFinding(i, ruleNotAdjacent, describeCall(result.Call()))
			}
		} else {
			if before == nil || !c.sameTurn(before, m) {
				turn = i
			}
			turns[i] = turn
		}
		before = m
	}
}

// findMixedResults demands of a content of Gemini with several responses that it
// has nothing else (gemini-cli#16135, gemini-cli#17068). With one response, other
// parts are accepted.
func findMixedResults(c *checker) {
	var before state.Message
	results := 0 // of the content so far
	for _, i := range c.sent {
		m := c.msgs[i].message
		if before != nil && !sameContent(before, m) {
			results = 0
		}
		if isResult(m) {
			results++
		} else if results > 1 && isResult(before) {
			c.addFinding(i, ruleNotAdjacent, "")
		}
		before = m
	}
}

// repairResults gives calls and results their counterparts, or drops them, and
// moves results to where the provider wants them.
func (r *repairer) repairResults() {
	p := pairCalls(r.messages())
	added := r.pairEntries(&p)
	r.placeResults(added)
}

// pairEntries drops or mends what has no counterpart, and notes in each result
// which call it answers. It returns the answers to insert, by the message with
// their calls.
func (r *repairer) pairEntries(p *pairing) map[*entry][]*entry {
	added := map[*entry][]*entry{}
	owners := make([]*entry, len(p.calls)) // of the calls, nil if dropped
	numbers := make([]int, len(p.calls))   // of the calls within their messages
	kept := r.entries[:0:0]
	for i, e := range r.entries {
		switch m := e.message.(type) {
		case state.ToolCallMessage:
			left := r.repairCalls(e, m, p.callsOf(i), added)
			if left == nil {
				markIdleReasoning(kept)
				continue
			}
			for n, k := range left {
				owners[p.firstCall[i]+k], numbers[p.firstCall[i]+k] = e, n
			}
		case state.ToolResultMessage:
			e.answers = nil
			if number := p.answers[i]; number != none {
				e.answers, e.call = owners[number], numbers[number]
			} else if !r.repairOrphan(e, m) {
				continue
			}
		}
		kept = append(kept, e)
	}
	r.entries = kept
	return added
}

// markIdleReasoning marks the reasoning at the end, which led to a dropped
// call.
func markIdleReasoning(entries []*entry) {
	for _, e := range slices.Backward(entries) {
		if e.idle || !origin.FromAssistant(e.message) || !isReasoning(e.message) {
			return
		}
		e.idle = true
	}
}

// repairCalls mends a message with calls. It returns which of the calls are
// left, nil if the message is to be dropped.
func (r *repairer) repairCalls(
	e *entry, m state.ToolCallMessage, calls []pairedCall, added map[*entry][]*entry,
) []int {
	left := make([]int, 0, len(calls))
	for k, c := range calls {
		switch {
		case c.result != none:
		case r.policy.AnswerCalls:
			// This policy drops no call of the message, so k remains its
			// number.
			answer := state.ToolError(c.unanswered(), origin.NoResult)
			added[e] = append(added[e], &entry{
				message: answer, original: e.original, added: true, answers: e, call: k,
			})
			r.addChange(e.original, ruleUnanswered, "answered "+describeCall(*c.ToolCall))
		default:
			r.addChange(e.original, ruleUnanswered, "dropped "+describeCall(*c.ToolCall))
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
	texts := callTexts(m)
	leftTexts := make([][]byte, len(left))
	for n, k := range left {
		leftTexts[n] = texts[k]
	}
	e.replaceMessage(origin.WithMember(m, "tools", jsontext.Array(leftTexts)))
	return left
}

// repairOrphan mends a result without a call. It reports whether the entry
// stays.
func (r *repairer) repairOrphan(e *entry, m state.ToolResultMessage) bool {
	switch call := m.Call(); {
	case r.profile.Continued:
	case r.policy.KeepResults:
		e.message = state.UserText(resultTitle(call) + " " + shown(m, false).(state.ToolResultMessage).Content().Text())
		r.addChange(e.original, ruleOrphan, "made a user text: "+describeCall(call))
	default:
		r.addChange(e.original, ruleOrphan, "dropped "+describeCall(call))
		return false
	}
	return true
}

// placeResults puts results, and the answers that were added, directly after
// the turn with their calls. Results that are there already keep their order,
// and so do all other messages.
func (r *repairer) placeResults(added map[*entry][]*entry) {
	p := newPlacement(r)
	for i, e := range r.entries {
		if p.done[i] || !p.sent[i] || isResult(e.message) {
			p.place(i, i+1)
			continue
		}
		end := p.turnEnd(i)
		p.place(i, end)
		p.place(end, p.resultsEnd(i, end))
		if r.AdjacentResults {
			p.moveResults(i, end)
		}
		for _, caller := range r.entries[i:end] {
			p.placed = append(p.placed, added[caller]...)
		}
	}
	r.entries = p.placed
}

// placement is a new order of the entries of a repairer. Indexes are those of
// the old order.
type placement struct {
	*repairer
	sent    []bool  // of each entry, whether the provider is sent it
	owner   []int   // of each result, the entry with its call, or none
	results [][]int // of each entry, the results of its calls
	done    []bool  // of each entry, whether it has been placed
	placed  []*entry
}

func newPlacement(r *repairer) *placement {
	n := len(r.entries)
	p := &placement{
		repairer: r,
		sent:     make([]bool, n),
		owner:    make([]int, n),
		results:  make([][]int, n),
		done:     make([]bool, n),
		placed:   make([]*entry, 0, n),
	}
	indexes := make(map[*entry]int, n)
	for i, e := range r.entries {
		p.sent[i], indexes[e] = r.isSent(e.message), i
	}
	for i, e := range r.entries {
		owner, ok := indexes[e.answers]
		if !ok {
			p.owner[i] = none
			continue
		}
		p.owner[i], p.results[owner] = owner, append(p.results[owner], i)
	}
	return p
}

// place places the entries from start to end that have not been placed.
func (p *placement) place(start, end int) {
	for i := start; i < end; i++ {
		if !p.done[i] {
			p.placed, p.done[i] = append(p.placed, p.entries[i]), true
		}
	}
}

// turnEnd returns the end of the turn that begins at start. It ends in front of
// a result, or of a message of another turn.
func (p *placement) turnEnd(start int) int {
	end, before := start+1, p.entries[start].message
	for i := start + 1; i < len(p.entries); i++ {
		m := p.entries[i].message
		if p.done[i] || !p.sent[i] {
			continue
		}
		if isResult(m) || !p.sameTurn(before, m) {
			break
		}
		end, before = i+1, m
	}
	return end
}

// resultsEnd returns the end of the results behind a turn that are in their
// place already: those of the turn, and those without a call. Between them may
// be entries that are not sent or that have been placed.
func (p *placement) resultsEnd(start, end int) int {
	resultsEnd := end
	for i := end; i < len(p.entries); i++ {
		ownResult := p.owner[i] >= start && p.owner[i] < end
		orphan := p.owner[i] == none && isResult(p.entries[i].message)
		if ownResult || orphan {
			resultsEnd = i + 1
		} else if !p.done[i] && p.sent[i] {
			break
		}
	}
	return resultsEnd
}

// moveResults places the results of a turn that are not in their place.
func (p *placement) moveResults(start, end int) {
	results := slices.Sorted(slices.Values(slices.Concat(p.results[start:end]...)))
	for _, i := range results {
		if p.done[i] {
			continue
		}
		p.place(i, i+1)
		call := p.entries[i].message.(state.ToolResultMessage).Call()
		p.addChange(p.entries[i].original, ruleNotAdjacent, "moved "+describeCall(call))
	}
}

// repairJoined corrects what messages say about being in one entry with the
// message before them, if that is another message now. Results of one turn are
// in one entry. Other messages are in one entry only if they were.
func (r *repairer) repairJoined() {
	for k := 1; k < len(r.entries); k++ {
		before, e := r.entries[k-1], r.entries[k]
		joined, said := origin.Joined(e.message)
		if !said || before.original == e.original-1 && !before.added || r.wereJoined(before, e) {
			continue
		}
		if both := isResult(before.message) && isResult(e.message); both != joined {
			r.setJoined(e, both)
		}
	}
	// The remaining messages are not results, but are in one entry with
	// results.
	for _, refused := range r.refusals(ruleNotAdjacent) {
		if joined, _ := origin.Joined(refused.message); joined {
			r.setJoined(refused.entry, false)
		}
	}
}

// wereJoined reports whether both were in one entry, in this order.
func (r *repairer) wereJoined(before, e *entry) bool {
	return !before.added && before.original < e.original &&
		r.joinedFrom[before.original] == r.joinedFrom[e.original]
}

// answerSuspended answers the calls that are suspended. If calls are answered
// at all, it answers the others together with them: calls with one id get all
// of their results or none.
func (r *repairer) answerSuspended() {
	if len(r.policy.Suspended) == 0 {
		return
	}
	msgs := r.messages()
	o := packShapes(msgs)
	p, suspended := pairOthers(func(except map[int]bool) pairing { return pairExcept(msgs, except) }, r.policy.Suspended)
	o.pairing = p
	text := state.JSONText(cmp.Or(r.policy.Waiting, waiting))
	var answers []answer
	for number := range p.calls {
		switch c := &p.calls[number]; {
		case c.result != none:
		case suspended[number]:
			answers = append(answers, answer{number, state.ToolResult(c.unanswered(), text)})
		case r.policy.AnswerCalls:
			answers = append(answers, answer{number, state.ToolError(c.unanswered(), origin.NoResult)})
		}
	}
	r.entries = insertAnswers(r.entries, o, answers, func(a answer) *entry {
		c := p.calls[a.call]
		original := r.entries[c.message].original
		r.addChange(original, ruleUnanswered, "answered "+describeCall(*c.ToolCall))
		return &entry{message: a.message, original: original, added: true}
	})
}

// waiting is the default of Policy.Waiting.
const waiting = "Waiting for approval."
