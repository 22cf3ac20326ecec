package view

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/agentstate/state"
)

const (
	// maxTeam is the number of agents in the tree of a team that a page shows.
	maxTeam = 300
	// maxColumns is the number of agents in the matrix of a page.
	maxColumns = 20
)

// schemaData is the data of the page with the schema.
type schemaData struct {
	None   bool        `json:"none,omitempty"` // the Manager has no schema
	Filter string      `json:"filter,omitempty"`
	Fields []schemaRow `json:"fields"`
	Window window      `json:"page"`
	Team   []teamNode  `json:"team"`
	// Agents are the columns of the rights of each field.
	Agents  []text `json:"agents"`
	Columns window `json:"agents_page"`
	Count   int    `json:"count"` // of all fields
}

// schemaRow is a field of the schema.
type schemaRow struct {
	Name        text   `json:"name"`
	Type        text   `json:"type"`
	Description text   `json:"description,omitempty"`
	Rules       text   `json:"update_rules,omitempty"`
	Owner       text   `json:"owner,omitempty"`
	Read        text   `json:"read"`
	Write       text   `json:"write"`
	Handler     text   `json:"handler,omitempty"`
	Was         []text `json:"was,omitempty"`
	Secret      bool   `json:"secret,omitempty"`
	Ephemeral   bool   `json:"ephemeral,omitempty"`
	Shared      bool   `json:"shared,omitempty"`
	// Rights has for each agent the letters of what it may do: r and w, or –.
	Rights []string `json:"rights,omitempty"`
}

// teamNode is an agent of a team with the agents below it, in the order in which
// a tree shows them.
type teamNode struct {
	Name  text       `json:"name"`
	Below []teamNode `json:"below,omitempty"`
}

// Schema shows the schema of the Manager.
func (src *Source) Schema(_ context.Context, q Query) (*Page, error) {
	data := schemaData{
		Filter: visible(q.Get("filter"), false), Fields: []schemaRow{}, Team: []teamNode{}, Agents: []text{},
	}
	p := &Page{Name: "schema", Title: "Schema", Tab: "schema"}
	schema := src.info.Schema
	if schema == nil {
		data.None = true
		p.Data = data
		return p, nil
	}
	mask := &masker{} // a schema is a part of the program and has no values
	var fields []state.FieldInfo
	for _, f := range schema.Fields() {
		data.Count++
		if strings.Contains(strings.ToLower(f.Name), strings.ToLower(q.Get("filter"))) {
			fields = append(fields, f)
		}
	}
	agents := inside.Members(schema.Team())
	var err error
	if data.Window, err = q.window("skip", len(fields)); err != nil {
		return nil, err
	}
	if data.Columns, err = q.window("agents", len(agents)); err != nil {
		return nil, err
	}
	data.Columns.To = min(data.Columns.To, data.Columns.From+maxColumns)
	agents = agents[data.Columns.From:data.Columns.To]
	fields = fields[data.Window.From:data.Window.To]
	for _, f := range fields {
		data.Fields = append(data.Fields, newSchemaRow(mask, f))
	}
	for _, agent := range agents {
		data.Agents = append(data.Agents, mask.fit(agent, labelBytes, false).Text)
		for i, letters := range rightsOf(schema, agent, fields) {
			data.Fields[i].Rights = append(data.Fields[i].Rights, letters)
		}
	}
	data.Team = teamTree(mask, schema.Team())
	p.Data = data
	return p, nil
}

func newSchemaRow(mask *masker, f state.FieldInfo) schemaRow {
	short := func(s string) text { return mask.fit(s, labelBytes, false).Text }
	row := schemaRow{
		Name: short(f.Name), Type: short(f.Type), Description: mask.fit(f.Description, rowBytes, false).Text,
		Rules: mask.fit(f.UpdateRules, rowBytes, false).Text, Owner: short(f.Owner),
		Read: mask.fit(scopeText(f.Read), rowBytes, false).Text, Write: mask.fit(scopeText(f.Write), rowBytes, false).Text,
		Handler: short(f.Handler), Secret: f.Secret, Ephemeral: f.Ephemeral, Shared: f.Shared,
	}
	for _, name := range f.Was[:min(len(f.Was), 5)] {
		row.Was = append(row.Was, short(name))
	}
	return row
}

// rightsOf returns what an agent may do with each of some fields. An agent may
// read what it may write.
func rightsOf(schema *state.Schema, agent string, fields []state.FieldInfo) []string {
	letters := map[string]string{}
	for _, f := range state.New(schema).As(agent).Fields() {
		letters[f.Name] = "r"
		if f.Writable {
			letters[f.Name] = "rw"
		}
	}
	list := make([]string, len(fields))
	for i, f := range fields {
		list[i] = cmp.Or(letters[f.Name], "–")
	}
	return list
}

// teamTree returns the agents of a team that are below no other, with those
// below them.
func teamTree(mask *masker, team state.Team) []teamNode {
	below := map[string]bool{}
	for _, list := range team {
		for _, name := range list {
			below[name] = true
		}
	}
	left := maxTeam
	var nodes func(names []string) []teamNode
	nodes = func(names []string) []teamNode {
		list := []teamNode{}
		for _, name := range names {
			if left == 0 {
				return list
			}
			left--
			list = append(list, teamNode{mask.fit(name, labelBytes, false).Text, nodes(team[name])})
		}
		return list
	}
	return nodes(slices.DeleteFunc(inside.Members(team), func(name string) bool { return below[name] }))
}
