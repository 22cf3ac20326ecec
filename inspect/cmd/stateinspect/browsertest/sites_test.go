package browsertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/inspect"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

// site is a server with the pages of it to look at.
type site struct {
	name   string
	origin string
	pages  []look
}

// look is a page in a situation.
type look struct {
	name, path string
	// then leads from the page at the path to the one to look at; nil if that is it.
	then func(tb *tab)
	// refused is set if the server answers with an error, which the browser logs.
	refused bool
}

// show opens the page.
func (l look) show(tb *tab) {
	tb.t.Helper()
	tb.open(l.path)
	if l.then != nil {
		l.then(tb)
	}
	if l.refused {
		tb.forgive()
	}
}

// pages are the pages of the desk that have an address.
var pages = []look{
	{name: "busy", path: "/"},
	{name: "users", path: "/users"},
	{name: "search", path: "/users?q=user00"},
	{name: "search-nothing", path: "/users?q=nobody"},
	{name: "overview", path: "/workspace?user=alice"},
	{name: "overview-approval", path: "/workspace?user=grace"},
	{name: "overview-running", path: "/workspace?user=bob"},
	{name: "overview-dead", path: "/workspace?user=carol"},
	{name: "overview-empty", path: "/workspace?user=user0000"},
	{name: "overview-long", path: "/workspace?user=" + longUser},
	{name: "overview-verify", path: "/workspace?verify=1&user=alice"},
	{name: "overview-damaged", path: "/workspace?verify=1&user=dave"},
	{name: "overview-thread", path: "/workspace?user=grace/holiday"},
	{name: "state", path: "/workspace/state?user=alice"},
	{name: "state-past", path: "/workspace/state?user=alice&at=5"},
	{name: "state-agent", path: "/workspace/state?user=alice&as=billing"},
	{name: "state-running", path: "/workspace/state?user=bob"},
	{name: "state-long", path: "/workspace/state?user=" + longUser},
	{name: "state-open", path: "/workspace/state?open=documents&user=" + longUser},
	{name: "state-new", path: "/workspace/state?user=user0000"},
	{name: "conversation", path: "/workspace/conversation?user=alice"},
	{name: "conversation-running", path: "/workspace/conversation?user=bob"},
	{name: "conversation-suspended", path: "/workspace/conversation?user=grace"},
	{name: "conversation-findings", path: "/workspace/conversation?provider=anthropic&user=frank"},
	{name: "conversation-long", path: "/workspace/conversation?open=0&user=" + longUser},
	{name: "conversation-thousand", path: "/workspace/conversation?user=henry"},
	{name: "conversation-empty", path: "/workspace/conversation?user=user0000"},
	{name: "results", path: "/workspace/results?user=alice"},
	{name: "results-empty", path: "/workspace/results?user=user0000"},
	{name: "result", path: "/workspace/result?n=2&user=alice"},
	{name: "result-prompt", path: "/workspace/result?n=2&user=alice&open=prompt"},
	{name: "result-raw", path: "/workspace/result?n=2&user=alice&open=raw"},
	{name: "history", path: "/workspace/history?user=alice"},
	{name: "history-failed", path: "/workspace/history?user=carol"},
	{name: "history-filter", path: "/workspace/history?user=alice&field=nothing"},
	{name: "diff", path: "/workspace/diff?user=alice&from=2&to=9"},
	{name: "diff-others", path: "/workspace/diff?user=alice&from=10&to=11"},
	{name: "diff-long", path: "/workspace/diff?user=" + longUser},
	{name: "diff-same", path: "/workspace/diff?user=alice&from=3&to=3"},
	{name: "reset", path: "/workspace/reset?user=alice"},
	{name: "delete", path: "/workspace/delete?user=carol"},
	{name: "schema", path: "/schema"},
}

