package main

import (
	"net/http"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/statetest"
	"github.com/agentstate/state/statetest/crash"
	"github.com/agentstate/state/wire"
	"github.com/agentstate/state/workspace"
)

// The chat in a workspace, through the SDKs: each of its processes may die, and
// each of its streams may break off.
func TestSurvivesCrashes(t *testing.T) {
	for vendor, format := range map[string]*provider.Format{"OPENAI": provider.OpenAI, "ANTHROPIC": provider.Anthropic} {
		t.Run(vendor, func(t *testing.T) {
			t.Setenv("OPENAI_API_KEY", "")
			t.Setenv("ANTHROPIC_API_KEY", "")
			t.Setenv(vendor+"_API_KEY", "key")
			crash.Test{
				Open: func(p *crash.Process) *workspace.Options {
					m := p.Model(format,
						statetest.Call("add_task", `{"task":"buy milk"}`), statetest.Say("I have noted it."),
						statetest.Call("finish_task", `{"task":"buy milk"}`), statetest.Say("Well done."))
					ask := open(&http.Client{Transport: &wire.Transport{Base: m}})
					return &workspace.Options{Schema: state.MustSchema(tasks), Run: workspace.Loop(newLoop(ask))}
				},
				Messages: []workspace.Message{
					{ID: "1", Content: state.UserText("buy milk")},
					{ID: "2", Content: state.UserText("I have bought it.")},
				},
			}.Run(t)
		})
	}
}
