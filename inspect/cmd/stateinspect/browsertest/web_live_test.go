package browsertest

import (
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

// TestWebTwoTabs follows one chat in two tabs, word by word, and sees there what an
// employee decides.
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
	one.hasText("Refund waits for an employee")
	require.NotContains(t, one.text(), "Approve", "it is not the customer who decides")
	w.staff(t, one).tap("Approve")
	two.hasText("Half of it")
	goOn <- struct{}{}
	for _, tb := range []*tab{one, two} {
		tb.until(`document.querySelector(".chip.done")`)
		tb.until(`document.querySelectorAll("#talk .said").length === 4 && !document.querySelector(".live")`)
	}
	require.Equal(t, evaluate[string](one, talk), evaluate[string](two, talk))
	state := `document.getElementById("fields").innerText`
	require.Contains(t, evaluate[string](one, state), "249.00")
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
	require.Equal(t, "the first Edit All about the first Helpful Not helpful the second Edit All about the second Helpful Not helpful",
		strings.Join(strings.Fields(evaluate[string](tb, talk)), " "))
	require.True(t, evaluate[bool](tb, "window.before"), "the page was not loaded again")
	require.NotEmpty(t, tb.forgive())
}

// TestWebCutOff cuts the connections of a page again and again, in the middle of
// events. It shows what a page shows that was never cut off.
func TestWebCutOff(t *testing.T) {
	w := newWeb(t, nil)
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.addr})
	p.FlushInterval = -1
	var streams, resumed atomic.Int32
	p.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, "/events") || r.Request.URL.Path == "/api/events" {
			return nil
		}
		n := streams.Add(1)
		if r.Request.Header.Get("Last-Event-ID") != "" {
			resumed.Add(1)
		}
		body := r.Body
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader("retry: 20\n\n"), io.LimitReader(body, int64(400+n*n*80))), body}
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
	tb.until(`document.querySelectorAll("#fields section").length === 5`)
	require.Greater(t, streams.Load(), int32(3))
	require.Positive(t, resumed.Load())

	whole := newTab(t, "http://"+w.addr)
	whole.open("/#" + evaluate[string](tb, "location.hash.slice(1)"))
	whole.hasText("two or three working days")
	require.Equal(t, evaluate[string](whole, talk), evaluate[string](tb, talk))
	tb.forgive() // that connections were cut
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
		case strings.HasPrefix(said, "fail") && role == "user":
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
	tb.hasText("Refund waits for an employee")
	tb.says("fail " + attack)
	tb.hasText("The desk could not answer")
	w.staff(t, tb).tap("Approve")
	tb.until(`document.querySelectorAll(".chip").length === 2`)
	evaluate[bool](tb, `document.querySelectorAll("details").forEach(d => d.open = true), true`)
	tb.picture("web-text")
	require.Equal(t, 0, evaluate[int](tb, `document.querySelectorAll("img, #talk script, #fields script, #list script, b#c, dl b, .said b").length`))
	require.GreaterOrEqual(t, strings.Count(tb.text(), attack), 8)
	require.Contains(t, evaluate[string](tb, "document.title"), "Support desk")
}

// TestWebMarkdown shows what a model writes as Markdown, with links to pages only.
func TestWebMarkdown(t *testing.T) {
	w := newWeb(t, answers(func(_, _ string, _ *http.Request, s stream) {
		s.say("## Orders\n\n1. **one**\n2. `two`\n\n[a page](https://example.com/x) [mail](mailto:a@example.com) ")
		s.say("[no page](javascript:void%200) [data](data:text/html,x) [file](/admin) ![a picture](https://example.com/p.png) <i>not HTML</i>\n\n| a | b |\n|---|---|\n| 1 | 2 |")
		s.end()
	}))
	tb := w.tab(t)
	tb.says("**Hello**")
	tb.until(`document.querySelector(".markdown td") && !document.querySelector(".live")`)
	require.Equal(t, []string{"https://example.com/x", "mailto:a@example.com", "https://example.com/p.png"},
		evaluate[[]string](tb, `[...document.querySelectorAll(".markdown a")].map(a => a.href)`))
	require.Equal(t, "one two", evaluate[string](tb, `document.querySelector(".markdown strong").innerText + " " + document.querySelector(".markdown code").innerText`))
	require.Equal(t, 0, evaluate[int](tb, `document.querySelectorAll(".markdown i, .markdown img, .user strong").length`))
	require.Contains(t, tb.text(), "<i>not HTML</i>")
	tb.picture("web-markdown")
}

