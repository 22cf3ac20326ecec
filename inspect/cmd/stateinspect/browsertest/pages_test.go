package browsertest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/workspace"
)

// everything is the Access of a person who may do everything.
var everything = inspect.Access{Read: true, Write: true, Delete: true, Actor: "test"}

// interval is the time between two looks at a workspace, which the pages of these
// tests follow on SQLite.
const interval = 100 * time.Millisecond

// serve serves the pages of a Manager and returns their address, which has a prefix.
func serve(t testing.TB, m *workspace.Manager, access inspect.Access) (origin string) {
	t.Helper()
	h, err := inspect.New(m, &inspect.Options{
		Title: "desk.db", Authorize: inspect.Trusted(access), Interval: interval, Hosts: []string{otherName},
	})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.Handle("/debug/state/", http.StripPrefix("/debug/state", h))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL + "/debug/state"
}

// content is what a page shows, without what depends on the time.
const content = `(() => {
	const main = document.querySelector("main").cloneNode(true);
	for (const e of main.querySelectorAll("time,.status,#stream,[data-volatile]")) e.remove();
	for (const e of main.querySelectorAll("dl,.running")) if (/Attempt|Heartbeat/.test(e.textContent)) e.remove(); // how long a run lasts
	return main.textContent.replace(/\s+/g, " ");
})()`

// TestWithoutScripts requires that a browser that runs no scripts shows what others
// show.
func TestWithoutScripts(t *testing.T) {
	for _, site := range newSites(t) {
		with, without := newTab(t, site.origin), newTab(t, site.origin)
		without.withoutScripts()
		for _, p := range site.pages {
			p.show(with)
			p.show(without)
			text := evaluate[string](without, content)
			require.Equal(t, evaluate[string](with, content), text, p.name)
			require.NotContains(t, text, cardNumber)
			require.NotContains(t, text, mailToken)
		}
	}
}
