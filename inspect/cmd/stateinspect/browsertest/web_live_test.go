package browsertest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
)

// talk is the conversation as the page shows it.
const talk = `document.getElementById("talk").innerText`

// TestWebTwoTabs follows one chat in two tabs, word by word, and decides in one what
// the other has asked for.
func TestWebTwoTabs(t *testing.T) {
	goOn := make(chan struct{})
	w := newWeb(t, answers(func(said, role string, r *http.Request, s stream) {
		if strings.HasPrefix(said, "Refund") {
			s.call("call_1", "refund", `{"order":"#W1002","amount":249}`)
			return
		}
		s.say("Half of it")
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
		s.say(", and the rest.")
		s.end()
	}))
	one, two := w.tab(t), newTab(t, "http://"+w.addr)
	one.says("Hello")
	one.hasText("Half of it")
	two.open("/#" + evaluate[string](one, "location.hash.slice(1)"))
	two.hasText("Half of it") // which is stored nowhere
	goOn <- struct{}{}
	two.hasText("Half of it, and the rest.")
	one.hasText("Half of it, and the rest.")
	two.says("Refund #W1002")
	one.hasText("Refund needs your approval")
	one.tap("Approve")
	two.hasText("Half of it")
	goOn <- struct{}{}
	for _, tb := range []*tab{one, two} {
		tb.until(`document.querySelector(".chip.done")`)
		tb.until(`document.querySelectorAll("#talk .said").length === 4 && !document.querySelector(".live")`)
	}
	require.Equal(t, evaluate[string](one, talk), evaluate[string](two, talk))
	state := `document.getElementById("fields").innerText`
	require.Contains(t, evaluate[string](one, state), "249")
	require.Equal(t, evaluate[string](one, state), evaluate[string](two, state))
}

// TestWebReload reloads the page in the middle of an answer.
func TestWebReload(t *testing.T) {
	goOn := make(chan struct{})
	w := newWeb(t, answers(func(_, _ string, r *http.Request, s stream) {
		s.say("Half of it")
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
		s.say(", and the rest.")
		s.end()
	}))
	tb := w.tab(t)
	tb.says("Hello")
	tb.hasText("Half of it")
	tb.do(chromedp.Reload())
	tb.hasText("Half of it")
	require.Contains(t, evaluate[string](tb, talk), "Hello")
	close(goOn)
	tb.hasText("Half of it, and the rest.")
}

// TestWebKilled kills the program in the middle of an answer, lets a person write
// while it is away, and starts it again.
func TestWebKilled(t *testing.T) {
	var asked atomic.Int32
	w := newWeb(t, answers(func(said, _ string, r *http.Request, s stream) {
		if asked.Add(1) == 1 {
			s.say("Half of it")
			<-r.Context().Done()
			return
		}
		s.say("All about " + said)
		s.end()
	}))
	tb := w.tab(t)
	tb.says("the first")
	tb.hasText("Half of it")
	w.kill()
	tb.hasText("Reconnecting…")
	tb.says("the second")
	tb.hasText("Sending")
	evaluate[bool](tb, `window.before = true`)
	w.start()
	tb.hasText("All about the first")
	tb.hasText("All about the second")
	tb.until(`!document.querySelector(".live,.faint")`)
	require.Equal(t, "the first Edit All about the first the second Edit All about the second",
		strings.Join(strings.Fields(evaluate[string](tb, talk)), " "))
	require.True(t, evaluate[bool](tb, "window.before"), "the page was not loaded again")
	require.NotEmpty(t, tb.forgive())
}

