package view

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
)

var errNoSchema = &Error{
	http.StatusForbidden, "There is no schema, so any value may be a secret. Nothing can be downloaded.",
}

// Download is a file, in which secrets are masked.
type Download struct{ Name, Kind, Body string }

// exportData is a workspace as it is downloaded. It is for people and not for
// Manager.ImportWorkspace: its secrets are masked.
type exportData struct {
	Format   int                        `json:"format"`
	User     string                     `json:"user"`
	Version  uint64                     `json:"version"`
	As       string                     `json:"as,omitempty"`
	State    json.RawMessage            `json:"state"`
	Memory   map[string]json.RawMessage `json:"memory,omitempty"`
	Settings *settingsData              `json:"settings,omitempty"`
	Run      *exportedRun               `json:"run,omitempty"`
	Queue    []exportedMessage          `json:"queue,omitempty"`
	Dead     []exportedDead             `json:"dead_letters,omitempty"`
	Ended    []workspace.EndedMessage   `json:"ended,omitempty"`
}

type exportedRun struct {
	ID      string          `json:"run"`
	Message exportedMessage `json:"message"`
	Attempt int             `json:"attempt"`
	Step    int             `json:"step"`
}

type exportedMessage struct {
	ID       string        `json:"id"`
	ChatID   string        `json:"chat_id,omitempty"`
	Platform string        `json:"platform,omitempty"`
	Content  state.Message `json:"content"`
}

type exportedDead struct {
	exportedMessage
	Attempts int    `json:"attempts"`
	Reason   string `json:"reason"`
}

func newExportedMessage(m workspace.Message) exportedMessage {
	return exportedMessage{m.ID, m.ChatID, m.Platform, m.Content}
}

// Export returns the whole workspace as JSON, or one of its values as text: the
// parameters field, message and result choose it.
func (src *Source) Export(ctx context.Context, q Query) (*Download, error) {
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, err
	}
	if s.mask.Blind {
		return nil, errNoSchema
	}
	handle := s.view.State()
	if as := q.Get("as"); as != "" {
		handle = handle.As(as)
	}
	for name, find := range map[string]func(Query, *state.State, string) (string, bool){
		"field": s.exportField, "message": s.exportMessage, "result": s.exportResult,
	} {
		if of := q.Get(name); of != "" {
			body, ok := find(q, handle, of)
			if !ok {
				return nil, errNoValue
			}
			return &Download{name + ".txt", "text/plain; charset=utf-8", body}, nil
		}
	}
	data := exportData{Format: 1, User: q.User, Version: s.Version, As: q.Get("as")}
	if data.State, err = handle.MarshalJSON(); err != nil {
		return nil, err
	}
	if data.As == "" {
		if err := data.addRest(s); err != nil {
			return nil, err
		}
	}
	body, err := indented(data)
	if err != nil {
		return nil, err
	}
	return &Download{fmt.Sprintf("workspace-v%d.json", s.Version), "application/json", s.mask.whole(body)}, nil
}

// addRest adds what only the host sees.
func (data *exportData) addRest(s *shown) error {
	data.Memory = map[string]json.RawMessage{}
	for key, entry := range s.view.Memory().All() {
		value, err := json.Marshal(entry) // which masks a secret
		if err != nil {
			return err
		}
		data.Memory[key] = value
	}
	settings := s.view.Settings()
	data.Settings = &settingsData{
		text(settings.ChatID), text(settings.Platform), settings.DebugMode, []text{},
	}
	for _, name := range slices.Sorted(maps.Keys(settings.MCPServers)) {
		data.Settings.MCPServers = append(data.Settings.MCPServers, text(name))
	}
	if r := s.now.Run; r != nil {
		data.Run = &exportedRun{r.ID, newExportedMessage(r.Message), r.Attempt + 1, r.Step}
	}
	for _, m := range s.now.Queue {
		data.Queue = append(data.Queue, newExportedMessage(m))
	}
	for _, d := range s.now.DeadLetters {
		data.Dead = append(data.Dead, exportedDead{newExportedMessage(d.Message), d.Attempts, d.Reason})
	}
	data.Ended = s.now.Ended
	return nil
}

// exportField returns the JSON of a field.
func (s *shown) exportField(_ Query, handle *state.State, name string) (string, bool) {
	for _, f := range handle.Fields() {
		if f.Name == name && f.Set && !f.Secret {
			j, ok := handle.KV().JSON(name)
			return s.mask.whole(string(j)), ok
		}
	}
	return "", false
}

// exportMessage returns the JSON of a message of the conversation.
func (s *shown) exportMessage(q Query, _ *state.State, index string) (string, bool) {
	msgs, _ := s.talk(q)
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(msgs) {
		return "", false
	}
	return s.mask.whole(string(msgs[i].Raw())), true
}

// exportResult returns the JSON of a result.
func (s *shown) exportResult(_ Query, handle *state.State, index string) (string, bool) {
	i, err := strconv.Atoi(index)
	if err != nil {
		return "", false
	}
	r, ok := handle.History().At(i)
	if !ok {
		return "", false
	}
	data, err := indented(r)
	return s.mask.whole(data), err == nil
}

// indented returns a value as JSON for people.
func indented(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.String(), err
}
