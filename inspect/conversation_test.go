package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// say replaces the conversation of a workspace.
func (f *fixture) say(t testing.TB, user string, msgs ...state.Message) {
	t.Helper()
	f.update(t, user, func(st *state.State) error { return st.History().Load(nil, msgs) })
}

// jsonOf asks for the data of a page.
func jsonOf(t testing.TB, h http.Handler, target string, data any) {
	t.Helper()
	p := get(t, h, with(t, target, "format", "json"))
	require.Equal(t, http.StatusOK, p.code, p.body)
	var answer struct {
		Format int
		Data   json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(p.body), &answer))
	require.Equal(t, 1, answer.Format)
	require.NoError(t, json.Unmarshal(answer.Data, data))
}

// textOf returns the text of the elements of a page with an id or a class,
// without space at its ends.
func textOf(t testing.TB, body, name string) []string {
	t.Helper()
	var texts []string
	for n := range parse(t, body).Descendants() {
		if attribute(n, "id") != name && !strings.Contains(" "+attribute(n, "class")+" ", " "+name+" ") {
			continue
		}
		var b strings.Builder
		for d := range n.Descendants() {
			if d.Type == html.TextNode {
				b.WriteString(d.Data)
			}
		}
		texts = append(texts, strings.Join(strings.Fields(b.String()), " "))
	}
	return texts
}

type chatJSON struct {
	Count, Older, Newer int
	Turns               []struct{ Messages []messageJSON }
}

type messageJSON struct {
	Index int
	Role  string
	Text  struct {
		Text    string
		Clipped bool
	}
	Parts []string
	Error bool
	Calls []struct {
		ID, Name, State string
		Input           struct{ Text string }
		Result          *messageJSON
	}
	MoreCalls int `json:"more_calls"`
	Findings  []findingJSON
}

type findingJSON struct {
	Message      int
	Rule, Detail string
	Providers    []string
}

type conversationJSON struct {
	Chat      chatJSON
	OpenCalls int `json:"open_calls"`
	Denied    bool
	Providers []struct {
		Name  string
		Count int
	}
	Provider *struct{ Findings, Repairs []findingJSON }
}

func TestConversationShowsResultsBesideCalls(t *testing.T) {
	f := newFixture(t, 0)
	a := state.ToolCall{ID: "a", Name: "find", Input: `{"q":1}`}
	b := state.ToolCall{ID: "b", Name: "find", Input: `{"q":2}`}
	c := state.ToolCall{ID: "c", Name: "refund"}
	f.say(t, "talk",
		state.UserText("Both, please."), state.ToolCalls(a, b, c),
		state.ToolResult(b, `"second"`), state.ToolError(a, "first has failed"), state.AssistantText("Done."),
	)
	h := f.handler(t, nil)
	var data conversationJSON
	jsonOf(t, h, "/workspace/conversation?user=talk", &data)
	require.Equal(t, 5, data.Chat.Count)
	require.Equal(t, 1, data.OpenCalls)
	require.Len(t, data.Chat.Turns, 3)
	calls := data.Chat.Turns[1].Messages[0].Calls
	require.Len(t, calls, 3)
	require.Equal(t, "first has failed", calls[0].Result.Text.Text)
	require.True(t, calls[0].Result.Error)
	require.Equal(t, "second", calls[1].Result.Text.Text)
	require.Equal(t, 2, calls[1].Result.Index)
	require.Equal(t, "open", calls[2].State)
	require.Nil(t, calls[2].Result)

	p := get(t, h, "/workspace/conversation?user=talk")
	require.Equal(t, []string{
		`find a{"q":1} ✕ errorfirst has failed JSON 171 B`, `find b{"q":2} second JSON 145 B`, `refund c ▲ open: no result`,
	}, textOf(t, p.body, "pair"))
}

// answersIn returns the calls of a chat, with their results.
func answersIn(c chatJSON) (got []string) {
	for _, turn := range c.Turns {
		for _, m := range turn.Messages {
			for _, c := range m.Calls {
				answer := c.State
				if c.Result != nil {
					answer = c.Result.Text.Text
				}
				got = append(got, c.Input.Text+" "+answer)
			}
		}
	}
	return got
}

