package browsertest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

// TestLive lets another process write while a person uses a page, who loses neither
// the place nor the focus nor what was typed.
func TestLive(t *testing.T) {
	file := newDesk(t)
	other := newProcess(t, file)
	tb := newTab(t, serve(t, openDesk(t, file), everything))
	tb.size(1280, 400)
	tb.open("/workspace/state?user=alice")
	tb.wait("document.body.dataset.asked")
	const place = `(() => {
		const e = document.activeElement;
		return [e.name, e.value, e.selectionStart, e.selectionEnd, scrollY, performance.timeOrigin].join();
	})()`
	evaluate[bool](tb, `(() => {
		const e = document.querySelector("input[name=filter]");
		e.focus();
		e.value = "not";
		e.setSelectionRange(1, 2);
		scrollTo(0, 240);
		window.fields = document.querySelector("tbody");
		return true;
	})()`)
	before := evaluate[string](tb, place)
	require.Contains(t, before, "filter,not,1,2,240")

	start := time.Now()
	other.do("note alice the keyboard is back in the warehouse")
	tb.wait(`document.body.innerText.includes("the keyboard is back in the warehouse")`)
	t.Logf("a commit of another process was visible after %v", time.Since(start))

	require.Equal(t, before, evaluate[string](tb, place), "focus, text, selection and place")
	require.True(t, evaluate[bool](tb, `window.fields.isConnected`), "what is equal stays")
	tb.wait(`document.querySelectorAll("tr.changed").length === 1`)
	require.Contains(t, evaluate[string](tb, `document.querySelector("tr.changed").innerText`), "notes")
	tb.wait(`document.getElementById("live").textContent.includes("notes")`)
	evaluate[bool](tb, `document.activeElement.value = "", document.activeElement.blur(), true`)
	tb.picture("live")
}

// TestLiveRun follows a run of another process.
func TestLiveRun(t *testing.T) {
	file := newDesk(t)
	other := newProcess(t, file)
	tb := newTab(t, serve(t, openDesk(t, file), everything))
	tb.open("/workspace?user=bob")
	tb.wait("document.body.dataset.asked")
	other.do("begin bob Where is my parcel?")
	tb.wait(`document.querySelector(".running")`)
	other.do("begin bob Hello?")
	tb.wait(`document.querySelector(".waiting")?.innerText.includes("1")`)
}

// TestKilled kills the process that handles a message while a page is open, and lets
// another one take over.
func TestKilled(t *testing.T) {
	file := newDesk(t)
	first := newProcess(t, file)
	tb := newTab(t, serve(t, openDesk(t, file), everything))
	tb.open("/workspace?user=bob")
	tb.wait("document.body.dataset.asked")
	first.do("begin bob Where is my parcel?")
	tb.wait(`document.querySelector(".running")`)
	first.kill()

	db, err := sqlitestore.Open(t.Context(), file, nil)
	require.NoError(t, err)
	second, err := workspace.Open(t.Context(), db, &workspace.Options{Schema: deskSchema, Run: answer})
	require.NoError(t, err)
	tb.wait(`!document.querySelector(".running")`)
	tb.open("/workspace/history?user=bob")
	require.Contains(t, tb.text(), "line-1")
	require.NoError(t, errors.Join(second.Close(), db.Close()))
}

// TestPastIsNotLive checks that a page about a version does not change.
func TestPastIsNotLive(t *testing.T) {
	file := newDesk(t)
	other := newProcess(t, file)
	tb := newTab(t, serve(t, openDesk(t, file), everything))
	tb.open("/workspace/state?user=alice&at=5")
	before := evaluate[string](tb, content)
	other.do("note alice the parcel is back")
	require.Equal(t, before, evaluate[string](tb, content))
	require.False(t, evaluate[bool](tb, `"asked" in document.body.dataset`))
}

// TestManyUpdates checks that a page that was updated 500 times is as large as at
// first.
func TestManyUpdates(t *testing.T) {
	file := newDesk(t)
	other := newProcess(t, file)
	tb := newTab(t, serve(t, openDesk(t, file), everything))
	tb.open("/workspace/state?user=alice")
	tb.wait("document.body.dataset.asked")
	const size = `document.getElementsByTagName("*").length`
	var before int
	for i := range 501 {
		other.do("order alice #W%d", 1000+i)
		tb.wait(fmt.Sprintf(`document.querySelector("tbody").innerText.includes("#W%d")`, 1000+i))
		if i == 0 {
			before = evaluate[int](tb, size)
		}
	}
	require.Equal(t, before, evaluate[int](tb, size))
}
