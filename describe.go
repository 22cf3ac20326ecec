package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
)

// Fields describes the fields that this handle may read, in the order of the
// schema, and after them the undeclared keys that are set, sorted.
func (s *State) Fields() []FieldInfo {
	h := s.on()
	f := h.freeze()
	t := f.tree.Load()
	infos := []FieldInfo{}
	for slot, sp := range h.schema.specs {
		if slot == historySlot || !h.mayRead(slot) {
			continue
		}
		info := sp.info()
		info.Writable = h.mayWrite(slot)
		info.Set = t.slot(slot) != nil
		infos = append(infos, info)
	}
	if h.member() {
		for _, key := range f.keys() {
			info := undeclaredSpec.info()
			info.Name, info.Writable, info.Set = key, true, true
			infos = append(infos, info)
		}
	}
	return infos
}

func (sp *spec) info() FieldInfo {
	return FieldInfo{
		Name:        sp.name,
		Type:        sp.plan.Describe(),
		GoType:      sp.typ,
		OneOf:       slices.Clone(sp.oneOf),
		Description: sp.description,
		UpdateRules: sp.updateRules,
		Owner:       sp.owner,
		Handler:     sp.handler.name,
		Secret:      sp.secret,
		Ephemeral:   sp.ephemeral,
	}
}

// freeze returns a frozen branch of the handle's present content.
func (h *handle) freeze() *branch {
	if h.branch.reads != nil {
		h.branch.reads.list()
	}
	return h.branch.freeze()
}

// keys returns the undeclared keys of a frozen branch, sorted.
func (b *branch) keys() []string {
	t := b.tree.Load()
	keys := make([]string, 0, t.classes[undeclaredClass].set)
	for key := range t.keys.All() {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// each calls fn for everything that is set and that the handle may read, as it
// is at one moment: fields in the order of the schema, then undeclared keys.
func (h *handle) each(fn func(sp *spec, name string, e *entry)) {
	h.list(func(sp *spec, name string, e *entry) {
		if h.branch.reads != nil {
			key := ""
			if sp.slot < 0 {
				key = name
			}
			h.branch.reads.add(fieldKey{sp.slot, key})
		}
		fn(sp, name, e)
	})
}

// list is each for those who look at names only: for a transaction that is not
// a read of the values.
func (h *handle) list(fn func(sp *spec, name string, e *entry)) {
	f := h.freeze()
	t := f.tree.Load()
	for slot, sp := range h.schema.specs {
		if slot == historySlot || !h.mayRead(slot) {
			continue
		}
		if e := t.slot(slot); e != nil {
			fn(sp, sp.name, e)
		}
	}
	if !h.member() {
		return
	}
	for _, key := range f.keys() {
		fn(undeclaredSpec, key, t.keys.Get(key))
	}
}

// Describe returns the fields that this handle may read as text for a prompt:
// for each its name, type, description, update rules if it may write it, and
// value. The text is the same for the same content. Values are JSON on one line,
// with the characters of markup escaped, so that no value can pass for anything
// else; secrets are masked. The messages are left out.
func (s *State) Describe() string {
	h := s.on()
	values := map[string]string{}
	h.each(func(sp *spec, name string, e *entry) { values[name] = sp.render(e) })
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

// render returns a value as JSON that is safe in HTML, or the mask.
func (sp *spec) render(e *entry) string {
	if sp.secret {
		return mask
	}
	data, err := sp.appendJSON(nil, e.value)
	if err != nil {
		return "(" + err.Error() + ")"
	}
	var safe bytes.Buffer
	json.HTMLEscape(&safe, data)
	return safe.String()
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_.:/@-]+$`)

// quoteName returns a name that cannot pass for anything else in a text.
func quoteName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	var safe bytes.Buffer
	json.HTMLEscape(&safe, jsontext.AppendQuote(nil, name))
	return safe.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// String returns one line that says how much the handle sees, but no values.
func (s *State) String() string {
	h := s.on()
	who := ""
	if h.rights != nil {
		who = " as " + strconv.Quote(h.agent)
	}
	return fmt.Sprintf("state%s: version %d, %d set, %d results", who, s.Version(), s.KV().Len(), s.History().Len())
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
		slog.String("agent", h.agent),
		slog.Uint64("version", s.Version()),
		slog.Int("set", s.KV().Len()),
		slog.Int("results", s.History().Len()),
	)
}

// MarshalJSON returns a view of what the handle may read, with secrets masked.
// It is for people and logs and cannot be read back; see [State.Export].
func (s *State) MarshalJSON() ([]byte, error) {
	h := s.on()
	values := map[string]json.RawMessage{}
	var failed error
	h.each(func(sp *spec, name string, e *entry) {
		if sp.secret {
			values[name] = strconv.AppendQuote(nil, mask)
			return
		}
		data, err := sp.appendJSON(nil, e.value)
		if err != nil && failed == nil {
			failed = err
		}
		values[name] = data
	})
	if failed != nil {
		return nil, failed
	}
	return json.Marshal(struct {
		Agent   string                     `json:"agent,omitempty"`
		Version uint64                     `json:"version"`
		Values  map[string]json.RawMessage `json:"values"`
		Results int                        `json:"results"`
	}{h.agent, s.Version(), values, s.History().Len()})
}

// UnmarshalJSON always fails: a State is restored with [Import].
func (s *State) UnmarshalJSON([]byte) error { return errNotImport }

var errNotImport = errors.New("state: a State is restored with Import, not from its JSON view")
