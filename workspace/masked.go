package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/internal/ledger"
	"github.com/agentstate/state/workspace/work"
)

// The methods in this file show a workspace without its secrets.

// String returns one line with the user and the amount of content, without
// values.
func (w Workspace) String() string {
	w = w.orEmpty()
	return fmt.Sprintf("workspace of %s: %s, %d remembered", fault.Quote(w.user), w.state, len(w.memory.snapshot()))
}

// Format prints String, and for %+v also Prompt with the host's handle.
func (w Workspace) Format(f fmt.State, verb rune) {
	w = w.orEmpty()
	switch {
	case verb == 'v' && f.Flag('+'):
		fmt.Fprintf(f, "%s\n%s", w.String(), w.Prompt(w.state))
	case verb == 'q':
		fmt.Fprintf(f, "%q", w.String())
	default:
		fmt.Fprint(f, w.String())
	}
}

// LogValue returns what String says as attributes.
func (w Workspace) LogValue() slog.Value {
	w = w.orEmpty()
	return slog.GroupValue(
		slog.String("user", w.user),
		slog.Any("state", w.state),
		slog.Int("remembered", len(w.memory.snapshot())),
	)
}

// workspaceJSON is a Workspace for people and logs.
type workspaceJSON struct {
	UserID    string                     `json:"user_id"`
	State     json.RawMessage            `json:"state"`
	Memory    map[string]json.RawMessage `json:"memory,omitempty"`
	Settings  settingsJSON               `json:"settings"`
	Suspended []suspendedJSON            `json:"suspended,omitempty"`
}

type suspendedJSON struct {
	Key    string          `json:"key"`
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name"`
	Input  json.RawMessage `json:"input,omitempty"`
	Reason string          `json:"reason,omitempty"`
	Agent  string          `json:"agent,omitempty"`
	RunID  string          `json:"run_id"`
	Since  time.Time       `json:"since,omitzero"`
	Until  time.Time       `json:"until,omitzero"`
	Client bool            `json:"client,omitempty"`
	Begun  bool            `json:"begun,omitempty"`
}

// settingsJSON has only the names of MCP servers, because their configurations
// may hold secrets that nothing marks as such.
type settingsJSON struct {
	ChatID     string   `json:"chat_id,omitempty"`
	Platform   string   `json:"platform,omitempty"`
	MCPServers []string `json:"mcp_servers,omitempty"`
	DebugMode  bool     `json:"debug_mode,omitempty"`
}

// MarshalJSON returns a view of the content for people and logs. Secrets are
// masked, and so is what other values repeat of them, as far as
// [Workspace.Redact] finds it. Of MCP servers it has only the names. To carry a
// workspace elsewhere, use [Manager.Export].
func (w Workspace) MarshalJSON() ([]byte, error) {
	w = w.orEmpty()
	v, err := w.json(w.redactor(), "")
	if err != nil {
		return nil, err
	}
	return jsontext.Marshal(v)
}

// json returns the JSON without the value of a field, if there is one to leave out.
func (w *Workspace) json(redact func(string) string, without string) (workspaceJSON, error) {
	v := workspaceJSON{UserID: w.user, Memory: map[string]json.RawMessage{}}
	data, err := inside.JSONWithout(w.state, without)
	if err != nil {
		return v, err
	}
	if v.State, err = maskedJSON(json.RawMessage(data), redact); err != nil {
		return v, err
	}
	for key, entry := range w.memory.All() {
		if v.Memory[redact(key)], err = maskedJSON(entry, redact); err != nil {
			return v, err
		}
	}
	for _, s := range w.Suspended() {
		out := suspendedJSON{
			Key: s.Key, Client: s.Client, Begun: s.Begun, ID: redact(s.ID), Name: redact(s.Name), Reason: redact(s.Reason),
			Agent: redact(s.Agent), RunID: s.RunID, Since: s.Since, Until: s.Until,
		}
		if s.Input != "" {
			if out.Input, err = maskedJSON(json.RawMessage(s.Input), redact); err != nil {
				return v, err
			}
		}
		v.Suspended = append(v.Suspended, out)
	}
	s := w.Settings()
	v.Settings = settingsJSON{ChatID: redact(s.ChatID), Platform: redact(s.Platform), DebugMode: s.DebugMode}
	for _, name := range slices.Sorted(maps.Keys(s.MCPServers)) {
		v.Settings.MCPServers = append(v.Settings.MCPServers, redact(name))
	}
	return v, nil
}

