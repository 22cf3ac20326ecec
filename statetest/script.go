package statetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/agentstate/state"
)

// script is the replies of a model, and what has come of them. Several Models
// may share one: a case of package crash has one for all processes. It is safe
// for concurrent use.
type script struct {
	// turn is not nil for a program that may be interrupted and ask again. An
	// equal request gets the same answer and uses nothing up, and calls that were
	// interrupted are made again. It is held while an answer is made: a process
	// that stood still may ask at the same time.
	turn chan struct{}

	mu       sync.Mutex
	replies  []*scripted
	nextID   int // of the next call that has no reserved id
	made     map[string]madeCall
	ids      map[string]bool // that calls have
	requests []asked
	findings atomic.Bool // a request with findings has been reported
	answers  []given
	repeats  map[string]*repeat // by agent
	begun    map[string]int     // by agent: the number of messages of its first request
}

// scripted is a reply and how often it has been given.
type scripted struct {
	Reply
	number  int // in the script
	given   int
	firstID int // of its calls, by which they are the same in each schedule
}

// answer is what comes of a request.
type answer struct {
	from   *scripted
	id     string
	output []state.Message
	err    error // a *StatusError, or what breaks the connection
}

// given is an answer that was given.
type given struct {
	number int // of the request
	plain  plainRequest
	answer answer
}

// newScript returns a script of replies.
func newScript(replies []Reply) *script {
	s := &script{
		nextID: 1, made: map[string]madeCall{}, ids: map[string]bool{}, repeats: map[string]*repeat{},
		begun: map[string]int{},
	}
	for i, r := range replies {
		s.replies = append(s.replies, &scripted{Reply: r, number: i + 1, firstID: s.nextID})
		for _, c := range callsOf(r.says) {
			s.nextID += max(1, r.times)
			s.ids[c.ID] = true
		}
	}
	return s
}

// resumed lets a program that was interrupted ask again.
func (s *script) resumed() *script {
	s.turn = make(chan struct{}, 1)
	return s
}

// check returns what is wrong with the script itself.
func (s *script) check() error {
	if len(s.replies) == 0 {
		return errors.New("the script has no replies")
	}
	for _, e := range s.replies {
		for _, c := range callsOf(e.says) {
			if c.Name == "" || !c.Input.Valid() {
				return fmt.Errorf("reply %d has a call without a name, or with an input that is not JSON", e.number)
			}
		}
	}
	return nil
}

// record adds a request to those that came, and returns its number from 1.
func (s *script) record(r asked) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range callsOf(r.Messages) {
		s.ids[c.ID] = true
	}
	if _, ok := s.begun[r.Agent]; !ok {
		s.begun[r.Agent] = len(r.Messages)
	}
	s.requests = append(s.requests, r)
	return len(s.requests)
}

// Mark returns a function that makes the replies left again that were given
// since. An equal request takes them anew.
func (s *script) Mark() (rewind func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var counts []int
	for _, e := range s.replies {
		counts = append(counts, e.given)
	}
	requests := len(s.requests)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, e := range s.replies {
			e.given = counts[i]
		}
		s.answers = slices.DeleteFunc(s.answers, func(g given) bool { return g.number > requests })
	}
}

// isLeft reports whether the reply may be given again.
func (e *scripted) isLeft() bool { return e.times < 0 || e.given < max(1, e.times) }

// left returns the replies that may be given.
func (s *script) left() []*scripted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.replies), func(e *scripted) bool { return !e.isLeft() })
}

// Missing returns the replies that have to be given, a line each.
func (s *script) Missing(mask func(string) string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, e := range s.replies {
		if e.times < 0 || !e.isLeft() {
			continue
		}
		line := fmt.Sprintf("reply %d, %s", e.number, e.shown(mask))
		if e.times > 1 {
			line += fmt.Sprintf(": given %d of %d times", e.given, e.times)
		}
		lines = append(lines, line)
	}
	return lines
}

// answer returns the answer to the request of a number, false if there is no
// reply. Functions of the user may end the goroutine.
func (s *script) answer(ctx context.Context, number int, r Request, plain plainRequest) (a answer, ok bool) {
	if s.turn != nil {
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-ctx.Done():
			return answer{from: &scripted{}, err: ctx.Err()}, true
		}
		if a, ok := s.before(plain); ok {
			return a, true
		}
	}
	g := given{number: number, plain: plain}
	if g.answer, ok = s.again(number, r); !ok {
		if g.answer, ok = s.next(g, r); !ok {
			return answer{}, false
		}
	}
	if g.answer.err == nil && !g.answer.from.isCut { // else an equal request may get another reply
		s.mu.Lock()
		defer s.mu.Unlock()
		s.answers = append(s.answers, g)
	}
	return g.answer, true
}