// Calls of one answer may have one id, or none: their keys decide.
func TestConversationPairsByKeys(t *testing.T) {
	for _, id := range []string{"", "call_0"} {
		f := newFixture(t, 0)
		f.update(t, "talk", func(st *state.State) error {
			call := func(q string) state.ToolCall { return state.ToolCall{ID: id, Name: "find", Input: state.JSON(q)} }
			said := state.InferenceResult{Output: []state.Message{state.ToolCalls(call("1"), call("2"), call("3"))}}
			if err := st.History().Append(said); err != nil {
				return err
			}
			open := st.History().Pending()
			return st.History().Answer(state.ToolResult(open[2], `"r3"`), state.ToolResult(open[1], `"r2"`))
		})
		var data conversationJSON
		jsonOf(t, f.handler(t, nil), "/workspace/conversation?user=talk", &data)
		require.Equal(t, []string{"1 open", "2 r2", "3 r3"}, answersIn(data.Chat))
	}
}

// Models reuse ids: the place decides which result answers which call.
func TestConversationPairsReusedIDs(t *testing.T) {
	f := newFixture(t, 0)
	call := func(q string) state.ToolCall { return state.ToolCall{ID: "call_0", Name: "find", Input: state.JSON(q)} }
	f.say(t, "talk",
		state.UserText("one"), state.ToolCalls(call("1")), state.ToolResult(call("1"), `"r1"`),
		state.UserText("two"), state.ToolCalls(call("2")), state.ToolResult(call("2"), `"r2"`),
		state.UserText("three"), state.ToolCalls(call("3")),
	)
	var data conversationJSON
	jsonOf(t, f.handler(t, nil), "/workspace/conversation?user=talk", &data)
	require.Equal(t, []string{"1 r1", "2 r2", "3 open"}, answersIn(data.Chat))
}

func TestConversationSaysWhatProvidersReject(t *testing.T) {
	f := newFixture(t, 0)
	call := state.ToolCall{ID: "call_1", Name: "find order", Input: `{}`}
	f.say(t, "talk", state.UserText("Hello"), state.ToolCalls(call), state.SystemText("late"), state.UserText("?"))
	h := f.handler(t, nil)
	var data conversationJSON
	jsonOf(t, h, "/workspace/conversation?user=talk&provider=anthropic", &data)
	counts := map[string]int{}
	for _, p := range data.Providers {
		counts[p.Name] = p.Count
	}
	require.Equal(t, map[string]int{"openai": 2, "responses": 2, "anthropic": 3, "gemini": 3}, counts)
	require.Equal(t, []findingJSON{
		{1, "unanswered-call", `call "call_1" of "find order"`, nil},
		{1, "name", `call "call_1" of "find order"`, nil},
		{2, "system", "in the middle", nil},
	}, data.Provider.Findings)
	require.Len(t, data.Provider.Repairs, 3)
	require.Equal(t, []findingJSON{
		{1, "unanswered-call", `call "call_1" of "find order"`, []string{"OpenAI", "OpenAI Responses", "Anthropic", "Gemini"}},
		{1, "name", `call "call_1" of "find order"`, []string{"OpenAI", "OpenAI Responses", "Anthropic", "Gemini"}},
	}, data.Chat.Turns[1].Messages[0].Findings)

	p := get(t, h, "/workspace/conversation?user=talk&provider=anthropic")
	require.Contains(t, p.body, "rejects this conversation")
	p = get(t, h, "/workspace/conversation?user=alice&provider=openai")
	require.Contains(t, p.body, "accepts this conversation")
}

func TestConversationPages(t *testing.T) {
	f := newFixture(t, 0)
	var msgs []state.Message
	for i := range 60 {
		call := state.ToolCall{ID: fmt.Sprint("c", i), Name: "find"}
		msgs = append(msgs, state.UserText(fmt.Sprint("question ", i)), state.ToolCalls(call), state.ToolResult(call, `"r"`))
	}
	f.say(t, "talk", msgs...)
	h := f.handler(t, nil)
	shown := func(target string) (data conversationJSON, indexes []int) {
		jsonOf(t, h, target, &data)
		for _, turn := range data.Chat.Turns {
			for _, m := range turn.Messages {
				indexes = append(indexes, m.Index)
				for _, c := range m.Calls {
					indexes = append(indexes, c.Result.Index)
				}
			}
		}
		return data, indexes
	}
	all, newer := []int(nil), []int(nil)
	for before := 180; before >= 0; {
		data, indexes := shown(fmt.Sprint("/workspace/conversation?user=talk&before=", before))
		require.LessOrEqual(t, len(indexes), 50)
		if newer != nil {
			_, back := shown(fmt.Sprint("/workspace/conversation?user=talk&before=", data.Chat.Newer))
			require.Equal(t, newer, back)
		}
		all, newer, before = append(indexes, all...), indexes, data.Chat.Older
	}
	require.Len(t, all, 180)
	for i, index := range all {
		require.Equal(t, i, index)
	}
	p := get(t, h, "/workspace/conversation?user=talk")
	require.Contains(t, p.body, "question 59")
	require.NotContains(t, p.body, "question 1<")
	require.Contains(t, p.body, "Older messages")
	require.NotContains(t, p.body, "Newer messages")
	require.Equal(t, http.StatusBadRequest, get(t, h, "/workspace/conversation?user=talk&before=x").code)
}

