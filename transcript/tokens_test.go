package transcript_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/transcript"
)

// What o200k_base makes of texts of many kinds.
func TestEstimateOfTexts(t *testing.T) {
	none := transcript.EstimateTokens(state.UserText(""))
	for text, tokens := range map[string]int{
		"It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, it was the epoch of belief, it was the epoch of incredulity.":                                                     45,
		"func (s *sight) at(i int) state.Message {\n\tfor _, m := range s.from(i) {\n\t\treturn m\n\t}\n\treturn nil\n}\n":                                                                                                               34,
		`{"flights":[{"number":"DY1872","from":"OSL","to":"FCO","departs":"2026-11-26T07:05:00Z","price":99.5,"seats_left":4},{"number":"AZ1483","from":"OSL","to":"FCO","departs":"2026-11-26T12:40:00Z","price":149,"seats_left":0}]}`: 94,
		"| Package | Purpose |\n|---|---|\n| `wire` | Requests of any SDK |\n| `transcript` | Checks, repairs and windows |\n\n- **Max** is a choice of cost.\n- **Keep** is half of it.\n":                                              51,
		"2026-11-26 22:04:11.482 ERROR [worker-7] http://10.0.0.12:8080/v1/jobs/83a1f2 timed out after 30000 ms (attempt 3/5)\n":                                                                                                         55,
		"Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de conscience et doivent agir les uns envers les autres dans un esprit de fraternité.":                                     41,
		"Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства.":                                                               41,
		"يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً وعليهم أن يعامل بعضهم بعضاً بروح الإخاء.":                                                                                                           43,
		"人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。":                                                                                                                                                                                    35,
		"すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。":                                                                                                                                                                                     35,
	} {
		require.InEpsilon(t, tokens, transcript.EstimateTokens(state.UserText(text))-none, 0.13, text)
	}
}

