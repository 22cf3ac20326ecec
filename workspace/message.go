package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/runctx"
	"github.com/agentstate/state/tool"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// Message is a message of a user.
type Message struct {
	// ID identifies the message if it is sent again: a workspace handles only
	// the first of several messages with one id, as long as it remembers the
	// id, which it does for at least the last 64 messages. A message without an
	// id gets a random one.
	ID string
	// ChatID and Platform say where the message comes from. If they are not
	// empty, they are copied to the settings when the message is handled.
	ChatID, Platform string
	// Content is appended to the conversation when the message is handled: the
	// user's turn. A message with Decisions needs none.
	Content state.Message
	// Decisions decide about suspended calls, at most 64, each named by its key. The
	// calls that are answered or refused have their results when Options.Run is
	// called. Those that are approved are made by the run, if its function is one of
	// Loop or uses turns of package loop; see [tool.NeedsApproval].
	//
	// The write that accepts the message decides. A message is not accepted if a call
	// does not wait any longer, or another accepted message decides about it
	// (ErrNotSuspended), if no such call is known (state.ErrUnknownCall), if its time
	// is over (ErrExpired), or if Agent may not decide about it (state.ErrDenied). An
	// ID that is known is a duplicate before that. A decision that can no longer be
	// made when the message is handled is not in Run.Message.
	//
	// A call that is approved and was not made when its run ends waits again.
	Decisions []tool.Decision
	// Agent is who has decided (default: the host). Without [tool.DecidedBy], it may
	// be any agent of the Team; for an answer, it must be the one that has made the
	// call, or the call one of a tool of the sender. Approved calls are made with the
	// rights of the agent that has made them, and tool.CallOf names this one.
	Agent string
	// Fields are values for fields of the State, and null for those to delete: what a
	// person has edited together with what they say. They are stored with Content,
	// whatever the handlers of the fields are, with the rights of Agent. A message
	// with one that may not be written, or does not fit, is not accepted; the error
	// is that of [state.State.Patch].
	Fields map[string]state.JSON
	// Tools are those of the sender, such as functions of a page, at most 128: see
	// [Run.ClientTools].
	Tools []ClientTool
	// Trace is a text for the Tracer of the process that handles the message,
	// which finds it in Operation.Links (default: what Tracer.Inject returns
	// when the message is handed over). A Trace that is not UTF-8, or is longer
	// than 1 KiB, is dropped.
	Trace string
	// WhenBusy determines what happens to the message if it arrives during a run.
	// It is not stored.
	WhenBusy WhenBusy

	expired []string // keys of calls about which nobody has decided in time
}

// Text returns what the user says as text, and "" for a message without Content.
func (m Message) Text() string {
	if m.Content == nil {
		return ""
	}
	return m.Content.Text()
}

// outcomeOf returns what became of a message.
func outcomeOf(f ledger.Fate) Outcome {
	out := Outcome{RunID: f.RunID, Reply: f.Reply, Reason: f.Reason, Stop: f.Stop}
	switch {
	case f.Place == ledger.PlaceRunning:
		out.Status = StatusStarted
	case f.Place == ledger.PlaceQueued:
		out.Status = StatusQueued
	case f.Ending == work.EndingFinished:
		out.Status = StatusDone
	default:
		out.Status = StatusFailed
		if out.Reason == "" {
			out.Reason = string(f.Ending)
		}
	}
	return out
}

// duplicateOf returns the outcome of a message that was sent again.
func duplicateOf(first ledger.Fate) Outcome {
	out := outcomeOf(first)
	out.First, out.Status, out.Differs = out.Status, StatusDuplicate, first.Differs
	return out
}

// maxID is the maximum length, in bytes, of an id, a chat id and a platform.
const maxID = 256

// messageJSON is the JSON of a message: as it is stored, and, with masks, as it
// is shown.
type messageJSON struct {
	ID       string          `json:"id"`
	ChatID   string          `json:"chat_id,omitempty"`
	Platform string          `json:"platform,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`

	Decisions []tool.Decision `json:"decisions,omitempty"`
	Expired   []string        `json:"expired,omitempty"`
	Agent     string          `json:"agent,omitempty"`

	Fields map[string]json.RawMessage `json:"fields,omitempty"`
	Tools  []ClientTool               `json:"tools,omitempty"`
}

