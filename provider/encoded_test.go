package provider_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/origin"
	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/internal/test/histories"
	"github.com/agentstate/state/provider"
)

// oddities are messages that are encoded with others, or as their place wants it: what
// stands for a list, prompts, texts that say nothing, calls that are no functions with
// results that do not say so, pictures in results, and results that are too large.
func oddities(t *testing.T) (odd [][]state.Message) {
	long := strings.Repeat("Only this. ", 30)
	for _, from := range []struct {
		format *provider.Format
		body   string
	}{
		{provider.Gemini, `{"contents":{"role":"user","parts":[{"text":"Only this."}]}}`},
		{provider.Gemini, `{"contents":{"role":"user","parts":{"text":"` + long + `"}}}`},
		{provider.Gemini, `{"system_instruction":{"parts":[{"text":"Be kind."}]},"contents":[{"parts":[{"text":"Hi"}]}]}`},
		{provider.Gemini, `{"systemInstruction":"Be kind.","contents":[{"role":"model","parts":[{"thought":true,"text":"Hm"},{"functionCall":{"name":"f","args":{}}}]}]}`},
		{provider.Anthropic, `{"system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],"messages":[]}`},
		{provider.Anthropic, `{"messages":[{"role":"assistant","content":[{"type":"text","text":" "},{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"new","x":[1]}]}]}`},
		{provider.OpenAIResponses, `{"instructions":"Be kind.","input":"` + long + `"}`},
		{provider.OpenAIResponses, `{"input":[{"type":"shell_call","id":"s","call_id":"c1","action":{"commands":["ls"]},"status":"completed"},{"type":"reasoning","id":"rs_1","summary":[]}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"custom_tool_call","call_id":"c1","name":"patch","input":"x"},{"type":"function_call","call_id":"c2","name":"f","arguments":"{}"}]}`},
		{provider.OpenAIResponses, `{"input":[{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}]}`},
		{provider.OpenAI, `{"messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"x"}]}`},
	} {
		r, err := from.format.DecodeRequest([]byte(from.body))
		require.NoError(t, err, from.body)
		odd = append(odd, r.Messages)
	}
	picture := state.JSON(`[{"type":"text","text":"here"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]`)
	large, err := state.DecodeMessage([]byte(`{"type":"tool_result","role":"tool","tool":{"id":"c1","name":"f"},"content":"` + strings.Repeat("word ", 80) + `","shown":200}`))
	require.NoError(t, err)
	nothing, err := state.DecodeMessage([]byte(`{"type":"text","role":"user","content":null,"gemini":{}}`))
	require.NoError(t, err)
	prompt, err := state.DecodeMessage([]byte(`{"type":"gemini.systemInstruction","role":"system","item":{"parts":[{"text":"Be kind."}]}}`))
	require.NoError(t, err)
	return append(odd, []state.Message{nothing}, []state.Message{prompt}, []state.Message{state.ToolCalls()},
		[]state.Message{state.ToolResult(state.ToolCall{ID: "c1", Name: "f"}, picture)},
		[]state.Message{state.ToolResult(state.ToolCall{ID: "c1", Name: "f"}, picture), state.ToolResult(state.ToolCall{ID: "c2", Name: "f"}, `"x"`)},
		[]state.Message{state.ToolResult(state.ToolCall{ID: "c1", Name: "f"}, `"done"`)},
		[]state.Message{large}, []state.Message{state.Text("assistant", "")}, []state.Message{state.Text("assistant", " ")},
		[]state.Message{state.ToolCalls(state.ToolCall{ID: "c1", Name: "f", Input: `{}`})}, []state.Message{state.SystemText("")},
		[]state.Message{state.Text("critic", "No.")}, []state.Message{state.SystemText("Be brief.")},
	)
}

// edited returns a conversation after one of the things that happen to one.
func edited(rng *rand.Rand, msgs []state.Message, odd [][]state.Message, format string) []state.Message {
	msgs = slices.Clone(msgs)
	at := func() int { return rng.IntN(len(msgs) + 1) }
	more := odd[rng.IntN(len(odd))]
	if rng.IntN(2) == 0 {
		more = histories.Valid(rng, format)
	}
	switch rng.IntN(10) {
	case 0: // trimmed
		return msgs[at():]
	case 1: // branched
		return append(msgs[:at()], more...)
	case 2: // something is put between
		return slices.Insert(msgs, at(), more...)
	case 3: // cut out
		from := at()
		return slices.Delete(msgs, from, from+rng.IntN(len(msgs)-from+1))
	case 4: // edited
		if i := at(); i < len(msgs) && len(more) > 0 {
			msgs[i] = more[0]
		}
		return msgs
	case 5: // the same, read again
		for i, m := range msgs {
			msgs[i], _ = state.DecodeMessage([]byte(m.Raw()))
		}
		return msgs
	}
	return append(msgs, more...)
}

