package workspace

import (
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// keepUnfinished returns the effects that keep what a run has not stored that is
// cancelled or interrupted: what its user has said, and the text that a model was
// about to have said, as far as it was shown. The text is that of a run that is held
// here, or else what is stored of it with Options.Live. A content that this Manager
// cannot use keeps neither: the run ends in any case.
func (m *Manager) keepUnfinished(user string, doc *document.Document, u ledger.Unfinished) ([]state.Effect, error) {
	c, err := m.content(user, doc, ledger.Position{}, nil)
	if err != nil {
		return nil, nil
	}
	if u.Message != nil {
		msg, err := decodeMessage(user, u.Message)
		if err != nil {
			return nil, err
		}
		if msg.Content != nil {
			if err := state.Messages.Set(c.state, []state.Message{msg.Content}); err != nil {
				return nil, nil // it has no room, with which the run would have failed
			}
		}
	}
	if r := m.localRun(u.RunID); r != nil {
		u.Live = r.live.keep()
	}
	next, err := c.nextNumber()
	if text := strings.TrimRight(u.Live.Text, " \t\r\n"); err == nil && text != "" && u.Live.Message >= next {
		err = c.state.History().Append(state.InferenceResult{
			Stop: state.StopInterrupted, Output: []state.Message{state.AssistantText(text)},
		})
	}
	if err != nil {
		return nil, err
	}
	d, err := c.delta()
	return d.Effects, err
}

// localRun returns the run with an id, if it is held here, or nil.
func (m *Manager) localRun(id string) *Run {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.localRuns {
		if r.runID == id && r.isLoaded() {
			return r
		}
	}
	return nil
}

// keep returns the text so far, and lets no more of it be told before resume.
func (l *liveText) keep() ledger.Live {
	l.mu.Lock()
	l.kept = true
	l.mu.Unlock()
	return l.said()
}

// resume tells what was held back, because the run has not ended.
func (l *liveText) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held
	l.kept, l.held = false, nil
	for _, h := range held {
		l.write(h.part, h.text)
	}
}

// resumeLive is resume for the runs of a user that are held here, after a write that
// has not ended them.
func (m *Manager) resumeLive(user string) {
	m.mu.Lock()
	var runs []*Run
	for r := range m.localRuns {
		if r.ledger.User() == user && r.isLoaded() {
			runs = append(runs, r)
		}
	}
	m.mu.Unlock()
	for _, r := range runs {
		r.live.resume()
	}
}

// said returns the text so far.
func (l *liveText) said() ledger.Live {
	l.mu.Lock()
	defer l.mu.Unlock()
	said := ledger.Live{Begun: l.begun, Message: l.number}
	if p := l.part(EventDelta, 0); p != nil {
		said.Text = p.kept()
		said.Offset = p.length - len(said.Text)
	}
	return said
}
