package view

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// memoryData is what is remembered about a user.
type memoryData struct {
	Filter   string       `json:"filter,omitempty"`
	Count    int          `json:"count"` // of all entries
	Rows     []memoryRow  `json:"entries"`
	Window   window       `json:"page"`
	Settings settingsData `json:"settings"`
}

type memoryRow struct {
	Key    text      `json:"key"`
	Link   string    `json:"-"` // the key as it is in links; empty if it may contain a secret
	Value  value     `json:"value"`
	Opened bool      `json:"-"`
	Secret bool      `json:"secret,omitempty"`
	Set    time.Time `json:"created_at"`
}

// settingsData are the settings. Of MCP servers it has only the names.
type settingsData struct {
	ChatID     text   `json:"chat_id,omitempty"`
	Platform   text   `json:"platform,omitempty"`
	DebugMode  bool   `json:"debug_mode"`
	MCPServers []text `json:"mcp_servers"`
}

// memory returns the memory and the settings of a workspace.
func (s *shown) memory(q Query) (data memoryData, err error) {
	data = memoryData{Filter: visible(q.Get("filter"), false), Rows: []memoryRow{}}
	var keys []string
	entries := s.now.Memory()
	for _, key := range entries.List() {
		data.Count++
		if strings.Contains(strings.ToLower(key), strings.ToLower(q.Get("filter"))) {
			keys = append(keys, key)
		}
	}
	if data.Window, err = q.window("skip", len(keys)); err != nil {
		return data, err
	}
	limit := previewBytes
	if q.Get("open") != "" {
		limit = rowBytes // the opened one takes the room
	}
	for _, key := range keys[data.Window.From:data.Window.To] {
		entry, _ := entries.Get(key)
		row := memoryRow{Key: s.mask.id(key), Secret: entry.Secret, Set: entry.CreatedAt}
		if string(row.Key) == key {
			row.Link = key
		}
		switch {
		case entry.Secret:
			row.Value = value{Text: secretValue}
		case row.Link != "" && q.Get("open") == key:
			row.Opened, row.Value = true, s.mask.fit(entry.Value, openBytes, true)
		default:
			row.Value = s.mask.fit(entry.Value, limit, false)
		}
		data.Rows = append(data.Rows, row)
	}
	settings := s.now.Settings()
	data.Settings = settingsData{s.mask.id(settings.ChatID), s.mask.id(settings.Platform), settings.DebugMode, []text{}}
	for _, name := range slices.Sorted(maps.Keys(settings.MCPServers)) {
		if len(data.Settings.MCPServers) == pageRows {
			data.Settings.MCPServers = append(data.Settings.MCPServers, "…")
			break
		}
		data.Settings.MCPServers = append(data.Settings.MCPServers, s.mask.fit(name, 256, false).Text)
	}
	return data, nil
}
