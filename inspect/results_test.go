package inspect_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentstate/state"
	"github.com/stretchr/testify/require"
)

type resultJSON struct {
	Index int
	Agent string
	Stop  string
	Calls int
	Usage *struct {
		Format, Model string
		Input, Output int
	}
	Previous int
	Kept     int `json:"kept_messages"`
	Gone     int `json:"gone_messages"`
	New      *chatJSON
	Prompt   *chatJSON
	History  *chatJSON
	Output   chatJSON
	Raw      *struct{ Text string }
}

// openAIResponse is a response of Chat Completions.
func openAIResponse(in, out int) string {
	return fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4.1-mini","choices":[{"index":0,`+
		`"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`, in, out)
}

// think lets an agent of a workspace call a model once.
func (f *fixture) think(t testing.TB, user, agent string, r state.InferenceResult) {
	t.Helper()
	f.update(t, user, func(st *state.State) error { return st.As(agent).History().Append(r) })
}

func texts(c chatJSON) []string {
	list := []string{}
	for _, turn := range c.Turns {
		for _, m := range turn.Messages {
			list = append(list, m.Text.Text)
		}
	}
	return list
}

func TestResultsShowTokensAndTimes(t *testing.T) {
	f := newFixture(t, 0)
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.think(t, "model", "support", state.InferenceResult{
		Raw: openAIResponse(412, 31), Output: []state.Message{state.AssistantText("hi")}, StartedAt: started, CreatedAt: started.Add(1500 * time.Millisecond),
	})
	f.think(t, "model", "billing", state.InferenceResult{Output: []state.Message{state.ToolCalls(state.ToolCall{ID: "1", Name: "refund"})}})
	h := f.handler(t, nil)
	p := get(t, h, "/workspace/results?user=model")
	require.Contains(t, p.body, "412 tokens in and 31 out")
	require.Contains(t, p.body, "gpt-4.1-mini")
	require.Contains(t, p.body, "2026-01-02 03:04:05")
	require.Contains(t, p.body, ">1.5 s<")
	var data struct{ Results []resultJSON }
	jsonOf(t, h, "/workspace/results?user=model", &data)
	require.Len(t, data.Results, 2)
	require.Equal(t, []string{"billing", "support"}, []string{data.Results[0].Agent, data.Results[1].Agent})
	require.Nil(t, data.Results[0].Usage)
	require.Equal(t, 1, data.Results[0].Calls)
	require.Equal(t, "OpenAI", data.Results[1].Usage.Format)
	require.Equal(t, "stop", data.Results[1].Stop)

	f.think(t, "stops", "billing", state.InferenceResult{Stop: state.StopLength, StopWord: "max_tokens"})
	f.think(t, "stops", "billing", state.InferenceResult{Stop: state.StopCalls, StopWord: "tool_use"})
	jsonOf(t, h, "/workspace/results?user=stops", &data)
	require.Equal(t, []string{"calls", "length: max_tokens"}, []string{data.Results[0].Stop, data.Results[1].Stop})

	require.Contains(t, get(t, h, "/workspace/results?user=..").body, "No results")
	require.Equal(t, http.StatusNotFound, get(t, h, "/workspace/result?n=2&user=model").code)
	require.Equal(t, http.StatusNotFound, get(t, h, "/workspace/result?user=model&n=-1").code)
	require.Equal(t, http.StatusNotFound, get(t, h, "/workspace/result?user=model&n=x").code)
	require.Equal(t, http.StatusNotFound, get(t, h, "/workspace/result?n=1&user=model&at=1").code)
	jsonOf(t, h, "/workspace/results?user=model&at=1", &data)
	require.Len(t, data.Results, 1)
}

// The counts of a result are shown also if the raw response was not kept.
func TestResultsShowUsageWithoutARawResponse(t *testing.T) {
	f := newFixture(t, 0)
	f.think(t, "model", "support", state.InferenceResult{
		Usage: state.Usage{Input: 7, Output: 2}, Output: []state.Message{state.AssistantText("hi")},
	})
	h := f.handler(t, nil)
	require.Contains(t, get(t, h, "/workspace/results?user=model").body, `<td data-label="Model">–</td>`)
	require.Contains(t, get(t, h, "/workspace/result?n=0&user=model").body, `<dt>Model</dt><dd><bdi>–</bdi>`)
	var data struct{ Results []resultJSON }
	jsonOf(t, h, "/workspace/results?user=model", &data)
	require.Equal(t, 7, data.Results[0].Usage.Input)
	require.Equal(t, 2, data.Results[0].Usage.Output)
	require.Empty(t, data.Results[0].Usage.Model)
}

// An agent that may not read the conversation sees its own results only.
func TestResultsOfAgent(t *testing.T) {
	f := newFixture(t, 0)
	f.think(t, "model", "support", state.InferenceResult{Output: []state.Message{state.AssistantText("by support")}})
	h := f.handler(t, nil)
	var data struct{ Results []resultJSON }
	jsonOf(t, h, "/workspace/results?user=model&as=billing", &data)
	require.Len(t, data.Results, 1)
	jsonOf(t, h, "/workspace/results?user=model&as=stranger", &data)
	require.Empty(t, data.Results)
	require.Equal(t, http.StatusNotFound, get(t, h, "/workspace/result?n=0&user=model&as=stranger").code)
}

