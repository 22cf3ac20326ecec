package inspect_test

import (
	"fmt"
	"net/http"
	"net/url"
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

// A thread shows what it shares with others, and the user part is shown as well.
func TestSharedFieldsAreMarked(t *testing.T) {
	city, topic := &state.Field[string]{Name: "city", Shared: true}, &state.Field[string]{Name: "topic"}
	m := openMemory(t, &workspace.Options{Schema: state.MustSchema(city, topic)})
	require.NoError(t, m.Update(t.Context(), workspace.Shared("ann"), func(w *workspace.Workspace) error {
		return city.Set(w.State(), "Vienna")
	}))
	require.NoError(t, m.Update(t.Context(), "ann/1", func(w *workspace.Workspace) error { return topic.Set(w.State(), "trains") }))
	h := newHandler(t, m, nil)
	require.Contains(t, get(t, h, "/schema").body, ">shared</span>")
	for _, id := range []string{"ann/", "ann/1"} {
		p := get(t, h, "/workspace/state?user="+url.QueryEscape(id))
		require.Contains(t, p.body, ">shared</span>", id)
		require.Contains(t, p.body, "Vienna", id)
	}
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
