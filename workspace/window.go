package workspace

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/strict"
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
			return nil, corrupt("content", strict.Index("$.talk.results", drop+i)+": not a result")
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