func TestConversationOpensMessages(t *testing.T) {
	f := newFixture(t, 0)
	long := strings.Repeat("word ", 4000)
	f.say(t, "talk", state.UserText(long+"end"), state.UserText("short"))
	h := f.handler(t, nil)
	p := get(t, h, "/workspace/conversation?user=talk")
	require.NotContains(t, p.body, "word end")
	require.Contains(t, linksOf(t, p.body), "../workspace/conversation?open=0&user=talk#m0")
	require.Contains(t, get(t, h, "/workspace/conversation?user=talk&open=0").body, "word end")
	require.NotContains(t, get(t, h, "/workspace/conversation?user=talk&open=0").body, "export?message")
	f.say(t, "talk", state.UserText(strings.Repeat(long, 5)), state.UserText("short"))
	require.Contains(t, linksOf(t, get(t, h, "/workspace/conversation?user=talk&open=0").body), "../workspace/export?message=0&user=talk")
	p = get(t, h, "/workspace/conversation?user=talk&open=1.json")
	require.Contains(t, p.body, "<pre><bdi>{\n  &#34;type&#34;: &#34;text&#34;")
}

func TestConversationOfAgent(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, nil)
	var data conversationJSON
	jsonOf(t, h, "/workspace/conversation?user=alice&as=billing", &data)
	require.Positive(t, data.Chat.Count)
	jsonOf(t, h, "/workspace/conversation?user=alice&as=stranger", &data)
	require.True(t, data.Denied)
	p := get(t, h, "/workspace/conversation?user=alice&as=stranger")
	require.Contains(t, p.body, "<bdi>stranger</bdi> may not read the conversation.")
	require.NotContains(t, p.body, "Oslo")
}

func TestConversationAtVersion(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	var first, now conversationJSON
	jsonOf(t, h, "/workspace/conversation?user=alice&at=1", &first)
	jsonOf(t, h, "/workspace/conversation?user=alice", &now)
	require.Less(t, first.Chat.Count, now.Chat.Count)
	require.Contains(t, get(t, h, "/workspace/conversation?user=..").body, "No messages")
}

// The details of package transcript have names that are shortened or replaced.
func TestConversationShowsNoHalfOfSecretInDetails(t *testing.T) {
	f := newFixture(t, 0)
	calls := []state.ToolCall{
		{ID: strings.Repeat("i", 52) + cardNumber, Name: "pay"},
		{ID: "1", Name: "pay " + cardNumber},
		{ID: "2", Name: "pay"},
	}
	f.update(t, "alice", func(st *state.State) error {
		return st.History().Load(nil, []state.Message{
			state.UserText("Pay."), state.ToolCalls(calls[0]), state.ToolCalls(calls[1]), state.ToolCalls(calls[2]),
			state.Text(strings.Repeat("r", 52)+mailToken, "hello"),
		})
	})
	h := f.handler(t, nil)
	for _, provider := range []string{"openai", "responses", "anthropic", "gemini"} {
		p := get(t, h, "/workspace/conversation?user=alice&provider="+provider)
		for _, part := range []string{"4242-4", "4242_4", "tok-4"} {
			require.NotContains(t, p.body, part)
		}
		require.Contains(t, p.body, "call &#34;2&#34; of &#34;pay&#34;")
	}
}

func TestConversationOfHostileMessages(t *testing.T) {
	f := newFixture(t, 0)
	hostile := `<script>alert(1)</script><img src=x onerror="alert(1)">` + "\u202e\x00\r"
	call := state.ToolCall{ID: hostile, Name: hostile, Input: `{"<b>":"<script>"}`}
	parts, err := state.Parts("user", `{"type":"<script>","a":1}`)
	require.NoError(t, err)
	f.say(t, "talk", state.Text(hostile, hostile), state.ToolCalls(call), state.ToolError(call, hostile), parts)
	p := get(t, f.handler(t, nil), "/workspace/conversation?user=talk&provider=gemini&open=1.json")
	require.Equal(t, http.StatusOK, p.code)
	for n := range parse(t, p.body).Descendants() {
		require.NotEqual(t, "img", n.Data)
		require.Empty(t, attribute(n, "onerror"))
		if n.Data == "script" {
			require.Nil(t, n.FirstChild)
		}
	}
	require.Contains(t, p.body, `\u202e\u0000`)
}

