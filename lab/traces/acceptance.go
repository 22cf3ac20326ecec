package traces

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// A conversation that a provider has accepted is valid, so any finding of
// package transcript in it is false. The same holds for the conversation after
// it was trimmed, and for every conversation after its repair.

// trimmedLengths limits the work for long conversations. A conversation is
// trimmed to every length up to this one, and to as many larger lengths at even
// distances, the whole conversation included.
const trimmedLengths = 200

// judge compares what became of the request with what transcript.Check finds in
// it.
func (x *exchange) judge(stats *Stats) {
	if x.request == nil || x.requestErrs != nil {
		return
	}
	note := Note{Path: x.requestPath, Who: x.who(), Text: x.refusal}
	switch x.outcome {
	case outcomeRefused:
		note.Kind = NoteRefused
		x.found = x.foreseen()
		if note.Good = len(x.found) > 0; note.Good {
			note.Text += " (found: " + strings.Join(x.found, ", ") + ")"
		}
		stats.Refused.All++
		stats.Refused.Good += min(1, len(x.found))
	case outcomeFailed:
		note.Kind = NoteUnanswered
		stats.Unanswered++
	case outcomeUnknown:
		for _, finding := range transcript.Check(x.asked.Messages, x.own()) {
			note.Kind, note.Text = NoteFinding, finding.String()
			stats.Notes = append(stats.Notes, note)
		}
		return
	default:
		return
	}
	stats.Notes = append(stats.Notes, note)
}

// foreseen returns the rules of the findings in a request that was refused.
func (x *exchange) foreseen() []string {
	if x.undecodable {
		return []string{"not decodable"}
	}
	var rules []string
	for _, finding := range transcript.Check(x.asked.Messages, x.own()) {
		if !slices.Contains(rules, finding.Rule) {
			rules = append(rules, finding.Rule)
		}
	}
	return rules
}

// accept checks the conversation as it was sent, trimmed, and carried over to
// the other providers, with and without the answer. It returns the false
// findings.
func (x *exchange) accept(stats *Stats) []error {
	if x.requestErrs != nil {
		return nil
	}
	a := acceptance{exchange: x, stats: stats}
	own := x.own()
	window := x.wire.profile // a Trim may drop the thinking with which a turn began
	if x.asked.Continued() {
		window.Continued = true
	}
	asked := x.asked.Messages
	if x.request != nil && x.outcome == outcomeAccepted && a.requireNone("as it was sent", transcript.Check(asked, own)) {
		for _, n := range trimLengths(len(asked)) {
			stats.Trims++
			if !a.requireNone(fmt.Sprintf("trimmed to %d of %d messages", n, len(asked)), transcript.Check(transcript.KeepLast(n)(asked), window)) {
				break
			}
		}
	}
	answered := slices.Concat(asked, x.result.Output)
	for _, w := range wires {
		profile := w.profile
		if w == x.wire {
			profile = own
		} else if len(asked) > 0 {
			a.carry("", w, profile, asked, transcript.Policy{})
		}
		if x.answered {
			a.carry("with the answer, ", w, profile, answered, transcript.Policy{AnswerCalls: true})
		}
	}
	return a.errs
}

// trimLengths returns the lengths to which a conversation of n messages is
// trimmed.
func trimLengths(n int) []int {
	var list []int
	for i := 0; i <= min(n, trimmedLengths); i++ {
		list = append(list, i)
	}
	more := n - trimmedLengths
	for i := 1; i <= min(more, trimmedLengths); i++ {
		list = append(list, trimmedLengths+i*more/min(more, trimmedLengths))
	}
	return list
}

// acceptance collects the false findings in an exchange.
type acceptance struct {
	exchange *exchange
	stats    *Stats
	errs     []error
}

// requireNone notes the findings in a conversation that is valid, and reports
// whether there are none.
func (a *acceptance) requireNone(where string, findings []transcript.Finding) bool {
	if len(findings) == 0 {
		return true
	}
	a.stats.False += len(findings)
	err := fmt.Errorf("%s: a false finding: %s", where, findings[0])
	if who := a.exchange.who(); who != "" {
		err = fmt.Errorf("%s: a false finding (%s): %s", where, who, findings[0])
	}
	if n := len(findings) - 1; n > 0 {
		err = fmt.Errorf("%w, and %d more", err, n)
	}
	a.fail(err)
	return false
}

func (a *acceptance) fail(err error) {
	a.errs = append(a.errs, atPath(a.exchange.path(), err))
}

// carry repairs a conversation for a provider, encodes it and reads it back.
// Neither form may have findings, and both must have the same calls and
// results.
func (a *acceptance) carry(what string, w *wire, profile transcript.Profile, msgs []state.Message, policy transcript.Policy) {
	a.stats.Carried++
	where := what + "repaired for " + w.name
	repaired, changes := transcript.Repair(msgs, profile, policy)
	check := transcript.Check
	if !slices.ContainsFunc(msgs, func(m state.Message) bool { return !origin.IsSystem(m) }) {
		check = checkPrompt
	}
	if !a.requireNone(where, check(repaired, profile)) {
		return
	}
	body, omitted, err := w.format.EncodeRequest(provider.Request{Messages: repaired})
	a.count(w, changes, omitted, slices.ContainsFunc(omitted, func(o provider.Omission) bool { return lost(repaired[o.Message], w) }))
	var back provider.Request
	if err == nil {
		back, err = w.format.DecodeRequest(body)
	}
	if err == nil && !slices.Equal(callsAndResults(repaired), callsAndResults(back.Messages)) {
		err = errors.New("its calls and results have changed")
	}
	if err != nil {
		a.fail(fmt.Errorf("%s and encoded: %w", where, err))
		return
	}
	a.requireNone(where+" and encoded", check(back.Messages, profile))
}

// checkPrompt is transcript.Check for a system prompt alone. A provider may have
// accepted it, and Repair cannot say what another one misses.
func checkPrompt(msgs []state.Message, profile transcript.Profile) []transcript.Finding {
	return slices.DeleteFunc(transcript.Check(msgs, profile), func(f transcript.Finding) bool { return f.Rule == "no-messages" })
}

// lost reports whether nothing remains of a user's message in a format. The
// model then answers to nothing, or speaks twice in a row.
func lost(m state.Message, w *wire) bool {
	text, ok := m.(state.TextMessage)
	if !ok || text.Role() != "user" {
		return false
	}
	body, _, err := w.format.EncodeRequest(provider.Request{Messages: []state.Message{m}})
	if err != nil {
		return false
	}
	back, err := w.format.DecodeRequest(body)
	return err == nil && len(back.Messages) == 0
}

// count counts what was changed and left out on the way to a format.
func (a *acceptance) count(w *wire, changes []transcript.Change, omitted []provider.Omission, lost bool) {
	c := Carriage{All: 1, Changed: min(1, len(changes)), Cut: min(1, len(omitted))}
	if lost {
		c.Lost = 1
	}
	for _, change := range changes {
		c.Changes.add(change.Rule, 1)
	}
	for _, o := range omitted {
		c.Omissions.add(o.What, 1)
	}
	sum(&a.stats.Carriages, map[Way]Carriage{{a.exchange.wire.name, w.name}: c}, (*Carriage).add)
}

// callsAndResults returns the name of each call of a conversation and "" for
// each result, in their order.
func callsAndResults(msgs []state.Message) []string {
	var list []string
	for _, m := range msgs {
		switch m := m.(type) {
		case state.ToolCallMessage:
			for _, call := range m.Calls() {
				list = append(list, call.Name)
			}
		case state.ToolResultMessage:
			list = append(list, "")
		}
	}
	return list
}
