package page

import (
	"maps"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/work"
)

// Page is what a page shows of a thread. Its JSON is that of its exported members.
type Page struct {
	Thread  string `json:"thread"`  // its name, as [workspace.SplitThread] returns it
	Version string `json:"version"` // for [Source.Follow]
	// Items are the conversation as it is stored, the oldest first.
	Items []*Item `json:"items"`
	// Fields are the values of the fields that the Agent may read and that have one,
	// but for the conversation and for secrets.
	Fields map[string]state.JSON `json:"fields"`
	Tail
}

// Tail is what a page shows behind what is stored: it changes without a version, and
// is always told whole.
type Tail struct {
	// Pending are items behind those of the conversation: messages that have failed,
	// the one whose run is under way, the answer that is being made, and messages that
	// wait, as far as the conversation does not have them.
	Pending []*Item `json:"pending,omitempty"`
	// Turns are those of the messages that wait, are being handled, or have ended
	// otherwise than well. Of a message that is not there, the answer is in the
	// conversation, or it was handled long ago.
	Turns []Turn `json:"turns,omitempty"`
	// Notes are what the Agent has noted about messages, by the Number of their items:
	// see [Source.SetNote].
	Notes []work.Note `json:"notes,omitempty"`
}

// Turn is how the handling of a message goes. Its answer are the items whose Turn is
// its ID.
type Turn struct {
	ID    string    `json:"id"` // of the message
	State TurnState `json:"state"`
	// Of is the turn that the message goes on with, if it is a decision about a call
	// of that turn.
	Of string `json:"of,omitempty"`
	// Decides are the keys of calls about which the message decides: nobody else can.
	Decides []string   `json:"decides,omitempty"`
	Stop    state.Stop `json:"stop,omitempty"` // how its answer has ended, if the model has not said all
	// Reason is why it has failed or was stopped. For a failure, it is empty unless
	// the Source has Errors.
	Reason string `json:"reason,omitempty"`
	// GoesOn says of a failed turn that Retry goes on where it has ended: see
	// [workspace.DeadLetter].
	GoesOn bool `json:"goes_on,omitempty"`
}

// TurnState is the state of a Turn.
type TurnState string

// The states of turns.
const (
	TurnWaiting TurnState = "waiting" // for the end of another one
	TurnRunning TurnState = "running"
	TurnFailed  TurnState = "failed"  // it can be tried again, or discarded
	TurnStopped TurnState = "stopped" // by a person, or by another message
	TurnDropped TurnState = "dropped" // what was said and done of it is undone, or it was discarded
	TurnEnded   TurnState = "ended"   // the answer is not whole: see Stop
)

// Item is a message of a person, or an answer of a model with its calls and their
// results.
type Item struct {
	// ID is unique in the thread and stays. That of a message of a person is
	// [workspace.Message].ID. A fork has other ids for the rest.
	ID     string `json:"id"`
	Number int    `json:"number,omitempty"` // of its first message: see [workspace.NumberedMessage]; 0 in Pending
	Role   string `json:"role"`             // user, assistant, system or developer
	Agent  string `json:"agent,omitempty"`  // that has answered, as long as the history has its result
	// Turn is the ID of the message that the item is a part of or answers: for what
	// was said behind a decision, that which had led to the call.
	Turn  string      `json:"turn,omitempty"`
	Parts []Part      `json:"parts"`
	Stop  state.Stop  `json:"stop,omitempty"` // how the answer has ended; at its last item
	Usage state.Usage `json:"usage,omitzero"` // of the answer; at its last item
	Time  time.Time   `json:"time,omitzero"`  // when its first message was stored
	Open  bool        `json:"open,omitempty"` // it is being made
	// Withheld says that a provider has refused some of it, which models are not shown
	// any more.
	Withheld bool `json:"withheld,omitempty"`
}

// Part is a part of an item. Its ID is unique in the item, and the same while the
// item is being made and when it is stored.
type Part struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Text is that of a text and of a thought. Of a call that is being made, it is the
	// JSON of its arguments as far as it has come.
	Text string `json:"text,omitempty"`
	// Cut says that the beginning of Text is not known, until it is stored.
	Cut      bool      `json:"cut,omitempty"`
	Media    *Media    `json:"media,omitempty"`
	Citation *Citation `json:"citation,omitempty"`
	Call     *Call     `json:"call,omitempty"`
}

// Kind is what a Part is.
type Kind string

// The kinds of parts. An answer has its thoughts, its text, media, citations and
// calls in this order, and one part at the most with thoughts and with text.
const (
	Thought      Kind = "thought"
	Text         Kind = "text"
	MediaPart    Kind = "media"
	CitationPart Kind = "citation"
	CallPart     Kind = "call"
)

// Media is a picture, a sound, a document or another file.
type Media struct {
	Type string `json:"type,omitempty"` // the MIME type; empty if it is not known
	URL  string `json:"url"`            // also a data URL
	Name string `json:"name,omitempty"`
}

// Citation is a source that an answer names.
type Citation struct {
	URL   string `json:"url,omitempty"`
	Title string `json:"title,omitempty"`
	Text  string `json:"text,omitempty"` // that is cited
}

