package processes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/loop"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
)

// converse is a Loop whose model calls a tool when the user has spoken, and answers
// behind the result with all that it has read since its last answer.
func (a *agent) converse(ctx context.Context, r *workspace.Run) error {
	work := tool.Must(tool.New("work", "Works.", func(ctx context.Context, _ struct{}) (string, error) {
		return "done", nap(ctx, 100*time.Millisecond)
	}))
	ask := func(ctx context.Context, t *loop.Turn) error {
		if err := nap(ctx, 30*time.Millisecond); err != nil {
			return err
		}
		msgs := state.Messages.GetOr(t.State(), nil)
		if err := acceptable(msgs); err != nil {
			return err
		}
		if msgs[len(msgs)-1].Role() == "user" {
			return t.Said(ctx, state.InferenceResult{Stop: state.StopCalls, Output: []state.Message{
				state.ToolCalls(state.ToolCall{ID: rand.Text(), Name: "work", Input: "{}"}),
			}})
		}
		return t.Said(ctx, state.InferenceResult{Stop: state.StopEnd, Output: []state.Message{
			state.AssistantText(strings.Join(unanswered(msgs), " ")),
		}})
	}
	return workspace.Loop(&loop.Loop{Agents: map[string]loop.Agent{"clerk": {Ask: ask, Tools: []*tool.Tool{work}}}})(ctx, r)
}

// unanswered returns what the user has said since the last answer.
func unanswered(msgs []state.Message) (said []string) {
	for _, m := range msgs {
		switch {
		case m.Role() == "user":
			said = append(said, m.Text())
		case m.Role() == "assistant" && m.Text() != "":
			said = nil
		}
	}
	return said
}

// Messages that join runs whose processes are killed are said once, in their order,
// and answered once.
func TestKillJoining(t *testing.T) {
	kills := effort.Runs(3)
	job := task{Job: "serve", TTL: killTTL, Joins: true}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		job.Address = sqlite(t)
		killJoining(t, job, (kills+1)/2)
	})
	if !underRace() {
		onServers(t, func(t *testing.T, fresh func() string) {
			job := job
			job.Address = fresh()
			killJoining(t, job, (kills+9)/10)
		})
	}
}

func killJoining(t *testing.T, job task, kills int) {
	f := newFleet(t, 3, job)
	var over atomic.Bool
	hits := 0
	killer := func() (err error) {
		defer over.Store(true)
		hits, _, err = f.killMany(kills)
		return err
	}
	joined, sent := 0, 0
	sender := func() error {
		for n := 0; n == 0 || joined == 0 || !over.Load(); n++ {
			answers, err := f.converse(fmt.Sprint("eve ", n))
			if err != nil {
				return err
			}
			joined, sent = joined+lot-answers, sent+lot
		}
		return nil
	}
	if err := f.together(killer, sender); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills have hit runs; %d of %d messages have joined one", hits, joined, sent)
}

// converse sends messages to a user's workspace, and checks what has become of them.
// It returns the number of answers.
func (f *fleet) converse(user string) (answers int, err error) {
	var want []string
	for n := range lot {
		message := fmt.Sprint("m", n)
		want = append(want, "Do "+message+", please.")
		if err := errors.Join(f.pause(80*time.Millisecond), f.send(user, message)); err != nil {
			return 0, err
		}
	}
	v, err := f.drained(user)
	if err != nil {
		return 0, err
	}
	var said, heard []string
	for _, m := range state.Messages.GetOr(v.State(), nil) {
		switch {
		case m.Role() == "user":
			said = append(said, m.Text())
		case m.Role() == "assistant" && m.Text() != "":
			heard = append(heard, m.Text())
		}
	}
	all := strings.Join(want, " ")
	switch {
	case !slices.Equal(want, said):
		return 0, fmt.Errorf("user %s: the conversation has %q", user, said)
	case strings.Join(heard, " ") != all:
		return 0, fmt.Errorf("user %s: the answers are %q", user, heard)
	case len(v.DeadLetters) > 0:
		return 0, fmt.Errorf("user %s: %d messages are dead", user, len(v.DeadLetters))
	}
	for n := range lot {
		out, err := f.m.Await(f.ctx, user, fmt.Sprint("m", n))
		if err != nil || out.Status != workspace.StatusDone || !strings.Contains(out.Reply, want[n]) {
			return 0, fmt.Errorf("user %s: message %d is %s with %q: %v", user, n, out.Status, out.Reply, err)
		}
	}
	_, err = f.m.Verify(f.ctx, user)
	return len(heard), err
}
