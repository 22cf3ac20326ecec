package view

import (
	"context"
	"slices"
	"strings"

	"github.com/agentstate/state"
)

// stateData is the data of the page with the fields of a workspace.
type stateData struct {
	As     string     `json:"as,omitempty"` // the agent through whose eyes the page looks
	Agents []string   `json:"agents"`       // of the team
	Filter string     `json:"filter,omitempty"`
	Fields []fieldRow `json:"fields"`
	Window window     `json:"window"`
	// Unknown are the stored fields that the schema does not have.
	Unknown []text `json:"unknown,omitempty"`
	// Hidden are the fields that the agent may not read, of which MoreHidden are
	// not listed. Describe is what the agent sees in its prompt.
	Hidden     []text `json:"hidden,omitempty"`
	MoreHidden int    `json:"more_hidden,omitempty"`
	Describe   text   `json:"describe,omitempty"`
	Blind      bool   `json:"blind,omitempty"` // there is no schema
}

type fieldRow struct {
	Name text `json:"name"`
	// Link is the name as it is in links; empty if it may contain a secret.
	Link        string `json:"-"`
	Type        text   `json:"type"`
	Description text   `json:"description,omitempty"`
	Value       value  `json:"value"`
	Open        *value `json:"open,omitempty"` // if the request asks for it
	Set         bool   `json:"set"`
	Messages    bool   `json:"-"` // the conversation, which has a page of its own
	Count       int    `json:"count,omitempty"`
	Owner       text   `json:"owner,omitempty"`
	Read        text   `json:"read,omitempty"`
	Write       text   `json:"write,omitempty"`
	Writable    bool   `json:"writable"`
	Handler     text   `json:"handler,omitempty"`
	Secret      bool   `json:"secret,omitempty"`
	Ephemeral   bool   `json:"ephemeral,omitempty"`
	Shared      bool   `json:"shared,omitempty"`
	Declared    bool   `json:"declared"`
	// Last is its last change. An agent does not see it.
	Last *lastChange `json:"last_change,omitempty"`
}

// fieldRows is the number of fields of one page: an agent may make as many
// undeclared keys as the limits of the schema allow.
const fieldRows = 500

// State shows the fields of a workspace, as the host or as an agent sees them.
func (src *Source) State(ctx context.Context, q Query) (*Page, error) {
	s, err := src.open(ctx, q)
	if err != nil {
		return nil, err
	}
	data := stateData{As: visible(q.Get("as"), false), Filter: visible(q.Get("filter"), false), Blind: s.mask.Blind}
	host := s.view.State()
	data.Agents = inside.Members(host.Schema().Team())
	handle := host
	if as := q.Get("as"); as != "" {
		handle = host.As(as)
		data.addAgent(s.mask, host, handle)
	} else {
		for _, name := range s.view.Unknown[:min(len(s.view.Unknown), fieldRows)] {
			data.Unknown = append(data.Unknown, s.mask.name(name))
		}
	}
	opened := q.Get("open")
	var last map[string]lastChange
	if data.As == "" {
		if last, err = src.lastChanges(ctx, s); err != nil {
			return nil, err
		}
	}
	declared := map[string]bool{}
	for _, f := range host.Schema().Fields() {
		declared[f.Name] = true
	}
	fields := slices.DeleteFunc(handle.Fields(), func(f state.FieldInfo) bool {
		return opened != "" && f.Name != opened ||
			!strings.Contains(strings.ToLower(f.Name), strings.ToLower(q.Get("filter")))
	})
	if data.Window, err = q.windowOf("skip", len(fields), fieldRows); err != nil {
		return nil, err
	}
	for _, f := range fields[data.Window.From:data.Window.To] {
		row := s.newFieldRow(handle, f, f.Name == opened)
		row.Declared = declared[f.Name]
		if data.As != "" {
			row.Read, row.Write = "", "" // an agent does not see who else may
		}
		if l, ok := last[f.Name]; ok {
			row.Last = &l
		}
		data.Fields = append(data.Fields, row)
	}
	return s.page("state", "State", "state", data, true), nil
}

// addAgent adds what is said about an agent that looks at the state.
func (data *stateData) addAgent(mask *masker, host, agent *state.State) {
	sees := map[string]bool{}
	for _, f := range agent.Fields() {
		sees[f.Name] = true
	}
	for _, f := range host.Fields() {
		switch {
		case sees[f.Name]:
		case len(data.Hidden) == fieldRows:
			data.MoreHidden++
		default:
			data.Hidden = append(data.Hidden, mask.name(f.Name))
		}
	}
	data.Describe = mask.lines(agent.Describe()).Text
}

func (s *shown) newFieldRow(st *state.State, f state.FieldInfo, open bool) fieldRow {
	mask := s.mask
	row := fieldRow{
		Name: mask.name(f.Name), Type: mask.name(f.Type), Description: mask.name(f.Description), Set: f.Set,
		Owner: mask.name(f.Owner), Handler: mask.name(f.Handler), Secret: f.Secret, Ephemeral: f.Ephemeral, Shared: f.Shared,
		Read: mask.name(scopeText(f.Read)), Write: mask.name(scopeText(f.Write)), Writable: f.Writable,
	}
	if string(row.Name) == f.Name {
		row.Link = f.Name
	}
	switch {
	case f.Name == state.Messages.Name:
		row.Messages, row.Count = true, state.ListLen(st, state.Messages)
	case !f.Set:
	case f.Secret:
		row.Value = value{Text: secretValue, Bytes: f.Bytes}
	default:
		row.Value = s.preview(st, f)
		if open && row.Link != "" {
			j, _ := st.KV().JSON(f.Name)
			opened := mask.open(j)
			row.Open = &opened
		}
	}
	return row
}

// longBytes is the length of a value whose beginning is kept with its view.
const longBytes = 64 << 10

// preview returns the beginning of the value of a field. To mask a value takes
// longer than to show it, so it is done once if the value is long.
func (s *shown) preview(st *state.State, f state.FieldInfo) value {
	if f.Bytes < longBytes {
		j, _ := st.KV().JSON(f.Name)
		return s.mask.json(j)
	}
	s.cached.mu.Lock()
	defer s.cached.mu.Unlock()
	if v, ok := s.cached.previews[f.Name]; ok {
		return v
	}
	j, _ := st.KV().JSON(f.Name)
	v := s.mask.json(j)
	if s.cached.previews == nil {
		s.cached.previews = map[string]value{}
	}
	s.cached.previews[f.Name] = v
	return v
}

// scopeText returns a scope for people: only a, b.
func scopeText(s state.Scope) string {
	return strings.NewReplacer(`["`, "", `" "`, ", ", `"]`, "").Replace(s.String())
}
