package transcript_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agentstate/state"
	"github.com/agentstate/state/transcript"
)

// sized returns a result that is recorded with a limit.
func sized(limit int, content state.JSON) state.ToolResultMessage {
	raw := state.ToolResult(state.ToolCall{ID: "c", Name: "read", Input: `{}`}, content).Raw()
	m, err := state.DecodeMessage([]byte(strings.TrimSuffix(string(raw), "}") + `,"shown":` + strconv.Itoa(limit) + `}`))
	if err != nil {
		panic(err)
	}
	return m.(state.ToolResultMessage)
}

func shownOf(m state.Message, recall bool) state.ToolResultMessage {
	return transcript.Shown([]state.Message{m}, recall)[0].(state.ToolResultMessage)
}

var leftOut = regexp.MustCompile(`\n\[(\d+) characters are left out here\.( The tool recall finds words in them\.)?\]\n`)

// The laws of what is shown of a text, wherever it is cut.
func checkShown(t require.TestingT, text string, limit int, recall bool) {
	m := sized(limit, state.JSONText(text))
	short := shownOf(m, recall)
	shown := short.Text()
	_, sizes := short.Extra("shown")
	require.False(t, sizes, "it is what it says")
	require.Equal(t, short, shownOf(short, recall), "it is the same if it is shown again")
	require.Equal(t, short.Raw(), shownOf(m, recall).Raw(), "in each request")
	require.Equal(t, m.Call(), short.Call())
	require.Equal(t, text, m.Text())
	if len(text) <= limit {
		require.Equal(t, text, shown)
		return
	}
	require.LessOrEqual(t, len(shown), max(limit, 120))
	for _, at := range leftOut.FindAllStringSubmatchIndex(shown, -1) { // the text may have notes of its own
		head, tail := shown[:at[0]], shown[at[1]:]
		left, _ := strconv.Atoi(shown[at[2]:at[3]])
		if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) || len(head)+len(tail) > len(text) ||
			utf8.RuneCountInString(text[len(head):len(text)-len(tail)]) != left {
			continue
		}
		require.Equal(t, recall, at[4] >= 0, "the tool is named for who has it")
		if short := shownOf(m, !recall).Text(); len(head)+len(tail) > 0 {
			require.Equal(t, head+tail, strings.Replace(short, leftOut.FindString(short[len(head):]), "", 1), "nothing else depends on that")
		}
		for _, place := range []int{len(head), len(text) - len(tail)} {
			require.True(t, utf8.ValidString(text[:place]))
			before, _ := utf8.DecodeLastRuneInString(text[:place])
			after, _ := utf8.DecodeRuneInString(text[place:])
			if place == 0 || place == len(text) || unicode.Is(unicode.M, before) || before == '\u200d' {
				continue // of a long sequence
			}
			require.False(t, unicode.Is(unicode.M, after), "%U belongs to %U", after, before)
			require.NotContains(t, text[max(0, place-7):min(len(text), place+7)], "[SECRET]", "no half of a mask")
		}
		return
	}
	require.Fail(t, "there is no note", "%q", shown)
}

func TestShownTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{0, 1, 100, 119, 120, 121, 200, 256, 1000}).Draw(t, "limit")
		piece := rapid.SampledFrom([]string{"a", "é", "e\u0301", "字", "😀", "👩‍👩‍👧", "👍🏽", "🇦🇹", "\n", "\r\n", "\"", "[SECRET]", "\x00", "\u200d", "e" + strings.Repeat("\u0301", 40)})
		text := strings.Join(rapid.SliceOfN(piece, 0, 400).Draw(t, "text"), "")
		checkShown(t, text, limit, rapid.Bool().Draw(t, "recall"))
	})
}

// A text around the limit, byte by byte.
func TestShownAroundTheLimit(t *testing.T) {
	for n := range 40 {
		for _, letter := range []string{"a", "é", "字", "😀", "e\u0301"} {
			checkShown(t, strings.Repeat("a", n)+strings.Repeat(letter, 300/len(letter)), 300, false)
		}
	}
}

