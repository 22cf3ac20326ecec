package workspace

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
)

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
	for _, call := range transcript.Pending(state.Messages.GetOr(st, nil)) {
		open[runctx.Key(call)]++
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
		addCalls(&next, key, document.Suspension{RunID: runID, Calls: 1, At: ledger.CurrentTime()}, open[key])
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
		more = s
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
// conversation later. If it was approved, it waits again.
func (s *suspendedCalls) note(st *state.State, key string, call document.Suspension) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.now[key]; was.Approved > 0 {
		was.Approved--
		was.Reason, was.At, was.Until = call.Reason, call.At, call.Until
		s.now[key] = was
		return
	}
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
		setCalls(now, key, was, min(was.Calls, open[key]))
	}
	return now, early
}

// calls returns the calls of a conversation that wait, without their agents.
func (s *suspendedCalls) calls(st *state.State) (calls []Suspended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, _ := s.settled(st)
	if len(now) == 0 {
		return nil
	}
	found := map[string]int{}
	for _, call := range document.FirstOpen(state.Messages.GetOr(st, nil), now) {
		key := runctx.Key(call)
		found[key]++
		if s := now[key]; found[key] > s.Approved {
			calls = append(calls, Suspended{ToolCall: call, Reason: s.Reason, RunID: s.RunID, Since: s.At, Until: s.Until, Client: s.Reason == errClient.Error()})
		}
	}
	return calls
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

// get returns what is known of the calls with a key.
func (s *suspendedCalls) get(key string) document.Suspension {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now[key]
}

// takeOne removes one call with a key that waits.
func (s *suspendedCalls) takeOne(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now[key]
	if now.Calls--; now.Calls > 0 {
		s.now[key] = now
	} else {
		delete(s.now, key)
	}
}

// approve approves a call with a key that waits. It reports false if none does.
func (s *suspendedCalls) approve(key, by string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, ok := s.now[key]
	if !ok || was.Approved == was.Calls {
		return false
	}
	was.Approved++
	was.By = by
	s.now[key] = was
	return true
}

// setCalls changes how many calls with a key a list has. Approved ones have gone
// first, since they were made.
func setCalls(list map[string]document.Suspension, key string, s document.Suspension, calls int) {
	if calls == 0 {
		delete(list, key)
		return
	}
	s.Approved = max(0, s.Approved-(s.Calls-calls))
	s.Calls = calls
	list[key] = s
}

// Suspended is a call that waits for a result from outside, or for the decision
// of a person.
type Suspended struct {
	state.ToolCall
	Reason string    // why it waits, "" if nobody has said; secrets are masked
	Agent  string    // that has made the call, "" for the host
	RunID  string    // of the run that has suspended it
	Since  time.Time // when that was
	Client bool      // its tool is that of the sender of a message: see [Run.ClientTools]
	// Until is when the call expires, or the zero time: see [tool.Expires]. A
	// Manager with Options.Run then lets a message of its own answer the call,
	// within a TTL by its clock, unless a decision was accepted before. If the run
	// of that message fails, it is a dead letter, and the call waits.
	Until time.Time
}

// Suspended returns the calls of the conversation that wait, in their order.
// Those that are approved and not made yet are not among them. A model is told to
// wait for them by [loop.Turn.Prompt], and so by package wire.
func (w *Workspace) Suspended() []Suspended {
	calls := w.suspended.calls(w.state)
	if len(calls) == 0 {
		return nil
	}
	agents := map[string]string{} // by the keys of calls, of which the latest counts
	for _, r := range w.state.History().All() {
		for c := range callsBackward(r.Output) {
			agents[runctx.Key(c)] = r.Agent
		}
	}
	for i := range calls {
		calls[i].Agent = agents[runctx.Key(calls[i].ToolCall)]
	}
	return calls
}

// callsBackward yields the calls in messages, the last one first.
func callsBackward(msgs []state.Message) iter.Seq[state.ToolCall] {
	return func(yield func(state.ToolCall) bool) {
		for _, m := range slices.Backward(msgs) {
			m, ok := m.(state.ToolCallMessage)
			if !ok {
				continue
			}
			for _, c := range slices.Backward(m.Calls()) {
				if !yield(c) {
					return
				}
			}
		}
	}
}