// json returns the JSON of a message that encode would not refuse.
func (m *Message) json() messageJSON {
	s := messageJSON{
		ID: m.ID, ChatID: m.ChatID, Platform: m.Platform, Decisions: m.Decisions, Expired: m.expired, Agent: m.Agent,
		Tools: m.Tools,
	}
	for name, value := range m.Fields {
		if s.Fields == nil {
			s.Fields = map[string]json.RawMessage{}
		}
		s.Fields[name] = json.RawMessage(value)
	}
	if m.Content != nil {
		s.Content = json.RawMessage(m.Content.Raw())
	}
	return s
}

// encode checks a message and returns its JSON.
func (m Message) encode() ([]byte, error) {
	for _, text := range []string{m.ID, m.ChatID, m.Platform, m.Agent} {
		if len(text) > maxID || !utf8.ValidString(text) {
			return nil, fmt.Errorf("%w: the ids of a message must be UTF-8 of at most %d bytes", ErrInvalid, maxID)
		}
	}
	for name, value := range m.Fields {
		if !value.Valid() {
			return nil, fmt.Errorf("%w: the field %s of the message has no JSON", ErrInvalid, fault.Quote(name))
		}
	}
	decided := m.decided()
	switch {
	case inside.IsMessage(m.Content):
	case m.Content != nil:
		return nil, fmt.Errorf("%w: the content is a %T: want a message of package state that is neither nil nor zero",
			ErrInvalid, m.Content)
	case len(decided) == 0:
		return nil, fmt.Errorf("%w: message without content", ErrInvalid)
	}
	if m.Content != nil && m.Content.Role() != "user" {
		return nil, fmt.Errorf("%w: the content has the role %s: want that of the user", ErrInvalid,
			fault.Quote(m.Content.Role()))
	}
	if len(decided) > maxSuspended {
		return nil, fmt.Errorf("%w: message with more than %d decisions", ErrInvalid, maxSuspended)
	}
	for i, d := range m.Decisions {
		if err := d.Check(); err != nil {
			return nil, fmt.Errorf("%w: decision %d: %w", ErrInvalid, i, err)
		}
		if slices.ContainsFunc(m.Decisions[:i], func(o tool.Decision) bool { return o.Key == d.Key }) {
			return nil, fmt.Errorf("%w: the message decides twice about the call %s", ErrInvalid, fault.Quote(d.Key))
		}
	}
	return jsontext.Marshal(m.json())
}

// decodeMessage is the inverse of encode. key is for errors.
func decodeMessage(key string, data []byte) (Message, error) {
	m, err := decodeStored(data)
	if err != nil {
		return Message{}, fmt.Errorf("%w: %s: message: %w", ErrCorrupt, key, err)
	}
	return m, nil
}

func decodeStored(data []byte) (Message, error) {
	var s messageJSON
	if err := jsontext.Check(data, jsontext.Limits{}); err != nil {
		return Message{}, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return Message{}, err
	}
	m := Message{
		ID: s.ID, ChatID: s.ChatID, Platform: s.Platform, Decisions: s.Decisions, expired: s.Expired, Agent: s.Agent,
		Tools: s.Tools,
	}
	for name, value := range s.Fields {
		if m.Fields == nil {
			m.Fields = map[string]state.JSON{}
		}
		m.Fields[name] = state.JSON(value)
	}
	if len(s.Content) == 0 && len(m.decided()) > 0 {
		return m, nil
	}
	var err error
	m.Content, err = state.DecodeMessage(s.Content)
	return m, err
}

// given returns the message as it is read back from the store, or nil if it has parts
// that its sender may change.
func (m Message) given() *Message {
	if m.Content == nil || len(m.Fields)+len(m.Decisions)+len(m.expired)+len(m.Tools) > 0 {
		return nil
	}
	m.WhenBusy, m.Trace = BusyDefault, usableTrace(m.Trace)
	return &m
}