// Names of members, ids and data are not what a model reads.
func TestEstimateOfMessages(t *testing.T) {
	require.Zero(t, transcript.EstimateTokens(nil))
	parts := func(json string) state.Message {
		m, err := state.Parts("user", state.JSON(json))
		require.NoError(t, err)
		return m
	}
	data, prose := strings.Repeat("iVBORw0K", 50_000), strings.Repeat("the quick brown fox ", 200)
	call := state.ToolCall{ID: "call_0123456789abcdef", Name: "look", Input: `{"at":"the quick brown fox"}`}
	served, err := provider.Gemini.DecodeRequest([]byte(`{"contents":[
		{"role":"user","parts":[{"text":"look"}]},
		{"role":"model","parts":[{"functionCall":{"name":"look","args":{}},"thoughtSignature":"` + data[:6000] + `"}]},
		{"role":"user","parts":[{"functionResponse":{"name":"look","response":{},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + data + `"}}]}}]}]}`))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		m        state.Message
		from, to int
	}{
		"text":            {state.UserText("Hello, Ann!"), 4, 12},
		"prose":           {state.UserText(prose), 760, 840},
		"part of prose":   {parts(`{"type":"text","text":"` + prose + `"}`), 760, 840},
		"call":            {state.ToolCalls(call), 15, 30},
		"result":          {state.ToolResult(call, state.JSONText(prose)), 760, 840},
		"data of a tool":  {state.ToolResult(call, `[{"id":"DY1872"},{"id":"AZ1483"}]`), 20, 45},
		"picture":         {parts(`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}`), 1000, 1200},
		"link to one":     {parts(`{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`), 1000, 1200},
		"document":        {parts(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + data + `"}}`), 1000, 1200},
		"text document":   {parts(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"` + prose + `"}}`), 760, 840},
		"search result":   {parts(`{"type":"web_search_result","url":"https://example.com/a","title":"A fox"}`), 8, 30},
		"picture of tool": {state.ToolResult(call, state.JSON(`[{"type":"image","data":"`+data+`","mimeType":"image/png"}]`)), 1000, 1200},
		"file of Gemini":  {served.Messages[2], 1000, 1200},
		"sealed thought":  {served.Messages[1], 1000, 1050},
	} {
		require.GreaterOrEqual(t, transcript.EstimateTokens(c.m), c.from, name)
		require.LessOrEqual(t, transcript.EstimateTokens(c.m), c.to, name)
	}
}

// takenFor returns for how many tokens a window takes the next request.
func takenFor(t *testing.T, st *state.State) int {
	t.Helper()
	least, most := 1, 1<<20
	for least < most {
		max := (least + most) / 2
		if _, err := (&transcript.Window{Target: max, Keep: 1}).Messages(t.Context(), st.Snapshot(), 0); err != nil {
			least = max + 1
		} else {
			most = max
		}
	}
	return least
}

func answer(t *testing.T, st *state.State, usage state.Usage, output ...state.Message) {
	t.Helper()
	require.NoError(t, st.History().Append(state.InferenceResult{Output: output, Usage: usage}))
}

// Reasoning that goes back to the model is dropped by providers when the user
// speaks, that of all answers in the turn.
func TestReasoningCountsUntilTheUserSpeaks(t *testing.T) {
	st := state.New(nil)
	say := func(m state.Message) { require.NoError(t, state.Messages.Set(st, []state.Message{m})) }
	thinks := func(i int) (state.Message, state.ToolCall) {
		call := state.ToolCall{ID: fmt.Sprint("c", i), Name: "look", Input: `{}`, Extra: `{"gemini":{"more":{"thoughtSignature":"sealed"}}}`}
		return state.ToolCalls(call), call
	}
	say(state.UserText("look"))
	first, call := thinks(1)
	answer(t, st, state.Usage{Input: 2000, Output: 710, Reasoning: 700}, first)
	say(state.ToolResult(call, `"a"`))
	require.InDelta(t, 2710, takenFor(t, st), 20)
	second, call := thinks(2)
	answer(t, st, state.Usage{Input: 2720, Output: 510, Reasoning: 500}, second)
	say(state.ToolResult(call, `"b"`))
	require.InDelta(t, 3230, takenFor(t, st), 20)
	say(state.UserText("and now?"))
	require.InDelta(t, 2030, takenFor(t, st), 40)

	// Reasoning that the answer does not have is not sent at all.
	answer(t, st, state.Usage{Input: 2030, Output: 110, Reasoning: 100}, state.ToolCalls(state.ToolCall{ID: "c3", Name: "look", Input: `{}`}))
	say(state.ToolResult(state.ToolCall{ID: "c3", Name: "look"}, `"c"`))
	require.InDelta(t, 2040, takenFor(t, st), 20)
}

// A provider that calls tools of its own reports the sum of the requests that it
// has made, and the next request has their results.
func TestTokensOfServedTools(t *testing.T) {
	found := strings.Repeat("the quick brown fox ", 100) // 400 tokens
	anthropic, err := provider.Anthropic.DecodeResponse([]byte(`{"type":"message","role":"assistant","model":"m","content":[
		{"type":"text","text":"I look."},
		{"type":"server_tool_use","id":"s1","name":"web_fetch","input":{}},
		{"type":"web_fetch_tool_result","tool_use_id":"s1","content":{"type":"text","text":"` + found + `"}},
		{"type":"text","text":"It is there."}],
		"stop_reason":"end_turn","usage":{"input_tokens":6400,"output_tokens":50}}`))
	require.NoError(t, err)
	responses, err := provider.OpenAIResponses.DecodeResponse([]byte(`{"object":"response","status":"completed","output":[
		{"type":"mcp_call","id":"mcp_1","server_label":"docs","name":"look","arguments":"{}","output":"` + found + `"},
		{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is there.","annotations":[]}]}],
		"usage":{"input_tokens":6400,"output_tokens":50}}`))
	require.NoError(t, err)
	for _, result := range []state.InferenceResult{anthropic, responses} {
		st := state.New(nil)
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("look")}))
		require.NoError(t, st.History().Append(result)) // 3 000, and 3 400
		require.InDelta(t, 3450, takenFor(t, st), 20)
	}
}

// showsAll reports whether a window with a Target shows all messages.
func showsAll(t *testing.T, st *state.State, target int) bool {
	t.Helper()
	msgs, err := (&transcript.Window{Target: target, Keep: 1}).Messages(t.Context(), st.Snapshot(), 0)
	return err == nil && len(msgs) == len(state.Messages.GetOr(st, nil))
}

// What a provider's own search has read is in its report, and not in the next
// request: what was known before counts.
func TestWindowDoesNotBelieveTheReportOfASearch(t *testing.T) {
	prose := strings.Repeat("the quick brown fox ", 5000) // 20 000 tokens
	searched, err := provider.OpenAIResponses.DecodeResponse([]byte(`{"object":"response","status":"completed","output":[
		{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"fox"}},
		{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"It is there.","annotations":[]}]}],
		"usage":{"input_tokens":17391,"output_tokens":50}}`))
	require.NoError(t, err)
	for _, c := range []struct {
		name             string
		before, reported int
		known            int
	}{
		{"the first answer", 0, 17_391, 100},
		{"a long one", 28_000, 200_000, 28_160},
		{"little was found", 28_000, 57_000, 28_700},
	} {
		st := state.New(nil)
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("look")}))
		if c.before > 0 {
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(prose)}))
			answer(t, st, state.Usage{Input: c.before, Output: 5}, state.AssistantText("Yes."))
			require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("search")}))
		}
		result := searched
		result.Usage.Input = c.reported
		require.NoError(t, st.History().Append(result))
		require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText("and now?")}))
		require.True(t, showsAll(t, st, c.known*11/10), c.name)
		if c.before > 0 {
			require.False(t, showsAll(t, st, c.known*9/10), c.name)
		}
	}
}

// Of new messages there are as many more tokens than estimated as of those that
// the provider has counted.
func TestWindowLearnsTheTokenizer(t *testing.T) {
	prose := strings.Repeat("the quick brown fox ", 5000) // 20 000 tokens
	st := state.New(nil)
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(prose)}))
	require.InEpsilon(t, 20_000, takenFor(t, st), 0.05)
	answer(t, st, state.Usage{Input: 28_000, Output: 5}, state.AssistantText("Yes."))
	require.NoError(t, state.Messages.Set(st, []state.Message{state.UserText(prose)}))
	require.InEpsilon(t, 56_000, takenFor(t, st), 0.05)

	// A tokenizer of the program's own is believed.
	counted := &transcript.Window{Target: 48_100, Keep: 1, Tokens: func(m state.Message) int { return len(strings.Fields(m.(state.TextMessage).Text())) }}
	_, err := counted.Messages(context.Background(), st, 0)
	require.NoError(t, err)
}