// TestWebRetry tries a message again that has failed, removes one that waits, and
// stops an answer, half of which stays with its question.
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
	tb.hasText("The desk could not answer")
	require.NotContains(t, tb.text(), "400", "why is for programmers")
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
	tb.hasText("Stopped")
	tb.says("four")
	tb.hasText("Answer 4 to four")
	tb.hasText("Half of it")
	tb.do(chromedp.Reload())
	tb.hasText("Answer 4 to four")
	tb.hasText("Half of it")
}

// TestWebDropAll removes all messages together that have failed, and sees that they did
// without scrolling.
func TestWebDropAll(t *testing.T) {
	var works atomic.Bool
	w := newWeb(t, answers(func(said, _ string, _ *http.Request, s stream) {
		if !works.Load() {
			http.Error(s, "{}", http.StatusBadRequest)
			return
		}
		s.say("Answer to " + said)
		s.end()
	}))
	tb := w.tab(t)
	for i, text := range []string{"one", "two", "three"} {
		tb.says(text)
		tb.until(fmt.Sprintf(`document.querySelectorAll(".under").length === %d && document.querySelector("#failed .card")`, i+1))
	}
	tb.hasText("3 messages could not be answered")
	tb.size(375, 600)
	require.True(t, evaluate[bool](tb, `(r => r.top >= 0 && r.bottom <= innerHeight)(document.querySelector("#failed .card").getBoundingClientRect())`))
	tb.picture("web-failed-all")
	works.Store(true)
	tb.tap("Try again") // the last one, beside it
	tb.hasText("Answer to three")
	tb.hasText("2 messages could not be answered")
	tb.tap("Drop all")
	tb.until(`!document.querySelector("#failed .card")`)
	tb.until(`!document.querySelector("#talk").innerText.includes("Not answered")`)
	tb.hasText("Answer to three")
}

// TestWebFields lets a customer and an employee edit fields of their own. The one of the
// employee is not shown to the customer.
func TestWebFields(t *testing.T) {
	w := newWeb(t, nil)
	tb := w.tab(t)
	tb.says("Where is order #W1002?")
	tb.hasText("Do you want me to refund it?")
	tb.until(`!document.querySelector(".live,.works")`)
	tb.enters("email", "ann@example.com")
	staff := w.staff(t, tb)
	staff.hasText("ann@example.com")
	require.Contains(t, staff.text(), "low", "the risk")
	staff.enters("memo", "a good customer")
	staff.do(chromedp.Reload())
	staff.until(`document.querySelector("input[name=memo]")?.value === "a good customer"`)
	require.False(t, evaluate[bool](staff, `!!document.querySelector("input[name=email]")`))
	tb.says("Refund it.")
	staff.hasText("Refund needs your approval")
	staff.tap("Approve")
	tb.hasText("I write to ann@example.com when they are there.")
	require.NotContains(t, tb.text(), "Memo")
	require.NotContains(t, tb.text(), "Risk")
	require.Equal(t, "ann@example.com", evaluate[string](tb, `document.querySelector("input[name=email]").value`))
}