// TestWebMissedEvents takes events out of the stream: the page sees that, and takes
// a snapshot.
func TestWebMissedEvents(t *testing.T) {
	w := newWeb(t, nil)
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.addr})
	p.FlushInterval = -1
	p.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, "/events") {
			return nil
		}
		body, out := r.Body, new(io.PipeWriter)
		r.Body, out = io.Pipe()
		go func() {
			defer body.Close()
			lines := bufio.NewScanner(body)
			for n := 0; lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "data: ") {
					if n++; n > 2 && n%3 != 0 && !strings.Contains(lines.Text(), "summary") { // most of what happens in a run
						continue
					}
				}
				if _, err := fmt.Fprintln(out, lines.Text()); err != nil {
					return
				}
			}
			_ = out.CloseWithError(lines.Err())
		}()
		return nil
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	tb := newTab(t, server.URL)
	tb.open("/")
	tb.wait(`document.querySelector("#suggestions button")`)
	tb.says("Where is order #W1001?")
	tb.hasText("Do you want me to refund it?")
	tb.says("Refund it.")
	tb.hasText("two or three working days")
	tb.until(`!document.querySelector(".live,.works,.faint")`)
	tb.until(`document.querySelectorAll("#fields section").length === 4`)

	whole := newTab(t, "http://"+w.addr)
	whole.open("/#" + evaluate[string](tb, "location.hash.slice(1)"))
	whole.hasText("two or three working days")
	require.Equal(t, evaluate[string](whole, talk), evaluate[string](tb, talk))
}

// TestWebText lets a person, a model and a tool say markup. All of it is text.
func TestWebText(t *testing.T) {
	const attack = `<img src=x onerror=document.title=1><script>document.title=2</script><b>bold</b>`
	w := newWeb(t, answers(func(said, role string, r *http.Request, s stream) {
		switch {
		case role == "tool":
			s.say("The tool says: " + said)
			s.end()
		case strings.HasPrefix(said, "refund"):
			s.call(`<b id=c>`, "refund", fmt.Sprintf(`{"order":%q,"amount":249}`, attack))
		case strings.HasPrefix(said, "fail"):
			http.Error(s, `{"error":{"message":"<b>no</b>"}}`, http.StatusBadRequest)
		default:
			s.call("call_1", "look_up_order", fmt.Sprintf(`{"order":%q}`, attack))
		}
	}))
	w.kill()
	w.write(t, "ann/x", func(st *state.State) error {
		return st.Patch(map[string]any{"orders": map[string]any{attack: map[string]any{"item": attack, "price": 1, "status": attack}}})
	})
	w.start()
	tb := w.tab(t)
	tb.open("/#x")
	tb.until(`document.querySelector("#fields section")`)
	tb.says("look up " + attack)
	tb.hasText("The tool says: tool \"look_up_order\": there is no order " + attack)
	tb.says("refund " + attack)
	tb.hasText("Refund needs your approval")
	tb.says("fail " + attack)
	tb.hasText("The desk could not answer this")
	tb.tap("Approve")
	tb.until(`document.querySelectorAll(".chip").length === 2`)
	evaluate[bool](tb, `document.querySelectorAll("details").forEach(d => d.open = true), true`)
	tb.picture("web-text")
	require.Equal(t, 0, evaluate[int](tb, `document.querySelectorAll("img, #talk script, #fields script, #list script, b#c, dl b, .said b").length`))
	require.GreaterOrEqual(t, strings.Count(tb.text(), attack), 9)
	require.Contains(t, evaluate[string](tb, "document.title"), "Support desk")
}

// TestWebRetry tries a message again that has failed, removes one that waits, and
// stops an answer, which stays with its question.
func TestWebRetry(t *testing.T) {
	var asked atomic.Int32
	w := newWeb(t, answers(func(said, _ string, r *http.Request, s stream) {
		switch n := asked.Add(1); n {
		case 1:
			http.Error(s, "{}", http.StatusBadRequest)
		case 3:
			s.say("Half of it")
			<-r.Context().Done()
		default:
			s.say(fmt.Sprintf("Answer %d to %s", n, said))
			s.end()
		}
	}))
	tb := w.tab(t)
	tb.says("one")
	tb.hasText("The desk could not answer this")
	tb.tap("Try again")
	tb.hasText("Answer 2 to one")
	tb.until(`!document.querySelector(".card,.live")`)
	tb.says("two")
	tb.hasText("Half of it")
	tb.says("three")
	tb.hasText("Queued")
	tb.tap("Remove")
	tb.until(`!document.body.innerText.includes("three")`)
	tb.tap("Stop")
	tb.until(`!document.querySelector(".live,.works")`)
	tb.hasText("Half of it")
	tb.says("four")
	tb.hasText("Answer 4 to four")
	tb.hasText("Half of it")
}

