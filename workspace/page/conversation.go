package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// endings are the states of turns that have ended otherwise than well.
var endings = map[work.Ending]TurnState{
	work.EndingCancelled: TurnStopped, work.EndingInterrupted: TurnStopped,
	work.EndingRolledBack: TurnDropped, work.EndingReset: TurnDropped, work.EndingDiscarded: TurnDropped,
	work.EndingDropped: TurnDropped,
}

// conversation makes items of the messages of a view.
type conversation struct {
	source *Source
	view   *workspace.View
	items  []*Item
	last   int    // the highest number of a message
	run    string // that has stored the message before
	begun  string // the run of the last item, with what the ids of its items end with, and its turn
	suffix string
	turn   string
	open   *Item               // the answer that a message may continue, or nil
	calls  map[string]place    // of calls, by their keys
	unkept map[string][]string // the keys of open calls, by the ids of providers: a result may have no key
	asked  map[string]bool     // messages of persons that are in the conversation
	turns  map[string]string   // the turns of runs that a decision has begun

	rooms []Item // not used yet
	seats []Part
	read  []Part // of the message that was read last
}

// said reads a message. What it returns is valid until it is called again.
func (c *conversation) said(m state.Message) said {
	s := said{parts: c.read[:0]}
	s.add(m)
	c.source.showFiles(s.parts)
	c.read = s.parts
	return s
}

// place is where a call is.
type place struct {
	item *Item
	part int
}

// conversation makes the items of a view. The host's view says which result of a
// model a message belongs to.
func (s *Source) conversation(host, v *workspace.View) *conversation {
	c := &conversation{
		source: s, view: v, calls: map[string]place{}, unkept: map[string][]string{}, asked: map[string]bool{},
		turns: map[string]string{},
	}
	said := slices.AppendSeq(make([]workspace.NumberedMessage, 0, len(state.Messages.GetOr(v.State(), nil))),
		v.Messages(0, -1))
	answers := answersOf(host.State().History(), said)
	c.items = make([]*Item, 0, len(said))
	questions := map[string]bool{}
	for _, m := range said {
		if m.Message.Type() == "text" && m.Message.Role() == "user" {
			questions[m.Run] = true
		}
	}
	for i, m := range said {
		c.last = max(c.last, m.Number)
		switch msg := m.Message.(type) {
		case state.ToolResultMessage:
			c.addResult(m, msg, !questions[m.Run])
			c.open = nil
		case state.ToolCallMessage:
			c.addAnswer(m, answers[i])
			c.addCalls(m, msg.Calls())
		default:
			c.addSaid(m, answers[i])
		}
		c.run = m.Run
	}
	c.addWaiting()
	return c
}

// made is what an item has of a result. Its Stop and Usage stand at its last message.
type made struct {
	agent  string
	stop   state.Stop
	usage  state.Usage
	before int // the place of an equal message in front of it, plus one
}

// answersOf returns the results that messages are of, by their indexes. Messages may
// be equal: from the end on, each is that of the last result that is left, as both
// lists are only shortened at the beginning.
func answersOf(results *state.History, said []workspace.NumberedMessage) []*made {
	list, last := make([]made, 0, results.Len()), make(map[state.JSON]int, results.Len())
	for _, r := range results.All() {
		for i, m := range r.Output {
			a := made{agent: r.Agent, before: last[m.Raw()]}
			if i == len(r.Output)-1 {
				a.stop, a.usage = r.Stop, r.Usage
			}
			list = append(list, a)
			last[m.Raw()] = len(list)
		}
	}
	answers := make([]*made, len(said))
	for i, m := range slices.Backward(said) {
		if at := last[m.Message.Raw()]; at > 0 {
			answers[i] = &list[at-1]
			last[m.Message.Raw()] = answers[i].before
		}
	}
	return answers
}

// turnOf returns the turn of what a run has stored.
func (c *conversation) turnOf(run string) string { return cmp.Or(c.turns[run], run) }

// begin begins an item with a message.
func (c *conversation) begin(m workspace.NumberedMessage, role string) *Item {
	if len(c.items) == 0 || m.Run != c.begun {
		c.begun, c.suffix, c.turn = m.Run, "-"+hash(c.view.UserID(), m.Run), c.view.Redact(c.turnOf(m.Run))
	}
	if len(c.rooms) == 0 { // a long conversation would be as many allocations
		c.rooms, c.seats = make([]Item, min(cap(c.items), 256)), make([]Part, min(cap(c.items), 256))
	}
	item := &c.rooms[0]
	*item = Item{
		ID: strconv.Itoa(m.Number) + c.suffix, Number: m.Number, Role: role, Turn: c.turn,
		Time: m.Time, Withheld: m.Withheld, Parts: c.seats[:0:1],
	}
	c.rooms, c.seats = c.rooms[1:], c.seats[1:]
	c.items = append(c.items, item)
	return item
}

