package view

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace"
	"github.com/agentstate/state/workspace/work"
)

// overviewData is the data of the first page about a workspace: what is to be
// done in it, and what belongs to no other page.
type overviewData struct {
	// Problem is why the workspace cannot be read, or is not intact.
	Problem string         `json:"problem,omitempty"`
	Report  *work.Report   `json:"report,omitempty"` // if the query asks to verify
	Calls   []suspendedRow `json:"suspended"`        // that wait, the first that waits first
	Run     *runningRow    `json:"run,omitempty"`
	Tickets int            `json:"tickets"` // calls of Manager.Do that wait
	Queue   []messageOf    `json:"queue"`
	Dead    []deadRow      `json:"dead_letters"` // the latest first
	Ended   []endedRow     `json:"ended"`        // the latest first
	Waiting window         `json:"queue_page"`
	Letters window         `json:"dead_letters_page"`
	Limits  queueLimits    `json:"limits"`
	Threads []workspaceRow `json:"threads,omitempty"` // the other workspaces of the user
	Memory  memoryData     `json:"memory"`
	Bytes   int            `json:"bytes"`
	KeyID   text           `json:"key,omitempty"` // that seals the workspace
	Blind   bool           `json:"blind,omitempty"`
}

// Idle reports whether nothing is to be done.
func (d overviewData) Idle() bool {
	return d.Calls == nil && d.Run == nil && d.Tickets == 0 && d.Queue == nil && d.Dead == nil
}

// queueLimits are the options of the Manager that the page compares with.
type queueLimits struct {
	Queue       int `json:"queue"`
	Attempts    int `json:"attempts"`
	DeadLetters int `json:"dead_letters"`
}

