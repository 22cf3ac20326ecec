package document

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/transcript"
)

// Shorten returns the effects that shorten the conversation to its last
// messages, by whole groups, and the history to its last results, and that
// delete the messages to which nothing refers any more. A negative limit
// shortens nothing.
func (d *Document) Shorten(maxMessages, maxResults int) ([]state.Effect, error) {
	entries, effects, err := d.shortenEntries(maxMessages)
	if err != nil {
		return nil, err
	}
	results, err := d.results()
	if err != nil {
		return nil, err
	}
	dropped := 0
	if maxResults >= 0 && len(results) > maxResults {
		dropped = len(results) - maxResults
		effects = append(effects, state.Effect{
			Part: PartConversation, Field: fieldResults, Kind: state.EffectDropFirst, N: dropped,
		})
	}
	if len(effects) > 0 {
		next, err := d.nextVersion()
		if err != nil {
			return nil, err
		}
		effects = append(effects, next)
	}
	used := rangesOf(entries)
	for i := dropped; i < len(results); i++ {
		var r resultRanges
		if err := decodeResult(results[i], i, &r); err != nil {
			return nil, err
		}
		for _, ranges := range [][]form.Run{r.Prompt, r.History, r.Output, r.ToolCalls} {
			used = append(used, ranges...)
		}
	}
	unused, err := d.deleteUnused(used)
	return append(effects, unused...), err
}

// shortenEntries returns the entries that are left of the conversation, and the
// effects that leave them.
func (d *Document) shortenEntries(most int) ([]int, []state.Effect, error) {
	entries, _, err := d.entries()
	if err != nil || most < 0 || len(entries) <= most {
		return entries, nil, err
	}
	t, err := d.messages()
	if err != nil {
		return nil, nil, err
	}
	msgs, err := t.decode(entries)
	if err != nil {
		return nil, nil, err
	}
	kept := newInterner(t).renumber(entries, msgs, transcript.KeepLast(most)(msgs))
	return kept, listEffects(PartConversation, fieldEntries, entries, kept, numberArray), nil
}

// deleteUnused returns the effects that delete the messages outside all ranges.
func (d *Document) deleteUnused(used []form.Run) ([]state.Effect, error) {
	t, err := d.messages()
	if err != nil {
		return nil, err
	}
	slices.SortFunc(used, func(a, b form.Run) int { return cmp.Compare(a.From, b.From) })
	var effects []state.Effect
	end := 0 // of the ranges that begin at n or before
	for _, n := range slices.Sorted(maps.Keys(t.texts)) {
		for len(used) > 0 && used[0].From <= n {
			end = max(end, used[0].To)
			used = used[1:]
		}
		if n >= end {
			effects = append(effects, deleteEffect(PartMessage, strconv.Itoa(n)))
		}
	}
	return effects, nil
}

// AnswerPending returns the effects that answer tool calls without a result, as
// package transcript does, so that providers accept the conversation.
func (d *Document) AnswerPending() ([]state.Effect, error) {
	entries, _, err := d.entries()
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	t, err := d.messages()
	if err != nil {
		return nil, err
	}
	msgs, err := t.decode(entries)
	if err != nil || len(transcript.Pending(msgs)) == 0 {
		return nil, err
	}
	repaired, _ := transcript.Repair(msgs, transcript.Profile{}, transcript.PolicyAnswerCalls)
	in := newInterner(t)
	answered := in.renumber(entries, msgs, repaired)
	added, err := in.newMessages()
	if err != nil {
		return nil, err
	}
	edits := listEffects(PartConversation, fieldEntries, entries, answered, numberArray)
	next, err := d.nextVersion()
	return append(append(added, edits...), next), err
}
