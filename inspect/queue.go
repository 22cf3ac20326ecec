package inspect

import (
	"sync"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

// queueData is the data of the page about the run of a workspace and its
// messages.
type queueData struct {
	Run     *runningRow `json:"run,omitempty"`
	Tickets int         `json:"tickets"` // calls of Manager.Do that wait
	Queue   []messageOf `json:"queue"`
	Dead    []deadRow   `json:"dead_letters"`
	Ended   []endedRow  `json:"ended"` // the latest first
	Waiting window      `json:"queue_page"`
	Letters window      `json:"dead_letters_page"`
	Limits  queueLimits `json:"limits"`
	Blind   bool        `json:"blind,omitempty"`
}

// queueLimits are the options of the Manager that the page compares with.
type queueLimits struct {
	Queue       int `json:"queue"`
	Attempts    int `json:"attempts"`
	DeadLetters int `json:"dead_letters"`
}

// messageOf is a message that was handed over.
type messageOf struct {
	Place    int   `json:"place"` // in its list, from 1
	ID       text  `json:"id"`
	Platform text  `json:"platform,omitempty"`
	ChatID   text  `json:"chat_id,omitempty"`
	Role     text  `json:"role,omitempty"`
	Text     value `json:"text"`
	Answers  int   `json:"answers,omitempty"` // to suspended calls
}

// runningRow is a run that is under way.
type runningRow struct {
	ID      text      `json:"run"`
	Link    string    `json:"-"`            // the id in addresses; empty if there are no records of the run
	Do      bool      `json:"do,omitempty"` // a call of Manager.Do, which has no message
	Message messageOf `json:"message"`
	Began   time.Time `json:"began"`
	Attempt int       `json:"attempt"`
	Step    int       `json:"step"`
	// Holder is "this process", "another process" or "none".
	Holder     string `json:"holder"`
	Lease      text   `json:"lease,omitempty"`
	TTL        int64  `json:"ttl_ms"`
	Heartbeats uint64 `json:"heartbeats"`
	// Age is how long the number of heartbeats has been the same, as far as this
	// handler has looked, in milliseconds. First is set if it has not looked
	// before.
	Age   int64 `json:"heartbeat_age_ms"`
	First bool  `json:"first_look,omitempty"`
	// Late is set if the lease has expired, so that another holder takes over.
	Late bool `json:"late,omitempty"`
}

// AgeSpan and TTLSpan are durations for the template.
func (r runningRow) AgeSpan() time.Duration { return time.Duration(r.Age) * time.Millisecond }
func (r runningRow) TTLSpan() time.Duration { return time.Duration(r.TTL) * time.Millisecond }

type deadRow struct {
	messageOf
	Run      text      `json:"run,omitempty"`
	Link     string    `json:"-"`
	Attempts int       `json:"attempts"`
	At       time.Time `json:"at,omitzero"`
	Reason   value     `json:"reason"`
}

type endedRow struct {
	ID     text      `json:"id"`
	As     string    `json:"as"`
	Words  string    `json:"-"`
	Reason value     `json:"reason"`
	At     time.Time `json:"at,omitzero"`
}

// endingWords say what has happened to a message.
var endingWords = map[workspace.Ending]string{
	workspace.EndingFinished:    "finished",
	workspace.EndingFailed:      "failed",
	workspace.EndingInterrupted: "interrupted by another message",
	workspace.EndingRolledBack:  "rolled back by another message",
	workspace.EndingCancelled:   "cancelled",
	workspace.EndingReset:       "dropped by a reset",
	workspace.EndingDiscarded:   "discarded",
	workspace.EndingDropped:     "dropped: too many dead letters after it",
	workspace.EndingFenced:      "taken over by another holder",
	workspace.EndingAbandoned:   "abandoned: its end could not be stored",
}

// queue shows the run of a workspace, the messages that wait, those that were
// given up, and how the last ones have ended.
func (h *Handler) queue(c *call) (*page, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	info := h.manager.Info()
	data := queueData{
		Tickets: s.now.Tickets, Queue: []messageOf{}, Dead: []deadRow{}, Ended: []endedRow{}, Blind: s.mask.Blind,
		Limits: queueLimits{info.Queue, info.Attempts, info.DeadLetters},
	}
	if s.now.Run != nil {
		if data.Run, err = h.running(c, s); err != nil {
			return nil, err
		}
	}
	if data.Waiting, err = c.window("waiting", len(s.now.Queue)); err != nil {
		return nil, err
	}
	for i := data.Waiting.From; i < data.Waiting.To; i++ {
		data.Queue = append(data.Queue, newMessageOf(s.mask, i+1, s.now.Queue[i]))
	}
	if data.Letters, err = c.window("dead", len(s.now.DeadLetters)); err != nil {
		return nil, err
	}
	for i := data.Letters.From; i < data.Letters.To; i++ { // the latest first
		d := s.now.DeadLetters[len(s.now.DeadLetters)-1-i]
		data.Dead = append(data.Dead, deadRow{
			messageOf: newMessageOf(s.mask, i+1, d.Message), Run: s.mask.fit(d.RunID, labelBytes, false).Text,
			Link: h.runLink(s.mask, d.RunID), Attempts: d.Attempts, At: d.At, Reason: s.mask.fit(d.Reason, rowBytes, true),
		})
	}
	for i := len(s.now.Ended) - 1; i >= 0; i-- {
		e := s.now.Ended[i]
		words, ok := endingWords[e.As]
		if !ok {
			words = string(s.mask.fit(string(e.As), labelBytes, false).Text)
		}
		data.Ended = append(data.Ended, endedRow{
			s.mask.fit(e.ID, labelBytes, false).Text, safetext.Visible(string(e.As), false), words, s.mask.fit(e.Reason, rowBytes, true), e.At,
		})
	}
	return &page{Name: "queue", Title: "Queue", Tab: "queue", Data: data, Head: s.head, Live: true}, nil
}

// rowBytes is the length of a text in a row of a long table.
const rowBytes = 300

func newMessageOf(mask *masker, place int, m workspace.Message) messageOf {
	row := messageOf{
		Place: place, ID: mask.fit(m.ID, labelBytes, false).Text,
		Platform: mask.fit(m.Platform, labelBytes, false).Text, ChatID: mask.fit(m.ChatID, labelBytes, false).Text,
		Answers: len(m.Answers),
	}
	switch content := m.Content.(type) {
	case nil:
	case state.TextMessage:
		row.Role = mask.fit(content.Role(), labelBytes, false).Text
		words := content.Text()
		if words == "" {
			words = string(content.Content())
		}
		row.Text = mask.fit(words, rowBytes, true)
	default:
		row.Text = mask.fit(string(content.Raw()), rowBytes, false)
	}
	return row
}

// running describes the run of a workspace. Heartbeats do not change the
// workspace, so they are read again.
func (h *Handler) running(c *call, s *shown) (*runningRow, error) {
	r, holder := *s.now.Run, "none"
	if r.LeaseID != "" {
		holder = "another process"
		held := false
		for _, own := range h.manager.Held() {
			if own.UserID == c.user && own.ID == r.ID {
				r, holder, held = own, "this process", true
			}
		}
		if !held {
			fresh, err := h.manager.View(c.ctx(), c.user)
			if err != nil {
				return nil, err
			}
			if fresh.Run != nil && fresh.Run.LeaseID == r.LeaseID {
				r.Heartbeat = fresh.Run.Heartbeat
			}
		}
	}
	row := &runningRow{
		ID: s.mask.fit(r.ID, labelBytes, false).Text,
		Do: r.Message.ID == "" && r.Message.Content == nil, Message: newMessageOf(s.mask, 0, r.Message),
		Began: r.Began, Attempt: r.Attempt + 1, Step: r.Step, Holder: holder,
		Lease: s.mask.fit(r.LeaseID, labelBytes, false).Text, TTL: r.TTL.Milliseconds(), Heartbeats: r.Heartbeat,
	}
	if r.Step > 0 { // there are records
		row.Link = h.runLink(s.mask, r.ID)
	}
	if r.LeaseID != "" {
		age, first := h.heartbeats.age(r.LeaseID, r.Heartbeat, time.Now())
		row.Age, row.First = age.Milliseconds(), first
		row.Late = age > r.TTL+r.TTL/2
	}
	return row, nil
}

// maxLeases is the number of leases whose heartbeats a Handler remembers.
const maxLeases = 1024

// heartbeats remembers when the heartbeats of leases were first seen: a
// heartbeat is a count, whose age is known from two looks.
type heartbeats struct {
	mu   sync.Mutex
	seen map[string]seenHeartbeat // by lease
}

type seenHeartbeat struct {
	count uint64
	at    time.Time
}

// age returns how long a count has been the same, and whether this is the first
// look at the lease.
func (b *heartbeats) age(lease string, count uint64, now time.Time) (age time.Duration, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.seen[lease]
	if known && before.count == count {
		return now.Sub(before.at), false
	}
	if b.seen == nil || len(b.seen) == maxLeases {
		b.seen = map[string]seenHeartbeat{}
	}
	b.seen[lease] = seenHeartbeat{count, now}
	return 0, !known
}
