package main

import (
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
)

// TestSurvivesCrashes kills the desk before and after each thing that it stores,
// the shop's orders included.
func TestSurvivesCrashes(t *testing.T) {
	crash.Test{
		Open: func(p *crash.Process) *workspace.Options {
			s := &shop{store.NewManager(p.Store(store.NewMemory()), "shop:"), 0}
			return &workspace.Options{Schema: schema, Run: s.answer}
		},
		Messages: []workspace.Message{
			{ID: "1", Content: state.UserText("where is my order #W1?")},
			{ID: "2", Content: state.UserText("refund it")},
		},
	}.Run(t)
}