func TestConversationIsBounded(t *testing.T) {
	const maxPage = 128 << 10
	f := newFixture(t, 0)
	var quotes, calls []state.Message
	for i := range 1000 {
		quotes = append(quotes, state.UserText(strings.Repeat(`"<&'`, 2000)))
		var many []state.ToolCall
		for k := range 30 {
			many = append(many, state.ToolCall{ID: fmt.Sprint(i, "-", k), Name: strings.Repeat(`"`, 60), Input: state.JSON(`"` + strings.Repeat(`<`, 2000) + `"`)})
		}
		if i < 60 {
			calls = append(calls, state.ToolCalls(many...))
		}
	}
	f.say(t, "quotes", quotes...)
	f.say(t, "calls", calls...)
	f.say(t, "large", state.UserText(strings.Repeat("large ", 15<<20/6)), state.UserText("small"))
	h := f.handler(t, nil)
	for _, target := range []string{"user=quotes", "user=quotes&open=999", "user=calls", "user=calls&provider=anthropic", "user=large", "user=large&open=0", "user=large&open=0.json"} {
		p := get(t, h, "/workspace/conversation?"+target)
		require.Equal(t, http.StatusOK, p.code)
		require.LessOrEqual(t, len(p.body), maxPage, target)
	}
}

// The page says where the window of each agent begins, and what its summary says,
// without secrets.
func TestConversationShowsWindows(t *testing.T) {
	f := newFixture(t, 0)
	const secret = "WINDOW-SECRET-77"
	var said []state.Message
	for i := range 5 {
		said = append(said, state.UserText(fmt.Sprint("q", i)), state.AssistantText(fmt.Sprint("a", i)))
	}
	f.say(t, "talk", said...)
	h := f.handler(t, nil)
	require.Empty(t, textOf(t, get(t, h, "/workspace/conversation?user=talk").body, "shown"))
	windows := map[string]*transcript.Window{"": {Target: 6, Keep: 2}, "billing": {Target: 6, Keep: 4}, "support": {Target: 20}}
	windows["billing"].Summarize = func(context.Context, transcript.Past) (string, error) {
		return "Ann <b>paid</b> with " + secret + ".", nil
	}
	for agent, w := range windows {
		w.Tokens = func(state.Message) int { return 1 }
		f.update(t, "talk", func(st *state.State) error {
			if agent != "" {
				st = st.As(agent)
			}
			_, err := w.Messages(t.Context(), st, 0)
			return err
		})
	}
	// The secret is set behind the summary, which is therefore stored with it.
	f.update(t, "talk", func(st *state.State) error { return card.Set(st, secret) })

	page := get(t, h, "/workspace/conversation?user=talk").body
	require.Equal(t, []string{"host from message 8 on", "billing from message 6 on, and in place of what is left out:"}, textOf(t, page, "shown"))
	require.Contains(t, page, "Ann &lt;b&gt;paid&lt;/b&gt; with [SECRET].")
	require.NotContains(t, page, secret)
	require.Equal(t, []string{"▸ the window of billing begins here", "▸ the window of host begins here"}, textOf(t, page, "window"))
	require.Contains(t, strings.Join(textOf(t, page, "m8"), ""), "the window of host begins here")
	require.Contains(t, page, "before=9&amp;user=talk#m8")

	var data struct {
		Windows []struct {
			Agent   string
			Begin   int
			Summary *struct{ Text string }
		}
	}
	jsonOf(t, h, "/workspace/conversation?user=talk&as=billing", &data)
	require.Len(t, data.Windows, 1)
	require.Equal(t, "billing", data.Windows[0].Agent)
	require.Equal(t, 6, data.Windows[0].Begin)
	require.Equal(t, "Ann <b>paid</b> with [SECRET].", data.Windows[0].Summary.Text)

	// Of another conversation, all is shown, and the summary stays.
	f.say(t, "talk", state.UserText("new"))
	page = get(t, h, "/workspace/conversation?user=talk").body
	require.Equal(t, []string{"billing from message 0 on, and in place of what is left out:"}, textOf(t, page, "shown"))
}
