package inspect_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// hostile are texts that must not become anything but text.
var hostile = []string{
	`<script>alert(1)</script>`, `</script><script>alert(1)</script>`, `<img src=x onerror=alert(1)>`,
	`"><svg onload=alert(1)>`, `' autofocus onfocus=alert(1) x='`, `" onmouseover="alert(1)`, "`onclick=alert(1)`",
	`</bdi></td></table><h1>owned</h1>`, `</title><meta http-equiv=refresh content=0>`, `</textarea></select><input name=owned>`,
	`{{.Head}} {{template "base"}}`, `<!-- --><b>bold</b>`, `]]><![CDATA[<i>`, `&lt;b&gt;&#60;u&#62;`,
	`javascript:alert(1)`, `//evil.example/`, `?at=1&as=support#x`, `[link](javascript:alert(1)) ![i](http://evil.example/i.png)`,
	"\u202eevil\u202c \u2066x\u2069 \u200f", "zero\u200bwidth\ufeff\u00ad\u2060", "tag\U000e0041\ufe0f",
	"lone\rreturn", "bell\a esc\x1b[2J del\x7f c1\u009b2J", "line\u2028sep\u2029", strings.Repeat("a", 5000) + "<b>",
}

// hostileWorkspace puts one text into every place of the workspace of a user.
func (f *fixture) hostileWorkspace(t testing.TB, user, text string) {
	t.Helper()
	line := strings.NewReplacer("\r", " ", "\a", "", "\x1b", "", "\x7f", "", "\u009b", "", "\u2028", "", "\u2029", "").Replace(text)
	line = strings.Map(func(r rune) rune {
		if strings.ContainsRune("\u202e\u202c\u2066\u2069\u200f\u200b\ufeff\u00ad\u2060\ufe0f\U000e0041", r) {
			return -1
		}
		return r
	}, line)
	line = line[:min(len(line), 100)]
	call := state.ToolCall{ID: line, Name: text, Input: state.JSONText(text)}
	update := func(fn func(w *workspace.Workspace) error) {
		require.NoError(t, f.manager.Update(t.Context(), user, fn), "%q", text)
	}
	update(func(w *workspace.Workspace) error { return notes.Set(w.State(), []string{"before"}) })
	update(func(w *workspace.Workspace) error {
		st := w.State().As("support").WithCause(line)
		return errors.Join(
			orderID.Set(st, text+"\nsecond line\n"+text), notes.Set(st, []string{text, text}),
			plan.Set(w.State(), map[string]any{text: text, "deep": deep(text, 40)}),
			state.Messages.Set(st, []state.Message{
				state.UserText(text), state.Text(text, text), state.AssistantText(text),
			}),
			w.Memory().Set(line, text), w.SetSettings(func(s *workspace.Settings) {
				s.ChatID, s.Platform = line, line
				s.MCPServers = map[string]state.JSON{text: `{}`}
			}),
			st.History().Append(state.InferenceResult{
				Agent: "support", Input: text, Raw: text, Prompt: []state.Message{state.SystemText(text)},
				Output: []state.Message{state.ToolCalls(call)},
			}),
			st.History().Answer(state.ToolResult(call, state.JSONText(text))),
		)
	})
	message := func(id string) workspace.Message {
		return workspace.Message{ID: id + line, ChatID: line, Platform: line, Content: state.UserText(text)}
	}
	f.refuse = errors.New(text)
	_, err := f.manager.Handle(t.Context(), user, message("refused"))
	require.ErrorIs(t, err, f.refuse)
	_, err = f.manager.Submit(t.Context(), user, message("run"))
	require.NoError(t, err)
	_, err = f.manager.Submit(t.Context(), user, message("waits"))
	require.NoError(t, err)
}

func deep(text string, levels int) any {
	if levels == 0 {
		return text
	}
	return []any{deep(text, levels-1)}
}

// pagesOf are the pages about a workspace.
func pagesOf(user string) []string {
	var list []string
	for _, page := range []string{
		"", "/state", "/conversation", "/results", "/result", "/history", "/diff",
	} {
		list = append(list, "/workspace"+page+"?"+url.Values{"user": {user}}.Encode()+"&n=0")
	}
	for _, query := range []string{"open=order_id", "open=plan", "as=search", "at=2", "filter=plan"} {
		list = append(list, "/workspace/state?"+url.Values{"user": {user}}.Encode()+"&"+query)
	}
	return append(list, "/workspace/diff?from=0&to=2&"+url.Values{"user": {user}}.Encode())
}