func FuzzShown(f *testing.F) {
	f.Add("some text", 100, true)
	f.Add(strings.Repeat("👩‍👩‍👧", 30), 200, false)
	f.Add("[SECRET]"+strings.Repeat("x[SECRET]", 60), 300, true)
	f.Fuzz(func(t *testing.T, text string, limit int, recall bool) {
		checkShown(t, strings.ToValidUTF8(text, "\ufffd"), limit%5000, recall)
	})
}

// What of each kind of content is shown is a text, and files stay.
func TestShownContents(t *testing.T) {
	long := strings.Repeat("0123456789", 100)
	pdf := state.JSON(`[{"type":"resource","resource":{"uri":"file:///a","mimeType":"application/pdf","blob":"` + long + `"}}]`)
	screen := state.JSON(`{"type":"computer_screenshot","image_url":"data:image/png;base64,` + long + `"}`)
	image := state.JSON(`{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("QUJD", 500) + `"}`)
	brief := func(text string) state.JSON { // for a limit of 226
		return state.JSONText(text[:70] + fmt.Sprintf("\n[%d characters are left out here.]\n", len(text)-106) + text[len(text)-36:])
	}
	text := func(text string) string { return `{"type":"text","text":` + string(state.JSONText(text)) + `}` }
	for name, test := range map[string]struct{ content, want state.JSON }{
		"an object":           {state.JSON(`{"rows":"` + long + `"}`), brief(`{"rows":"` + long + `"}`)},
		"a list":              {state.JSON(`["` + long + `"]`), brief(`["` + long + `"]`)},
		"typed data":          {state.JSON(`[{"type":"book","title":"` + long + `"}]`), brief(`[{"type":"book","title":"` + long + `"}]`)},
		"a text part":         {state.JSON(`[` + text(long) + `]`), brief(long)},
		"a resource":          {state.JSON(`[{"type":"resource","resource":{"uri":"file:///a","text":"` + long + `"}}]`), brief(long)},
		"a text and an image": {state.JSON(`[` + text(long) + `,` + string(image) + `]`), state.JSON(`[{"type":"text","text":` + string(brief(long)) + `},` + string(image) + `]`)},
		"images between texts": {state.JSON(`[` + string(image) + `,` + text(long[:500]) + `,` + string(image) + `,` + text(long[1:500]) + `]`),
			state.JSON(`[{"type":"text","text":` + string(brief(long[:500]+"\n"+long[1:500])) + `},` + string(image) + `,` + string(image) + `]`)},
		"only an image":   {`[` + image + `]`, `[` + image + `]`},
		"a file of MCP":   {pdf, pdf},
		"a screen":        {screen, screen},
		"a number":        {"12", "12"},
		"nothing":         {"", "null"},
		"two short texts": {state.JSON(`[` + text("a") + `,` + text("b") + `]`), state.JSON(`[` + text("a") + `,` + text("b") + `]`)},
	} {
		t.Run(name, func(t *testing.T) {
			m := sized(226, test.content)
			got := shownOf(m, false)
			require.Empty(t, cmp.Diff(string(test.want), string(got.Content())))
			require.True(t, json.Valid([]byte(got.Raw())))
			require.LessOrEqual(t, transcript.EstimateTokens(got), transcript.EstimateTokens(m)+1)
		})
	}
}

// Errors stay errors, and members that are not a format's stay.
func TestShownKeepsTheRest(t *testing.T) {
	m, err := state.DecodeMessage([]byte(`{"type":"tool_result","role":"tool_result","tool":{"id":"c","name":"n","key":"k12345678901234"},"content":` +
		string(state.JSONText(strings.Repeat("x", 999))) + `,"is_error":true,"cache_control":{"type":"ephemeral"},"gemini":{"joined":true},"format:eino":{"extra":1},"shown":200}`))
	require.NoError(t, err)
	got := shownOf(m, true)
	require.True(t, got.IsError())
	require.Equal(t, m.(state.ToolResultMessage).Call(), got.Call())
	for name, want := range map[string]bool{"cache_control": true, "format:eino": true, "gemini": false, "shown": false} {
		_, has := got.Extra(name)
		require.Equal(t, want, has, name)
	}
	for _, odd := range []string{`"200"`, `null`, `{}`, `1.5`, `1e400`} {
		m, err := state.DecodeMessage([]byte(strings.Replace(string(m.Raw()), `"shown":200`, `"shown":`+odd, 1)))
		require.NoError(t, err)
		require.Equal(t, m, transcript.Shown([]state.Message{m}, true)[0], "it is another program's")
	}
	require.Nil(t, transcript.Shown(nil, true))
	require.Equal(t, []state.Message{nil, state.UserText("a")}, transcript.Shown([]state.Message{nil, state.UserText("a")}, true))
}

// One large result is no reason not to ask the model.
func TestWindowOfALargeResult(t *testing.T) {
	for name, content := range map[string]string{
		"words":   strings.Repeat("some words of a text. ", 100_000),
		"numbers": strings.Repeat("1234567,", 250_000),
		"rows":    strings.Repeat(`{"id":1234567,"name":"Ann","price":12.50}`+"\n", 40_000),
		"marks":   strings.Repeat("!@#$%^&*", 100_000),
		"CJK":     strings.Repeat("一二三四五", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			st := state.New(nil)
			call := state.ToolCall{ID: "c", Name: "read", Input: `{}`}
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("read"), state.ToolCalls(call), state.ToolResult(call, state.JSONText(content))}))
			w := &transcript.Window{Target: 16_000}
			msgs, err := w.Messages(t.Context(), st, 1000)
			require.NoError(t, err)
			require.Equal(t, content, msgs[2].Text(), "Shown cuts it, where it is known whether the agent has recall")
			shown := transcript.Shown(msgs, true)
			require.LessOrEqual(t, len(shown[2].Text()), 16<<10)
			require.Equal(t, transcript.EstimateTokens(shown[2]), transcript.EstimateTokens(msgs[2]))
			counted := 0
			w = &transcript.Window{Target: 16_000, Tokens: func(m state.Message) int { counted = max(counted, len(m.Raw())); return 1 }}
			_, err = w.Messages(t.Context(), st, 0)
			require.NoError(t, err)
			require.Less(t, counted, 40<<10, "a tokenizer is given what is shown")
		})
	}
}

// A repair that makes a text of a result says what is shown of it.
func TestRepairOfALargeResult(t *testing.T) {
	call := state.ToolCall{ID: "c", Name: "read", Input: `{}`}
	result := sized(300, state.JSONText(strings.Repeat("x", 5000)))
	thinking := transcript.Anthropic
	thinking.Thinking = true
	for name, test := range map[string]struct {
		msgs    []state.Message
		profile transcript.Profile
	}{
		"an orphan":                     {[]state.Message{state.UserText("a"), result, state.UserText("b")}, transcript.Anthropic},
		"a turn that did not think":     {[]state.Message{state.UserText("a"), state.ToolCalls(call), result}, thinking},
		"a result that is in its place": {[]state.Message{state.UserText("a"), state.ToolCalls(call), result}, transcript.Anthropic},
	} {
		msgs, changes := transcript.Repair(test.msgs, test.profile, transcript.Policy{KeepResults: true})
		require.Equal(t, name != "a result that is in its place", len(changes) > 0, name)
		all := ""
		for _, m := range transcript.Shown(msgs, false) {
			all += string(m.Raw())
		}
		require.Less(t, len(all), 1500, name)
		require.Contains(t, all, "characters are left out here", name)
	}
}
