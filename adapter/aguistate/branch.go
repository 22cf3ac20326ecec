package aguistate

import (
	"errors"
	"slices"

	"github.com/agentstate/state/workspace"
)

// branch finds the thread in which the messages of the client are, beginning with
// the one that it names. If the client has shortened what it had, and says
// something else in its place, that is a thread of its own from then on.
func (s *stream) branch() error {
	for {
		known := 0
		for known < len(s.in.Messages) && s.conv.has(s.in.Messages[known].ID) {
			known++
		}
		if known == len(s.in.Messages) || s.in.Messages[known].Role != "user" || ended(s.view, s.in.Messages[known].ID) {
			return nil
		}
		next := s.conv.behind(s.in.Messages[:known])
		if next == nil || next.number == 0 {
			return nil
		}
		user, thread := workspace.SplitThread(s.thread)
		thread += "~" + s.in.Messages[known].ID
		to := workspace.Thread(user, thread)
		v, err := s.handler.m.View(s.ctx, to)
		if err != nil {
			return err
		}
		if !v.Exists {
			base := s.baseView()
			if base == nil || newConversation(base).behind(s.in.Messages[:known]) == nil {
				return nil // the client has shortened nothing: others have gone on meanwhile
			}
			err := s.handler.m.Fork(s.ctx, s.thread, to, workspace.ForkPoint{Message: next.number})
			if err != nil && !errors.Is(err, workspace.ErrExists) {
				return err
			}
			if v, err = s.handler.m.View(s.ctx, to); err != nil {
				return err
			}
		}
		s.thread, s.in.ThreadID = to, thread
		s.view, s.conv = v, newConversation(v)
	}
}

// behind returns the message that follows the last of messages, or nil.
func (c *conversation) behind(list []message) *message {
	i := 0
	if len(list) > 0 {
		i = 1 + slices.IndexFunc(c.messages, func(m message) bool { return m.ID == list[len(list)-1].ID })
	}
	if i >= len(c.messages) || i == 0 && len(list) > 0 {
		return nil
	}
	return &c.messages[i]
}