// before returns the answer that an equal request has had.
func (s *script) before(plain plainRequest) (a answer, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.answers, func(g given) bool { return g.plain.equal(plain) })
	if i < 0 {
		return answer{}, false
	}
	return s.answers[i].answer, true
}

// next takes the first reply that is left and whose conditions hold, and returns
// what it says.
func (s *script) next(g given, r Request) (a answer, ok bool) {
	for {
		left := s.left()
		i := slices.IndexFunc(left, func(e *scripted) bool { return e.lacks(r, unmasked) == "" })
		if i < 0 {
			return answer{}, false
		}
		if giving, ok := s.take(left[i]); ok {
			return s.give(left[i], giving, g, r), true
		}
	}
}

// take takes a reply, and returns which giving of it that is. It returns false
// if another request was faster.
func (s *script) take(e *scripted) (giving int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.isLeft() {
		return 0, false
	}
	e.given++
	return e.given - 1, true
}

// give returns what a reply says to a request.
func (s *script) give(e *scripted, giving int, g given, r Request) answer {
	a := answer{from: e, id: "resp_" + strconv.Itoa(g.number), output: e.says, err: e.fail}
	if e.say != nil {
		a.output, a.err = e.say(r)
	}
	if a.err != nil {
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := len(callList(e.says))
	place := giving * calls
	a.output = withCalls(a.output, func(c state.ToolCall) (state.ToolCall, bool) {
		id := "call_" + strconv.Itoa(e.firstID+place)
		switch {
		case c.ID != "":
		case place < calls*max(1, e.times) && !s.ids[id]:
			c.ID, s.ids[id] = id, true
		default: // any number of givings
			c.ID = s.freeID()
		}
		s.made[c.ID] = madeCall{ToolCall: c, origin: fmt.Sprintf("reply %d/%d/%d", e.number, giving, place), cut: e.isCut}
		place++
		return c, true
	})
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

// plainRequest is a request with the origins of calls in place of their ids, and
// without their keys.
// Requests that differ in nothing else are equal.
type plainRequest struct {
	Request
	texts []string // of the messages
}

func (s *script) plain(r Request) plainRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id, made := range s.made {
		ids = append(ids, `"`+id+`"`, `"`+made.origin+`"`)
	}
	rename := strings.NewReplacer(ids...)
	p := plainRequest{Request: r}
	for _, m := range r.Messages {
		p.texts = append(p.texts, rename.Replace(sortedJSON(inside.WithoutKeys(m).Raw())))
	}
	return p
}

func (p plainRequest) equal(other plainRequest) bool {
	return p.Agent == other.Agent && p.Format == other.Format && sameJSON(p.Settings, other.Settings) &&
		slices.Equal(p.texts, other.texts)
}

// callsOf returns the calls of messages in their order, with the numbers of their
// messages.
func callsOf(msgs []state.Message) iter.Seq2[int, state.ToolCall] {
	return func(yield func(int, state.ToolCall) bool) {
		for i, m := range msgs {
			if m, ok := m.(state.ToolCallMessage); ok {
				for _, c := range m.Calls() {
					if !yield(i, c) {
						return
					}
				}
			}
		}
	}
}

func callList(msgs []state.Message) (calls []state.ToolCall) {
	for _, c := range callsOf(msgs) {
		calls = append(calls, c)
	}
	return calls
}

// withCalls returns messages with their calls changed, without those for which
// edit returns false.
func withCalls(msgs []state.Message, edit func(c state.ToolCall) (state.ToolCall, bool)) []state.Message {
	var edited []state.Message
	for _, m := range msgs {
		calls, ok := m.(state.ToolCallMessage)
		if !ok {
			edited = append(edited, m)
			continue
		}
		var kept []state.ToolCall
		for _, c := range calls.Calls() {
			if c, ok := edit(c); ok {
				kept = append(kept, c)
			}
		}
		if len(kept) > 0 {
			edited = append(edited, state.ToolCalls(kept...))
		}
	}
	return edited
}
