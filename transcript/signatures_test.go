package transcript_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state/transcript"
	"github.com/stretchr/testify/require"
)

// Models of Gemini 3 demand a signature of the first call of each content, in
// the turn that goes on.
func TestThoughtSignatures(t *testing.T) {
	call := func(mark string, kept ...string) string {
		var tools []string
		for i, k := range kept {
			if k != "" {
				k = `,"gemini":{"more":{` + k + `}}`
			}
			tools = append(tools, `{"name":"f`+strings.Repeat("f", i)+`"`+k+`}`)
		}
		return `{"type":"tool_call","role":"assistant","tools":[` + strings.Join(tools, ",") + `]` + mark + `}`
	}
	const own, signed, old, result = `,"gemini":{}`, `"thoughtSignature":"c2ln"`, `"thought_signature":"c2ln"`,
		`{"type":"tool_result","role":"tool_result","tool":{"name":"f"},"content":{},"gemini":{}}`
	second := strings.Replace(result, `"f"`, `"ff"`, 1)
	for _, row := range []struct {
		name string
		msgs []string
		want string
	}{
		{"a signature", []string{user, call(own, signed), result}, ""},
		{"its other spelling", []string{user, call(own, old), result}, ""},
		{"none", []string{user, call(own, ""), result}, "1:signature"},
		{"an empty one", []string{user, call(own, `"thoughtSignature":""`), result}, "1:signature"},
		{"of the first of two calls", []string{user, call(own, signed, ""), result, second}, ""},
		{"of the second of two calls", []string{user, call(own, "", signed), result, second}, "1:signature"},
		{"none in a later content", []string{user, call(own, signed), result, call(own, ""), result}, "3:signature"},
		{"none in a turn that has ended", []string{user, call(own, ""), result, say, user}, ""},
		{"a call from elsewhere", []string{user, call("", ""), result}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := decodeAll(t, row.msgs...)
			strict := thoughtSignatures(transcript.Gemini)
			require.Equal(t, row.want, refused(transcript.Check(msgs, strict)))
			for _, profile := range []transcript.Profile{transcript.Gemini, thoughtSignatures(transcript.OpenAI)} {
				require.NotContains(t, refused(transcript.Check(msgs, profile)), "signature")
			}
			repaired, changes := transcript.Repair(msgs, strict, transcript.Policy{})
			require.Equal(t, row.want, ruled(changes))
			require.Empty(t, transcript.Check(repaired, strict))
			if row.want != "" {
				require.Contains(t, short(repaired)+string(repaired[1].Raw())+string(repaired[len(repaired)-2].Raw()), `"thoughtSignature":"skip_thought_signature_validator"`)
			}
		})
	}
}

// A request of the Messages API has at most four breakpoints of the prompt
// cache. The first and the last ones stay.
func TestBreakpoints(t *testing.T) {
	const mark = `"cache_control":{"type":"ephemeral"}`
	part := func(text string) string { return `{"type":"text","text":"` + text + `",` + mark + `}` }
	text := func(parts ...string) string {
		return `{"type":"text","role":"user","content":[` + strings.Join(parts, ",") + `],"anthropic":{}}`
	}
	const call = `{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f","anthropic":{"more":{` + mark + `}}}],"anthropic":{}}`
	const result = `{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":[{"type":"text","text":"c",` + mark + `}],"anthropic":{"part":{"more":{` + mark + `}}}}`
	for _, row := range []struct {
		name string
		msgs []string
		want string // the findings
		left string // the parts of texts with breakpoints after the repair
	}{
		{"four", []string{text(part("a")), call, result}, "", "a"},
		{"null counts nothing", []string{text(part("a"), part("b"), part("c"), part("d")), strings.ReplaceAll(text(part("e")), `{"type":"ephemeral"}`, "null")}, "", "abcd"},
		{"five in one message", []string{text(part("a"), part("b"), part("c"), part("d"), part("e"))}, "0:cache-control", "acde"},
		{"seven", []string{text(part("a"), part("b")), text(part("c"), part("d")), text(part("e")), text(part("f"), part("g"))}, "0:cache-control 1:cache-control", "aefg"},
		{"in calls and results", []string{text(part("a")), call, result, text(part("d"), part("e"))}, "1:cache-control 2:cache-control", "ade"},
		{"of a program", []string{`{"type":"text","role":"user","content":[` + part("a") + `]}`,
			`{"type":"tool_call","role":"assistant","tools":[{"id":"1","name":"f",` + mark + `}]}`,
			`{"type":"tool_result","role":"tool_result","tool":{"id":"1","name":"f"},"content":"",` + mark + `}`,
			text(part("b"), part("c"), part("d"))}, "1:cache-control 2:cache-control", "abcd"},
		{"of another provider", []string{strings.ReplaceAll(text(part("a"), part("b"), part("c"), part("d"), part("e")), "anthropic", "openai")}, "0:cache-control", "acde"},
	} {
		t.Run(row.name, func(t *testing.T) {
			msgs := decodeAll(t, row.msgs...)
			require.Equal(t, row.want, refused(transcript.Check(msgs, transcript.Anthropic)))
			repaired, changes := transcript.Repair(msgs, transcript.Anthropic, transcript.Policy{})
			require.Equal(t, row.want, ruled(changes))
			require.Empty(t, transcript.Check(repaired, transcript.Anthropic))
			left := ""
			for _, m := range repaired {
				for _, piece := range strings.SplitAfter(string(m.Raw()), `,"cache_control":{`) {
					if before, ok := strings.CutSuffix(piece, `","cache_control":{`); ok && m.Type() == "text" {
						left += before[len(before)-1:]
					}
				}
			}
			require.Equal(t, row.left, left)
		})
	}
}
