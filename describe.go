package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
)

// FieldInfo describes a field to a handle that may read it. The host's handle is
// told all, an agent's handle not which other agents may use the field.
type FieldInfo struct {
	Name        string
	Type        string // for people and models: string, list of integer, …
	GoType      reflect.Type
	OneOf       []reflect.Type // as declared
	Description string
	UpdateRules string
	Owner       string
	Read, Write Scope    // Private for a handle that is bound to an agent
	Handler     string   // the name of the handler
	Was         []string // former names
	Secret      bool
	Shared      bool
	Ephemeral   bool
	Reference   bool // Ephemeral and NoCopy: see [Field]
	Writable    bool // this handle may write it
	Set         bool // it has a value
	// Bytes is the size of the value, as limits count it. It is 0 if the field
	// is unset, for a secret, whose length is not shown, and in a transaction,
	// which would otherwise depend on all values.
	Bytes int
}

// Fields describes the fields that this handle may read, in the order of the
// schema, and after them the undeclared keys that are set, sorted.
func (s *State) Fields() []FieldInfo {
	h := s.on()
	f := h.scan()
	infos := []FieldInfo{}
	for sp, at := range h.readable(f) {
		info := sp.info()
		info.Name, info.Writable = addressName(at), h.mayWrite(sp)
		if h.rights != nil {
			info.Read, info.Write = Private, Private
		}
		if c := f.Peek(at); c != nil {
			info.Set = true
			if !sp.form.Secret && !f.InTransaction() {
				info.Bytes = c.Size
			}
		}
		infos = append(infos, info)
	}
	return infos
}

// Fields describes the fields of the schema, as [State.Fields] of an empty state
// describes them to the host. A nil schema is the one of New(nil).
func (s *Schema) Fields() []FieldInfo {
	if s == nil {
		s = openSchema
	}
	infos := make([]FieldInfo, len(s.fields))
	for i, sp := range s.fields {
		infos[i] = sp.info()
	}
	return infos
}

// info describes the field to the host.
func (sp *fieldSpec) info() FieldInfo {
	return FieldInfo{
		Name:        sp.name,
		Type:        sp.form.Plan.Describe(),
		GoType:      sp.form.Type,
		OneOf:       slices.Clone(sp.form.OneOf),
		Description: sp.description,
		UpdateRules: sp.updateRules,
		Owner:       sp.owner,
		Read:        sp.read,
		Write:       sp.write,
		Handler:     sp.handler.name,
		Was:         slices.Clone(sp.was),
		Secret:      sp.form.Secret,
		Shared:      sp.slot.Kept,
		Ephemeral:   sp.ephemeral,
		Reference:   sp.form.Reference,
		Writable:    true,
	}
}

// Describe returns the fields that this handle may read as text for a prompt.
// For each field it gives the name, the type, the value, the description and,
// if the handle may write it, the update rules. The same content gives the same
// text. Values are JSON on one line. The characters of markup, and those that
// do not show, are escaped: no value can imitate another part of the prompt.
//
// Secret fields are masked. The value of another field is given as it is, even
// if it repeats a secret: see [State.Redact]. The messages are left out, and
// not read: the cost does not depend on them.
func (s *State) Describe() string {
	h := s.on()
	f := h.describable()
	var text []byte
	for sp, at := range h.readable(f) {
		if sp != h.schema.messages() {
			text = h.describe(text, sp, at, f.Get(at))
		}
	}
	return string(text)
}

// describe appends what Describe says of one address.
func (h *handle) describe(dst []byte, sp *fieldSpec, at engine.Address, c *engine.Cell) []byte {
	dst = appendName(append(dst, "- "...), addressName(at))
	dst = fmt.Appendf(dst, " (%s)", sp.form.Plan.Describe())
	if c == nil {
		dst = append(dst, " is not set\n"...)
	} else {
		dst = append(sp.appendRendered(append(dst, " = "...), at, c.Value), '\n')
	}
	if sp.description != "" {
		dst = append(appendLine(append(dst, "    "...), sp.description), '\n')
	}
	if sp.updateRules != "" && h.mayWrite(sp) {
		dst = append(appendLine(append(dst, "    Update: "...), sp.updateRules), '\n')
	}
	return dst
}

