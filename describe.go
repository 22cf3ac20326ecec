package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
)

// FieldInfo describes a field to a handle that may read it.
type FieldInfo struct {
	Name        string
	Type        string // for people and models: string, list of integer, …
	GoType      reflect.Type
	OneOf       []reflect.Type // as declared
	Description string
	UpdateRules string
	Owner       string
	Handler     string // the name of the handler
	Secret      bool
	Ephemeral   bool
	Writable    bool // this handle may write it
	Set         bool // it has a value
}

// Fields describes the fields that this handle may read, in the order of the
// schema, and after them the undeclared keys that are set, sorted.
func (s *State) Fields() []FieldInfo {
	h := s.on()
	f := h.branch.Scan()
	infos := []FieldInfo{}
	for sp, at := range h.readable(f) {
		infos = append(infos, FieldInfo{
			Name:        addressName(at),
			Type:        sp.form.Plan.Describe(),
			GoType:      sp.form.Type,
			OneOf:       slices.Clone(sp.form.OneOf),
			Description: sp.description,
			UpdateRules: sp.updateRules,
			Owner:       sp.owner,
			Handler:     sp.handler.name,
			Secret:      sp.form.Secret,
			Ephemeral:   sp.ephemeral,
			Writable:    h.mayWrite(sp),
			Set:         f.Peek(at) != nil,
		})
	}
	return infos
}

// Describe returns the fields that this handle may read as text for a prompt.
// For each field it gives the name, the type, the value, the description and,
// if the handle may write it, the update rules. The same content gives the same
// text. Values are JSON on one line with the characters of markup escaped: no
// value can imitate another part of the prompt. Secrets are masked and the
// messages are left out.
func (s *State) Describe() string {
	h := s.on()
	values := map[string]string{}
	for v := range h.values() {
		values[v.name] = v.render()
	}
	var b strings.Builder
	for _, info := range s.Fields() {
		if info.Name == messagesName {
			continue
		}
		fmt.Fprintf(&b, "- %s (%s)", quoteName(info.Name), info.Type)
		if v, ok := values[info.Name]; ok {
			fmt.Fprintf(&b, " = %s\n", v)
		} else {
			b.WriteString(" is not set\n")
		}
		if info.Description != "" {
			fmt.Fprintf(&b, "    %s\n", oneLine(info.Description))
		}
		if info.UpdateRules != "" && info.Writable {
			fmt.Fprintf(&b, "    Update: %s\n", oneLine(info.UpdateRules))
		}
	}
	return b.String()
}

// render returns the value as JSON that is safe in HTML, or the mask.
func (v storedValue) render() string {
	if v.spec.form.Secret {
		return mask
	}
	data, err := v.spec.appendJSON(nil, v.at, v.cell.Value)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	var safe bytes.Buffer
	json.HTMLEscape(&safe, data)
	return safe.String()
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.:/@-]+$`)

// quoteName returns a name so that it cannot imitate other parts of a text.
func quoteName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	var safe bytes.Buffer
	json.HTMLEscape(&safe, jsontext.AppendQuote(nil, name))
	return safe.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// String returns one line with the amount of content that the handle sees,
// without values.
func (s *State) String() string {
	h := s.on()
	reader := ""
	if h.rights != nil {
		reader = " as " + strconv.Quote(h.agent())
	}
	return fmt.Sprintf("state%s: version %d, %d set, %d results", reader, s.Version(), s.KV().Len(), s.History().Len())
}

// GoString returns String.
func (s *State) GoString() string { return s.String() }

// Format prints String, and for %+v also Describe.
func (s *State) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		fmt.Fprintf(f, "%s\n%s", s.String(), s.Describe())
	case verb == 'q':
		fmt.Fprintf(f, "%q", s.String())
	default:
		fmt.Fprint(f, s.String())
	}
}

// LogValue returns what String says as attributes.
func (s *State) LogValue() slog.Value {
	h := s.on()
	return slog.GroupValue(
		slog.String("agent", h.agent()),
		slog.Uint64("version", s.Version()),
		slog.Int("set", s.KV().Len()),
		slog.Int("results", s.History().Len()),
	)
}

// MarshalJSON returns a view of what the handle may read, with secrets masked.
// It is for people and logs. To read a state back, use [State.Export].
func (s *State) MarshalJSON() ([]byte, error) {
	h := s.on()
	values := map[string]json.RawMessage{}
	for v := range h.values() {
		if v.spec.form.Secret {
			values[v.name] = strconv.AppendQuote(nil, mask)
			continue
		}
		data, err := v.spec.appendJSON(nil, v.at, v.cell.Value)
		if err != nil {
			return nil, err
		}
		values[v.name] = data
	}
	return json.Marshal(struct {
		Agent   string                     `json:"agent,omitempty"`
		Version uint64                     `json:"version"`
		Values  map[string]json.RawMessage `json:"values"`
		Results int                        `json:"results"`
	}{h.agent(), s.Version(), values, s.History().Len()})
}

// UnmarshalJSON always fails. To restore a State, use [Import].
func (s *State) UnmarshalJSON([]byte) error { return errNotImport }

var errNotImport = errors.New("state: a State is restored with Import, not from its JSON view")