// situations are pages of the desk that are reached by a form, and errors.
var situations = []look{
	{name: "not-typed", path: "/workspace/delete?user=carol", refused: true, then: func(tb *tab) {
		tb.fill("confirm", "carl")
		tb.click("Delete")
	}},
	{name: "discard", path: "/workspace?user=carol", then: func(tb *tab) { tb.click("Discard…") }},
	{name: "cancel", path: "/workspace?user=bob", then: func(tb *tab) { tb.click("Cancel…") }},
	{name: "answer", path: "/workspace?user=grace", then: func(tb *tab) { tb.click("Answer…") }},
	{name: "no-workspace", path: "/workspace?user=nobody", refused: true},
	{name: "no-page", path: "/nothing", refused: true},
	{name: "no-version", path: "/workspace/state?user=alice&at=99", refused: true},
	{name: "damaged", path: "/workspace/state?user=dave", refused: true},
}

// longUser is the id of a workspace with long values.
const longUser = "erin.maximiliana.von-und-zu-hohenstein@a-rather-long-subdomain.support.example.com"

// addLong makes a workspace with long values, in which one change follows another.
func addLong(t testing.TB, m *workspace.Manager) {
	t.Helper()
	const unbroken = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	letter := "Dear support team,\n\nthe keyboard arrived with a dead row of keys.\nI have tried another cable and another machine.\n" +
		"Please send the money back to the card with which I paid.\n\nErin"
	change := func(fn func(w *workspace.Workspace) error) { update(t, m, longUser, fn) }
	change(func(w *workspace.Workspace) error {
		st := w.State().As("support").WithCause("call_" + unbroken)
		var found []document
		for i := range 40 {
			found = append(found, document{fmt.Sprint("orders/", 1000+i), "A result of the search, with some words: " + strings.Repeat(unbroken, i%3)})
		}
		said := []state.Message{state.UserText(letter + strings.Repeat("\n"+unbroken+unbroken+unbroken, 30)), state.AssistantText(strings.Repeat("I see. ", 400))}
		errs := []error{
			intent.Set(st, letter), orderID.Set(st, strings.Repeat(unbroken, 8)),
			who.Set(st, customer{"Erin Maximiliana von und zu Hohenstein", "plus", "2021-03-14"}),
			documents.Set(w.State().As("search"), found), state.Messages.Set(st, said),
		}
		for i := range 14 {
			errs = append(errs, w.Memory().Set(fmt.Sprintf("a key of the memory that somebody has made rather long, number %d", i), strings.Repeat("what is remembered, ", 1+i*5)))
		}
		return errors.Join(errs...)
	})
	change(func(w *workspace.Workspace) error {
		st := w.State().As("support").WithCause("call_3")
		return errors.Join(
			intent.Set(st, strings.Replace(letter, "another cable and another machine", "three cables", 1)+"\n\nPS: The box is gone."),
			orderID.Set(st, strings.Repeat(unbroken, 8)+"0"), who.Set(st, customer{"Erin Hohenstein", "plus", "2021-03-14"}),
			documents.Set(w.State().As("search").WithCause("call_4"), []document{{"policies", strings.Repeat("Defects are refunded within 30 days. ", 60)}}),
			notes.Set(w.State().As("search"), []string{"wants the money back"}), cost.Set(w.State(), 2),
			w.Memory().Set("language", "German"),
		)
	})
}

// addMany makes a workspace with 1 000 messages, and one with a dead letter.
func addMany(t testing.TB, m *workspace.Manager) {
	t.Helper()
	update(t, m, "henry", func(w *workspace.Workspace) error {
		var said []state.Message
		for i := range 500 {
			said = append(said, state.UserText(fmt.Sprint("Where is order #W", i, "?")), state.AssistantText("On its way."))
		}
		return state.Messages.Set(w.State().As("general"), said)
	})
	_, err := m.Handle(t.Context(), "ivan", workspace.Message{ID: "web-80", Content: state.UserText("Please refund order #W20.")})
	require.ErrorIs(t, err, errDeclined)
}