func TestResultShowsWhatIsNew(t *testing.T) {
	f := newFixture(t, 0)
	one, two, three := state.UserText("one"), state.AssistantText("two"), state.UserText("three")
	call := state.ToolCall{ID: "1", Name: "find"}
	f.think(t, "model", "support", state.InferenceResult{History: []state.Message{one}, Output: []state.Message{two}})
	f.think(t, "model", "billing", state.InferenceResult{History: []state.Message{three}})
	f.think(t, "model", "support", state.InferenceResult{
		Prompt: []state.Message{state.SystemText("Be brief.")}, History: []state.Message{one, two, three},
		Output: []state.Message{state.ToolCalls(call)}, ToolCalls: []state.ToolResultMessage{state.ToolResult(call, `"found"`)}, Raw: `{"model":"m"}`,
	})
	f.think(t, "model", "support", state.InferenceResult{History: []state.Message{one, three}})
	h := f.handler(t, nil)
	var data resultJSON
	jsonOf(t, h, "/workspace/result?n=2&user=model", &data)
	require.Equal(t, []string{"two", "three"}, texts(*data.New))
	require.Equal(t, []int{0, 1, 0}, []int{data.Previous, data.Kept, data.Gone})
	require.Equal(t, "found", data.Output.Turns[0].Messages[0].Calls[0].Result.Text.Text)
	require.Nil(t, data.Prompt)
	require.Nil(t, data.Raw)
	p := get(t, h, "/workspace/result?n=2&user=model")
	require.NotContains(t, p.body, "Be brief.")

	for open, want := range map[string]string{"prompt": "Be brief.", "history": "one", "raw": "&#34;model&#34;: &#34;m&#34;"} {
		require.Contains(t, get(t, h, "/workspace/result?n=2&user=model&open="+open).body, want, open)
	}
	data = resultJSON{}
	jsonOf(t, h, "/workspace/result?n=3&user=model", &data)
	require.Equal(t, []int{2, 1, 2}, []int{data.Previous, data.Kept, data.Gone})
	require.Equal(t, []string{"three"}, texts(*data.New))
	data = resultJSON{}
	jsonOf(t, h, "/workspace/result?n=0&user=model", &data)
	require.Equal(t, -1, data.Previous)
	require.Equal(t, []string{"one"}, texts(*data.New))
}

func TestResultsShowNoSecrets(t *testing.T) {
	f := newFixture(t, 0)
	f.update(t, "alice", func(st *state.State) error {
		r := state.InferenceResult{
			ID: mailToken, Input: "pay " + cardNumber, Prompt: []state.Message{state.SystemText("The card is " + cardNumber)},
			History: []state.Message{state.UserText(mailToken)}, Output: []state.Message{state.AssistantText(cardNumber)},
			Raw: `{"model":"` + mailToken + `","id":"` + cardNumber + `","choices":[]}`,
		}
		return st.As("support").History().AppendOutside(r)
	})
	h := f.handler(t, nil)
	pages := crawl(t, h, 150, "/workspace/results?user=alice", "/workspace/export?user=alice&result=2")
	require.Greater(t, len(pages), 20)
	for _, p := range pages {
		require.NotContains(t, p.body, cardNumber, p.target)
		require.NotContains(t, p.body, mailToken, p.target)
	}
	blind := newHandler(t, f.open(t, nil), nil)
	require.NotContains(t, get(t, blind, "/workspace/result?n=0&user=alice&open=raw").body, "test")
}

func TestResultIsBounded(t *testing.T) {
	const maxPage = 128 << 10
	f := newFixture(t, 0)
	var history []state.Message
	for range 300 {
		history = append(history, state.UserText(strings.Repeat(`"<&'`, 1000)))
	}
	f.think(t, "model", "support", state.InferenceResult{
		History: history, Output: history, Prompt: history, Raw: `{"text":"` + strings.Repeat("x", 8<<20) + `"}`,
	})
	for range 60 {
		f.think(t, "model", "billing", state.InferenceResult{ID: strings.Repeat("i", 1000), Raw: openAIResponse(1, 1)})
	}
	h := f.handler(t, nil)
	for _, open := range []string{"", "prompt", "history", "history.299", "output.299.json", "new.299", "raw"} {
		p := get(t, h, "/workspace/result?n=0&user=model&open="+open)
		require.Equal(t, http.StatusOK, p.code)
		require.LessOrEqual(t, len(p.body), maxPage, open)
	}
	p := get(t, h, "/workspace/results?user=model")
	require.LessOrEqual(t, len(p.body), maxPage)
	require.Contains(t, p.body, "61 results")
	require.Contains(t, get(t, h, "/workspace/results?user=model&skip=50").body, "/result?n=0&amp;")
}