// describable returns the branch as it is now. A transaction notes a listing
// only if there can be undeclared keys: declared fields are described whether
// they are set or not.
func (h *handle) describable() *engine.Branch {
	if h.schema.open && h.mayRead(h.schema.keys) {
		return h.scan()
	}
	return h.overlaid(h.branch.Freeze())
}

// appendRendered appends a stored value as JSON that is safe in HTML and has no
// hidden characters, or the mask.
func (sp *fieldSpec) appendRendered(dst []byte, at engine.Address, stored any) []byte {
	if sp.form.Secret {
		return append(dst, mask...)
	}
	data, err := sp.appendJSON(nil, at, stored)
	if err != nil {
		return fmt.Appendf(dst, "(%v)", err)
	}
	return appendSafe(dst, data)
}

// appendSafe appends JSON that is safe in HTML and has no hidden characters.
func appendSafe(dst, data []byte) []byte {
	var safe bytes.Buffer
	json.HTMLEscape(&safe, data)
	return fault.AppendVisible(dst, safe.String())
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.:/@-]+$`)

// appendName appends a name so that it cannot imitate other parts of a text.
func appendName(dst []byte, name string) []byte {
	if plainName.MatchString(name) {
		return append(dst, name...)
	}
	return appendSafe(dst, jsontext.AppendQuote(nil, name))
}

// appendLine appends a text of the schema as one line.
func appendLine(dst []byte, text string) []byte {
	return fault.AppendVisible(dst, strings.Join(strings.Fields(text), " "))
}

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

// Format prints String, and for %+v also Describe with the secrets that the
// handle may read masked everywhere.
func (s *State) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		moment := s.with(s.on().describable())
		fmt.Fprintf(f, "%s\n%s", s.String(), moment.Redact(moment.Describe()))
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

// MarshalJSON returns a view of what the handle may read, as it is at one
// moment, for people and logs. Secret fields are masked, and so is what other
// fields and the messages repeat of them, as far as [State.Redact] of the same
// handle finds it. To read a state back, use [State.Export].
func (s *State) MarshalJSON() ([]byte, error) { return s.json("") }

// json is MarshalJSON without the value of a field.
func (s *State) json(without string) ([]byte, error) {
	moment := s.with(s.on().branch.Scan())
	secrets := moment.Redactor()
	values := map[string]json.RawMessage{}
	for v := range moment.values() {
		if v.name == without {
			continue
		}
		data, err := v.spec.maskedJSON(v.at, v.cell, secrets)
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
	}{moment.Agent(), moment.Version(), values, moment.History().Len()})
}

// maskedJSON returns the value of a cell as JSON in which secrets are masked.
func (sp *fieldSpec) maskedJSON(at engine.Address, c *engine.Cell, secrets *Redactor) ([]byte, error) {
	if !sp.form.Secret {
		data, err := sp.appendJSON(nil, at, c.Value)
		if err != nil || secrets == nil {
			return data, err
		}
		masked := secrets.Redact(string(data))
		if masked == string(data) {
			return data, nil
		}
		if data = []byte(masked); json.Valid(data) {
			return data, nil // else a secret is a piece of JSON
		}
	}
	return strconv.AppendQuote(nil, mask), nil
}

// UnmarshalJSON always fails. To restore a State, use [Import].
func (s *State) UnmarshalJSON([]byte) error { return errNotImport }

var errNotImport = invalidArgument("JSON", "a State is restored with Import, not from its JSON view")

// mask is shown in place of a secret.
const mask = "[SECRET]"

// Masked stands for the value of a Secret field where values are listed. It
// does not hold the value, and every write refuses it.
type Masked struct{}

// String returns "[SECRET]".
func (Masked) String() string { return mask }

// GoString returns "[SECRET]".
func (Masked) GoString() string { return mask }

// LogValue returns "[SECRET]".
func (Masked) LogValue() slog.Value { return slog.StringValue(mask) }

// MarshalJSON returns "[SECRET]" as a JSON string.
func (Masked) MarshalJSON() ([]byte, error) { return strconv.AppendQuote(nil, mask), nil }
