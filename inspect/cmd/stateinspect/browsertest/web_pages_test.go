package browsertest

import (
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
		tb.hasText("Refund needs your approval")
		return tb
	}},
	{"refused", func(t *testing.T) *tab {
		tb := newWeb(t, nil).tab(t)
		tb.says("Refund #W1002")
		tb.hasText("Refund needs your approval")
		tb.tap("Refuse")
		tb.hasText("Then I leave it as it is.")
		tb.until(`document.querySelector(".chip.refused")`)
		tb.tap("refund #W1002, 249 refused")
		return tb
	}},
	{"done", func(t *testing.T) *tab {
		tb := newWeb(t, nil).tab(t)
		tb.says("Where is order #W1003?")
		tb.hasText("Do you want me to refund it?")
		tb.says("Yes, refund it.")
		tb.hasText("Refund needs your approval")
		tb.tap("Approve")
		tb.hasText("two or three working days")
		tb.until(`document.querySelectorAll("#fields section").length === 4`)
		return tb
	}},
	{"failed", func(t *testing.T) *tab {
		tb := newWeb(t, nil).tab(t)
		tb.says("Where is order #W1003?")
		tb.hasText("Do you want me to refund it?")
		tb.says("Let the desk fail.")
		tb.hasText("The desk could not answer this")
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
		tb.hasText("Refund needs your approval")
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
		tb.until(`document.querySelector(".window")`)
		require.Equal(t, 1001, evaluate[int](tb, `document.querySelectorAll("#talk li").length`), "1 000 messages and the mark")
		evaluate[bool](tb, `document.querySelector(".window").scrollIntoView({block: "center"}), true`)
		return tb
	}},
	{"fields", func(t *testing.T) *tab {
		w := newWeb(t, nil)
		tb := newTab(t, w.proxy(t, func(view map[string]any, fields *[]any) {
			values := view["state"].(map[string]any)["values"].(map[string]any)
			for i := range 36 {
				name := fmt.Sprintf("field_%d", i)
				*fields = append(*fields, map[string]any{"name": name, "description": "The value with the number " + fmt.Sprint(i)})
				values[name] = []any{i * i, "a text of a few words", true, []any{"a", "b"}, map[string]any{"from": "here", "to": longWord}, nil}[i%6]
			}
		}))
		tb.open("/")
		tb.wait(`document.querySelector("#suggestions button")`)
		tb.says("Refund #W1002")
		tb.hasText("Refund needs your approval")
		tb.tap("Approve")
		tb.hasText("two or three working days")
		tb.until(`document.querySelectorAll("#fields section").length === 38`)
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

// proxy stands in front of the program and changes the snapshots.
func (w *web) proxy(t *testing.T, change func(view map[string]any, fields *[]any)) (origin string) {
	p := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: w.addr})
	p.FlushInterval = -1
	p.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method != http.MethodGet || !strings.HasPrefix(r.Request.URL.Path, "/threads/") || strings.HasSuffix(r.Request.URL.Path, "/events") {
			return nil
		}
		var s map[string]any
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			return err
		}
		fields, _ := s["fields"].([]any)
		change(s["view"].(map[string]any), &fields)
		s["fields"] = fields
		data, err := json.Marshal(s)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		r.Header.Set("Content-Length", fmt.Sprint(len(data)))
		return err
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
			for _, width := range []int64{1280, 360} {
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
				tb.press("\x1b")
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
