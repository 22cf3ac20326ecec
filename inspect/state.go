package inspect

import (
	"maps"
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
	// Unknown are the stored fields that the schema does not have.
	Unknown []text `json:"unknown,omitempty"`
	// Hidden are the fields that the agent may not read, and Describe is what the
	// agent sees in its prompt.
	Hidden   []text `json:"hidden,omitempty"`
	Describe text   `json:"describe,omitempty"`
	Blind    bool   `json:"blind,omitempty"` // there is no schema
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
	Declared    bool   `json:"declared"`
	// Last is its last change. An agent does not see it.
	Last *lastChange `json:"last_change,omitempty"`
}

// state shows the fields of a workspace, as the host or as an agent sees them.
func (h *Handler) state(c *call) (*page, error) {
	s, err := c.open()
	if err != nil {
		return nil, err
	}
	data := stateData{As: visible(c.query.Get("as"), false), Filter: c.query.Get("filter"), Blind: s.mask.blind}
	host := s.view.State()
	data.Agents = agentsOf(host.Schema().Team())
	handle := host
	if as := c.query.Get("as"); as != "" {
		handle = host.As(as)
		data.addAgent(s.mask, host, handle)
	} else {
		for _, name := range s.view.Unknown {
			data.Unknown = append(data.Unknown, s.mask.name(name))
		}
	}
	opened := c.query.Get("open")
	var last map[string]lastChange
	if data.As == "" {
		if last, err = s.lastChanges(c.ctx(), h); err != nil {
			return nil, err
		}
	}
	for _, f := range handle.Fields() {
		if opened != "" && f.Name != opened {
			continue
		}
		if strings.Contains(strings.ToLower(f.Name), strings.ToLower(data.Filter)) {
			row := newFieldRow(s.mask, handle, f, f.Name == opened)
			if data.As != "" {
				row.Read, row.Write = "", "" // an agent does not see who else may
			}
			if l, ok := last[f.Name]; ok {
				row.Last = &l
			}
			data.Fields = append(data.Fields, row)
		}
	}
	return &page{
		Name: "state", Title: "State", Tab: "state", Data: data, Head: s.head, Live: !s.Past,
	}, nil
}

// addAgent adds what is said about an agent that looks at the state.
func (data *stateData) addAgent(mask *masker, host, agent *state.State) {
	sees := map[string]bool{}
	for _, f := range agent.Fields() {
		sees[f.Name] = true
	}
	for _, f := range host.Fields() {
		if !sees[f.Name] {
			data.Hidden = append(data.Hidden, mask.name(f.Name))
		}
	}
	data.Describe = mask.lines(agent.Describe()).Text
}

func newFieldRow(mask *masker, st *state.State, f state.FieldInfo, open bool) fieldRow {
	row := fieldRow{
		Name: mask.name(f.Name), Type: mask.name(f.Type), Description: mask.name(f.Description), Set: f.Set,
		Owner: mask.name(f.Owner), Handler: mask.name(f.Handler), Secret: f.Secret, Ephemeral: f.Ephemeral,
		Read: mask.name(scopeText(f.Read)), Write: mask.name(scopeText(f.Write)), Writable: f.Writable, Declared: isDeclared(st, f.Name),
	}
	if string(row.Name) == f.Name {
		row.Link = f.Name
	}
	switch {
	case f.Name == state.Messages.Name:
		row.Messages, row.Count = true, state.Len(st, state.Messages)
	case !f.Set:
	case f.Secret:
		row.Value = value{Text: secretValue, Bytes: f.Bytes}
	default:
		j, _ := st.KV().JSON(f.Name)
		row.Value = mask.json(j)
		if open && row.Link != "" {
			opened := mask.open(j)
			row.Open = &opened
		}
	}
	return row
}

// isDeclared reports whether the schema of a state has a field.
func isDeclared(st *state.State, name string) bool {
	return slices.ContainsFunc(st.Schema().Fields(), func(f state.FieldInfo) bool { return f.Name == name })
}

// agentsOf returns the names of a team, sorted.
func agentsOf(team state.Team) []string {
	names := map[string]bool{}
	for name, below := range team {
		names[name] = true
		for _, b := range below {
			names[b] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// scopeText returns a scope for people: only a, b.
func scopeText(s state.Scope) string {
	return strings.NewReplacer(`["`, "", `" "`, ", ", `"]`, "").Replace(s.String())
}