// Call is a call of a tool.
type Call struct {
	Key   string     `json:"key,omitempty"` // for a [tool.Decision]; empty while the call is being made
	Name  string     `json:"name"`
	Input state.JSON `json:"input,omitempty"` // empty while the call is being made
	State CallState  `json:"state"`
	// Output is the result, as JSON. Of a call that has failed, it is empty unless the
	// Source has Errors or a person has given it.
	Output state.JSON `json:"output,omitempty"`
	Reason string     `json:"reason,omitempty"` // why it waits, or was refused
	By     string     `json:"by,omitempty"`     // the agent for the person who has decided
	Edited state.JSON `json:"edited,omitempty"` // the arguments with which it was approved, if they are others
	Until  time.Time  `json:"until,omitzero"`   // when a call that waits expires
	// Begun says of a call that waits that it may have been made: see [tool.Once].
	Begun bool `json:"begun,omitempty"`
}

// CallState is the state of a Call.
type CallState string

// The states of calls.
const (
	CallOpen    CallState = "open"    // it is being made, or will be
	CallWaiting CallState = "waiting" // for the decision of a person
	CallClient  CallState = "client"  // for its result from the page, which has the tool
	CallDone    CallState = "done"
	CallFailed  CallState = "failed"
	CallRefused CallState = "refused"
	CallExpired CallState = "expired" // nobody has decided in time
)

// Change is a change of a page: all of it, what has changed of what is stored and
// behind it, or a piece of an answer. What is nil has not changed.
type Change struct {
	Version string `json:"version"` // of the page with the change
	// Page replaces all that there was. The rest is nil then.
	Page *Page `json:"page,omitempty"`
	// Removed are the ids of items that the conversation has no more. Items are those
	// that are new or have changed.
	Removed []string `json:"removed,omitempty"`
	Items   []Placed `json:"items,omitempty"`
	// Fields have the new values of fields, and null for those that have none any more.
	Fields map[string]state.JSON `json:"fields,omitempty"`
	Tail   *Tail                 `json:"tail,omitempty"`
	// Restart is the id of an item of the Tail whose answer begins anew, because the
	// request was made again: what was shown of it is void.
	Restart string `json:"restart,omitempty"`
	Delta   *Delta `json:"delta,omitempty"`
}

// Placed is an item and its place in the conversation: behind the item with an id,
// or in front of all others for "". An item that is there keeps its place.
type Placed struct {
	Behind string `json:"behind"`
	Item   *Item  `json:"item"`
}

// Delta is a piece of a part of an item that is being made. A part that the item
// does not have begins with it, at the end of the item.
type Delta struct {
	Item string `json:"item"`
	Part string `json:"part"`
	Kind Kind   `json:"kind"`           // Text, Thought or CallPart
	Name string `json:"name,omitempty"` // of the tool of a call
	Text string `json:"text"`
	Cut  bool   `json:"cut,omitempty"` // the beginning of the part is not known
}

// Apply makes a change. It does not change what the page and c point to.
func (p *Page) Apply(c Change) {
	if c.Page != nil {
		*p = *c.Page
		p.Items = slices.Clone(p.Items)
		return
	}
	p.Version = c.Version
	p.place(c.Removed, c.Items)
	if len(c.Fields) > 0 {
		fields := map[string]state.JSON{}
		maps.Copy(fields, p.Fields)
		maps.Copy(fields, c.Fields)
		maps.DeleteFunc(fields, func(_ string, value state.JSON) bool { return value == "null" })
		p.Fields = fields
	}
	if c.Tail != nil {
		p.Tail = *c.Tail
	}
	if d := c.Delta; d != nil {
		p.Pending = slices.Clone(p.Pending)
		for i, item := range p.Pending {
			if item.ID == d.Item {
				p.Pending[i] = item.with(d)
			}
		}
	}
}

// place removes items, and puts others at their places.
func (p *Page) place(removed []string, items []Placed) {
	if len(removed)+len(items) == 0 {
		return
	}
	was := map[string]*Item{}
	for _, item := range p.Items {
		was[item.ID] = item
	}
	for _, id := range removed {
		was[id] = nil
	}
	behind := map[string]*Item{} // new items, by those in front of them
	for _, at := range items {
		if was[at.Item.ID] == nil {
			behind[at.Behind] = at.Item
		}
		was[at.Item.ID] = at.Item
	}
	list := make([]*Item, 0, len(was))
	follow := func(id string) {
		for item := behind[id]; item != nil; item = behind[item.ID] {
			list = append(list, item)
		}
	}
	follow("")
	for _, item := range p.Items {
		if item = was[item.ID]; item != nil {
			list = append(list, item)
			follow(item.ID)
		}
	}
	p.Items = list
}

// with returns the item with a piece more.
func (i *Item) with(d *Delta) *Item {
	made := *i
	made.Parts = slices.Clone(i.Parts)
	n := slices.IndexFunc(made.Parts, func(p Part) bool { return p.ID == d.Part })
	if n < 0 {
		n, made.Parts = len(made.Parts), append(made.Parts, d.begun())
	}
	made.Parts[n].Text += d.Text
	return &made
}

// begun returns the part that a piece begins, without its text.
func (d *Delta) begun() Part {
	p := Part{ID: d.Part, Kind: d.Kind, Cut: d.Cut}
	if d.Kind == CallPart {
		p.Call = &Call{Name: d.Name, State: CallOpen}
	}
	return p
}