// Content is text: pages of hostile content have the elements and attributes of
// pages of harmless content, and nothing else.
func TestContentMakesNoMarkup(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, nil)
	for i, text := range append([]string{"harmless"}, hostile...) {
		f.hostileWorkspace(t, fmt.Sprint("user ", i), text)
	}
	f.hostileWorkspace(t, "user of much", strings.Repeat("harmless ", 200))
	users := []string{`<b>user</b>`, `"><script>`, "..", ".", "a/b", "%252e%252e", "a b&at=1", "\u202euser"}
	for _, user := range users {
		f.hostileWorkspace(t, user, "harmless")
	}
	f.hostileWorkspace(t, "user/thread", "harmless")
	f.visit(t, "user/idle")
	allowed := map[string]bool{}
	for _, target := range slices.Concat(pagesOf("user 0"), pagesOf("user of much"), pagesOf("user/thread")) {
		p := get(t, h, target)
		require.Equal(t, 200, p.code, target)
		for _, shape := range shapesOf(t, p.body) {
			allowed[shape] = true
		}
	}
	for i, text := range hostile {
		for _, target := range pagesOf(fmt.Sprint("user ", i+1)) {
			requireOnlyText(t, get(t, h, target), allowed, target+" of "+text)
		}
	}
	for _, user := range users {
		for _, target := range pagesOf(user) {
			requireOnlyText(t, get(t, h, target), allowed, target)
		}
		require.Contains(t, html.UnescapeString(get(t, h, "/").body), url.Values{"user": {user}}.Encode(), "user %q", user)
	}
	paths := []string{"/", "/workspace", "/workspace/history", "/workspace/diff", "/workspace/state", "/workspace/result", "/users"}
	for i, bad := range hostile {
		for k, name := range []string{"user", "at", "as", "q", "after", "filter", "open", "from", "to", "before", "field", "agent", "run", "n", "note", "skip", "verify", "format", "refresh"} {
			query := url.Values{"user": {"user 0"}}
			query.Set(name, bad)
			path := paths[(i+k)%len(paths)]
			p := get(t, h, path+"?"+query.Encode())
			require.Less(t, p.code, 500, "%s %s=%q", path, name, bad)
			requireOnlyText(t, p, nil, path)
		}
	}
}

// invisible are characters that are never shown as they are.
const invisible = "\u202e\u202c\u2066\u2069\u200f\u200b\ufeff\u00ad\u2060\ufe0f\U000e0041\r\a\x1b\x00\x7f\u009b\u2028\u2029"

// shapesOf returns the elements of a page with the names of their attributes and
// the values of those that scripts and styles use.
func shapesOf(t testing.TB, body string) []string {
	t.Helper()
	var list []string
	for n := range parse(t, body).Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		shape := n.Data
		for _, a := range n.Attr {
			shape += " " + a.Key
			if a.Key == "class" || a.Key == "id" || a.Key == "name" || a.Key == "type" {
				shape += "=" + a.Val
			}
		}
		if !slices.Contains(list, shape) {
			list = append(list, shape)
		}
	}
	return list
}

// requireOnlyText checks that a page has nothing that hostile content makes. If
// shapes is not nil, it has no others than these.
func requireOnlyText(t testing.TB, p response, shapes map[string]bool, about string) {
	t.Helper()
	require.True(t, utf8.ValidString(p.body), about)
	if !strings.HasPrefix(p.header.Get("Content-Type"), "text/html") {
		require.Equal(t, "nosniff", p.header.Get("X-Content-Type-Options"))
		return
	}
	for n := range parse(t, p.body).Descendants() {
		// Only addresses and the fields of forms have such characters as they are.
		if i := strings.IndexAny(n.Data, invisible); i >= 0 && n.Type == html.TextNode {
			t.Fatalf("%s: %q is not escaped", about, n.Data[i:min(len(n.Data), i+8)])
		}
		switch {
		case n.Type == html.CommentNode:
			t.Fatalf("%s has a comment", about)
		case n.Type != html.ElementNode:
			continue
		case slices.Contains([]string{"img", "svg", "iframe", "object", "embed", "base", "style", "b2", "u"}, n.Data):
			t.Fatalf("%s has an element %s", about, n.Data)
		case n.Data == "script":
			require.NotEmpty(t, attribute(n, "src"), about)
			require.Nil(t, n.FirstChild, about)
		}
		for _, a := range n.Attr {
			require.False(t, strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc", "%s has the attribute %s", about, a.Key)
			if a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "data-events" {
				u, err := url.Parse(a.Val)
				require.NoError(t, err, about)
				require.True(t, u.Scheme == "" && u.Host == "" && !strings.HasPrefix(a.Val, "/"), "%s leads to %s", about, a.Val)
			}
		}
	}
	for _, shape := range shapesOf(t, p.body) {
		require.True(t, shapes == nil || shapes[shape], "%s has %s", about, shape)
	}
}
