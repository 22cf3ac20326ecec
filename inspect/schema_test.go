package inspect_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

func TestSchemaShowsRights(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	var data struct {
		Agents []string
		Fields []struct {
			Name, Type string
			Rights     []string
			Secret     bool
		}
		Team []struct {
			Name  string
			Below []struct{ Name string }
		}
	}
	jsonOf(t, h, "/schema", &data)
	require.Equal(t, []string{"billing", "search", "support"}, data.Agents)
	rights := map[string]string{}
	for _, f := range data.Fields {
		rights[f.Name] = strings.Join(f.Rights, " ")
	}
	for name, want := range map[string]string{
		"messages": "rw rw rw", "order_id": "r r rw", "notes": "rw rw rw", "card": "r – rw", "plan": "rw – –", "cache": "r r r",
	} {
		require.Equal(t, want, rights[name], name)
	}
	require.Len(t, data.Team, 1)
	require.Equal(t, "support", data.Team[0].Name)
	require.Len(t, data.Team[0].Below, 2)

	p := get(t, h, "/schema")
	require.Contains(t, p.body, "The order the customer is asking about.")
	require.Contains(t, p.body, "ephemeral")
	require.Contains(t, get(t, h, "/schema?filter=zzz").body, "No field found")
}

func TestSchemaWithoutTeam(t *testing.T) {
	hostile := &state.Field[string]{Name: "x", Description: "<script>alert(1)</script>"}
	p := get(t, newHandler(t, openMemory(t, &workspace.Options{Schema: state.MustSchema(hostile)}), nil), "/schema")
	require.Contains(t, p.body, "The schema has no team")
	require.Contains(t, p.body, "&lt;script&gt;alert")
	p = get(t, newHandler(t, openMemory(t, nil), nil), "/schema")
	require.Contains(t, p.body, "No schema")
}

func TestSchemaIsBounded(t *testing.T) {
	parts := []state.Part{}
	team := state.Team{}
	for i := range 400 {
		team["chief"] = append(team["chief"], fmt.Sprintf("agent-%03d", i))
	}
	for i := range 300 {
		parts = append(parts, &state.Field[string]{
			Name: fmt.Sprintf("field_%03d", i), Description: strings.Repeat(`<"`, 500), Read: state.Public,
		})
	}
	h := newHandler(t, openMemory(t, &workspace.Options{Schema: state.MustSchema(append(parts, team)...)}), nil)
	for _, target := range []string{"/schema", "/schema?skip=250&agents=380", "/schema?skip=999&agents=999"} {
		p := get(t, h, target)
		require.Equal(t, http.StatusOK, p.code)
		require.LessOrEqual(t, len(p.body), 128<<10, target)
	}
	require.Contains(t, get(t, h, "/schema?skip=250&agents=380").body, "agent-398")
}

func openMemory(t testing.TB, opts *workspace.Options) *workspace.Manager {
	t.Helper()
	m, err := workspace.Open(t.Context(), store.NewMemory(), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}
