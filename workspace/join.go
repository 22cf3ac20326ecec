package workspace

import (
	"context"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// mayJoin reports whether a message may join a run: it does nothing but to say
// something.
func (m *Message) mayJoin() bool {
	return m.Content != nil && len(m.decided()) == 0 && len(m.Fields) == 0 && len(m.Tools) == 0 && m.Agent == ""
}

// maxJoinTries is how often a commit is made again because messages were handed over
// meanwhile. Then they wait for the next one.
const maxJoinTries = 3

// joining are messages that are about to join the run.
type joining struct {
	waiting []ledger.Message
	said    []state.Message // of them, at the end of the conversation
	before  Settings
}

// join adds messages to the conversation that want to join the run, or returns nil if
// they cannot now. The caller holds mu.
func (r *Run) join(ctx context.Context, waiting []ledger.Message) (*joining, error) {
	if !endsWithResults(state.Messages.GetOr(r.state, nil)) {
		return nil, nil
	}
	j := &joining{waiting: waiting, before: r.settings.get()}
	var said []state.Message
	for _, p := range waiting {
		msg, err := readMessage(ctx, r.ledger, p)
		if err == nil {
			err = r.settings.note(msg)
		}
		if err != nil {
			return j, err
		}
		said = append(said, msg.Content)
	}
	if err := state.Messages.Set(r.state, said); err != nil { // it has no room: they wait
		return nil, r.leaveJoining(j)
	}
	j.said = said
	return j, nil
}

// leaveJoining takes messages out again that could not be stored. The caller holds
// mu.
func (r *Run) leaveJoining(j *joining) error {
	if j == nil || len(j.waiting) == 0 {
		return nil
	}
	if err := r.settings.change(func(s *Settings) { *s = j.before }); err != nil || len(j.said) == 0 {
		return err
	}
	return state.Messages.Update(r.state, func(msgs []state.Message) ([]state.Message, error) {
		for _, m := range slices.Backward(j.said) {
			for i := range slices.Backward(msgs) {
				if msgs[i].Equal(m) {
					msgs = slices.Delete(msgs, i, i+1)
					break
				}
			}
		}
		return msgs, nil
	})
}

// endsWithResults reports whether a conversation ends with a result, and all its
// calls have one.
func endsWithResults(msgs []state.Message) bool {
	if len(msgs) == 0 {
		return false
	}
	_, ok := msgs[len(msgs)-1].(state.ToolResultMessage)
	return ok && len(transcript.Pending(msgs)) == 0
}
