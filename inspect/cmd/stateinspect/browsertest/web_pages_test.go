package browsertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/store/sqlitestore"
	"github.com/agentstate/state/workspace"
)

// chatSituation is a situation of the chat page. Its function leaves a tab in it, with a
// program that goes on as long as the test does.
type chatSituation struct {
	name string
	show func(t *testing.T) *tab
}

// A word and an id that no line can hold.
var longWord = strings.Repeat("Donaudampfschiffahrt", 12)

// slowly answers with the beginning of an answer, whose rest never comes.
var slowly = answers(func(said, _ string, r *http.Request, s stream) {
	s.say("The espresso machine was delivered on Monday. I am")
	s.say(" still looking for")
	<-r.Context().Done()
})

var chats = []chatSituation{
	{"empty", func(t *testing.T) *tab { return newWeb(t, nil).tab(t) }},
	{"streaming", func(t *testing.T) *tab {
		tb := newWeb(t, slowly).tab(t)
		tb.says("Where is order #W1002?")
		tb.hasText("I am still looking for")
		return tb
	}},
	{"queued", func(t *testing.T) *tab {
		tb := newWeb(t, slowly).tab(t)
		tb.says("Where is order #W1002?")
		tb.hasText("I am still looking for")
		tb.says("And refund it, please.")
		tb.hasText("Queued")
		return tb
	}},
	{"tool", func(t *testing.T) *tab {
		w := newWeb(t, answers(func(_, _ string, r *http.Request, s stream) { s.call("call_1", "look_up_order", `{"order":"#W1003"}`) }))
		w.kill()
		w.pace = time.Minute
		w.start()
		tb := w.tab(t)
		tb.says("Where is order #W1003?")
		tb.hasText("at work")
		return tb
	}},
	{"approval", func(t *testing.T) *tab {
		tb := newWeb(t, nil).tab(t)
		tb.says("Where is order #W1002?")
		tb.hasText("Do you want me to refund it?")
		tb.says("Yes, it arrived broken. Refund it.")
		tb.hasText("Refund waits for an employee")
		return tb
	}},
	{"refused", func(t *testing.T) *tab {
		w := newWeb(t, nil)
		tb := w.tab(t)
		tb.says("Refund #W1002")
		tb.hasText("Refund waits for an employee")
		w.staff(t, tb).tap("Refuse")
		tb.hasText("Then I leave it as it is.")
		tb.until(`document.querySelector(".chip.refused")`)
		tb.tap("refund #W1002, €249.00 refused")
		return tb
	}},
	{"staff-empty", func(t *testing.T) *tab {
		w := newWeb(t, nil)
		tb := newTab(t, "http://"+w.addr)
		tb.open("/staff/")
		tb.hasText("Which chat do you want to see?")
		return tb
	}},
	{"staff", func(t *testing.T) *tab {
		w := newWeb(t, nil)
		tb := w.tab(t)
		tb.says("#W1002 arrived broken. Refund it.")
		tb.hasText("Refund waits for an employee")
		staff := w.staff(t, tb)
		staff.hasText("Refund needs your approval")
		return staff
	}},
	{"done", func(t *testing.T) *tab {
		w := newWeb(t, nil)
		tb := w.tab(t)
		tb.says("Where is order #W1003?")
		tb.hasText("Do you want me to refund it?")
		tb.says("Yes, refund it.")
		tb.hasText("Refund waits for an employee")
		tb.enters("email", "ann@example.com")
		w.staff(t, tb).tap("Approve")
		tb.hasText("two or three working days")
		tb.until(`document.querySelectorAll("#fields section").length === 5`)
		return tb
	}},
	{"failed", func(t *testing.T) *tab {
		tb := newWeb(t, nil).tab(t)
		tb.says("Where is order #W1003?")
		tb.hasText("Do you want me to refund it?")
		tb.says("Let the desk fail.")
		tb.hasText("The desk could not answer")
		return tb
	}},
	{"stopped", func(t *testing.T) *tab {
		w := newWeb(t, answers(func(_, role string, r *http.Request, s stream) {
			if role == "tool" {
				s.say("It is")
				<-r.Context().Done()
				return
			}
			s.call("call_1", "look_up_order", `{"order":"#W1003"}`)
		}))
		tb := w.tab(t)
		tb.says("Where is order #W1003?")
		tb.hasText("It is")
		tb.tap("Stop")
		tb.hasText("Stopped")
		return tb
	}},
	{"away", func(t *testing.T) *tab {
		w := newWeb(t, slowly)
		tb := w.tab(t)
		tb.says("Where is order #W1002?")
		tb.hasText("I am still looking for")
		w.kill()
		tb.hasText("Reconnecting…")
		tb.says("Hello?")
		tb.hasText("Sending")
		return tb
	}},
	{"long", func(t *testing.T) *tab {
		w := newWeb(t, answers(func(said, role string, r *http.Request, s stream) {
			if role == "tool" || strings.HasPrefix(said, "Say") {
				s.say("There is no order " + longWord + ".")
				s.end()
				return
			}
			s.call("call_"+longWord[:40], "refund", fmt.Sprintf(`{"order":"#%s","amount":123456789.99}`, longWord))
		}))
		tb := w.tab(t)
		tb.says("Say " + longWord)
		tb.hasText("There is no order " + longWord)
		tb.says("Refund " + longWord)
		tb.hasText("Refund waits for an employee")
		return tb
	}},
	{"thousand", func(t *testing.T) *tab {
		w := newWeb(t, nil)
		w.kill()
		w.write(t, "ann/long", func(st *state.State) error {
			var said []state.Message
			for i := range 499 {
				said = append(said, state.UserText(fmt.Sprintf("Question %d: where is my parcel?", i+1)),
					state.AssistantText(fmt.Sprintf("Answer %d: it is on its way, and comes on Friday.", i+1)))
			}
			return state.Messages.Set(st, said)
		})
		w.start()
		tb := w.tab(t)
		tb.open("/#long")
		tb.hasText("Answer 499")
		tb.says("Hello")
		tb.hasText("Which order is it about?")
		tb.until(`document.querySelectorAll("#talk > li").length === 1000`)
		evaluate[bool](tb, `document.getElementById("scroll").scrollTo(0, 1000), true`)
		t.Logf("a change of the page takes %.1f ms", evaluate[float64](tb, `(begin => {
			for (let i = 0; i < 20; i++) document.getElementById("text").dispatchEvent(new Event("input"));
			return (performance.now() - begin) / 20;
		})(performance.now())`))
		return tb
	}},
	{"fields", func(t *testing.T) *tab {
		w := newWeb(t, nil)
		tb := newTab(t, w.proxy(t, func(fields map[string]any) {
			for i := range 36 {
				fields[fmt.Sprintf("field_%d", i)] = []any{i * i, "a text of a few words", true, []any{"a", "b"}, map[string]any{"from": "here", "to": longWord}, nil}[i%6]
			}
		}))
		tb.open("/")
		tb.wait(`document.querySelector("#suggestions button")`)
		tb.says("Where is order #W1002?")
		tb.hasText("Do you want me to refund it?")
		tb.do(chromedp.Reload())
		tb.until(`document.querySelectorAll("#fields section").length === 39`)
		return tb
	}},
}

