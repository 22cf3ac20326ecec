package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// otherName is a name of this machine that browsers trust no more than others.
const otherName = "desk.test"

// browser is the process of Chromium that all tests share.
var browser = sync.OnceValues(func() (context.Context, error) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP "+otherName+" 127.0.0.1"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which does not work for root
	}
	ctx, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, closeContext := chromedp.NewContext(ctx)
	closeBrowser = closeContext
	return ctx, chromedp.Do(ctx)
})

var closeBrowser context.CancelFunc = func() {}

// startBrowser returns the browser. Without one, the test is skipped, or fails if
// STATE_TEST_REQUIRE contains browser.
func startBrowser(t testing.TB) context.Context {
	t.Helper()
	ctx, err := browser()
	if err == nil {
		return ctx
	}
	missing(t, "no browser: run scripts/browser: %v", err)
	return nil
}

func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("STATE_TEST_REQUIRE"), ","), "browser") {
		t.Fatalf(format, args...)
	}
	t.Skipf("NOT TESTED: "+format, args...)
}

// readAxe returns the program axe-core.
func readAxe(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("STATE_BROWSER")
	if folder == "" {
		cache, err := os.UserCacheDir()
		require.NoError(t, err)
		folder = filepath.Join(cache, "state-browser")
	}
	data, err := os.ReadFile(filepath.Join(folder, "axe-4.14.1.min.js"))
	if err != nil {
		missing(t, "no axe-core: run scripts/browser: %v", err)
	}
	return string(data)
}

// tab is a tab of the browser, in a profile of its own.
type tab struct {
	t      testing.TB
	ctx    context.Context
	origin string // of the server, with the prefix of the handler

	mu       sync.Mutex
	requests []string // the addresses that it has asked for
	faults   []string // what the browser has complained about
}

// newTab opens a tab for pages of a server. When the test ends, it checks that the
// browser has complained about nothing, and has asked no other server.
func newTab(t testing.TB, origin string) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(startBrowser(t), chromedp.WithNewBrowserContext())
	tb := &tab{t: t, ctx: ctx, origin: origin}
	require.NoError(t, chromedp.Do(ctx))
	require.NoError(t, chromedp.Listen(ctx, tb.notice))
	t.Cleanup(func() {
		closeTab()
		tb.mu.Lock()
		defer tb.mu.Unlock()
		require.Empty(t, tb.faults, "complaints of the browser")
		for _, r := range tb.requests {
			require.True(t, strings.HasPrefix(r, origin) || strings.HasPrefix(r, "data:image/"), "a request to another server: %.100s", r)
		}
	})
	tb.size(1280, 800)
	return tb
}

func (tb *tab) notice(event any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		tb.requests = append(tb.requests, e.Request.URL)
	case *log.EventEntryAdded: // reports of the content security policy are among them
		tb.faults = append(tb.faults, e.Entry.Text+" "+e.Entry.URL)
	case *runtime.EventExceptionThrown:
		tb.faults = append(tb.faults, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		tb.faults = append(tb.faults, "the page writes to the console")
	}
}

// forgive forgets the complaints so far.
func (tb *tab) forgive() []string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	faults := tb.faults
	tb.faults = nil
	return faults
}

func (tb *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	tb.t.Helper()
	require.NoError(tb.t, chromedp.Do(tb.ctx, steps...))
}

// open opens a page and waits until it has loaded.
func (tb *tab) open(path string) {
	tb.t.Helper()
	tb.do(chromedp.Navigate(tb.origin + path))
}

// size sets the size of the window in CSS pixels.
func (tb *tab) size(width, height int64) {
	tb.t.Helper()
	tb.do(chromedp.EmulateViewport(width, height))
}

// dark sets whether the person prefers dark pages.
func (tb *tab) dark(yes bool) {
	tb.t.Helper()
	scheme := "light"
	if yes {
		scheme = "dark"
	}
	_, err := chromedp.Call(tb.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(tb.t, err)
}

// withoutScripts disables the scripts of pages that are opened from now on.
func (tb *tab) withoutScripts() {
	tb.t.Helper()
	_, err := chromedp.Call(tb.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(tb.t, err)
}

// press presses keys, one after another.
func (tb *tab) press(keys string) {
	tb.t.Helper()
	for _, r := range keys {
		tb.do(stroke(r))
	}
}

// stroke presses a key as a keyboard does. The strokes of chromedp type a character
// even if the page has taken the key for something else.
func stroke(r rune) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		down, text := *kb.Encode(r)[0], ""
		for _, p := range kb.Encode(r) {
			if p.Type == input.DispatchKeyEventTypeChar {
				text = p.Text
			}
		}
		up := down
		down.Type, down.Text = input.DispatchKeyEventTypeKeyDown, text
		if text == "" {
			down.Type = input.DispatchKeyEventTypeRawKeyDown
		}
		up.Type, up.Text = input.DispatchKeyEventTypeKeyUp, ""
		if _, err := chromedp.Call(ctx, input.DispatchKeyEvent, down); err != nil {
			return err
		}
		_, err := chromedp.Call(ctx, input.DispatchKeyEvent, up)
		return err
	})
}

// evaluate returns the value of a JavaScript expression in the page.
func evaluate[T any](tb *tab, expression string, options ...chromedp.EvaluateOption) T {
	tb.t.Helper()
	v, err := chromedp.Run(tb.ctx, chromedp.Evaluate[T](expression, options...))
	require.NoError(tb.t, err)
	return v
}

// text returns the text of the page that can be seen.
func (tb *tab) text() string {
	tb.t.Helper()
	return evaluate[string](tb, "document.body.innerText")
}

// wait waits until a JavaScript expression is true. The policy of the pages does not
// let chromedp.Poll make a function of it.
func (tb *tab) wait(expression string) {
	tb.t.Helper()
	evaluate[bool](tb, `new Promise(done => {
		const look = () => (`+expression+`) ? done(true) : setTimeout(look, 10);
		look();
	})`, chromedp.EvalAwaitPromise)
}

// click clicks the first link or button with a text that can be seen, and waits for
// the next page.
func (tb *tab) click(text string) {
	tb.t.Helper()
	at := evaluate[[]float64](tb, fmt.Sprintf(`(() => {
		const e = [...document.querySelectorAll("a,button,summary")].find(e => e.innerText.trim() === %q && e.offsetParent);
		if (!e) return [];
		e.scrollIntoView({block: "center"});
		const r = e.getClientRects()[0];
		return [r.x + r.width / 2, r.y + r.height / 2];
	})()`, text))
	require.Len(tb.t, at, 2, "no link or button %q in:\n%s", text, tb.text())
	_, err := chromedp.RunResponse(tb.ctx, chromedp.MouseClickXY(at[0], at[1]))
	require.NoError(tb.t, err)
}

// picture writes a picture of the whole page to the folder of STATE_SCREENSHOTS, if
// that is set.
func (tb *tab) picture(name string) {
	tb.t.Helper()
	folder := os.Getenv("STATE_SCREENSHOTS")
	if folder == "" {
		return
	}
	data, err := chromedp.Run(tb.ctx, chromedp.FullScreenshot(100))
	require.NoError(tb.t, err)
	require.NoError(tb.t, os.MkdirAll(folder, 0o755))
	require.NoError(tb.t, os.WriteFile(filepath.Join(folder, name+".png"), data, 0o644))
}
