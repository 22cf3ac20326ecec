package inspect_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// Two workspaces that differ only in what an agent may not read look the same
// through its eyes, byte for byte.
func TestWhatAnAgentSeesDependsOnNothingHidden(t *testing.T) {
	seed := effort.LogSeed(t)
	f := newFixture(t, 0)
	h := f.handler(t, nil)
	for i := range effort.Runs(20) {
		var bodies [2]map[string]string
		for k := range 2 {
			open := rand.New(rand.NewPCG(seed, uint64(i)))
			hidden := rand.New(rand.NewPCG(seed+uint64(k)+1, uint64(i)))
			user := fmt.Sprintf("user %d", i) // that both have: the second replaces the first
			require.NoError(t, f.manager.Delete(t.Context(), user))
			f.update(t, user, func(st *state.State) error { return cost.Set(st, open.Float64()) })
			for range open.IntN(4) {
				f.update(t, user, func(st *state.State) error { return notes.Set(st, []string{fmt.Sprint("a ", open.IntN(100))}) })
			}
			for range hidden.IntN(4) {
				require.NoError(t, f.manager.Update(t.Context(), user, func(w *workspace.Workspace) error {
					if hidden.IntN(2) == 0 {
						if err := plan.Replace(w.State(), map[string]any{"total": hidden.Float64()}); err != nil {
							return err
						}
					}
					if err := codes.Replace(w.State(), map[string]any{"pin": fmt.Sprint("pin-", hidden.Uint64())}); err != nil {
						return err
					}
					return card.Replace(w.State(), fmt.Sprint("card-", hidden.Uint64()))
				}))
			}
			bodies[k] = map[string]string{}
			for _, agent := range []string{"search", "nobody"} { // who may not read them
				target := "/workspace/state?user=user+" + fmt.Sprint(i) + "&as=" + agent
				p := get(t, h, target)
				require.Equal(t, 200, p.code)
				bodies[k][agent] = sectionOf(t, p.body, "agent")
			}
		}
		require.Equal(t, bodies[0], bodies[1], "program %d", i)
		require.Contains(t, bodies[0]["search"], "cost")
		require.NotContains(t, bodies[0]["nobody"], "<tr>")
	}
}

func TestAgentSeesItsPromptAndWhatIsHidden(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, nil)
	p := get(t, h, "/workspace/state?user=alice&as=search")
	require.Contains(t, p.body, "Hidden from <bdi>search</bdi>")
	require.Contains(t, p.body, `<li><bdi class="v">card</bdi></li>`)
	require.Contains(t, p.body, `<li><bdi class="v">plan</bdi></li>`)
	require.Contains(t, p.body, "refunds within 30 days")
	require.NotContains(t, p.body, `>plan</bdi></th>`)
	require.NotContains(t, p.body, "Last change")
}

// sectionOf returns the HTML of a part of a page.
func sectionOf(t testing.TB, body, fragment string) string {
	t.Helper()
	for n := range parse(t, body).Descendants() {
		if attribute(n, "data-fragment") == fragment {
			var b strings.Builder
			require.NoError(t, html.Render(&b, n))
			return b.String()
		}
	}
	require.Fail(t, "no fragment", "%s in %s", fragment, body)
	return ""
}