// write changes a workspace while the program does not run.
func (w *web) write(t *testing.T, user string, change func(*state.State) error) {
	db, err := sqlitestore.Open(t.Context(), w.file, nil)
	require.NoError(t, err)
	m, err := workspace.Open(t.Context(), db, nil)
	require.NoError(t, err)
	require.NoError(t, m.Update(t.Context(), user, func(w *workspace.Workspace) error { return change(w.State()) }))
	require.NoError(t, m.Close())
	require.NoError(t, db.Close())
}

// proxy stands in front of the program and changes the fields of pages that are told
// whole.
func (w *web) proxy(t *testing.T, change func(fields map[string]any)) (origin string) {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.addr})
	p.FlushInterval = -1
	p.ModifyResponse = func(r *http.Response) error {
		if !strings.HasPrefix(r.Request.URL.Path, "/api/threads/") || !strings.HasSuffix(r.Request.URL.Path, "/events") {
			return nil
		}
		in, body := bufio.NewReader(r.Body), r.Body
		var first bytes.Buffer
		for first.Len() == 0 || !strings.HasSuffix(first.String(), "\n\n") { // an event ends with an empty line
			line, err := in.ReadString('\n')
			if err != nil {
				return err
			}
			if data, ok := strings.CutPrefix(line, "data: "); ok {
				var told map[string]any
				if err := json.Unmarshal([]byte(data), &told); err != nil {
					return err
				}
				if page, ok := told["page"].(map[string]any); ok {
					change(page["fields"].(map[string]any))
				}
				changed, err := json.Marshal(told)
				if err != nil {
					return err
				}
				line = "data: " + string(changed) + "\n"
			}
			first.WriteString(line)
		}
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(&first, in), body}
		return nil
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}

// TestWebAccessible takes the chat page into each situation, and checks it with
// axe-core in light and dark, wide and narrow: nobody has to scroll sideways.
func TestWebAccessible(t *testing.T) {
	axe := readAxe(t)
	for _, s := range chats {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			tb := s.show(t)
			tb.forgive() // that the server is away
			for _, width := range []int64{1280, 375} {
				tb.size(width, 800)
				for _, dark := range []bool{false, true} {
					scheme := map[bool]string{true: "dark", false: "light"}[dark]
					tb.quiet(scheme)
					tb.look(axe, fmt.Sprintf("web-%s-%d-%s", s.name, width, scheme))
				}
			}
			for _, drawer := range []string{"Chats", "State"} {
				tb.tap(drawer)
				tb.until(`document.querySelector(":popover-open")`)
				tb.look(axe, fmt.Sprintf("web-%s-%s", s.name, strings.ToLower(drawer)))
				tb.tap("Close")
				tb.until(`!document.querySelector(":popover-open")`)
			}
			tb.forgive()
		})
	}
}

// quiet shows a page without what moves, in "light" or "dark".
func (tb *tab) quiet(scheme string) {
	tb.t.Helper()
	_, err := chromedp.Call(tb.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	require.NoError(tb.t, err)
}

// look takes a picture of the page as it is, and checks it.
func (tb *tab) look(axe, name string) {
	tb.t.Helper()
	tb.picture(name)
	require.LessOrEqual(tb.t, evaluate[int64](tb, "document.documentElement.scrollWidth"), evaluate[int64](tb, "innerWidth"), name)
	for _, sideways := range []string{"#scroll", "#chats", "#state"} {
		require.LessOrEqual(tb.t, evaluate[int64](tb, fmt.Sprintf("document.querySelector(%q).scrollWidth", sideways)),
			evaluate[int64](tb, fmt.Sprintf("document.querySelector(%q).clientWidth", sideways)), "%s of %s", sideways, name)
	}
	for _, f := range tb.violations(axe) {
		for _, n := range f.Nodes {
			tb.t.Errorf("%s: %s (%s)\n%s\n%s", name, f.Help, f.ID, n.HTML, n.Summary)
		}
	}
}