// TestWebEdit edits what was said, and asks again in another chat.
func TestWebEdit(t *testing.T) {
	w := newWeb(t, nil)
	tb := w.tab(t)
	tb.says("Where is order #W1003?")
	tb.hasText("arrives on Friday")
	tb.says("Where is order #W1001?")
	tb.hasText("delivered on Monday")
	tb.until(`!document.querySelector(".live,.works")`)
	was := evaluate[string](tb, "location.hash")
	tb.tap("Edit")
	tb.hasText("The answer begins a new chat")
	tb.picture("web-edit")
	require.Equal(t, "Where is order #W1001?", evaluate[string](tb, `document.getElementById("text").value`))
	evaluate[bool](tb, `document.getElementById("text").select(), true`)
	tb.press("Where is order #W1002?\r")
	tb.hasText("delivered, reported as broken")
	require.NotEqual(t, was, evaluate[string](tb, "location.hash"))
	require.Contains(t, evaluate[string](tb, talk), "arrives on Friday")
	require.NotContains(t, evaluate[string](tb, talk), "#W1001")
	tb.until(`document.querySelectorAll("#list li").length === 2`)
}

// TestWebKeyboard has a whole conversation without a mouse.
func TestWebKeyboard(t *testing.T) {
	w := newWeb(t, nil)
	tb := w.tab(t)
	require.Equal(t, "text", evaluate[string](tb, "document.activeElement.id"))
	focus := func(name string) {
		t.Helper()
		for range 40 {
			if evaluate[bool](tb, fmt.Sprintf(`(e => [e.innerText?.trim().replace(/\s+/g, " "), e.ariaLabel, e.id].includes(%q))(document.activeElement)`, name)) {
				require.NotEqual(t, "none", evaluate[string](tb, "getComputedStyle(document.activeElement).outlineStyle"), name)
				return
			}
			tb.press(kb.Tab)
		}
		t.Fatalf("the tabulator does not reach %q in:\n%s", name, tb.text())
	}
	focus("#W1002 arrived broken. Refund it.")
	tb.press("\r")
	tb.hasText("Refund needs your approval")
	require.Equal(t, "text", evaluate[string](tb, "document.activeElement.id"), "who has asked can go on to write")
	focus("Approve")
	tb.press("\r")
	tb.hasText("two or three working days")
	tb.until(`document.querySelector(".chip.done")`)
	require.Equal(t, "text", evaluate[string](tb, "document.activeElement.id"))
	focus("refund #W1002, 249 done")
	tb.press("\r")
	tb.until(`document.querySelector("details").open`)
	tb.size(360, 800)
	focus("Chats")
	tb.press("\r")
	focus("New chat")
	tb.press("\r")
	tb.hasText("What can the desk do for you?")
	require.False(t, evaluate[bool](tb, `document.getElementById("chats").matches(":popover-open")`))
}

// TestWebChats goes from one chat to another. The list has the latest first, and
// says which one waits for a person. Its picture is docs/web.png.
func TestWebChats(t *testing.T) {
	w := newWeb(t, nil)
	tb := w.tab(t)
	for _, said := range []string{"Refund order #W1001, please.", "Where is order #W1003?", "Where is order #W1002?"} {
		tb.tap("New chat")
		tb.hasText("What can the desk do for you?")
		tb.says(said)
		tb.until(`document.querySelector(".chip.done") && !document.querySelector(".live,.works")`)
		tb.until(fmt.Sprintf(`document.getElementById("title").innerText === %q`, said))
	}
	tb.says("It arrived broken. Refund it.")
	tb.hasText("Refund needs your approval")
	rows := `[...document.querySelectorAll("#list .name")].map(e => e.innerText).join()`
	tb.until(rows + `=== "Where is order #W1002?,Where is order #W1003?,Refund order #W1001, please."`)
	tb.until(`document.querySelector("#list a[aria-current]").innerText.includes("needs you")`)
	evaluate[bool](tb, `document.activeElement.blur(), true`)
	tb.quiet("light")
	tb.picture("web-picture")
	tb.tap("Refund order #W1001, please. now")
	tb.hasText("39.90 euros for #W1001 are on their way")
	require.NotContains(t, evaluate[string](tb, talk), "#W1002")
	require.Contains(t, evaluate[string](tb, `document.getElementById("fields").innerText`), "39.9")
	tb.do(chromedp.NavigateBack())
	tb.hasText("Refund needs your approval")
}
