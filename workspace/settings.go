package workspace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/internal/document"
)

// Settings are the configuration of a user's workspace.
type Settings struct {
	ChatID     string
	Platform   string
	MCPServers map[string]state.JSON // the configuration of each server, by its name
	DebugMode  bool
}

// settings holds the Settings of a workspace for concurrent use.
type sharedSettings struct {
	changing sync.Mutex // held during a change, so that no concurrent change is lost

	mu     sync.Mutex
	now    Settings
	stored map[string][]byte
	ended  error
}

func decodeSettings(stored map[string][]byte) (*sharedSettings, error) {
	s := &sharedSettings{stored: stored}
	for name, dst := range map[string]any{
		"chat_id": &s.now.ChatID, "platform": &s.now.Platform, "mcp_servers": &s.now.MCPServers, "debug_mode": &s.now.DebugMode,
	} {
		if data, ok := stored[name]; ok {
			if err := json.Unmarshal(data, dst); err != nil {
				return nil, fmt.Errorf("%w: setting %s: %w", ErrCorrupt, name, err)
			}
		}
	}
	return s, nil
}

func (s *sharedSettings) get() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.now
	c.MCPServers = maps.Clone(c.MCPServers)
	return c
}

// change lets fn change the settings. It does not hold mu while it calls fn, which
// may read the settings.
func (s *sharedSettings) change(fn func(*Settings)) error {
	s.changing.Lock()
	defer s.changing.Unlock()
	c := s.get()
	fn(&c)
	for name, config := range c.MCPServers {
		if !config.Valid() {
			return fmt.Errorf("%w: configuration of the MCP server %q is no JSON", ErrInvalid, fault.Clip(name))
		}
	}
	if len(c.ChatID) > maxID || len(c.Platform) > maxID {
		return fmt.Errorf("%w: ChatID and Platform have at most %d bytes", ErrInvalid, maxID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	c.MCPServers = maps.Clone(c.MCPServers)
	s.now = c
	return nil
}

// effects returns what has to change in the document.
func (s *sharedSettings) effects() ([]state.Effect, error) {
	c := s.get()
	var effects []state.Effect
	for _, f := range []struct {
		name  string
		value any
		unset bool
	}{
		{"chat_id", c.ChatID, c.ChatID == ""},
		{"debug_mode", c.DebugMode, !c.DebugMode},
		{"mcp_servers", c.MCPServers, len(c.MCPServers) == 0},
		{"platform", c.Platform, c.Platform == ""},
	} {
		old, present := s.stored[f.name]
		data, err := jsontext.Marshal(f.value)
		switch {
		case err != nil:
			return nil, err
		case f.unset && present:
			effects = append(effects, state.Effect{Part: document.PartSetting, Field: f.name, Kind: state.EffectDelete})
		case !f.unset && !bytes.Equal(old, data):
			effects = append(effects, state.Effect{Part: document.PartSetting, Field: f.name, Kind: state.EffectSet, Value: state.JSON(data)})
		}
	}
	return effects, nil
}

// saved notes that effects are in the document now.
func (s *sharedSettings) saved(effects []state.Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stored = maps.Clone(s.stored)
	if s.stored == nil {
		s.stored = map[string][]byte{}
	}
	for _, e := range effects {
		switch {
		case e.Part != document.PartSetting:
		case e.Kind == state.EffectDelete:
			delete(s.stored, e.Field)
		default:
			s.stored[e.Field] = []byte(e.Value)
		}
	}
}

func (s *sharedSettings) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = err
}
