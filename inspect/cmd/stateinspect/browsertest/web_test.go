package browsertest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// webProgram is examples/web, built once.
var webProgram = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "web")
	if err != nil {
		return "", err
	}
	program := filepath.Join(folder, "web")
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join("..", "..", "..", "..", "examples", "web")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// web is a process of examples/web, which can be killed and started again.
type web struct {
	t                 testing.TB
	addr, file, model string
	pace              time.Duration
	cmd               *exec.Cmd
}

// newWeb starts a process with a model, or with the scripted one.
func newWeb(t testing.TB, model http.Handler) *web {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &web{t: t, addr: l.Addr().String(), file: filepath.Join(t.TempDir(), "web.db"), pace: 2 * time.Millisecond}
	require.NoError(t, l.Close())
	if model != nil {
		server := httptest.NewServer(model)
		t.Cleanup(server.Close)
		t.Cleanup(server.CloseClientConnections)
		w.model = server.URL
	}
	w.start()
	t.Cleanup(w.kill)
	return w
}

func (w *web) start() {
	w.t.Helper()
	program, err := webProgram()
	require.NoError(w.t, err)
	w.cmd = exec.Command(program, "-addr", w.addr, "-db", w.file, "-pace", w.pace.String())
	w.cmd.Stderr = os.Stderr
	if w.model != "" {
		w.cmd.Env = append(os.Environ(), "OPENAI_API_KEY=key", "OPENAI_BASE_URL="+w.model)
	}
	require.NoError(w.t, w.cmd.Start())
	require.Eventually(w.t, func() bool {
		resp, err := http.Get("http://" + w.addr)
		return err == nil && resp.Body.Close() == nil
	}, 20*time.Second, 10*time.Millisecond)
}

func (w *web) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// tab opens the page, in a window of a size.
func (w *web) tab(t testing.TB) *tab {
	t.Helper()
	tb := newTab(t, "http://"+w.addr)
	tb.open("/")
	tb.wait(`document.querySelector("#suggestions button")`)
	return tb
}

// staff opens the chat that a tab shows, as an employee.
func (w *web) staff(t testing.TB, of *tab) *tab {
	t.Helper()
	tb := newTab(t, "http://"+w.addr)
	tb.open("/staff/#" + evaluate[string](of, "location.hash.slice(1)"))
	tb.until(`document.querySelector("#talk li")`)
	return tb
}

// enters edits a field, and saves it.
func (tb *tab) enters(field, text string) {
	tb.t.Helper()
	evaluate[bool](tb, fmt.Sprintf(`document.querySelector("input[name=%s]").focus(), true`, field))
	tb.press(text + "\r")
	tb.until(fmt.Sprintf(`document.querySelector("input[name=%s] + button").hidden`, field))
}

// says sends a message.
func (tb *tab) says(text string) {
	tb.t.Helper()
	evaluate[bool](tb, `document.getElementById("text").focus(), true`)
	tb.press(text + "\r")
}

// tap clicks the last button or link that has a text, or a label, where a mouse can
// reach it.
func (tb *tab) tap(text string) {
	tb.t.Helper()
	require.Empty(tb.t, evaluate[string](tb, fmt.Sprintf(`(() => {
		const e = [...document.querySelectorAll("a,button,summary")].findLast(e =>
			(e.innerText.trim().replace(/\s+/g, " ") === %q || e.ariaLabel === %[1]q) && e.checkVisibility());
		if (!e) return "it is not there";
		e.scrollIntoView({block: "nearest"});
		const r = e.getClientRects()[0];
		if (!e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2))) return "it is covered";
		e.click();
		return "";
	})()`, text)), "%q in:\n%s", text, tb.text())
}

// hasText waits until the page shows a text.
func (tb *tab) hasText(text string) {
	tb.t.Helper()
	tb.until(fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// until waits until a JavaScript expression is true, for some seconds.
func (tb *tab) until(expression string) {
	tb.t.Helper()
	ok := evaluate[bool](tb, `new Promise(done => {
		const late = Date.now() + 15000;
		const look = () => (`+expression+`) ? done(true) : Date.now() > late ? done(false) : setTimeout(look, 10);
		look();
	})`, chromedp.EvalAwaitPromise)
	require.True(tb.t, ok, "not true: %s\n%s", expression, tb.text())
}

// stream is an answer of a model, as OpenAI sends it.
type stream struct{ http.ResponseWriter }

func (s stream) send(delta map[string]any, end any) {
	s.Header().Set("Content-Type", "text/event-stream")
	chunk, _ := json.Marshal(map[string]any{"id": "1", "choices": []any{map[string]any{"delta": delta, "finish_reason": end}}})
	fmt.Fprintf(s, "data: %s\n\n", chunk)
	if end != nil {
		fmt.Fprint(s, "data: [DONE]\n\n")
	}
	_ = http.NewResponseController(s.ResponseWriter).Flush()
}

func (s stream) say(text string) { s.send(map[string]any{"content": text}, nil) }
func (s stream) end()            { s.send(map[string]any{}, "stop") }

func (s stream) call(id, name, arguments string) {
	function := map[string]any{"name": name, "arguments": arguments}
	s.send(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": id, "type": "function", "function": function}}}, nil)
	s.send(map[string]any{}, "tool_calls")
}

// answers is a model that answers what was said last.
func answers(answer func(said string, role string, r *http.Request, s stream)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Messages []struct{ Role, Content string }
		}
		if json.NewDecoder(r.Body).Decode(&in) != nil || len(in.Messages) == 0 {
			http.Error(w, "want messages", http.StatusBadRequest)
			return
		}
		last := in.Messages[len(in.Messages)-1]
		answer(last.Content, last.Role, r, stream{w})
	})
}
