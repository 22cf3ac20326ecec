package crash

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	faulttext "github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/statetest/internal/kit"
	"github.com/agentstate/state/workspace"
)

var inside = state.Inside(internal.Key{})

// request is what an agent has asked a model in a turn of package tool, of which
// loops are made: what such a program asks follows from what is committed.
type request struct {
	agent    string
	messages string // a line each, in which calls have no ids
}

// noteRequest notes a request of a turn.
func (w *world) noteRequest(ctx context.Context, agent string, messages []string) {
	if _, ok := loop.TurnOf(ctx); !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if run, ok := workspace.FromContext(ctx); ok {
		w.runs[run.ID()] = true
	}
	w.requests = append(w.requests, request{agent, strings.Join(messages, "\n")})
}

// withoutRuns returns a text without the ids of runs, which are random.
func (w *world) withoutRuns(text string) string {
	for id := range w.runs {
		text = strings.ReplaceAll(text, id, "RUN")
	}
	return text
}

// askedOf returns the requests of a case, without the ids of runs.
func askedOf(w *world) []request {
	requests := slices.Clone(w.requests)
	for i := range requests {
		requests[i].messages = w.withoutRuns(requests[i].messages)
	}
	return requests
}

// compareRequests returns which requests of turns should not have been made. A
// fault lets a process ask again what it has asked, once, because the answer was
// not committed. What is committed is in the next request, so that any other
// request differs from those of the undisturbed case.
func compareRequests(want, got []request, faults int) (findings []string) {
	for i, r := range got {
		if slices.Contains(want, r) || slices.Contains(got[:i], r) {
			continue
		}
		last := r.messages[strings.LastIndex(r.messages, "\n")+1:]
		findings = append(findings, fmt.Sprintf("request %d, of %q, is none of the undisturbed case. Its last message is %s",
			i+1, r.agent, faulttext.Clip(last)))
	}
	if limit := len(want) + faults; len(got) > limit {
		findings = append(findings, fmt.Sprintf("models were asked %s, want at most %d: an answer that was committed was asked for again",
			kit.Count(len(got), "time", "times"), limit))
	}
	return findings
}

// conversationOf returns the conversation without the keys of calls, a line each.
// It is that of the undisturbed case if all that was asked was asked in turns.
func conversationOf(w *world, msgs []state.Message) (lines []string) {
	for _, m := range msgs {
		lines = append(lines, w.withoutRuns(string(inside.WithoutKeys(m).Raw())))
	}
	return lines
}

// compareConversations returns how the conversation of turns differs from that of
// the undisturbed case.
func compareConversations(want, got []string) []string {
	if slices.Equal(want, got) {
		return nil
	}
	return []string{fmt.Sprintf("the conversation differs from that of the undisturbed case:\n      - %s\n      + %s",
		strings.Join(want, "\n      - "), strings.Join(got, "\n      + "))}
}
