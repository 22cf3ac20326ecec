package workspace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/transcript"
)

// window returns the effects that shorten the conversation to its last n messages,
// by whole groups, and the results to the last m, and that delete the messages to
// which then nothing refers. A negative n or m shortens nothing.
func (d *document) window(n, m int) ([]Effect, error) {
	numbers, _, err := d.conversation()
	if err != nil {
		return nil, err
	}
	results, err := d.results()
	if err != nil {
		return nil, err
	}
	t, err := d.messages()
	if err != nil {
		return nil, err
	}
	var effects []Effect
	if n >= 0 && len(numbers) > n {
		msgs, err := t.decoded(numbers)
		if err != nil {
			return nil, err
		}
		kept := newInterner(t).again(numbers, msgs, transcript.KeepLast(n)(msgs))
		effects = turn(partTalk, talkConversation, listOf(numbers), listOf(kept))
		numbers = kept
	}
	drop := 0
	if m >= 0 && len(results) > m {
		drop = len(results) - m
		effects = append(effects, Effect{Part: partTalk, Field: talkResults, Do: doDropFirst, N: drop})
		results = results[drop:]
	}
	if len(effects) > 0 {
		next, err := d.nextVersion()
		if err != nil {
			return nil, err
		}
		effects = append(effects, next)
	}

	var used []form.Run
	for _, n := range numbers {
		used = extend(used, n)
	}
	for i, text := range results {
		var r struct {
			Prompt    []form.Run `json:"prompt"`
			History   []form.Run `json:"history"`
			Output    []form.Run `json:"output"`
			ToolCalls []form.Run `json:"tool_calls"`
		}
		if json.Unmarshal([]byte(text), &r) != nil {
			return nil, corrupt("content", jsontext.Index("$.talk.results", drop+i)+": not a result")
		}
		for _, runs := range [][]form.Run{r.Prompt, r.History, r.Output, r.ToolCalls} {
			used = append(used, runs...)
		}
	}
	slices.SortFunc(used, func(a, b form.Run) int { return cmp.Compare(a.From, b.From) })
	end := 0
	for _, n := range slices.Sorted(maps.Keys(t.texts)) {
		for len(used) > 0 && used[0].From <= n {
			end = max(end, used[0].To)
			used = used[1:]
		}
		if n >= end {
			effects = append(effects, Effect{Part: partMessage, Field: strconv.Itoa(n), Do: doDelete})
		}
	}
	return effects, nil
}

// decoded returns the messages of numbers.
func (t *table) decoded(numbers []int) ([]state.Message, error) {
	msgs := make([]state.Message, len(numbers))
	for i, n := range numbers {
		m, err := state.DecodeMessage([]byte(t.texts[n]))
		if err != nil {
			return nil, fmt.Errorf("%w: content: message %d: %w", ErrCorrupt, n, err)
		}
		msgs[i] = m
	}
	return msgs, nil
}

// closePending returns the effects that answer calls of tools without a result.
func (d *document) closePending() ([]Effect, error) {
	numbers, _, err := d.conversation()
	if err != nil || len(numbers) == 0 {
		return nil, err
	}
	t, err := d.messages()
	if err != nil {
		return nil, err
	}
	msgs, err := t.decoded(numbers)
	if err != nil || len(transcript.Pending(msgs)) == 0 {
		return nil, err
	}
	repaired, _ := transcript.Repair(msgs, transcript.Profile{}, transcript.PolicyAnswerCalls)
	in := newInterner(t)
	answered := in.again(numbers, msgs, repaired)
	effects := append(in.effects, turn(partTalk, talkConversation, listOf(numbers), listOf(answered))...)
	next, err := d.nextVersion()
	return append(effects, next), err
}

// again returns the numbers of messages of which those that are among msgs have
// numbers.
func (in *interner) again(numbers []int, msgs, to []state.Message) []int {
	of := make(map[state.Message]int, len(msgs))
	for i, m := range msgs {
		of[m] = numbers[i]
	}
	list := make([]int, len(to))
	for i, m := range to {
		n, ok := of[m]
		if !ok {
			n = in.add(m)
		}
		list[i] = n
	}
	return list
}