// A request of which the one before is known is the same, byte for byte, as one that is
// encoded afresh, whatever has happened to the conversation, the format or the tools.
func TestNextRequestsAreEncodedAlike(t *testing.T) {
	odd, seed := oddities(t), effort.LogSeed(t)
	marks := map[*provider.Format]string{
		provider.OpenAI: origin.OpenAI, provider.OpenAIResponses: origin.OpenAIResponses,
		provider.Anthropic: origin.Anthropic, provider.Gemini: origin.Gemini,
	}
	formats := []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini}
	for i := range effort.Runs(1600) {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		format := formats[rng.IntN(len(formats))]
		var before *provider.Encoded
		r := provider.Request{Settings: `{"model":"m"}`}
		described := func() string { return "the first request" }
		for range 8 {
			switch rng.IntN(12) {
			case 0:
				format = formats[rng.IntN(len(formats))]
			case 1:
				r.Pictures = !r.Pictures
			case 2:
				r.Tools = nil
			case 3:
				r.Tools = []provider.Tool{{Name: "recall", Schema: `{"type":"object"}`}}
			}
			for len(r.Messages) == 0 || rng.IntN(3) > 0 {
				valid := histories.Valid(rng, marks[format])
				if r.Messages = edited(rng, r.Messages, odd, marks[format]); len(r.Messages) == 0 {
					r.Messages = append(r.Messages, valid...)
				}
			}
			earlier, now, of := described, r, format
			now.Messages = slices.Clone(r.Messages)
			described = func() string {
				return fmt.Sprint(of, " ", now.Pictures, " ", len(now.Tools), "\n", histories.Render(now.Messages))
			}
			want, wantOmitted, err := format.EncodeRequest(r)
			require.NoError(t, err)
			body, omitted, next, err := format.EncodeNext(internal.Key{}, r, before)
			require.NoError(t, err)
			if string(want) != string(body) { // which would be described at length
				t.Fatalf("case %d: %s\n%s\nwant %s\ngot  %s", i, earlier(), described(), want, body)
			}
			require.Equal(t, wantOmitted, omitted, "case %d", i)
			before = next
		}
	}
}

// What the request before had is not encoded again: the work is that of the end.
func TestNextRequestsEncodeTheEnd(t *testing.T) {
	for format, body := range map[*provider.Format]string{
		provider.OpenAI: `{"messages":[{"role":"system","content":"Be kind."},%s]}`, provider.Anthropic: `{"system":"Be kind.","messages":[%s]}`,
		provider.OpenAIResponses: `{"instructions":"Be kind.","input":[%s]}`, provider.Gemini: `{"systemInstruction":{"parts":[{"text":"Be kind."}]},"contents":[%s]}`,
	} {
		entry := `{"role":"user","content":"%s"},{"role":"assistant","content":"It is."}`
		if format == provider.Gemini {
			entry = `{"role":"user","parts":[{"text":"%s"}]},{"role":"model","parts":[{"text":"It is."}]}`
		}
		entry = fmt.Sprintf(entry, strings.Repeat("Is it? ", 10))
		r, err := format.DecodeRequest(fmt.Appendf(nil, body, strings.Repeat(entry+",", 400)+entry))
		require.NoError(t, err)
		whole := r.Messages
		allocations := func(before *provider.Encoded) float64 {
			return testing.AllocsPerRun(3, func() {
				_, _, _, err := format.EncodeNext(internal.Key{}, r, before)
				require.NoError(t, err)
			})
		}
		afresh := allocations(nil)
		require.Greater(t, afresh, 1000., format)
		for _, earlier := range [][]state.Message{whole[:len(whole)-1], whole, append(slices.Clone(whole[:len(whole)-2]), state.UserText("an edit"))} {
			_, _, before, err := format.EncodeNext(internal.Key{}, provider.Request{Messages: earlier}, nil)
			require.NoError(t, err)
			require.Less(t, allocations(before), afresh/10, format)
		}
		_, _, before, err := format.EncodeNext(internal.Key{}, provider.Request{Messages: whole[1:]}, nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, allocations(before), afresh*0.9, "%s: it begins otherwise", format)
	}
}
