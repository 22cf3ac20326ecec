package workspace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/internal/document"
)

// suspendedCalls holds the suspended calls of a workspace, by their keys, for
// concurrent use. Its maps are nil as long as they are empty, as those of most
// workspaces are.
type suspendedCalls struct {
	mu     sync.Mutex
	now    map[string]document.Suspension
	stored map[string]document.Suspension
	// early has the calls that tools have suspended before the program has recorded
	// the answer that makes them.
	early []earlyCall
	ended error // why no more calls can be suspended
}

type earlyCall struct {
	state.ToolCall
	document.Suspension
}

func decodeSuspended(doc *document.Document) (*suspendedCalls, error) {
	stored, err := doc.Suspended()
	return &suspendedCalls{now: maps.Clone(stored), stored: stored}, err
}

// openCalls returns the calls of the conversation that have no result, with the
// agents that have made them. It leaves out those whose message is another one in
// the history, because it was edited: what is shown must be what is made.
func openCalls(st *state.State) (open []Suspended) {
	pending := transcript.Pending(state.Messages.GetOr(st, nil))
	if len(pending) == 0 {
		return nil
	}
	recorded := map[string]Suspended{}
	for _, r := range st.History().All() {
		for _, c := range inside.CallsOf(r.Output...) {
			recorded[c.Key] = Suspended{ToolCall: c, Agent: r.Agent}
		}
	}
	for _, c := range pending {
		call, ok := recorded[c.Key]
		if c.Key == "" || !ok { // its result was dropped, or it has none
			call = Suspended{ToolCall: c}
		}
		if call.Name == c.Name && call.Input == c.Input {
			open = append(open, call)
		}
	}
	return open
}

// indexOfCall returns the index of the open call with a key, or -1.
func indexOfCall(open []Suspended, key string) int {
	return slices.IndexFunc(open, func(s Suspended) bool { return s.Key == key && key != "" })
}

// set changes what is known of a call.
func (s *suspendedCalls) set(key string, call document.Suspension) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(key, call)
}

// put is set for a caller that holds mu.
func (s *suspendedCalls) put(key string, call document.Suspension) {
	if s.now == nil {
		s.now = map[string]document.Suspension{}
	}
	s.now[key] = call
}

// add suspends open calls.
func (s *suspendedCalls) add(st *state.State, keys []string, call document.Suspension) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	open := openCalls(st)
	for _, key := range keys {
		if indexOfCall(open, key) < 0 {
			return fmt.Errorf("%s: %w%s", fault.Call(key, ""), state.ErrUnknownCall, keysOf(open))
		}
	}
	next := maps.Clone(s.now)
	if next == nil {
		next = map[string]document.Suspension{}
	}
	for _, key := range keys {
		if _, known := next[key]; !known {
			next[key] = call
		}
	}
	if err := checkSuspended(next); err != nil {
		return err
	}
	s.now = next
	return nil
}

func checkSuspended(list map[string]document.Suspension) error {
	if n := len(list); n > maxSuspended {
		return &state.LimitError{Name: "suspended calls", Limit: maxSuspended, Got: n}
	}
	return nil
}

// note suspends a call that a tool has suspended. An approval of it is void. The
// call may be recorded later.
func (s *suspendedCalls) note(st *state.State, c state.ToolCall, call document.Suspension) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.now[c.Key]; known || indexOfCall(openCalls(st), c.Key) >= 0 {
		s.put(c.Key, call)
		return
	}
	s.early = append(s.early, earlyCall{c, call})
}

// settled returns both lists as they are for a conversation: early calls that
// are recorded now are suspended, and calls that are no longer open are not. The
// caller holds mu.
func (s *suspendedCalls) settled(st *state.State) (now map[string]document.Suspension, early []earlyCall) {
	if len(s.now) == 0 && len(s.early) == 0 {
		return s.now, s.early
	}
	now, open := map[string]document.Suspension{}, openCalls(st)
	for _, c := range open {
		if was, ok := s.now[c.Key]; ok {
			now[c.Key] = was
		}
	}
	for _, e := range s.early {
		i := slices.IndexFunc(open, func(c Suspended) bool {
			_, taken := now[c.Key]
			return !taken && (c.Key == e.Key || c.ID == e.ID && c.Name == e.Name && c.Input == e.Input)
		})
		if i < 0 || open[i].Key == "" {
			early = append(early, e)
			continue
		}
		now[open[i].Key] = e.Suspension
	}
	return now, early
}

