package fronts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// browser is the process of Chromium that all tests share.
var browser = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat("pages/built/copilotkit.js"); err != nil {
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which does not work for root
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeContext := chromedp.NewContext(ctx)
	closeBrowser = closeContext
	return ctx, chromedp.Do(ctx)
})

var closeBrowser context.CancelFunc = func() {}

func TestMain(m *testing.M) {
	code := m.Run()
	closeBrowser()
	os.Exit(code)
}

// tab is a tab with a page.
type tab struct {
	t    testing.TB
	ctx  context.Context
	page string // its address
}

// open opens a page for a thread. Without a browser, the test is skipped, or fails if
// STATE_TEST_REQUIRE contains pages.
func (d *desk) open(page, thread string) *tab {
	d.t.Helper()
	parent, err := browser()
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), "pages") {
			d.t.Fatal(err)
		}
		d.t.Skipf("NOT TESTED: lab/soak pages runs it, with a browser and the pages built: %v", err)
	}
	ctx, closeTab := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	d.t.Cleanup(closeTab)
	tb := &tab{t: d.t, ctx: ctx, page: d.url + "/page/" + page + "?thread=" + thread}
	tb.load()
	return tb
}

// load opens the page, or opens it again.
func (tb *tab) load() {
	tb.t.Helper()
	require.NoError(tb.t, chromedp.Do(tb.ctx, chromedp.Navigate(tb.page)))
	tb.wait(`document.querySelector("textarea")`)
}

// evaluate returns the JSON of a JavaScript expression in the page.
func (tb *tab) evaluate(expression string) string {
	tb.t.Helper()
	v, err := chromedp.Run(tb.ctx, chromedp.Evaluate[string](`(async () => JSON.stringify(await (`+expression+`)) ?? "")()`, chromedp.EvalAwaitPromise))
	require.NoError(tb.t, err, expression)
	return v
}

// is reports whether an expression becomes true within a time.
func (tb *tab) is(expression string, within time.Duration) bool {
	tb.t.Helper()
	return tb.evaluate(fmt.Sprintf(`new Promise(done => {
		const end = Date.now() + %d;
		const look = () => (%s) ? done(true) : Date.now() > end ? done(false) : setTimeout(look, 20);
		look();
	})`, within.Milliseconds(), expression)) == "true"
}

const patience = 10 * time.Second

func (tb *tab) wait(expression string) {
	tb.t.Helper()
	if !tb.is(expression, patience) {
		tb.t.Fatalf("never: %s\n%s", expression, tb.text())
	}
}

// text returns the text of the page that can be seen.
func (tb *tab) text() string {
	var text string
	_ = json.Unmarshal([]byte(tb.evaluate("document.body.innerText")), &text)
	return text
}

// shows returns an expression that is true if the page shows a text.
func shows(text string) string { return fmt.Sprintf("document.body.innerText.includes(%q)", text) }

// see waits until the page shows texts, and no run is under way for it.
func (tb *tab) see(texts ...string) {
	tb.t.Helper()
	for _, text := range texts {
		tb.wait(shows(text))
	}
	tb.wait(`document.querySelector("#status").innerText === "ready"`)
}

// enter writes a text into an element as a person does.
func (tb *tab) enter(element, text string) {
	tb.t.Helper()
	tb.wait(fmt.Sprintf(`document.querySelector(%q)`, element))
	tb.evaluate(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q);
		const proto = e.tagName === "TEXTAREA" ? HTMLTextAreaElement : HTMLInputElement;
		Object.getOwnPropertyDescriptor(proto.prototype, "value").set.call(e, %q);
		e.dispatchEvent(new Event("input", { bubbles: true }));
		e.focus();
	})()`, element, text))
}

// say sends a message.
func (tb *tab) say(text string) {
	tb.t.Helper()
	tb.enter("textarea", text)
	tb.evaluate(`new Promise(done => setTimeout(done, 50))`)
	tb.evaluate(`(() => {
		const send = document.querySelector("#send");
		if (send) return send.click();
		document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 13, bubbles: true, cancelable: true }));
	})()`)
}

// click clicks the last element of a selector.
func (tb *tab) click(element string) {
	tb.t.Helper()
	tb.wait(fmt.Sprintf(`document.querySelector(%q)`, element))
	tb.evaluate(fmt.Sprintf(`[...document.querySelectorAll(%q)].at(-1).click()`, element))
}

// picture writes a picture of the page to the folder of STATE_SCREENSHOTS, if that is
// set.
func (tb *tab) picture(name string) {
	folder := os.Getenv("STATE_SCREENSHOTS")
	if folder == "" {
		return
	}
	data, err := chromedp.Run(tb.ctx, chromedp.FullScreenshot(100))
	require.NoError(tb.t, err)
	require.NoError(tb.t, os.MkdirAll(folder, 0o755))
	require.NoError(tb.t, os.WriteFile(filepath.Join(folder, name+".png"), data, 0o644))
}