// suspendedRow is a call that waits for a person, or for a result from outside.
type suspendedRow struct {
	Tag    string    `json:"-"` // names it in forms
	Key    text      `json:"key"`
	ID     text      `json:"id,omitempty"`
	Name   text      `json:"name"`
	Input  value     `json:"input"`
	Agent  text      `json:"agent,omitempty"` // that has made the call
	Reason value     `json:"reason"`          // why it waits
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`   // when it expires
	Client bool      `json:"client,omitempty"` // its tool is that of the sender of a message
	Begun  bool      `json:"begun,omitempty"`  // it may have been made
	// Decided is set if a message about the call was accepted.
	Decided bool `json:"decided,omitempty"`
}

// messageOf is a message that was handed over.
type messageOf struct {
	Tag       string `json:"-"`     // names it in forms
	Place     int    `json:"place"` // in its list, from 1
	ID        text   `json:"id"`
	Platform  text   `json:"platform,omitempty"`
	ChatID    text   `json:"chat_id,omitempty"`
	Role      text   `json:"role,omitempty"`
	Text      value  `json:"text"`
	Decisions int    `json:"decisions,omitempty"` // about suspended calls
}

// runningRow is a run that is under way.
type runningRow struct {
	Tag     string    `json:"-"`
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
	// Source has looked, in milliseconds. First is set if it has not looked before.
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
	Stop   string    `json:"stop,omitempty"` // how the last answer has ended, if the model has not said all
	Reason value     `json:"reason"`
	At     time.Time `json:"at,omitzero"`
}

// endingWords say what has happened to a message.
var endingWords = map[work.Ending]string{
	work.EndingFinished:    "finished",
	work.EndingFailed:      "failed",
	work.EndingInterrupted: "interrupted by another message",
	work.EndingRolledBack:  "rolled back by another message",
	work.EndingCancelled:   "cancelled",
	work.EndingReset:       "dropped by a reset",
	work.EndingDiscarded:   "discarded",
	work.EndingDropped:     "dropped: too many dead letters after it",
	work.EndingFenced:      "taken over by another holder",
	work.EndingAbandoned:   "abandoned: its end could not be stored",
}

// Overview shows what is to be done in a workspace, at present. A workspace that
// cannot be read has a Problem.
func (src *Source) Overview(ctx context.Context, q Query) (*Page, error) {
	p := &Page{Name: "overview", Title: "Overview", Tab: "overview", Live: true}
	q.Values = present(q)
	var data overviewData
	s, err := src.open(ctx, q)
	switch status, text := Explain(err); {
	case err == nil:
		p.Head, p.Seq = s.Head, s.Revision
		if err := src.fill(ctx, q, s, &data); err != nil {
			return nil, err
		}
	case status == http.StatusInternalServerError:
		p.Head, p.Live, data.Problem = DamagedHead(q.User, err), false, visible(text, false)
	default:
		return nil, err
	}
	if q.Get("verify") != "" {
		report, err := src.manager.Verify(ctx, q.User)
		for i, key := range report.Keys {
			report.Keys[i] = visible(key, false)
		}
		if data.Report = &report; err != nil {
			_, text := Explain(err)
			data.Report, data.Problem = nil, visible(text, false)
		}
	}
	p.Data = data
	return p, nil
}

// present returns the parameters of a query without those that ask for a version
// or for the view of an agent.
func present(q Query) map[string][]string {
	values := map[string][]string{}
	for name, list := range q.Values {
		if name != "at" && name != "as" {
			values[name] = list
		}
	}
	return values
}

// DamagedHead returns the head of a workspace that cannot be read.
func DamagedHead(user string, err error) *Head {
	return newHead(user, workspace.Summary{Err: err})
}

// fill adds what the workspace has.
func (src *Source) fill(ctx context.Context, q Query, s *shown, data *overviewData) (err error) {
	info := src.manager.Info()
	data.Tickets, data.Blind, data.Bytes = s.now.Tickets, s.mask.Blind, s.bytes
	data.Limits = queueLimits{info.Queue, info.Attempts, info.DeadLetters}
	data.Calls = src.suspendedRows(s.mask, s.now)
	if s.now.Run != nil {
		if data.Run, err = src.running(ctx, q, s); err != nil {
			return err
		}
	}
	if data.Waiting, err = q.window("waiting", len(s.now.Queue)); err != nil {
		return err
	}
	for i := data.Waiting.From; i < data.Waiting.To; i++ {
		data.Queue = append(data.Queue, src.newMessageOf(s.mask, i+1, s.now.Queue[i]))
	}
	if data.Letters, err = q.window("dead", len(s.now.DeadLetters)); err != nil {
		return err
	}
	for i := data.Letters.From; i < data.Letters.To; i++ {
		data.Dead = append(data.Dead, src.newDeadRow(s.mask, s.now.DeadLetters[len(s.now.DeadLetters)-1-i]))
	}
	for i := len(s.now.Ended) - 1; i >= 0; i-- {
		e := s.now.Ended[i]
		words, ok := endingWords[e.As]
		if !ok {
			words = string(s.mask.fit(string(e.As), labelBytes, false).Text)
		}
		data.Ended = append(data.Ended, endedRow{
			s.mask.fit(e.ID, labelBytes, false).Text, visible(string(e.As), false), words, visible(string(e.Stop), false),
			s.mask.fit(e.Reason, rowBytes, true), e.At,
		})
	}
	data.KeyID = s.mask.fit(s.keyID, labelBytes, false).Text
	if data.Threads, err = src.threads(ctx, q); err != nil {
		return err
	}
	data.Memory, err = s.memory(q)
	return err
}

// threads returns the other workspaces of the user of a workspace, at most
// pageRows.
func (src *Source) threads(ctx context.Context, q Query) ([]workspaceRow, error) {
	user, _ := workspace.SplitThread(q.User)
	var rows []workspaceRow
	for s, err := range src.manager.Threads(ctx, user, "") {
		if err != nil {
			return nil, err
		}
		if s.UserID != q.User && q.sees(s.UserID) {
			row := newWorkspaceRow(s)
			if len(rows) < maxReasons {
				if err := src.addReasons(ctx, &row); err != nil {
					return nil, err
				}
			}
			rows = append(rows, row)
		}
		if len(rows) == pageRows {
			break
		}
	}
	return rows, nil
}

// rowBytes is the length of a text in a row of a long table.
const rowBytes = 300

// suspendedRows returns the calls that wait, the first that waits first.
func (src *Source) suspendedRows(mask *masker, v *workspace.View) []suspendedRow {
	waiting := v.Suspended()
	slices.SortStableFunc(waiting, func(a, b workspace.Suspended) int { return a.Since.Compare(b.Since) })
	var rows []suspendedRow
	for _, c := range waiting[:min(len(waiting), pageRows)] {
		rows = append(rows, suspendedRow{
			Tag: src.Tag(c.Key), Key: mask.fit(c.Key, labelBytes, false).Text,
			ID: mask.fit(c.ID, labelBytes, false).Text, Name: mask.fit(c.Name, labelBytes, false).Text,
			Input: mask.fit(string(c.Input), previewBytes, false), Agent: mask.name(c.Agent),
			Reason: mask.fit(c.Reason, rowBytes, true), Since: c.Since, Until: c.Until, Client: c.Client, Begun: c.Begun,
			Decided: decided(v, c.Key),
		})
	}
	return rows
}

// decided reports whether a message about a suspended call was accepted.
func decided(v *workspace.View, key string) bool {
	messages := v.Queue
	if v.Run != nil {
		messages = append([]workspace.Message{v.Run.Message}, messages...)
	}
	return slices.ContainsFunc(messages, func(m workspace.Message) bool {
		return slices.ContainsFunc(m.Decisions, func(d tool.Decision) bool { return d.Key == key })
	})
}

func (src *Source) newDeadRow(mask *masker, d workspace.DeadLetter) deadRow {
	return deadRow{
		messageOf: src.newMessageOf(mask, 0, d.Message), Run: mask.fit(d.RunID, labelBytes, false).Text,
		Link: src.runLink(mask, d.RunID), Attempts: d.Attempts, At: d.At, Reason: mask.fit(d.Reason, rowBytes, true),
	}
}

func (src *Source) newMessageOf(mask *masker, place int, m workspace.Message) messageOf {
	row := messageOf{
		Tag: src.Tag(m.ID), Place: place, ID: mask.fit(m.ID, labelBytes, false).Text,
		Platform: mask.fit(m.Platform, labelBytes, false).Text, ChatID: mask.fit(m.ChatID, labelBytes, false).Text,
		Decisions: len(m.Decisions),
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
func (src *Source) running(ctx context.Context, q Query, s *shown) (*runningRow, error) {
	r, holder := *s.now.Run, "none"
	if r.LeaseID != "" {
		holder = "another process"
		held := false
		for _, own := range src.manager.Held() {
			if own.UserID == q.User && own.ID == r.ID {
				r, holder, held = own, "this process", true
			}
		}
		if !held {
			fresh, err := src.manager.View(ctx, q.User)
			if err != nil {
				return nil, err
			}
			if fresh.Run != nil && fresh.Run.LeaseID == r.LeaseID {
				r.Heartbeat = fresh.Run.Heartbeat
			}
		}
	}
	row := &runningRow{
		Tag: src.Tag(r.ID), ID: s.mask.fit(r.ID, labelBytes, false).Text,
		Do: r.Message.ID == "" && r.Message.Content == nil, Message: src.newMessageOf(s.mask, 0, r.Message),
		Began: r.Began, Attempt: r.Attempt + 1, Step: r.Step, Holder: holder,
		Lease: s.mask.fit(r.LeaseID, labelBytes, false).Text, TTL: r.TTL.Milliseconds(), Heartbeats: r.Heartbeat,
	}
	if r.Step > 0 { // there are records
		row.Link = src.runLink(s.mask, r.ID)
	}
	if r.LeaseID != "" {
		age, first := src.heartbeats.age(r.LeaseID, r.Heartbeat, time.Now())
		row.Age, row.First = age.Milliseconds(), first
		row.Late = age > r.TTL+r.TTL/2
	}
	return row, nil
}
