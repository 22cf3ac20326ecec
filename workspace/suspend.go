package workspace

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// Suspend lets calls wait for a result from outside, for example for the
// approval of a person. They stay open when the run ends, however it ends,
// until the Answers of a message bring their results. A call is named by its
// id, or by the name of its tool if the provider gives calls no ids, and must
// be open in the conversation. A workspace has at most 64 suspended calls.
//
// Suspend is a change like any other: Commit and Finish store it, and undoing
// the run undoes it. A message that answers a call is refused until then, so
// commit before you tell anybody of the call.
//
// A call of a tool that returns [tool.Suspend] is suspended by itself if the
// context of its step is that of the run.
//
// [Manager.Cancel] of the run closes its suspended calls, and so do Reset and
// Delete.
func (r *Run) Suspend(callIDs ...string) error {
	return wrapError("suspend", r.user, r.suspended.add(r.runID, r.state, callIDs))
}

// Suspended returns the suspended calls of the conversation. Give them to
// [transcript.Repair], as Policy.Suspended, so that the model is told to wait.
func (w *Workspace) Suspended() []state.ToolCall {
	return w.suspended.calls(w.state)
}

// suspendedCalls holds the suspended calls of a workspace for concurrent use. Its
// maps are nil as long as they are empty, as those of most workspaces are.
type suspendedCalls struct {
	mu  sync.Mutex
	now map[string]document.Suspension
	// early has the calls that tools have suspended before the call was in the
	// conversation, with the run.
	early  map[string]document.Suspension
	stored map[string]document.Suspension
	ended  error // why no more calls can be suspended
}

func decodeSuspended(doc *document.Document) (*suspendedCalls, error) {
	stored, err := doc.Suspended()
	return &suspendedCalls{now: maps.Clone(stored), stored: stored}, err
}

// openCalls returns how many open calls with each key a conversation has.
func openCalls(st *state.State) map[string]int {
	open := map[string]int{}
	for _, call := range transcript.Pending(state.Messages.Or(st, nil)) {
		open[document.CallKey(call)]++
	}
	return open
}

// add suspends open calls for a run.
func (s *suspendedCalls) add(runID string, st *state.State, keys []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	open, next := openCalls(st), maps.Clone(s.now)
	for _, key := range keys {
		if open[key] == 0 {
			return fmt.Errorf("%s: %w", fault.Call(key, ""), state.ErrUnknownCall)
		}
		addCalls(&next, key, document.Suspension{RunID: runID, Calls: 1}, open[key])
	}
	if err := checkSuspended(next); err != nil {
		return err
	}
	s.now = next
	return nil
}

// addCalls adds calls with a key to a list, in which there are then at most
// most.
func addCalls(list *map[string]document.Suspension, key string, more document.Suspension, most int) {
	n := (*list)[key].Calls + more.Calls
	if s, ok := (*list)[key]; ok {
		more.RunID = s.RunID
	}
	more.Calls = min(n, most)
	if *list == nil {
		*list = map[string]document.Suspension{}
	}
	(*list)[key] = more
}

func checkSuspended(list map[string]document.Suspension) error {
	n := 0
	for _, s := range list {
		n += s.Calls
	}
	if n > maxSuspended {
		return &state.LimitError{Name: "suspended calls", Limit: maxSuspended, Got: n}
	}
	return nil
}

// note suspends a call that a tool has suspended. The call may be added to the
// conversation later.
func (s *suspendedCalls) note(runID string, st *state.State, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := document.Suspension{RunID: runID, Calls: 1}
	if open := openCalls(st)[key]; open > 0 {
		addCalls(&s.now, key, call, open)
	} else {
		addCalls(&s.early, key, call, maxSuspended+1)
	}
}

// settled returns both lists as they are for a conversation: early calls that
// are there now are suspended, and calls that are no longer open are not. The
// caller holds mu.
func (s *suspendedCalls) settled(st *state.State) (now, early map[string]document.Suspension) {
	now, early = maps.Clone(s.now), maps.Clone(s.early)
	if len(now) == 0 && len(early) == 0 {
		return now, early
	}
	open := openCalls(st)
	for key, more := range early {
		if open[key] > 0 {
			addCalls(&now, key, more, open[key])
			delete(early, key)
		}
	}
	for key, was := range now {
		if was.Calls = min(was.Calls, open[key]); was.Calls > 0 {
			now[key] = was
		} else {
			delete(now, key)
		}
	}
	return now, early
}

