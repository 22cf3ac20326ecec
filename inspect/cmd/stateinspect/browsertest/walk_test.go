package browsertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/inspect"
)

// walk is a person who looks for something and knows no address.
type walk struct {
	*tab
	clicks int
}

func newWalk(t *testing.T) *walk {
	file := newDesk(t)
	tb := newTab(t, serve(t, openDesk(t, file), inspect.Access{Read: true}))
	tb.open("/")
	return &walk{tab: tb}
}

func (w *walk) click(text string) {
	w.t.Helper()
	w.tab.click(text)
	w.clicks++
}

// find finds a user by the id.
func (w *walk) find(user string) {
	w.t.Helper()
	evaluate[bool](w.tab, `document.getElementById("q").value = "`+user+`", true`)
	w.click("Find")
}

// finds requires that the page says something, after five clicks at most.
func (w *walk) finds(texts ...string) {
	w.t.Helper()
	page := w.text()
	for _, text := range texts {
		require.Contains(w.t, page, text)
	}
	require.LessOrEqual(w.t, w.clicks, 5)
	w.t.Logf("%d clicks", w.clicks)
}

// TestWalkWhoChanged finds out who changed a field, why, and what it was before.
func TestWalkWhoChanged(t *testing.T) {
	w := newWalk(t)
	w.find("alice")
	w.click("State")
	require.Contains(t, w.text(), `["refunds within 30 days","paid back to the card"]`)
	row := evaluate[string](w.tab, `[...document.querySelectorAll("tbody tr")].find(r => r.innerText.includes("paid back to the card")).innerText`)
	require.Contains(t, row, "billing")
	require.Contains(t, row, "call_4")
	// The version of the last change leads to the change.
	evaluate[bool](w.tab, `(() => {
		const row = [...document.querySelectorAll("tbody tr")].find(r => r.innerText.includes("paid back to the card"));
		const link = [...row.querySelectorAll("a")].find(a => /^v\d+$/.test(a.innerText.trim()));
		link.innerText = "the version";
		return true;
	})()`)
	w.click("the version")
	w.finds("notes", "billing", "call_4", "refunds within 30 days", "paid back to the card")
	before := evaluate[string](w.tab, `[...document.querySelectorAll("article")].find(a => a.innerText.includes("notes")).innerText`)
	require.Contains(t, before, "refunds within 30 days")
}

// TestWalkDeadLetter finds out why a message died, without the number of the card in
// the reason.
func TestWalkDeadLetter(t *testing.T) {
	w := newWalk(t)
	w.click("carol")
	w.finds("the bank declined card [SECRET]", "insufficient rights for 129.90 USD")
}

// TestWalkAgent finds out what an agent can see.
func TestWalkAgent(t *testing.T) {
	w := newWalk(t)
	w.find("alice")
	w.click("State")
	evaluate[bool](w.tab, `(() => {
		document.querySelector("select[name=as]").value = "search";
		return true;
	})()`)
	w.clicks++ // in the list
	w.click("Show")
	w.finds("What search sees", "order_id", "Hidden from search", "card", "refund_limit")
	seen := evaluate[string](w.tab, `document.querySelector("[data-fragment=agent] table").innerText`)
	require.NotContains(t, seen, "refund_limit")
}

// TestWalkConversation reads what was said, with what the tools answered.
func TestWalkConversation(t *testing.T) {
	w := newWalk(t)
	w.find("alice")
	w.click("Conversation")
	w.finds("my order #W2378156", "search_policies", "Defects are refunded within 30 days.", "I have refunded 129.90 USD")
}