// readMessage returns a pending message. A ticket has no content.
func readMessage(ctx context.Context, l *ledger.Ledger, p ledger.Message) (Message, error) {
	if p.Ticket {
		return Message{}, nil
	}
	data, key, err := l.ReadBody(ctx, p)
	if err != nil {
		return Message{}, err
	}
	m, err := decodeMessage(key, data)
	m.Trace = usableTrace(p.Trace)
	return m, err
}

// errorOf returns an error for a message that was not handled to its end.
func errorOf(f ledger.Fate) error {
	out := outcomeOf(f)
	switch f.Ending {
	case work.EndingFinished:
		return nil
	case work.EndingInterrupted, work.EndingRolledBack, work.EndingReset:
		return fmt.Errorf("%w: %w: %s", ErrRunFailed, ErrInterrupted, out.Reason)
	case work.EndingCancelled:
		return fmt.Errorf("%w: %w: %s", ErrRunFailed, ErrRunCancelled, out.Reason)
	}
	return fmt.Errorf("%w: %s", ErrRunFailed, out.Reason)
}

// maxSuspended is the maximum number of suspended calls of a workspace, and of
// decisions in a message.
const maxSuspended = 64

// usableTrace returns a trace, or "" if it must not be stored.
func usableTrace(trace string) string {
	if len(trace) > maxTrace || !utf8.ValidString(trace) {
		return ""
	}
	return trace
}

// maxTrace is the maximum length, in bytes, of what Inject returns.
const maxTrace = 1 << 10

// decided returns the keys of the calls that a message decides.
func (m *Message) decided() []string {
	keys := slices.Clone(m.expired)
	for _, d := range m.Decisions {
		keys = append(keys, d.Key)
	}
	return keys
}

// keepDecisions removes the decisions for which keep returns false. It is asked for
// those about calls that have expired first.
func (m *Message) keepDecisions(keep func(tool.Decision) bool) {
	m.expired = kept(m.expired, func(key string) bool {
		return keep(tool.Decision{Key: key, Kind: runctx.VerdictExpired})
	})
	m.Decisions = kept(m.Decisions, keep)
}

// patch writes the Fields of a message to a State.
func (m *Message) patch(st *state.State) error {
	if len(m.Fields) == 0 {
		return nil
	}
	values := map[string]any{}
	for name, text := range m.Fields {
		dec := json.NewDecoder(bytes.NewReader([]byte(text)))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("the field %q has no JSON: %w", name, err)
		}
		values[name] = v
	}
	if m.Agent != "" {
		st = st.As(m.Agent)
	}
	return st.Patch(values)
}

// checkID checks the id of a message or of a run.
func checkID(id string) error {
	if id == "" || len(id) > maxID || !utf8.ValidString(id) {
		return fmt.Errorf("%w: an id must be UTF-8 of 1 to %d bytes", ErrInvalid, maxID)
	}
	return nil
}

// ClientTool is a tool that the sender of a message has, such as a page.
type ClientTool struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Schema      state.JSON `json:"schema,omitempty"` // of the arguments, an object (default: no arguments)
}

// maxClientTools is the maximum number of tools of a message.
const maxClientTools = 128

// toolsOf returns tools whose calls are suspended, or why there cannot be such.
func toolsOf(list []ClientTool) (tools []*tool.Tool, err error) {
	if len(list) > maxClientTools {
		return nil, &state.LimitError{Name: "tools of a message", Limit: maxClientTools, Got: len(list)}
	}
	for _, c := range list {
		if c.Schema == "" {
			c.Schema = `{"type":"object"}`
		}
		t, err := tool.Raw(c.Name, c.Description, c.Schema, func(context.Context, state.JSON) (state.JSON, error) {
			return "", tool.Suspend(runctx.ErrClients)
		})
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tools, func(o *tool.Tool) bool { return o.Name() == c.Name }) {
			return nil, fmt.Errorf("two tools are named %q", c.Name)
		}
		tools = append(tools, t)
	}
	return tools, nil
}