// addSaid adds a text, or the thoughts of a model.
func (c *conversation) addSaid(m workspace.NumberedMessage, answer *made) {
	if m.Message.Type() != "text" {
		if _, typ := origin.ItemType(m.Message); typ == "reasoning" {
			c.addAnswer(m, answer)
		}
		return
	}
	switch role := m.Message.Role(); role {
	case "assistant":
		c.addAnswer(m, answer)
	case "user", "system", "developer":
		c.open = nil
		item := c.begin(m, role)
		if role == "user" && m.Run != "" && !c.asked[m.Run] {
			c.asked[m.Run] = true
			item.ID = c.view.Redact(m.Run)
			item.Turn = item.ID
		}
		item.Parts = c.parts(item.Parts, c.said(m.Message))
	default: // of another agent
		c.open = c.begin(m, "assistant")
		c.open.Agent = c.view.Redact(role)
		c.merge(c.said(m.Message))
	}
}

// addAnswer adds what a model has said to the answer that it continues, or begins
// one.
func (c *conversation) addAnswer(m workspace.NumberedMessage, answer *made) {
	if c.open == nil || m.Run != c.run || !c.continues(m.Message) {
		c.open = c.begin(m, "assistant")
	}
	c.open.Withheld = c.open.Withheld || m.Withheld
	if answer != nil {
		c.open.Agent, c.open.Stop, c.open.Usage = answer.agent, answer.stop, answer.usage
	}
	c.merge(c.said(m.Message))
}

// continues reports whether a message of a model belongs to the open answer.
func (c *conversation) continues(m state.Message) bool {
	if _, isCalls := m.(state.ToolCallMessage); isCalls {
		return true
	}
	joined, isKnown := origin.Joined(m)
	onlyThought := !slices.ContainsFunc(c.open.Parts, func(p Part) bool { return p.Kind != Thought })
	return onlyThought || isKnown && joined
}

// merge adds what a message says to the open answer: its thoughts and its texts as
// one part each.
func (c *conversation) merge(s said) {
	item := c.open
	add := func(p Part) {
		at := len(item.Parts)
		for at > 0 && rank(item.Parts[at-1].Kind) > rank(p.Kind) {
			at--
		}
		if at > 0 && p.Text != "" && item.Parts[at-1].Kind == p.Kind {
			item.Parts[at-1].Text += p.Text
			return
		}
		if p.ID == "" {
			p.ID = partID(p.Kind, count(item.Parts, p.Kind))
		}
		item.Parts = slices.Insert(item.Parts, at, p)
	}
	if s.thoughts != "" {
		add(Part{Kind: Thought, Text: c.view.Redact(s.thoughts)})
	}
	texts := make([]string, 0, 1)
	for _, p := range s.parts {
		texts = append(texts, p.Text)
	}
	if text := strings.Join(texts, ""); text != "" {
		add(Part{Kind: Text, Text: c.view.Redact(text)})
	}
	for _, p := range s.parts {
		if p.Media != nil {
			add(Part{Kind: MediaPart, Media: c.media(p.Media)})
		}
	}
	for _, cited := range s.cited {
		add(Part{
			Kind:     CitationPart,
			Citation: &Citation{c.view.Redact(cited.URL), c.view.Redact(cited.Title), c.view.Redact(cited.Text)},
		})
	}
}

// rank is the place of a kind in an answer.
func rank(k Kind) int {
	return slices.Index([]Kind{Thought, Text, MediaPart, CitationPart, CallPart}, k)
}

// partID returns the id of the n-th part of a kind in an answer.
func partID(k Kind, n int) string {
	if k == Thought || k == Text {
		return string(k)
	}
	return string(k) + "-" + strconv.Itoa(n)
}

func count(parts []Part, k Kind) (n int) {
	for _, p := range parts {
		if p.Kind == k {
			n++
		}
	}
	return n
}

// parts adds what a person says, in its order.
func (c *conversation) parts(parts []Part, s said) []Part {
	for i, p := range s.parts {
		p.ID = string(p.Kind) + "-" + strconv.Itoa(i)
		if p.Text = c.view.Redact(p.Text); p.Media != nil {
			p.Media = c.media(p.Media)
		}
		parts = append(parts, p)
	}
	return parts
}

// media masks what is not the content of a file.
func (c *conversation) media(m *Media) *Media {
	made := &Media{Type: c.view.Redact(m.Type), URL: m.URL, Name: c.view.Redact(m.Name)}
	if !strings.HasPrefix(m.URL, "data:") {
		made.URL = c.view.Redact(m.URL)
	}
	return made
}