// TestWebRate renames a chat, and says what an answer was worth: both stay.
func TestWebRate(t *testing.T) {
	w := newWeb(t, nil)
	tb := w.tab(t)
	tb.says("Where is order #W1002?")
	tb.hasText("Do you want me to refund it?")
	tb.until(`!document.querySelector(".live,.works")`)
	tb.tap("Helpful")
	tb.until(`document.querySelector(".thumb[aria-pressed=true]")?.innerText === "Helpful"`)
	tb.tap("Not helpful")
	tb.until(`document.querySelector(".thumb[aria-pressed=true]")?.innerText === "Not helpful"`)
	evaluate[bool](tb, `window.prompt = () => "My machine", true`)
	tb.tap("Rename")
	tb.until(`document.getElementById("title").innerText === "My machine" && document.querySelector("#list .name").innerText === "My machine"`)
	tb.do(chromedp.Reload())
	tb.until(`document.querySelector(".thumb[aria-pressed=true]")?.innerText === "Not helpful"`)
	tb.until(`document.getElementById("title").innerText === "My machine"`)
	require.Equal(t, 0, evaluate[int](w.staff(t, tb), `document.querySelectorAll(".thumb").length`))
	tb.size(375, 800)
	tb.quiet("dark")
	tb.picture("web-rate")
}

// TestWebUpload sends a picture, without its size and what else a camera has noted.
func TestWebUpload(t *testing.T) {
	w := newWeb(t, nil)
	tb := w.tab(t)
	evaluate[bool](tb, `(async () => {
		const canvas = Object.assign(document.createElement("canvas"), { width: 1600, height: 800 }), on = canvas.getContext("2d");
		on.fillStyle = "teal";
		on.fillRect(0, 0, 1600, 800);
		const files = new DataTransfer();
		files.items.add(new File([await new Promise(done => canvas.toBlob(done))], "machine.png", { type: "image/png" }));
		document.getElementById("file").files = files.files;
		return document.getElementById("file").dispatchEvent(new Event("change"));
	})()`, chromedp.EvalAwaitPromise)
	tb.until(`document.querySelector("#pictures img")`)
	tb.picture("web-upload")
	tb.says("It is broken")
	tb.hasText("Thank you for the picture.")
	tb.until(`!document.querySelector(".live,.works,.faint,#pictures img")`)
	tb.do(chromedp.Reload())
	tb.until(`document.querySelector(".user img")?.naturalWidth === 1280`)
	require.Contains(t, evaluate[string](tb, talk), "It is broken")
	tb.picture("web-uploaded")
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
	tb.hasText("Refund waits for an employee")
	require.Equal(t, "text", evaluate[string](tb, "document.activeElement.id"), "who has asked can go on to write")
	customer := tb
	tb = w.staff(t, customer)
	focus("Approve")
	tb.press("\r")
	tb.hasText("two or three working days")
	tb.until(`document.querySelector(".chip.done")`)
	require.Equal(t, "scroll", evaluate[string](tb, "document.activeElement.id"))
	tb = customer
	tb.hasText("two or three working days")
	tb.until(`document.querySelector(".chip.done")`)
	focus("refund #W1002, €249.00 done")
	tb.press("\r")
	tb.until(`document.querySelector("details").open`)
	tb.size(360, 800)
	focus("Chats")
	tb.press("\r")
	focus("Close")
	tb.press("\r")
	tb.until(`!document.querySelector(":popover-open")`)
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
	tb.hasText("Refund waits for an employee")
	rows := `[...document.querySelectorAll("#list .name")].map(e => e.innerText).join()`
	tb.until(rows + `=== "Where is order #W1002?,Where is order #W1003?,Refund order #W1001, please."`)
	tb.until(`document.querySelector("#list a[aria-current]").innerText.includes("waits")`)
	evaluate[bool](tb, `document.activeElement.blur(), true`)
	tb.quiet("light")
	tb.picture("web-picture")
	tb.tap("Refund order #W1001, please. now")
	tb.hasText("39.90 euros for #W1001 are on their way")
	require.NotContains(t, evaluate[string](tb, talk), "#W1002")
	require.Contains(t, evaluate[string](tb, `document.getElementById("fields").innerText`), "39.90")
	tb.do(chromedp.NavigateBack())
	tb.hasText("Refund waits for an employee")
}
