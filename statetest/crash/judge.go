package crash

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

// ending is what a case has left.
type ending struct {
	effects []effect
	fields  map[string]state.JSON
	users   []string // the user's messages in the conversation
	length  int      // of the conversation
	state   *state.State

	replies  []string // of the messages
	requests []request
	said     []string // the conversation, if there are requests
}

// endingOf returns what is left at the end of a case.
func endingOf(w *world, v *workspace.View, schema *state.Schema) (*ending, error) {
	st := v.State()
	edits, err := st.Effects(state.New(schema))
	if err != nil {
		return nil, err
	}
	e := &ending{effects: w.effects, fields: map[string]state.JSON{}, state: st}
	for _, edit := range edits {
		if edit.Messages == nil && edit.Results == nil {
			e.fields[edit.Field] = edit.Value
		}
	}
	msgs := state.Messages.GetOr(st, nil)
	e.length = len(msgs)
	if e.requests = askedOf(w); len(e.requests) > 0 {
		e.said = conversationOf(w, msgs)
	}
	for _, m := range msgs {
		if m.Role() == "user" {
			e.users = append(e.users, string(m.Raw()))
		}
	}
	return e, nil
}

// checkEnd returns what is wrong with what is left, whatever happened before.
func checkEnd(w *world, v *workspace.View) []string {
	var findings []string
	if v.Run != nil {
		findings = append(findings, "a run is left")
	}
	if n := len(v.Queue) + v.Tickets; n > 0 {
		findings = append(findings, kit.Count(n, "message is", "messages are")+" left in the queue")
	}
	for _, dead := range v.DeadLetters {
		findings = append(findings, fmt.Sprintf("message %q is a dead letter: %s", dead.Message.ID, dead.Reason))
	}
	return append(findings, checkEndConversation(w, v)...)
}

// checkEndConversation returns what the providers would refuse of the conversation.
// Calls that are suspended are open.
func checkEndConversation(w *world, v *workspace.View) []string {
	msgs := state.Messages.GetOr(v.State(), nil)
	var suspended []state.ToolCall
	for _, s := range v.Suspended() {
		suspended = append(suspended, s.ToolCall)
	}
	if suspended != nil {
		msgs, _ = transcript.Repair(msgs, transcript.OpenAI, transcript.Policy{Suspended: suspended})
	}
	var findings []string
	for _, s := range w.scripts {
		for _, f := range transcript.Check(msgs, s.format.Profile()) {
			findings = append(findings, fmt.Sprintf("%s would refuse the conversation: %v", s.format, f))
		}
	}
	return slices.Compact(findings)
}

// compareEnds returns how an ending differs from that of the undisturbed case.
func compareEnds(want, got *ending, ignore []string) []string {
	findings := compareEffects(want.effects, got.effects)
	findings = append(findings, compareFields(want.fields, got.fields, ignore)...)
	return append(findings, compareReplies(want.replies, got.replies)...)
}

// compareReplies compares what the senders of the messages are told.
func compareReplies(want, got []string) []string {
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			return []string{fmt.Sprintf("message %d has another reply than in the undisturbed case:\n      - %q\n      + %q",
				i+1, want[i], got[i])}
		}
	}
	return nil
}

func compareFields(want, got map[string]state.JSON, ignore []string) []string {
	var findings []string
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		a, b := want[name], got[name]
		if slices.Contains(ignore, name) || a == b || a != "" && b != "" && a.Equal(b) {
			continue
		}
		findings = append(findings, fmt.Sprintf("field %s differs from the undisturbed case:\n      - %s\n      + %s",
			name, cmp.Or(a, "not set"), cmp.Or(b, "not set")))
	}
	return findings
}

// compareUsers returns what is wrong with the user's messages. The oldest may be
// gone if the conversation is so long that it may have been trimmed.
func compareUsers(want, got *ending, keep int) []string {
	if slices.Equal(want.users, got.users) {
		return nil
	}
	if n := len(want.users) - len(got.users); mayBeTrimmed(got, keep) && n > 0 && slices.Equal(want.users[n:], got.users) {
		return nil
	}
	return []string{fmt.Sprintf("the conversation has the messages of the user\n      + %s\n    want each once\n      - %s",
		strings.Join(got.users, "\n      + "), strings.Join(want.users, "\n      - "))}
}

// mayBeTrimmed reports whether the conversation is so long that some of it may
// be gone.
func mayBeTrimmed(e *ending, keep int) bool { return keep > 0 && e.length > keep/2 }

// what an effect does.
type what struct {
	name  string
	input state.JSON
}

// compareEffects compares effects as a multiset of name and input.
func compareEffects(want, got []effect) []string {
	group := func(list []effect) map[what][]effect {
		m := map[what][]effect{}
		for _, e := range list {
			k := what{e.Name, e.Input}
			m[k] = append(m[k], e)
		}
		return m
	}
	wanted, made := group(want), group(got)
	all := maps.Clone(wanted)
	maps.Copy(all, made)
	keys := slices.SortedFunc(maps.Keys(all), func(a, b what) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.input, b.input))
	})
	var findings []string
	for _, k := range keys {
		n, m := len(made[k]), len(wanted[k])
		switch {
		case n == m:
		case m == 0:
			findings = append(findings, fmt.Sprintf("effect %s was made with an input that it does not have in the undisturbed case: %s", k.name, k.input))
		case n < m:
			findings = append(findings, fmt.Sprintf("effect %s was made %s, want %d: %s", k.name,
				kit.Count(n, "time", "times"), m, k.input))
		default:
			findings = append(findings, fmt.Sprintf("effect %s was made %d times, want %d%s", k.name, n, m, causeOf(made[k])))
		}
	}
	return findings
}

// causeOf returns why an effect was made too often.
func causeOf(made []effect) string {
	first, last := made[0], made[len(made)-1]
	if first.attempt > last.attempt { // the first stood still meanwhile
		first, last = last, first
	}
	switch {
	case last.Key == "":
		return ": it has no key"
	case first.Key == last.Key:
		return ""
	case first.process != last.process:
		return ": the key changed when " + last.process + " took the run over"
	}
	return ": the key changed"
}

// timelineText returns the events of a case, a line each, with names for ids of
// runs and keys of calls, which are random.
func (w *world) timelineText() string {
	names, keys := map[string]string{}, callkey.Masks{}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, e := range w.timeline {
		line := fmt.Sprintf("\n      %s\t%s\t%s", e.process, e.at, e.what)
		if e.effect != nil {
			if run := e.effect.Run; run != "" && names[run] == "" {
				names[run] = fmt.Sprintf("run_%d", len(names)+1)
			}
			key := e.effect.Key
			for id, name := range names {
				key = strings.ReplaceAll(key, id, name)
			}
			keys.Add(e.effect.Call)
			if key = "key " + strconv.Quote(keys.Mask(key)); e.effect.Key == "" {
				key = "no key"
			}
			line += fmt.Sprintf("\t%s  %s", key, e.effect.Input)
		}
		_, _ = fmt.Fprint(table, line)
	}
	_ = table.Flush()
	return b.String()
}