// addCalls adds calls to the open answer.
func (c *conversation) addCalls(m workspace.NumberedMessage, calls []state.ToolCall) {
	for i, call := range calls {
		key := callID(call, m.Number, i)
		input := masked(c.view, cmp.Or(call.Input, "{}"))
		shown := &Call{Key: call.Key, Name: c.view.Redact(call.Name), Input: input, State: CallOpen}
		c.calls[key] = place{c.open, len(c.open.Parts)}
		c.open.Parts = append(c.open.Parts, Part{
			ID: partID(CallPart, count(c.open.Parts, CallPart)), Kind: CallPart, Call: shown,
		})
		id := cmp.Or(call.ID, call.Name)
		c.unkept[id] = append(c.unkept[id], key)
	}
}

// addResult gives a call its result. One whose call is no longer in the conversation
// is left out. A run without a question goes on with the turn of the call.
func (c *conversation) addResult(m workspace.NumberedMessage, result state.ToolResultMessage, decided bool) {
	call := result.Call()
	id := cmp.Or(call.ID, call.Name)
	key := call.Key
	if open := c.unkept[id]; key == "" && len(open) > 0 {
		key = open[0]
	}
	at, ok := c.calls[key]
	if !ok {
		return
	}
	c.unkept[id] = slices.DeleteFunc(c.unkept[id], func(k string) bool { return k == key })
	if decided && c.turns[m.Run] == "" {
		c.turns[m.Run] = at.item.Turn
	}
	at.item.Withheld = at.item.Withheld || m.Withheld
	shown := at.item.Parts[at.part].Call
	verdict, _ := runctx.VerdictOf(result)
	shown.By, shown.Edited = c.view.Redact(verdict.By), masked(c.view, state.JSON(verdict.Input))
	output := masked(c.view, result.Content())
	switch {
	case verdict.Kind == runctx.VerdictRefused:
		shown.State, shown.Reason = CallRefused, c.view.Redact(verdict.Reason)
	case verdict.Kind == runctx.VerdictExpired:
		shown.State = CallExpired
	case !result.IsError():
		shown.State, shown.Output = CallDone, output
	default:
		if shown.State = CallFailed; c.source.Errors || verdict.Kind == runctx.VerdictAnswered {
			shown.Output = output
		}
	}
}

// addWaiting marks the calls that wait.
func (c *conversation) addWaiting() {
	for _, s := range c.view.Suspended() {
		at, ok := c.calls[s.Key]
		if !ok {
			continue
		}
		shown := at.item.Parts[at.part].Call
		shown.State, shown.Reason, shown.Until, shown.Begun = CallWaiting, c.view.Redact(s.Reason), s.Until, s.Begun
		if s.Client {
			shown.State, shown.Reason = CallClient, ""
		}
	}
}

// addTail adds to a tail the messages of persons that the conversation does not have,
// and the turns that have something to say.
func (c *conversation) addTail(tail *Tail) {
	v, known := c.view, map[string]bool{}
	add := func(t Turn, m workspace.Message) {
		if t.ID = m.ID; t.ID == "" || known[t.ID] {
			return
		}
		known[t.ID], t.Of = true, v.Redact(c.turns[t.ID])
		t.ID, t.Reason = v.Redact(t.ID), v.Redact(t.Reason)
		if m.Content != nil && !c.asked[m.ID] {
			tail.Pending = append(tail.Pending, &Item{ID: t.ID, Role: "user", Turn: t.ID, Parts: c.parts([]Part{}, c.said(m.Content))})
		}
		for _, d := range m.Decisions {
			if t.State != TurnFailed {
				t.Decides = append(t.Decides, d.Key)
			}
			if at, ok := c.calls[d.Key]; ok && t.Of == "" {
				t.Of = at.item.Turn
			}
		}
		tail.Turns = append(tail.Turns, t)
	}
	for _, d := range v.DeadLetters {
		t := Turn{State: TurnFailed, GoesOn: d.GoesOn}
		if c.source.Errors {
			t.Reason = d.Reason
		}
		add(t, d.Message)
	}
	if v.Run != nil {
		add(Turn{State: TurnRunning}, v.Run.Message)
	}
	for _, m := range v.Queue {
		add(Turn{State: TurnWaiting}, m)
	}
	for _, e := range slices.Backward(v.Ended) {
		t := Turn{State: endings[e.As], Stop: e.Stop, Reason: e.Reason}
		if t.State == "" && e.As == work.EndingFinished && e.Stop != "" {
			t.State = TurnEnded
		}
		if t.State != "" {
			add(t, workspace.Message{ID: e.ID})
		}
	}
}
