package workspace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/fault"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/workspace/internal/document"
	"github.com/agentstate/state/workspace/internal/turns"
)

// Settings are the configuration of a user's workspace.
type Settings struct {
	ChatID     string                `json:"chat_id,omitempty"`
	Platform   string                `json:"platform,omitempty"`
	MCPServers map[string]state.JSON `json:"mcp_servers,omitempty"` // the configuration of each server, by its name
	DebugMode  bool                  `json:"debug_mode,omitempty"`
}

func (s *Settings) isZero() bool {
	return s.ChatID == "" && s.Platform == "" && len(s.MCPServers) == 0 && !s.DebugMode
}

// settingNames are the names under which settings are stored.
var settingNames = []string{"chat_id", "debug_mode", "mcp_servers", "platform"}

// sharedSettings holds the Settings of a workspace for concurrent use.
type sharedSettings struct {
	changing turns.Lock // held during a change, so that no concurrent change is lost

	mu     sync.Mutex
	now    Settings
	stored map[string][]byte
	ended  error // why the settings can no longer be changed
}

// decodeSettings returns the settings with the stored form of each.
func decodeSettings(stored map[string][]byte) (*sharedSettings, error) {
	s, all := &sharedSettings{changing: turns.NewLock(), stored: stored}, jsontext.Object{}
	if len(stored) == 0 { // as most users
		return s, nil
	}
	for _, name := range settingNames {
		if data, ok := stored[name]; ok {
			all = all.With(name, data)
		}
	}
	if err := json.Unmarshal(all.JSON(), &s.now); err != nil {
		return nil, fmt.Errorf("%w: settings: %w", ErrCorrupt, err)
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

// change lets fn change the settings. It does not hold mu while it calls fn,
// which may read the settings.
func (s *sharedSettings) change(fn func(*Settings)) error {
	if fn == nil {
		return fmt.Errorf("%w: no function", ErrInvalid)
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	c := s.get()
	fn(&c)
	for name, config := range c.MCPServers {
		if !config.Valid() {
			return fmt.Errorf("%w: the configuration of the MCP server %s is not JSON", ErrInvalid, fault.Quote(name))
		}
	}
	if len(c.ChatID) > maxID || len(c.Platform) > maxID {
		return fmt.Errorf("%w: ChatID and Platform must have at most %d bytes", ErrInvalid, maxID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended != nil {
		return s.ended
	}
	c.MCPServers = maps.Clone(c.MCPServers) // fn may have kept the map
	s.now = c
	return nil
}

// note notes where a message comes from.
func (s *sharedSettings) note(m Message) error {
	return s.change(func(set *Settings) {
		set.ChatID = cmp.Or(m.ChatID, set.ChatID)
		set.Platform = cmp.Or(m.Platform, set.Platform)
	})
}

// effects returns the effects that store the settings.
func (s *sharedSettings) effects() ([]state.Effect, error) {
	settings := s.get()
	if len(s.stored) == 0 && settings.isZero() {
		return nil, nil
	}
	data, err := jsontext.Marshal(settings)
	if err != nil {
		return nil, err
	}
	now, err := jsontext.Members(data)
	if err != nil {
		return nil, err
	}
	var effects []state.Effect
	for _, name := range settingNames {
		e := state.Effect{Part: document.PartSetting, Field: name, Kind: state.EffectSet, Value: state.JSON(now.Get(name))}
		if e.Value == "" {
			e.Kind = state.EffectDelete
		}
		if string(e.Value) != string(s.stored[name]) {
			effects = append(effects, e)
		}
	}
	return effects, nil
}

// noteStored notes that effects are stored.
func (s *sharedSettings) noteStored(effects []state.Effect) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stored := map[string][]byte{}
	maps.Copy(stored, s.stored)
	for _, e := range effects {
		switch {
		case e.Part != document.PartSetting:
		case e.Kind == state.EffectDelete:
			delete(stored, e.Field)
		default:
			stored[e.Field] = []byte(e.Value)
		}
	}
	s.stored = stored
}

// end makes further changes fail with err. The first err stays.
func (s *sharedSettings) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = cmp.Or(s.ended, err)
}
