package inspect

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
	"github.com/agentstate/state/workspace"
)

var (
	errNoSchema = &httpError{http.StatusForbidden, "There is no schema, so any value may be a secret. Nothing can be downloaded."}
	errNoFormat = &httpError{http.StatusBadRequest, "The parameter format is not openai, responses, anthropic, gemini or json."}
	errNoValue  = &httpError{http.StatusNotFound, "There is no such value."}
)

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

// export answers with the whole workspace as JSON, or with one of its values as
// text: the parameters field, message and result choose it.
func (h *Handler) export(c *call) (*page, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	if s.mask.Blind {
		return nil, errNoSchema
	}
	handle := s.view.State()
	if as := c.query.Get("as"); as != "" {
		handle = handle.As(as)
	}
	for _, part := range []struct {
		name string
		find func(*call, *shown, *state.State, string) (string, bool)
	}{{"field", exportField}, {"message", exportMessage}, {"result", exportResult}} {
		if name := c.query.Get(part.name); name != "" {
			body, ok := part.find(c, s, handle, name)
			if !ok {
				return nil, errNoValue
			}
			c.download(part.name+".txt", "text/plain; charset=utf-8", body)
			return nil, nil
		}
	}
	data := exportData{Format: 1, User: c.user, Version: s.Version, As: c.query.Get("as")}
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
	c.download(fmt.Sprintf("workspace-v%d.json", s.Version), "application/json", s.mask.whole(body))
	return nil, nil
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
func exportField(_ *call, s *shown, handle *state.State, name string) (string, bool) {
	for _, f := range handle.Fields() {
		if f.Name == name && f.Set && !f.Secret {
			j, ok := handle.KV().JSON(name)
			return s.mask.whole(string(j)), ok
		}
	}
	return "", false
}

// exportMessage returns the JSON of a message of the conversation.
func exportMessage(c *call, s *shown, _ *state.State, index string) (string, bool) {
	msgs, _ := c.talk(s)
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(msgs) {
		return "", false
	}
	return s.mask.whole(string(msgs[i].Raw())), true
}

// exportResult returns the JSON of a result.
func exportResult(_ *call, s *shown, handle *state.State, index string) (string, bool) {
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

// messages answers with the conversation as the request of a provider, or, with
// the format json, as this library stores it. With the parameter repair it is
// repaired first.
func (h *Handler) messages(c *call) (*page, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	if s.mask.Blind {
		return nil, errNoSchema
	}
	msgs, _ := c.talk(s)
	for i, m := range msgs {
		msgs[i] = s.mask.message(m)
	}
	name := c.query.Get("format")
	if name == "" || name == "json" {
		body, err := indented(append([]state.Message{}, msgs...))
		if err != nil {
			return nil, err
		}
		c.download("messages.json", "application/json", s.mask.whole(body))
		return nil, nil
	}
	for _, f := range formats {
		if f.name != name {
			continue
		}
		if c.query.Get("repair") != "" {
			msgs, _ = transcript.Repair(msgs, f.format.Profile(), repairPolicy(waitingCalls(s.view)))
		}
		body, _, err := f.format.EncodeRequest(provider.Request{Messages: msgs})
		if err != nil {
			return nil, err
		}
		c.download("messages-"+name+".json", "application/json", s.mask.whole(string(body)))
		return nil, nil
	}
	return nil, errNoFormat
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

// message returns a message without secrets. A provider's format may escape a
// text more often than Redact undoes, so each message is masked first.
func (m *masker) message(msg state.Message) state.Message {
	raw := string(msg.Raw())
	masked := m.whole(raw)
	if masked == raw {
		return msg
	}
	decoded, err := state.DecodeMessage([]byte(masked))
	if err != nil {
		return state.Text("user", secretValue) // what is masked has made it invalid
	}
	return decoded
}

// download answers with a file, which a browser does not show.
func (c *call) download(name, kind, body string) {
	header := c.w.Header()
	header.Set("Content-Type", kind)
	header.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if c.r.Method != http.MethodHead {
		io.Copy(c.w, strings.NewReader(body)) // an error means that nobody waits for it
	}
}
