package workspace

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// View is a workspace at one moment. It does not change, and it cannot be
// changed. A View that is printed, logged or marshalled does not show secrets.
type View struct {
	Workspace
	Exists      bool      // whether the workspace was ever written, and was not deleted since
	Version     uint64    // of the content
	Chain       string    // the hash of all records up to it: see [Record]
	Oldest      uint64    // the oldest version that ViewAt can show
	LastActive  time.Time // when its content has last changed, or a message was last accepted
	Run         *RunInfo
	Queue       []Message      // the waiting messages, the next first
	Tickets     int            // the number of waiting calls of [Manager.Do]
	DeadLetters []DeadLetter   // the latest last
	Ended       []EndedMessage // the last 64 messages whose handling has ended otherwise, the latest last
	Unknown     []string       // the names of stored fields that the schema does not have, sorted
	Notes       []work.Note    // what was noted about messages, ordered by their numbers: see [Manager.SetNote]

	numbers []int // of the messages of the conversation
	origins *document.Origins
}

// As returns the view for a program that shows it to somebody who may see what an
// agent may read, such as a page for the user. State is a handle of the agent, and
// the JSON has no field, and no message of the conversation, that the agent may not
// read. Messages that wait, run or have failed have no Fields that it may not read,
// and only their ID if it may not read the conversation. Notes are those of the agent
// itself. All secrets are masked, as by the view of the host. What belongs to no field
// stays: memory, settings, and why messages have failed.
func (v *View) As(agent string) *View {
	as := *v
	as.Workspace = v.orEmpty()
	as.masks, as.state, as.Unknown = as.Redactor(), as.state.As(agent), nil
	r := reader{as.state}
	if v.Run != nil {
		run := *v.Run
		run.Message, as.Run = r.message(run.Message), &run
	}
	as.Queue, as.DeadLetters = slices.Clone(v.Queue), slices.Clone(v.DeadLetters)
	for i := range as.Queue {
		as.Queue[i] = r.message(as.Queue[i])
	}
	for i := range as.DeadLetters {
		as.DeadLetters[i].Message = r.message(as.DeadLetters[i].Message)
	}
	as.Notes = slices.DeleteFunc(slices.Clone(v.Notes), func(n work.Note) bool {
		return n.By != agent || !r.mayReadSaid()
	})
	return &as
}

// EndedMessage is a message whose handling has ended.
type EndedMessage struct {
	ID     string      `json:"id"`
	As     work.Ending `json:"as"`
	Stop   state.Stop  `json:"stop,omitempty"`   // as in [Outcome]
	Reason string      `json:"reason,omitempty"` // secrets of the workspace are masked
	At     time.Time   `json:"at,omitzero"`      // when its run has ended, or it was dropped
}

// DeadLetter is a message that was given up: its run has failed, or was begun
// too often.
type DeadLetter struct {
	Message  Message
	RunID    string
	Attempts int       // the number of times that its run was begun
	At       time.Time // when it was given up
	Reason   string
	// GoesOn says what Retry does: nothing was handled behind the message, and its
	// run goes on where it ended. Otherwise the message is put at the end once more.
	GoesOn bool
}

// View returns the workspace of a user. A workspace that does not exist is
// empty, and its Exists is false. It may show what a store that survives a failover
// has not acknowledged yet, and takes back if its primary dies before.
func (m *Manager) View(ctx context.Context, userID string) (*View, error) {
	return m.view(ctx, userID, nil)
}

// ViewAt returns the content of a workspace at an earlier version, with the
// present run and queue, and with the present values of what a thread shares with
// others. It returns state.ErrCompacted if the version is older
// than Oldest.
func (m *Manager) ViewAt(ctx context.Context, userID string, version uint64) (*View, error) {
	return m.view(ctx, userID, &version)
}

// view shows the newest version if version is nil.
func (m *Manager) view(ctx context.Context, userID string, version *uint64) (v *View, err error) {
	op := work.Operation{Kind: work.OpView, UserID: userID}
	err = m.observe(ctx, "view", op, func(ctx context.Context, l *ledger.Ledger, op *operation) (err error) {
		if v, err = m.readView(ctx, l, version); err == nil {
			op.Version, op.Queued = v.Version, len(v.Queue)+v.Tickets
		}
		return err
	})
	return v, err
}

