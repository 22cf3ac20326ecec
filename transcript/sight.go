package transcript

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/origin"
)

// sight is what the window of an agent shows of a conversation at one moment.
type sight struct {
	st     *state.State     // a snapshot
	own    []state.Message  // the conversation that the program carries along, nil for that of st
	place  internal.Window  // as it is stored
	begin  int              // the place in the conversation from which all is shown
	before []int            // the places in front of it that are shown
	system int              // how many of these are the system prompt
	shown  []state.Message  // without the summary
	seen   []state.Message  // the same without what is withheld
	places map[string][]int // of all messages, by hash: see search
}

// openSight returns what the agent of a handle is shown of its own conversation, or
// of that of the State.
func openSight(ctx context.Context, st *state.State, own []state.Message) (*sight, error) {
	s := &sight{st: st.Snapshot(), own: own}
	n := len(own)
	if own == nil {
		n = state.ListLen(s.st, state.Messages)
	}
	if n == 0 {
		if _, err := state.Messages.Get(s.st); err != nil && !errors.Is(err, state.ErrNotFound) {
			return nil, err
		}
	}
	s.place = inside.Windows().GetOr(s.st, nil)[st.Agent()]
	if s.place.Hash != "" {
		s.find(n)
	}
	s.shown = make([]state.Message, 0, len(s.before)+n-s.begin)
	for _, i := range s.before {
		s.shown = append(s.shown, s.at(i))
	}
	for _, m := range s.from(s.begin) {
		s.shown = append(s.shown, m)
	}
	s.seen = Withhold(ctx, s.st, s.shown)
	return s, nil
}

// from yields the messages of the conversation from a place on.
func (s *sight) from(i int) iter.Seq2[int, state.Message] {
	if s.own != nil {
		return slices.All(s.own[i:])
	}
	return state.ListItems(s.st, state.Messages, i)
}

// at returns a message of the conversation.
func (s *sight) at(i int) state.Message { return first(s.from(i)) }