// addCalls makes workspaces with calls that nobody has answered: frank with one that
// was forgotten and grace with one that waits for a person.
func addCalls(t testing.TB, m *workspace.Manager) {
	t.Helper()
	update(t, m, "frank", func(w *workspace.Workspace) error {
		return state.Messages.Set(w.State().As("support"), []state.Message{
			state.UserText("Cancel my order #W9."), state.ToolCalls(state.ToolCall{ID: "call_1", Name: "cancel_order", Input: `{"order":"#W9"}`}),
			state.UserText("Hello?"), state.AssistantText("One moment."), state.AssistantText("I am looking for it."),
		})
	})
	for _, user := range []string{"grace", workspace.Thread("grace", "holiday")} {
		_, err := m.Handle(t.Context(), user, workspace.Message{ID: "web-95", Content: state.UserText("Refund 900 USD, please.")})
		require.NoError(t, err)
	}
}

// wideSchema returns a schema of 60 fields and a team of 24 agents.
func wideSchema() *state.Schema {
	team := state.Team{}
	var agents []string
	for i := range 24 {
		agents = append(agents, fmt.Sprintf("%s_%d", []string{"router", "support", "search", "refunds_and_billing"}[i%4], i))
		if i > 0 {
			team[agents[(i-1)/4]] = append(team[agents[(i-1)/4]], agents[i])
		}
	}
	parts := []state.Part{team}
	for i := range 60 {
		f := &state.Field[[]string]{
			Name: fmt.Sprintf("a_field_of_the_desk_%02d", i), Owner: agents[i%len(agents)], Secret: i%17 == 3,
			Description: "What the agents know about part " + fmt.Sprint(i) + " of the case.",
		}
		switch i % 3 {
		case 0:
			f.Read = state.Public
		case 1:
			f.Read = state.Only(agents[1:8]...)
		}
		parts = append(parts, f)
	}
	return state.MustSchema(parts...)
}

// openStore opens a Manager on a store.
func openStore(t testing.TB, db store.Store, schema *state.Schema) *workspace.Manager {
	t.Helper()
	m, err := workspace.Open(context.Background(), db, &workspace.Options{Schema: schema})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(m.Close(), db.Close())) })
	return m
}

// newSites makes servers that show the pages in all situations.
func newSites(t testing.TB) []site {
	t.Helper()
	file := newDesk(t)
	newProcess(t, file).do("begin bob Where is my parcel?")
	m := openDesk(t, file)
	desk := site{"desk", serve(t, m, everything), slices.Concat(pages, situations)}
	tb := newTab(t, desk.origin)
	tb.open("/workspace?user=ivan")
	tb.click("Discard…")
	tb.click("Discard")
	desk.pages = append(desk.pages, look{name: "done", path: tb.path()})

	reader := inspect.Access{Read: true}
	blind := site{"blind", serve(t, openStore(t, openFile(t, file), nil), reader), []look{
		{name: "state", path: "/workspace/state?user=alice"},
		{name: "conversation", path: "/workspace/conversation?user=alice"},
		{name: "history", path: "/workspace/history?user=alice"},
		{name: "overview", path: "/workspace?user=carol"},
		{name: "schema", path: "/schema"},
	}}
	empty := site{"empty", serve(t, openStore(t, store.NewMemory(), wideSchema()), reader), []look{
		{name: "busy", path: "/"},
		{name: "users", path: "/users"},
		{name: "schema", path: "/schema"},
		{name: "schema-more", path: "/schema?agents=20&skip=50"},
	}}
	closed := site{"closed", serve(t, m, inspect.Access{}), []look{{name: "no-access", path: "/", refused: true}}}

	return []site{desk, blind, empty, closed}
}

// openFile opens the file of a desk.
func openFile(t testing.TB, file string) store.Store {
	t.Helper()
	db, err := sqlitestore.Open(context.Background(), file, nil)
	require.NoError(t, err)
	return db
}

// path returns the address of the page, below that of the handler.
func (tb *tab) path() string {
	tb.t.Helper()
	return strings.TrimPrefix(evaluate[string](tb, "location.href"), tb.origin)
}

// fill puts a value into a field of a form.
func (tb *tab) fill(name, value string) {
	tb.t.Helper()
	evaluate[bool](tb, fmt.Sprintf(`document.querySelector("main [name=%s]").value = %q, true`, name, value))
}
