package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// pressFor presses a key that leads to another page, and waits for that.
func (tb *tab) pressFor(key string) {
	tb.t.Helper()
	_, err := chromedp.RunResponse(tb.ctx, stroke([]rune(key)[0]))
	require.NoError(tb.t, err)
}

// tabTo presses the tabulator until an element with a text has the focus, which must
// be seen.
func (tb *tab) tabTo(text string) {
	tb.t.Helper()
	for range 80 {
		tb.press(kb.Tab)
		if evaluate[string](tb, "document.activeElement.innerText.trim()") == text {
			require.NotEqual(tb.t, "none", evaluate[string](tb, "getComputedStyle(document.activeElement).outlineStyle"))
			return
		}
	}
	tb.t.Fatalf("the tabulator does not reach %q in:\n%s", text, tb.text())
}

// TestKeyboard finds a workspace, goes back in time, approves a call and drops a
// dead letter, without a mouse.
func TestKeyboard(t *testing.T) {
	m := openDesk(t, newDesk(t))
	tb := newTab(t, serve(t, m, everything))
	tb.open("/")
	tb.press("/")
	tb.press("ali")
	tb.pressFor(kb.Enter)
	require.Contains(t, tb.text(), "Nothing runs, waits or has failed.", "the only workspace whose user begins so")
	tb.pressFor("2")
	const refunded = `[...document.querySelectorAll("tr")].find(r => r.innerText.startsWith("refund\t")).innerText`
	require.Contains(t, evaluate[string](tb, refunded), "129.9")
	for range 6 {
		tb.pressFor(kb.ArrowLeft)
	}
	require.Contains(t, tb.text(), "version 5 of 11")
	require.Contains(t, evaluate[string](tb, refunded), "unset")

	tb.open("/")
	tb.press("j")
	tb.pressFor(kb.Enter)
	require.Contains(t, tb.text(), "Waiting for a person", "what needs a person comes first")
	tb.tabTo("Approve")
	tb.pressFor(kb.Enter)
	tb.wait(`document.readyState === "complete"`)
	require.Contains(t, tb.text(), "The call is approved.")

	tb.press("/")
	tb.press("carol")
	tb.pressFor(kb.Enter)
	tb.tabTo("Discard…")
	tb.pressFor(kb.Enter)
	tb.tabTo("Discard")
	tb.pressFor(kb.Enter)
	tb.wait(`document.readyState === "complete"`)
	v, err := m.View(t.Context(), "carol")
	require.NoError(t, err)
	require.Empty(t, v.DeadLetters)
}

// TestKeys checks the other keys, and that none is taken from a person who types.
func TestKeys(t *testing.T) {
	tb := newTab(t, serve(t, openDesk(t, newDesk(t)), everything))
	tb.open("/workspace/state?user=alice")
	focused := func() string {
		return evaluate[string](tb, `document.activeElement.closest("tr")?.querySelector("th").innerText ?? ""`)
	}
	tb.press("j")
	require.Equal(t, "messages", focused())
	tb.press("j")
	require.Equal(t, "order_id", focused())
	tb.press("k")
	require.Equal(t, "messages", focused())

	tb.press("?")
	require.True(t, evaluate[bool](tb, `document.querySelector("dialog").open`))
	require.Contains(t, tb.text(), "earlier and later version")
	tb.press(kb.Escape)
	tb.wait(`!document.querySelector("dialog").open`) // which the browser closes when it can

	tb.press("/")
	tb.press("jk?d/")
	require.Equal(t, "jk?d/", evaluate[string](tb, `document.activeElement.value`))
	evaluate[bool](tb, `document.activeElement.blur(), true`)

	tb.pressFor("d")
	require.Contains(t, tb.text(), "From version")

	// A person switches them off.
	tb.press("?")
	evaluate[bool](tb, `document.getElementById("keys-on").focus(), true`)
	tb.press(" ")
	tb.wait(`!document.getElementById("keys-on").checked`)
	tb.press(kb.Escape)
	tb.wait(`!document.querySelector("dialog").open`)
	tb.press("/")
	require.NotEqual(t, "q", evaluate[string](tb, `document.activeElement.id`))
	tb.open("/workspace/state?user=alice")
	tb.press("/")
	require.NotEqual(t, "q", evaluate[string](tb, `document.activeElement.id`))
}