// masked returns the JSON of a message, in which redact has masked all texts and
// fields have no values.
func (m *Message) masked(redact func(string) string) json.RawMessage {
	v := m.json()
	v.Tools = nil
	for name := range v.Fields { // values of secrets are not known as such before they are stored
		v.Fields[name] = jsontext.AppendQuote(nil, masked)
	}
	data, _ := maskedJSON(v, redact) // all of it is JSON
	return data
}

type deadLetterJSON struct {
	Message  json.RawMessage `json:"message"`
	RunID    string          `json:"run_id"`
	Attempts int             `json:"attempts"`
	At       time.Time       `json:"at"`
	Reason   string          `json:"reason"`
	GoesOn   bool            `json:"goes_on,omitempty"`
}

type runInfoJSON struct {
	ID        string          `json:"id"`
	Message   json.RawMessage `json:"message"`
	Began     time.Time       `json:"began"`
	Attempt   int             `json:"attempt"`
	Step      int             `json:"step"`
	LeaseID   string          `json:"lease_id,omitempty"`
	TTL       int64           `json:"ttl_ms"`
	Heartbeat uint64          `json:"heartbeat"`
}

// MarshalJSON returns the view for people and logs, masked as by
// [Workspace.MarshalJSON]. The conversation is in its member messages, as
// [View.Messages] yields it, and not among the values of the state.
func (v View) MarshalJSON() ([]byte, error) {
	v.Workspace = v.orEmpty()
	redact := v.redactor()
	content, err := v.Workspace.json(redact, state.Messages.Name)
	if err != nil {
		return nil, err
	}
	out := struct {
		workspaceJSON
		Version     uint64            `json:"version"`
		Oldest      uint64            `json:"oldest"`
		LastActive  time.Time         `json:"last_active,omitzero"`
		Run         *runInfoJSON      `json:"run,omitempty"`
		Queue       []json.RawMessage `json:"queue,omitempty"`
		Tickets     int               `json:"tickets,omitempty"`
		DeadLetters []deadLetterJSON  `json:"dead_letters,omitempty"`
		Ended       []EndedMessage    `json:"ended,omitempty"`
		Unknown     []string          `json:"unknown,omitempty"`
		Messages    []numberedJSON    `json:"messages,omitempty"`
		Notes       []work.Note       `json:"notes,omitempty"`
	}{
		workspaceJSON: content, Version: v.Version, Oldest: v.Oldest, LastActive: v.LastActive, Tickets: v.Tickets,
	}
	if r := v.Run; r != nil {
		out.Run = &runInfoJSON{
			r.ID, r.Message.masked(redact), r.Began, r.Attempt, r.Step, r.LeaseID, r.TTL.Milliseconds(), r.Heartbeat,
		}
	}
	for _, msg := range v.Queue {
		out.Queue = append(out.Queue, msg.masked(redact))
	}
	for _, d := range v.DeadLetters {
		out.DeadLetters = append(out.DeadLetters, deadLetterJSON{
			d.Message.masked(redact), d.RunID, d.Attempts, d.At, redact(d.Reason), d.GoesOn,
		})
	}
	for _, e := range v.Ended {
		e.ID = redact(e.ID)
		out.Ended = append(out.Ended, e)
	}
	for m := range v.Messages(0, -1) {
		out.Messages = append(out.Messages, m.json(redact))
	}
	for _, n := range v.Notes {
		n.By, n.Text = redact(n.By), redact(n.Text)
		out.Notes = append(out.Notes, n)
	}
	for _, name := range v.Unknown {
		out.Unknown = append(out.Unknown, redact(name))
	}
	return jsontext.Marshal(out)
}

// MarshalJSON returns the run for people and logs, masked as by
// [Workspace.MarshalJSON].
func (r *Run) MarshalJSON() ([]byte, error) {
	redact := r.redactor()
	content, err := r.Workspace.json(redact, "")
	if err != nil {
		return nil, err
	}
	return jsontext.Marshal(struct {
		workspaceJSON
		RunID   string          `json:"run_id"`
		Attempt int             `json:"attempt"`
		Step    int             `json:"step"`
		Message json.RawMessage `json:"message"`
		Reply   string          `json:"reply,omitempty"`
	}{content, r.runID, r.attempt, r.Step(), r.message.masked(redact), redact(r.Reply())})
}

// presentMasks returns a function that masks the present secrets of a workspace
// in texts, or everything if they cannot be read.
func (m *Manager) presentMasks(ctx context.Context, l *ledger.Ledger) func(string) string {
	var redact func(string) string
	_, err := l.ReadStable(ctx, func(h *ledger.Head) (err error) {
		redact, err = m.presentSecrets(ctx, l, h)
		return err
	})
	if err != nil {
		return func(string) string { return masked }
	}
	return redact
}