func (m *Manager) readView(ctx context.Context, l *ledger.Ledger, version *uint64) (*View, error) {
	v, userID := &View{}, l.User()
	_, err := l.ReadStable(ctx, func(h *ledger.Head) error {
		shown := h.Version
		if version != nil {
			shown = *version
		}
		at, doc, err := l.ContentAt(ctx, h, shown)
		if err != nil {
			return err
		}
		_, part, err := m.readPart(ctx, userID)
		if err != nil {
			return err
		}
		c, err := m.content(userID, doc, at, part)
		if err != nil {
			return err
		}
		*v = View{
			Workspace: c.Workspace, Exists: h.Exists(), Version: at.Version, Chain: at.Chain, Oldest: h.Oldest(),
			LastActive: h.Updated,
		}
		v.state = c.storedState
		v.numbers = doc.Numbers()
		if v.Notes, err = l.Notes(ctx, h); err != nil {
			return err
		}
		if v.origins, err = doc.Origins(); err != nil {
			return err
		}
		former := c.moved.FormerNames()
		for _, field := range doc.Names(document.PartField) {
			if !former[field] && !v.state.KV().Has(field) {
				v.Unknown = append(v.Unknown, field)
			}
		}
		c.endWrites(state.ErrReadOnly)
		if err := v.addMessages(ctx, l, h, doc); err != nil {
			return err
		}
		if h.Run != nil {
			states, err := m.holder.records.States(ctx, h.Run)
			if err != nil {
				return err
			}
			v.Run.Heartbeat += states[0].Heartbeats
		}
		return v.addEnded(ctx, l, h)
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// addMessages adds the messages whose handling has not ended.
func (v *View) addMessages(ctx context.Context, l *ledger.Ledger, h *ledger.Head, doc *document.Document) error {
	if h.Run != nil {
		msg, err := readMessage(ctx, l, h.Run.Message)
		if err != nil {
			return err
		}
		v.Run = newRunInfo(l.User(), h, msg)
	}
	queue, err := l.Queued(ctx, h)
	if err != nil {
		return err
	}
	for _, p := range queue {
		if p.Ticket {
			v.Tickets++
			continue
		}
		msg, err := readMessage(ctx, l, p)
		if err != nil {
			return err
		}
		v.Queue = append(v.Queue, msg)
	}
	dead, err := l.DeadLetters(ctx, h)
	if err != nil {
		return err
	}
	for _, d := range dead {
		msg, err := readMessage(ctx, l, d.Message)
		if err != nil {
			return err
		}
		v.DeadLetters = append(v.DeadLetters, DeadLetter{
			msg, d.RunID, d.Attempts, d.At, d.Reason, d.Message.Stands && doc.EndsWith(msg.ID),
		})
	}
	return nil
}

// addEnded adds the messages whose handling has ended.
func (v *View) addEnded(ctx context.Context, l *ledger.Ledger, h *ledger.Head) error {
	list, err := l.Outcomes(ctx, h)
	if err != nil {
		return err
	}
	redact := v.redactor()
	for _, o := range list[max(0, len(list)-64):] {
		v.Ended = append(v.Ended, EndedMessage{o.ID, o.Ending, o.Stop, redact(o.Reason), o.At})
	}
	return nil
}

// NumberedMessage is a message of the conversation of a workspace.
type NumberedMessage struct {
	Message state.Message
	// Number is given to the message when it is stored first. It is one more than
	// that of the message that was stored before, is never given again as long as
	// the workspace is neither reset nor deleted, and stays when the conversation
	// is edited or shortened. It is not the place of the message in the
	// conversation.
	Number int
	// Behind is the number of the message in front of it in the conversation, or 0
	// if it is the first one. A late result, which was stored after what follows
	// it, stands behind a lower number than Number - 1.
	Behind int
	Time   time.Time // when it was stored
	Run    string    // the ID of the Message whose run has stored it; empty if no run has
	// Withheld says that a provider has refused some of it, which its model is not
	// shown any more: see [transcript.Withhold].
	Withheld bool
}

// Messages yields at most n messages of the conversation, or all if n is
// negative: those with the lowest numbers above after, in their order in the
// conversation. A caller that has seen all messages up to a number, and goes on
// with it, sees each later one once, including late results.
func (v *View) Messages(after, n int) iter.Seq[NumberedMessage] {
	var list []NumberedMessage
	if after <= 0 {
		list = make([]NumberedMessage, 0, len(v.numbers))
	}
	said := state.Messages.GetOr(v.orEmpty().state, nil)
	if len(said) != len(v.numbers) { // the schema has no place for the conversation
		return slices.Values(list)
	}
	behind, shown := 0, transcript.Withhold(context.Background(), v.orEmpty().state, said)
	for i, number := range v.numbers {
		if number > after {
			by := v.origins.Of(number)
			list = append(list, NumberedMessage{said[i], number, behind, by.Time, by.Run, shown[i] != said[i]})
		}
		behind = number
	}
	if n >= 0 && n < len(list) {
		lowest := slices.SortedFunc(slices.Values(list), func(a, b NumberedMessage) int {
			return cmp.Compare(a.Number, b.Number)
		})[:n]
		list = slices.DeleteFunc(list, func(m NumberedMessage) bool { return n == 0 || m.Number > lowest[n-1].Number })
	}
	return slices.Values(list)
}

// numberedJSON is the JSON of a NumberedMessage.
type numberedJSON struct {
	Number  int             `json:"number"`
	Behind  int             `json:"behind"`
	Time    time.Time       `json:"time,omitzero"`
	Run     string          `json:"run,omitempty"`
	Message json.RawMessage `json:"message"`

	Withheld bool `json:"withheld,omitempty"`
}

func (m *NumberedMessage) json(redact func(string) string) numberedJSON {
	message, _ := maskedJSON(json.RawMessage(m.Message.Raw()), redact) // which is JSON
	return numberedJSON{m.Number, m.Behind, m.Time, redact(m.Run), message, m.Withheld}
}
