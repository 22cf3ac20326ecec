package aguistate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/workspace"
)

const script = "set title \"Käse ~/\"\ncall note:a note:b\nset count 2\ncall note:fail\nset scores {\"a/b\":1,\"~\":2}\nthink"

// A stream may break off at any byte, and the page comes back. In CI, and in a
// short test, that is each of some bytes.
func TestStreamsBreakOffAnywhere(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		d, c := newDesk(t, nil), newClients(t)
		whole := d.page(c, version, "ann", "whole").say(script)
		data, err := json.Marshal(whole.Events)
		require.NoError(t, err)
		step := max(1, 4000/effort.Runs(100))
		for cut := rand.IntN(step); cut < len(data)+500; cut += step {
			p := d.page(c, version, "ann", fmt.Sprint("cut", cut))
			p.do("say", object{"messages": []object{{"id": "m", "role": "user", "content": script}}})
			p.run(object{"cut": cut})
			s := p.catchUp()
			p.mustBe(s, cut)
			s = p.say("say and on")
			text, _ := s.lastError()
			require.Empty(t, text, cut)
			p.mustBe(s, cut)
		}
	})
}

// Each page shows in the end what the workspace has, whatever is said in two of
// them, and wherever their streams break off.
func TestRandomPages(t *testing.T) {
	d, c := newDesk(t, nil), newClients(t)
	random := rand.New(rand.NewPCG(effort.LogSeed(t), 1))
	lines := []string{
		"call note:a", "call note:b note:c", "call note:fail", "set title \"x\"", "set count 1", "set scores {\"k\":1}",
		"set notes [\"p\",\"q\"]", "think", "say one two three", "fail", "say " + secret,
	}
	for i := range effort.Runs(20) {
		thread := fmt.Sprint("t", i)
		tabs := []*page{d.page(c, i%2, "ann", thread), d.page(c, 1-i%2, "ann", thread)}
		watcher := d.page(c, i%2, "ann", thread)
		require.NoError(t, d.m.Update(t.Context(), workspace.Thread("ann", thread), func(w *workspace.Workspace) error {
			return card.Set(w.State(), secret)
		}))
		watcher.do("follow", nil)
		for range 6 {
			p := tabs[random.IntN(2)]
			steps := make([]string, 1+random.IntN(4))
			for j := range steps {
				steps[j] = lines[random.IntN(len(lines))]
			}
			p.said++
			p.do("say", object{"messages": []object{{"id": fmt.Sprint(p.id, "-", p.said), "role": "user", "content": strings.Join(steps, "\n")}}})
			with := object{}
			if random.IntN(2) == 0 {
				with["cut"] = random.IntN(6000)
			}
			if s := p.run(with); with["cut"] == nil {
				require.Empty(t, s.Warnings, "%s: %v", steps, s.types())
			}
		}
		for _, p := range tabs {
			p.mustBe(p.catchUp(), thread)
		}
		require.NotContains(t, fmt.Sprint(watcher.do("stop", nil)), secret[:4])
	}
}
