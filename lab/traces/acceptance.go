package traces

import (
	"errors"
	"fmt"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// What a provider took, it has to take: whatever package transcript finds in it
// is found falsely. The same holds for what is left of it when it is trimmed, and
// for everything that has been repaired.

// trimmedLengths is up to which length a conversation is trimmed to every length.
// Of longer ones as many more are tried, at even distances, and the whole one.
const trimmedLengths = 200

// accept checks the conversation as it was sent, trimmed, and carried over to
// the other providers, with and without the answer. It returns what was found
// falsely.
func (x *exchange) accept(stats *Stats) []error {
	if x.requestErrs != nil {
		return nil
	}
	a := acceptance{exchange: x, stats: stats}
	own := x.wire.profile
	if x.asked.Continued() {
		own = own.Continued()
	}
	asked := x.asked.Messages
	if x.request != nil && x.accepted {
		a.none("as it was sent", transcript.Check(asked, own))
		for _, n := range lengths(len(asked)) {
			stats.Trims++
			if !a.none(fmt.Sprintf("trimmed to %d of %d messages", n, len(asked)), transcript.Check(transcript.KeepLast(n)(asked), own)) {
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
			a.carry("", w, profile, asked, transcript.PolicyDrop)
		}
		if x.answered {
			a.carry("with the answer, ", w, profile, answered, transcript.PolicyAnswerCalls)
		}
	}
	return a.errs
}

// lengths returns the lengths to which a conversation of n messages is trimmed.
func lengths(n int) []int {
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

// acceptance collects what is found falsely in an exchange.
type acceptance struct {
	exchange *exchange
	stats    *Stats
	errs     []error
}

// none notes findings where there must be none, and reports whether there are
// none.
func (a *acceptance) none(where string, findings []transcript.Finding) bool {
	if len(findings) == 0 {
		return true
	}
	a.stats.False += len(findings)
	err := fmt.Errorf("%s: a false finding: %s", where, findings[0])
	if n := len(findings) - 1; n > 0 {
		err = fmt.Errorf("%w, and %d more", err, n)
	}
	a.fail(err)
	return false
}

func (a *acceptance) fail(err error) {
	a.errs = append(a.errs, at(a.exchange.path(), err))
}

// carry repairs a conversation for a provider, encodes it and reads it back.
// Nothing may be found in it before and after, and its calls and results have to
// be there.
func (a *acceptance) carry(what string, w *wire, profile transcript.Profile, msgs []state.Message, policy transcript.Policy) {
	a.stats.Carried++
	where := what + "repaired for " + w.name
	repaired, _ := transcript.Repair(msgs, profile, policy)
	if !a.none(where, transcript.Check(repaired, profile)) {
		return
	}
	body, _, err := w.format.EncodeRequest(provider.Request{Messages: repaired})
	var back provider.Request
	if err == nil {
		back, err = w.format.DecodeRequest(body)
	}
	if err == nil && !slices.Equal(steps(repaired), steps(back.Messages)) {
		err = errors.New("its calls and results are not those it had")
	}
	if err != nil {
		a.fail(fmt.Errorf("%s and encoded: %w", where, err))
		return
	}
	a.none(where+" and encoded", transcript.Check(back.Messages, profile))
}

// steps returns the calls of a conversation by their names, and "" for each
// result.
func steps(msgs []state.Message) []string {
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