// calls returns the suspended calls of a conversation.
func (s *suspendedCalls) calls(st *state.State) []state.ToolCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, _ := s.settled(st)
	if len(now) == 0 {
		return nil
	}
	return document.FirstOpen(state.Messages.Or(st, nil), now)
}

// settle returns the suspended calls of a conversation by their keys, and
// forgets those that are no longer open.
func (s *suspendedCalls) settle(st *state.State) (map[string]document.Suspension, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.early = s.settled(st)
	return maps.Clone(s.now), checkSuspended(s.now)
}

// effects returns the effects that store a list.
func (s *suspendedCalls) effects(list map[string]document.Suspension) ([]state.Effect, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return document.SuspendedEffects(s.stored, list)
}

// noteStored notes that a list is stored.
func (s *suspendedCalls) noteStored(list map[string]document.Suspension) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = list
}

// end makes further changes fail with err.
func (s *suspendedCalls) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
}

// has reports whether a call with a key is suspended.
func (s *suspendedCalls) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now[key].Calls > 0
}

// takeOne removes one call with a key.
func (s *suspendedCalls) takeOne(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.now[key]
	if one.Calls--; one.Calls > 0 {
		s.now[key] = one
	} else {
		delete(s.now, key)
	}
}

// answer puts the result of a suspended call behind it, with the rights of an
// agent, or of the host if agent is empty. If it returns an error, nothing has
// changed.
func (c *liveContent) answer(agent string, m state.ToolResultMessage) error {
	key := document.CallKey(m.Call())
	if !c.suspended.has(key) {
		return fmt.Errorf("%w: %s", ErrNotSuspended, fault.Quote(key))
	}
	open := openCalls(c.state)[key]
	branch := c.state.Fork()
	st := branch
	if agent != "" {
		st = branch.As(agent)
	}
	err := st.History().Answer(m)
	if errors.Is(err, state.ErrUnknownCall) || errors.Is(err, state.ErrAnswered) { // it is only in the conversation
		err = answerMessages(st, m)
	}
	if err != nil {
		return err
	}
	if openCalls(branch)[key] >= open {
		return &state.AccessError{Agent: agent, Op: "answer a call in", Field: state.Messages.Name}
	}
	if err := c.state.Join(branch); err != nil {
		return err
	}
	c.suspended.takeOne(key)
	return nil
}

// answerMessages puts a result behind its call in the conversation.
func answerMessages(st *state.State, m state.ToolResultMessage) error {
	msgs, err := state.Messages.Get(st)
	if err != nil {
		return err
	}
	if msgs, err = transcript.Answer(msgs, m); err != nil {
		return err
	}
	return state.Messages.Replace(st, msgs)
}

// answersCheck returns a function that refuses a message with an answer that
// cannot be given, or nil if the message has no answers.
func (m *Manager) answersCheck(user string, msg Message) func(*document.Document, [][]byte) error {
	if len(msg.Answers) == 0 {
		return nil
	}
	return func(doc *document.Document, accepted [][]byte) error {
		c, err := newLiveContent(user, m.opts.Schema, doc, ledger.Position{})
		if err != nil {
			return err
		}
		for _, body := range accepted {
			earlier, err := decodeMessage(user, body)
			if err != nil {
				continue // a ticket, or what its own run will report
			}
			for _, a := range earlier.Answers {
				_ = c.answer(earlier.Agent, a) // as its run will
			}
		}
		for _, a := range msg.Answers {
			if err := c.answer(msg.Agent, a); err != nil {
				return &answerError{err}
			}
		}
		return nil
	}
}

// receiveAnswers gives the answers of the message to their calls. What can no
// longer be given, because the call was closed while the message waited, is
// removed from the message.
func (r *Run) receiveAnswers() {
	var given []state.ToolResultMessage
	for _, a := range r.message.Answers {
		if r.answer(r.message.Agent, a) == nil {
			given = append(given, a)
		}
	}
	r.message.Answers = given
}

// findAnswers is receiveAnswers for a run whose first commit has stored the
// answers.
func (r *Run) findAnswers() {
	if len(r.message.Answers) == 0 {
		return
	}
	said := map[state.JSON]bool{}
	for _, m := range state.Messages.Or(r.state, nil) {
		said[m.Raw()] = true
	}
	var given []state.ToolResultMessage
	for _, a := range r.message.Answers {
		if said[a.Raw()] {
			given = append(given, a)
		}
	}
	r.message.Answers = given
}
