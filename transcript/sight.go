package transcript

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/origin"
)

// sight is what the window of an agent shows of a conversation at one moment.
type sight struct {
	st     *state.State    // a snapshot
	place  internal.Window // as it is stored
	begin  int             // the place in the conversation from which all is shown
	before []int           // the places in front of it that are shown
	system int             // how many of these are the system prompt
	shown  []state.Message // without the summary
}

// openSight returns what the agent of a handle is shown.
func openSight(st *state.State) (*sight, error) {
	s := &sight{st: st.Snapshot()}
	n := state.ListLen(s.st, state.Messages)
	if n == 0 {
		if _, err := state.Messages.Get(s.st); err != nil && !errors.Is(err, state.ErrNotFound) {
			return nil, err
		}
	}
	s.place = windows().Or(s.st, nil)[st.Agent()]
	if s.place.Hash != "" {
		s.find(n)
	}
	s.shown = make([]state.Message, 0, len(s.before)+n-s.begin)
	for _, i := range s.before {
		s.shown = append(s.shown, s.at(i))
	}
	for _, m := range state.ListItems(s.st, state.Messages, s.begin) {
		s.shown = append(s.shown, m)
	}
	return s, nil
}

// windows returns the field that has the windows of agents.
func windows() *state.Field[map[string]internal.Window] {
	return internal.Windows.(*state.Field[map[string]internal.Window])
}

// at returns a message of the conversation.
func (s *sight) at(i int) state.Message {
	for _, m := range state.ListItems(s.st, state.Messages, i) {
		return m
	}
	return nil
}

// find finds the messages of the window in a conversation of n.
func (s *sight) find(n int) {
	begin := s.search(s.place.Hash, s.place.Index, n)
	if begin < 0 {
		return // it begins with the oldest
	}
	s.begin = begin
	for s.system < begin && origin.IsSystem(s.at(s.system)) {
		s.before = append(s.before, s.system)
		s.system++
	}
	for _, pin := range s.place.Pinned {
		i := s.search(pin.Hash, begin-pin.Distance, begin)
		if i < s.system || slices.Contains(s.before, i) {
			continue
		}
		s.before = append(s.before, i)
		if added := begin - i - pin.Distance; added > 0 {
			answers := s.answersBehind(i)
			s.before = append(s.before, answers[:min(added, len(answers))]...)
		}
	}
	slices.Sort(s.before)
	s.before = slices.Compact(s.before)
}

// search returns the place of the message with a hash that is nearest to where it
// was: messages in front of it may have been dropped, or added as results of
// calls. It returns none if there is no such message before the end.
func (s *sight) search(hash string, place, end int) int {
	for far := 0; far <= max(place, end-place); far++ {
		for _, i := range [...]int{place - far, place + far} {
			if i >= 0 && i < end && hashOf(s.at(i)) == hash {
				return i
			}
		}
	}
	return none
}

// answersBehind returns the places of the results of the calls at a place, which
// may have come since the window was moved.
func (s *sight) answersBehind(place int) (places []int) {
	calls, ok := s.at(place).(state.ToolCallMessage)
	if !ok {
		return nil
	}
	for i := place + 1; i < s.begin; i++ {
		switch m := s.at(i).(type) {
		case state.ToolResultMessage:
			if answers(calls, m) {
				places = append(places, i)
			}
		case state.ToolCallMessage: // of the same turn
		default:
			return places
		}
	}
	return places
}

func answers(calls state.ToolCallMessage, m state.ToolResultMessage) bool {
	of := m.Call()
	return slices.ContainsFunc(sharedCalls(calls), func(c state.ToolCall) bool {
		return c.ID == of.ID && (c.ID != "" || c.Name == of.Name)
	})
}

func hashOf(m state.Message) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.Raw())) // never fails
	return fmt.Sprintf("%016x", h.Sum64())
}

// front returns the number of messages that are shown in front of the beginning.
func (s *sight) front() int { return len(s.before) }

// placeOf returns the place in the conversation of a message that is shown.
func (s *sight) placeOf(shown int) int {
	if shown < len(s.before) {
		return s.before[shown]
	}
	return s.begin + shown - len(s.before)
}

// afterGap returns the index of what is shown from which all is kept.
func (s *sight) afterGap(kept []int) int {
	begin := len(s.shown)
	for k := len(kept) - 1; k >= 0 && kept[k] == begin-1; k-- {
		begin--
	}
	return begin
}

// from returns the sight that begins with a message that is shown, and shows the
// kept ones in front of it.
func (s *sight) from(begin int, kept []int) *sight {
	moved := &sight{st: s.st, begin: s.placeOf(begin)}
	moved.place = internal.Window{
		Before: s.dropped() + moved.begin, Index: moved.begin, Hash: hashOf(s.shown[begin]), Summary: s.place.Summary,
	}
	for _, i := range kept {
		m := s.shown[i]
		if i < begin {
			at := s.placeOf(i)
			moved.before = append(moved.before, at)
			if moved.system == at && origin.IsSystem(m) {
				moved.system++
			} else {
				moved.place.Pinned = append(moved.place.Pinned, internal.Pin{Distance: moved.begin - at, Hash: hashOf(m)})
			}
		}
		moved.shown = append(moved.shown, m)
	}
	return moved
}

// dropped returns how many messages are no longer in the conversation.
func (s *sight) dropped() int { return max(s.place.Before-s.begin, 0) }

// messages returns what the model is shown.
func (s *sight) messages() []state.Message {
	summary := s.summaryMessage()
	if summary == nil {
		return s.shown
	}
	system := 0
	for system < len(s.shown) && origin.IsSystem(s.shown[system]) {
		system++
	}
	return slices.Insert(slices.Clip(s.shown), system, summary)
}

// summaryMessage returns what stands for the messages that are not shown, nil if
// nothing does. The user says it: models take what the assistant says for their
// own words.
func (s *sight) summaryMessage() state.Message {
	if s.place.Summary == "" {
		return nil
	}
	return state.UserText("<summary>\nThis is a summary of the conversation so far, which is not shown.\n\n" + s.place.Summary + "\n</summary>")
}

// recentResults is how many results are searched for one of the agent.
const recentResults = 8

// reported returns how many tokens the latest request of the agent and its answer
// had, if the provider has reported it and what is shown has the same beginning,
// and the index of the messages that came since.
func (s *sight) reported() (tokens, since int) {
	history := s.st.History()
	n := history.Len()
	for i := n - 1; i >= max(0, n-recentResults); i-- {
		r, ok := history.At(i)
		if !ok || r.Agent != s.st.Agent() {
			continue
		}
		if r.Usage.Input == 0 || len(r.Output) == 0 || !s.begins(r.History) {
			return 0, 0
		}
		last := r.Output[len(r.Output)-1].Raw()
		for k := len(s.shown) - 1; k >= 0; k-- {
			if s.shown[k].Raw() == last {
				return r.Usage.Input + max(r.Usage.Output-r.Usage.Reasoning, 0), k + 1
			}
		}
		return 0, 0
	}
	return 0, 0
}

// begins reports whether messages that were sent begin as what is shown does.
func (s *sight) begins(sent []state.Message) bool {
	i, k := s.front(), s.front()
	if s.place.Summary != "" {
		k++
	}
	return i < len(s.shown) && k < len(sent) && sent[k].Raw() == s.shown[i].Raw()
}
