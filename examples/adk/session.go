package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/agentstate/state"
	"google.golang.org/adk/v2/session"
)

// chat is a session as adk holds it during an invocation.
type chat struct {
	mu     sync.Mutex
	meta   Meta
	events []*session.Event
	values map[string]any
}

var _ session.Session = (*chat)(nil)

func (c *chat) ID() string      { return c.meta.ID }
func (c *chat) AppName() string { return c.meta.App }
func (c *chat) UserID() string  { return c.meta.User }
func (c *chat) name() string    { return Name(c.meta.App, c.meta.User, c.meta.ID) }

func (c *chat) LastUpdateTime() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == 0 {
		return c.meta.Created
	}
	return c.events[len(c.events)-1].Timestamp
}

func (c *chat) Events() session.Events {
	c.mu.Lock()
	defer c.mu.Unlock()
	return events(slices.Clip(c.events))
}

func (c *chat) State() session.State { return (*values)(c) }

// merge adds stored values.
func (c *chat) merge(stored map[string]state.JSON) error {
	for key, data := range stored {
		var value any
		if err := json.Unmarshal([]byte(data), &value); err != nil {
			return fmt.Errorf("adk: value %q: %w", key, err)
		}
		c.values[key] = value
	}
	return nil
}

// filter keeps the last events, of those since a time.
func (c *chat) filter(last int, since time.Time) {
	if last > 0 {
		c.events = c.events[max(len(c.events)-last, 0):]
	}
	if !since.IsZero() {
		c.events = slices.DeleteFunc(c.events, func(e *session.Event) bool { return e.Timestamp.Before(since) })
	}
}

// add adds an event, and the values of its delta, also the temporary ones.
func (c *chat) add(event *session.Event, delta map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, event)
	maps.Copy(c.values, delta)
}

// values are the values of a session, also those that are not stored yet.
type values chat

func (v *values) Get(key string) (any, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	value, ok := v.values[key]
	if !ok {
		return nil, session.ErrStateKeyNotExist
	}
	return value, nil
}

// Set sets a value that an event will store: adk writes it to the delta as well.
func (v *values) Set(key string, value any) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.values[key] = value
	return nil
}

func (v *values) All() iter.Seq2[string, any] {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.All(maps.Clone(v.values))
}

type events []*session.Event

func (e events) All() iter.Seq[*session.Event] { return slices.Values(e) }
func (e events) Len() int                      { return len(e) }

func (e events) At(i int) *session.Event {
	if i < 0 || i >= len(e) {
		return nil
	}
	return e[i]
}