// calls returns the calls of a conversation that wait.
func (s *suspendedCalls) calls(st *state.State) (calls []Suspended) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.now) == 0 && len(s.early) == 0 {
		return nil
	}
	now, _ := s.settled(st)
	for _, c := range openCalls(st) {
		if s, ok := now[c.Key]; ok && s.Waits() {
			c.Reason, c.RunID, c.Since, c.Until, c.Client, c.Begun = s.Reason, s.RunID, s.At, s.Until, s.Client, s.Begun
			c.deciders, c.noticeAt, c.untold, c.clock, c.again = s.Deciders, s.NoticeAt(), s.Notice == document.NoticeDue, s.Clock, s.Again
			calls = append(calls, c)
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

// waitAgain lets calls wait again that are approved and were not made, and returns
// their keys.
func (s *suspendedCalls) waitAgain(st *state.State) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now, s.early = s.settled(st); len(s.now) > 0 {
		s.now, keys = document.WaitAgain(s.now)
	}
	return keys
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

// end makes further changes fail with err. The first err stays.
func (s *suspendedCalls) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = cmp.Or(s.ended, err)
}

// get returns what is known of a call.
func (s *suspendedCalls) get(key string) (document.Suspension, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.now[key]
	return known, ok
}

// closed returns the keys of calls that are not open any longer.
func (s *suspendedCalls) closed(st *state.State) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.now) == 0 {
		return nil
	}
	keys, calls := map[string]bool{}, openCalls(st)
	for key := range s.now {
		if indexOfCall(calls, key) < 0 {
			keys[key] = true
		}
	}
	return keys
}

// noteTold notes that the program was told that a call waits.
func (s *suspendedCalls) noteTold(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call, ok := s.now[key]; ok {
		call.Notice = document.NoticeGiven
		s.now[key] = call
	}
}

// drop removes a call that has a result.
func (s *suspendedCalls) drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.now, key)
}

// begin notes that the function of a call is about to be called.
func (s *suspendedCalls) begin(key string, call document.Suspension) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	if was := s.now[key]; was.Begun && (was.Approval == nil || !was.Approval.Again) {
		return runctx.ErrBegun
	}
	call.Begun, call.Made = true, true
	s.put(key, call)
	return nil
}

// Suspended is a call that waits for a result from outside, or for the decision
// of a person. A [tool.Decision] names it by its Key.
type Suspended struct {
	state.ToolCall
	Reason string    // why it waits, "" if nobody has said; secrets are masked
	Agent  string    // that has made the call, "" for the host
	RunID  string    // of the run that has suspended it
	Since  time.Time // when that was
	Client bool      // its tool is that of the sender of a message: see [Run.ClientTools]
	// Begun says that the function of the call was called, and that its result is not
	// known: see [tool.Once].
	Begun bool
	// Until is when the call expires, or the zero time: see [tool.Expires]. A
	// decision after it is not accepted, by the clock of the Manager that is asked.
	// A Manager with Options.Run lets a message of its own answer the call, within a
	// TTL. If the run of that message fails, it is a dead letter, and the call waits.
	Until time.Time

	// Expired is true for Options.Notify, if that time is over.
	Expired bool

	deciders *[]string
	noticeAt time.Time // when other Managers tell the program of it, or zero
	untold   bool
	again    bool   // it has waited before, and was approved
	clock    string // names the process by whose clock Until is
}

// Suspended returns the calls of the conversation that wait, in their order.
// Those that are approved and not made yet are not among them. A call waits no
// longer if its message was edited or removed. A model is told to wait for them by
// [loop.Turn.Prompt], and so by package wire.
func (w *Workspace) Suspended() []Suspended { return w.suspended.calls(w.state) }

// keysOf names calls in an error. A call that is in no recorded answer has no key.
func keysOf(calls []Suspended) string {
	var texts []string
	for _, c := range calls {
		if c.Key != "" {
			texts = append(texts, c.Key+" ("+fault.Quote(c.Name)+")")
		}
	}
	if len(texts) == 0 {
		return "; no call waits"
	}
	return "; waiting are " + strings.Join(texts, ", ")
}

// mayDecide returns an error if an agent may not decide about a call.
func (c *liveContent) mayDecide(agent string, call Suspended, kind tool.DecisionKind) error {
	if agent == "" || call.Client {
		return nil
	}
	team := c.schema.Team()
	member := team == nil || slices.Contains(inside.Members(team), agent)
	allowed := member && (kind != tool.DecisionAnswer || agent == call.Agent && c.maySay(agent))
	if call.deciders != nil {
		allowed = member && slices.Contains(*call.deciders, agent)
	}
	if allowed {
		return nil
	}
	return &state.AccessError{Agent: agent, Op: "decide about a call in", Field: state.Messages.Name}
}

// maySay reports whether an agent may write the conversation.
func (c *liveContent) maySay(agent string) bool {
	return slices.ContainsFunc(c.state.As(agent).Fields(), func(f state.FieldInfo) bool {
		return f.Name == state.Messages.Name && f.Writable
	})
}