func first(msgs iter.Seq2[int, state.Message]) state.Message {
	for _, m := range msgs {
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
	s.begin = s.withLater(begin)
	begin = s.begin
	for s.system < begin && origin.IsSystem(s.at(s.system)) {
		s.before = append(s.before, s.system)
		s.system++
	}
	shown := make([]bool, begin)
	for _, i := range s.before {
		shown[i] = true
	}
	for _, pin := range s.place.Pinned {
		if i := s.search(pin.Hash, begin-pin.Distance, begin); i >= s.system && !shown[i] {
			s.before, shown[i] = append(s.before, i), true
		}
	}
	s.addAnswers(shown)
	slices.Sort(s.before)
}

// withLater returns the place from which all is shown of a conversation that is
// carried along: calls that have waited may stand behind what was said meanwhile.
func (s *sight) withLater(begin int) int {
	if s.own == nil || s.at(begin).Role() == "user" {
		return begin
	}
	later := map[string]int{} // how often the State has a message behind the call, and msgs not
	for i := state.ListLen(s.st, state.Messages) - 1; i >= 0; i-- {
		hash := hashOf(first(state.ListItems(s.st, state.Messages, i)))
		if hash == s.place.Hash {
			break
		}
		later[hash]++
	}
	for _, m := range s.own[begin+1:] {
		later[hashOf(m)]--
	}
	for begin > 0 && later[hashOf(s.at(begin-1))] > 0 {
		begin--
		later[hashOf(s.at(begin))]--
	}
	return begin
}

// search returns the place of the message with a hash that is nearest to where it
// was: messages in front of it may have been dropped, or added as results of
// calls. It returns none if there is no such message before the end.
func (s *sight) search(hash string, place, end int) int {
	for far := range nearby {
		for _, i := range [...]int{place - far, place + far} {
			if i >= 0 && i < end && hashOf(s.at(i)) == hash {
				return i
			}
		}
	}
	if s.places == nil {
		s.places = map[string][]int{}
		for i, m := range s.from(0) {
			s.places[hashOf(m)] = append(s.places[hashOf(m)], i)
		}
	}
	places, nearest := s.places[hash], none
	k, _ := slices.BinarySearch(places, min(place, end))
	for _, i := range places[max(k-1, 0):min(k+1, len(places))] {
		if i < end && (nearest == none || i-place < place-nearest) {
			nearest = i
		}
	}
	return nearest
}

// nearby is how far from its place a message is looked for before all messages
// are indexed.
const nearby = 16

// addAnswers adds the places of the results of the calls that are shown in front of
// the beginning: they may have come since the window was moved. shown says of the
// places there which are shown. Each message is looked at once, whatever the number
// of open calls.
func (s *sight) addAnswers(shown []bool) {
	calls, results := 0, map[state.ToolCall]int{} // that are shown there, behind a place
	for _, i := range s.before {
		switch m := s.at(i).(type) {
		case state.ToolCallMessage:
			calls++
		case state.ToolResultMessage:
			results[keyOf(m.Call())]++
		}
	}
	if calls == 0 {
		return
	}
	behind := s.answersBehind()
	var hidden map[state.ToolCall][]int // the results of the turn that are not shown
	end := 0                            // of that turn
	for place := range shown {
		if !shown[place] {
			continue
		}
		switch m := s.at(place).(type) {
		case state.ToolResultMessage:
			results[keyOf(m.Call())]--
		case state.ToolCallMessage:
			if place >= end {
				hidden, end = s.hiddenResults(place+1, shown)
			}
			open := map[state.ToolCall]int{}
			for _, c := range sharedCalls(m) {
				open[keyOf(c)]++
			}
			for key, n := range open {
				var found []int
				found, hidden[key] = cutBehind(hidden[key], place, n-results[key]-behind[key])
				for _, i := range found {
					shown[i] = true
				}
				s.before = append(s.before, found...)
				results[key] += len(found)
			}
		}
	}
}

// cutBehind cuts up to n places that are behind one from a sorted list, and the places
// before them.
func cutBehind(places []int, place, n int) (cut, rest []int) {
	if n <= 0 {
		return nil, places
	}
	begin, _ := slices.BinarySearch(places, place+1)
	end := min(begin+n, len(places))
	return places[begin:end], places[end:]
}

// answersBehind returns how many results behind the beginning answer calls in front
// of it.
func (s *sight) answersBehind() map[state.ToolCall]int {
	answers, again := map[state.ToolCall]int{}, map[state.ToolCall]bool{}
	for _, m := range s.from(s.begin) {
		switch m := m.(type) {
		case state.ToolCallMessage:
			for _, c := range sharedCalls(m) {
				again[keyOf(c)] = true
			}
		case state.ToolResultMessage:
			if key := keyOf(m.Call()); !again[key] {
				answers[key]++
			}
		}
	}
	return answers
}

// hiddenResults returns the places of the results of a turn, from a place on, that
// are not shown, and the end of the turn.
func (s *sight) hiddenResults(place int, shown []bool) (hidden map[state.ToolCall][]int, end int) {
	hidden = map[state.ToolCall][]int{}
	for ; place < len(shown); place++ {
		switch m := s.at(place).(type) {
		case state.ToolResultMessage:
			if key := keyOf(m.Call()); !shown[place] {
				hidden[key] = append(hidden[key], place)
			}
		case state.ToolCallMessage:
		default:
			return hidden, place
		}
	}
	return hidden, place
}

// hashOf returns a hash of what a message says. That does not change on the way
// through the types of a framework, as other members do, and the texts of results.
func hashOf(m state.Message) string {
	h := hash(offsetFNV)
	switch m := m.(type) {
	case state.TextMessage:
		h.addLine(m.Role(), string(m.Content()))
	case state.ToolCallMessage:
		for _, c := range sharedCalls(m) {
			h.addLine(c.ID, c.Name, string(c.Input))
		}
	case state.ToolResultMessage:
		if h.addLine(m.Call().ID); m.Call().ID == "" {
			h.addLine(m.Call().Name, m.Text())
		}
	default:
		h.addLine(string(m.Raw()))
	}
	return fmt.Sprintf("%016x", uint64(h))
}

// hash is FNV-1a with 64 bits. Package hash/fnv would copy each text.
type hash uint64

const (
	offsetFNV = 14695981039346656037
	primeFNV  = 1099511628211
)

// addLine adds texts with spaces between them, and a line break.
func (h *hash) addLine(texts ...string) {
	for i, text := range texts {
		if i > 0 {
			h.add(" ")
		}
		h.add(text)
	}
	h.add("\n")
}

func (h *hash) add(text string) {
	for i := range len(text) {
		*h = (*h ^ hash(text[i])) * primeFNV
	}
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

// moved returns the sight that begins with a message that is shown, and shows the
// kept ones in front of it.
func (s *sight) moved(begin int, kept []int) *sight {
	moved := &sight{st: s.st, own: s.own, begin: s.placeOf(begin)}
	moved.place = internal.Window{
		Before: s.dropped() + moved.begin, Index: moved.begin, Hash: hashOf(s.shown[begin]),
		Shown: len(s.shown) - begin, Summary: s.place.Summary,
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
		moved.shown, moved.seen = append(moved.shown, m), append(moved.seen, s.seen[i])
	}
	return moved
}

// answeredForNow returns the calls that wait in the State and have a result in the
// conversation that the program carries along: one that says so.
func (s *sight) answeredForNow(o *packedShapes) (calls []int) {
	if s.own == nil {
		return nil
	}
	waiting := map[state.ToolCall]bool{}
	for _, c := range s.st.History().Pending() {
		waiting[keyOf(c)] = true
	}
	for _, c := range o.calls {
		if waiting[keyOf(*c.ToolCall)] {
			calls = append(calls, c.message)
		}
	}
	return calls
}

// dropped returns how many messages are no longer in the conversation.
func (s *sight) dropped() int { return max(s.place.Before-s.begin, 0) }

// messages returns what the model is shown.
func (s *sight) messages() []state.Message {
	summary := s.summaryMessage()
	if summary == nil {
		return s.seen
	}
	// Of the messages that came since, none changes where the summary stands.
	system, settled := 0, min(s.front()+s.place.Shown, len(s.shown))
	for system < settled && origin.IsSystem(s.shown[system]) {
		system++
	}
	return slices.Insert(slices.Clip(s.seen), system, summary)
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

// recentResults is how many results are searched for those of the agent.
const recentResults = 8

// reported returns how many tokens the latest request of the agent and its answer
// have in the next one, if the provider has reported it and the window has not
// moved since, the index of the messages that came since, and whether the provider
// has called its own tools for that answer. Unless such answers are wanted, an
// earlier one counts.
func (s *sight) reported(wantServed bool) (tokens, since int, isServed bool) {
	history := s.st.History()
	n := history.Len()
	end, spoken := len(s.shown), false
	for i := n - 1; i >= max(0, n-recentResults); i-- {
		r, ok := history.At(i)
		if !ok || r.Agent != s.st.Agent() {
			continue
		}
		place := s.placeOfAnswer(r, end)
		if place == none {
			break
		}
		said := slices.ContainsFunc(s.shown[place+1:end], isRequest)
		if since == 0 {
			calls, _ := served(r.Output)
			if spoken = spoken || said; calls > 0 && !wantServed {
				end = place
				continue
			}
			isServed = calls > 0
			if tokens, since = tokensInNext(r), place+1; !spoken {
				break
			}
		} else if said {
			break // a turn before
		}
		tokens -= thought(r)
		end = place
	}
	return max(tokens, 0), since, isServed
}

// placeOfAnswer returns where the answer of a result ends in what is shown, in
// front of a message and behind where the window was moved to, none if it is not
// there, or nothing has been reported for it.
func (s *sight) placeOfAnswer(r state.InferenceResult, end int) int {
	if r.Usage.Input == 0 || len(r.Output) == 0 {
		return none
	}
	last := r.Output[len(r.Output)-1].Raw()
	for k := end - 1; k >= s.front()+s.place.Shown; k-- {
		if s.shown[k].Raw() == last {
			return k
		}
	}
	return none
}
