package statetest

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/agentstate/state"
)

// script is the replies of a model, and what has come of them. Several Models
// may share one: a case of package crash has one for all processes. It is safe
// for concurrent use.
type script struct {
	// resumed lets a program that was interrupted ask again. An equal request
	// gets the same answer and uses nothing up, and calls that were interrupted
	// are made again.
	resumed bool

	mu       sync.Mutex
	replies  []*scripted
	nextID   int // of the next call that has no reserved id
	made     map[string]madeCall
	ids      map[string]bool // that calls have
	requests []Request
	sent     map[string]*strings.Builder // by agent
	findings bool                        // a request with findings has been reported
	answers  []*given
	repeats  map[string]*repeat // by agent
}

// scripted is a reply and how often it has been given.
type scripted struct {
	Reply
	number  int // in the script, from 1
	given   int
	firstID int // of its calls, by which they are the same in each schedule
	calls   int // in one giving of the reply
}

// madeCall is a call that the model has made.
type madeCall struct {
	state.ToolCall
	origin   callOrigin
	by       answer
	cut      bool // the stream with it broke off
	reported bool // that a conversation has another one
}

// answer is what comes of a request.
type answer struct {
	reply  Reply // of the script, for its pieces
	from   *scripted
	giving int
	id     string
	output []state.Message
	err    error // a *StatusError, or what breaks the connection
}

// given is an answer that was given or is being made.
type given struct {
	number int     // of the request
	plain  Request // the request in its plain form
	answer answer
	done   chan struct{} // closed when answer is set
	failed bool          // there is no answer, or none that an equal request gets
}

// newScript returns a script of replies.
func newScript(replies []Reply) *script {
	s := &script{
		nextID: 1, made: map[string]madeCall{}, ids: map[string]bool{},
		sent: map[string]*strings.Builder{}, repeats: map[string]*repeat{},
	}
	for i, r := range replies {
		e := &scripted{Reply: r, number: i + 1, firstID: s.nextID}
		for _, m := range r.says {
			if m, ok := m.(state.ToolCallMessage); ok {
				for _, c := range m.Calls() {
					e.calls++
					s.ids[c.ID] = true
				}
			}
		}
		s.nextID += e.calls * max(1, r.times)
		s.replies = append(s.replies, e)
	}
	return s
}

// check returns what is wrong with the script itself.
func (s *script) check() error {
	if len(s.replies) == 0 {
		return errors.New("the script has no replies")
	}
	for i, e := range s.replies {
		switch {
		case e.misuse != nil:
			return fmt.Errorf("reply %d: %w", i+1, e.misuse)
		case e.name == "":
			return fmt.Errorf("reply %d is the zero Reply", i+1)
		}
	}
	return nil
}

// record adds a request to those that came, and returns its number from 1.
func (s *script) record(r asked) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Request)
	b := s.sent[r.Agent]
	if b == nil {
		b = &strings.Builder{}
		s.sent[r.Agent] = b
	}
	b.WriteString(r.said())
	b.WriteByte('\n')
	return len(s.requests)
}

// Mark returns a function that makes the replies left again that were given
// since. An equal request takes them anew.
func (s *script) Mark() (rewind func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make([]int, len(s.replies))
	for i, e := range s.replies {
		counts[i] = e.given
	}
	requests := len(s.requests)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, e := range s.replies {
			e.given = counts[i]
		}
		s.answers = slices.DeleteFunc(s.answers, func(g *given) bool { return g.number > requests })
	}
}

// Reserve keeps an id from those of new calls.
func (s *script) Reserve(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[id] = true
}

// isLeft reports whether the reply may be given again.
func (e *scripted) isLeft() bool { return e.times < 0 || e.given < max(1, e.times) }

// left returns the replies that may be given.
func (s *script) left() []*scripted {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []*scripted
	for _, e := range s.replies {
		if e.isLeft() {
			left = append(left, e)
		}
	}
	return left
}

// Missing returns the replies that have to be given, a line each.
func (s *script) Missing(mask func(string) string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for i, e := range s.replies {
		if e.times < 0 || !e.isLeft() {
			continue
		}
		line := fmt.Sprintf("reply %d, %s", i+1, e.shown(mask))
		if e.times > 1 {
			line += fmt.Sprintf(": given %d of %d times", e.given, e.times)
		}
		lines = append(lines, line)
	}
	return lines
}

// pick returns the reply that the request gets, nil if there is none. The
// conditions are functions of the user, which may call the Model: no lock is
// held.
func (s *script) pick(r Request) *scripted {
	for _, e := range s.left() {
		if e.lacks(r, unmasked) == "" {
			return e
		}
	}
	return nil
}

// take gives a reply that was picked, and returns which giving of it that is. It
// returns false if another request was faster.
func (s *script) take(e *scripted) (giving int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.isLeft() {
		return 0, false
	}
	e.given++
	return e.given - 1, true
}

// answerOf returns what a reply says to the request of a number.
func (s *script) answerOf(e *scripted, giving, number int, r Request) answer {
	a := answer{reply: e.Reply, from: e, giving: giving, id: "resp_" + strconv.Itoa(number)}
	switch {
	case e.fail != nil:
		a.err = e.fail
		return a
	case e.status != 0:
		a.err = &StatusError{e.status, e.body}
		return a
	}
	a.output = e.says
	if e.say != nil {
		if a.output, a.err = e.say(r); a.err != nil {
			return a
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := e.firstID + giving*e.calls
	reserved := next + e.calls
	if giving >= max(1, e.times) || e.say != nil {
		reserved = next // any number of givings: the next free ids
	}
	a.output = slices.Clone(a.output)
	for i, m := range a.output {
		a.output[i] = withIDs(m, func(id string) string {
			if id != "" {
				return id
			}
			for ; next < reserved; next++ {
				if name := "call_" + strconv.Itoa(next); !s.ids[name] {
					s.ids[name] = true
					return name
				}
			}
			return s.freeID()
		})
	}
	place := 0
	for c := range callsOf(a.output) {
		s.made[c.ID] = madeCall{ToolCall: c, origin: callOrigin{e.number, giving, place}, by: a, cut: e.isCut}
		place++
	}
	return a
}

// freeID returns an id that no call has. The caller holds mu.
func (s *script) freeID() string {
	for {
		id := "call_" + strconv.Itoa(s.nextID)
		s.nextID++
		if !s.ids[id] {
			s.ids[id] = true
			return id
		}
	}
}

// callsOf returns the calls of messages in their order.
func callsOf(msgs []state.Message) iter.Seq[state.ToolCall] {
	return func(yield func(state.ToolCall) bool) {
		for _, m := range msgs {
			m, ok := m.(state.ToolCallMessage)
			if !ok {
				continue
			}
			for _, c := range m.Calls() {
				if !yield(c) {
					return
				}
			}
		}
	}
}
