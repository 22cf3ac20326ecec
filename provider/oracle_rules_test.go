package provider_test

import (
	"strings"
	"testing"

	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// oracleRow is what is wrong with a conversation, "" if nothing is.
type oracleRow struct{ rule, entries string }

// TestOracle shows each oracle a body for each rule of its provider.
func TestOracle(t *testing.T) {
	for _, table := range []struct {
		format *provider.Format
		member string // of the entries
		words  []string
		rows   []oracleRow
	}{
		{provider.OpenAI, "messages", []string{
			"USER", `{"role":"user","content":"Hi"}`,
			"CALL", `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			"RESULT", `{"role":"tool","tool_call_id":"c1","content":""}`,
		}, []oracleRow{
			{"", ``},
			{"", `USER,CALL,RESULT,CALL,RESULT`},
			{"", `{"role":"assistant","refusal":"No."}`},
			{"", `{"role":"assistant","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"f","input":"x"}}]},RESULT`},
			{"unanswered-call", `USER,CALL`},
			{"unanswered-call", `USER,CALL,USER,RESULT`},
			{"unanswered-call", `CALL,CALL,RESULT,RESULT`},
			{"orphan-result", `USER,RESULT`},
			{"orphan-result", `USER,CALL,RESULT,RESULT`},
			{"role", `{"role":"model","content":"Hi"}`},
			{"name", `{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"f f","arguments":"{}"}}]},RESULT`},
			{"id", `{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`},
			{"id", `{"role":"assistant","tool_calls":[{"id":"01234567890123456789012345678901234567890123456789012345678901234","function":{"name":"f","arguments":"{}"}}]}`},
			{"shape", `{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"f","arguments":{}}}]}`},
			{"shape", `{"role":"assistant","content":"Hi","tool_calls":{}}`},
			{"duplicate-id", `{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"f","arguments":""}},{"id":"c1","function":{"name":"f","arguments":""}}]}`},
			{"content", `{"role":"user","content":null}`},
			{"content", `{"role":"user"}`},
			{"content", `{"role":"assistant","content":null}`},
			{"content", `{"role":"user","content":[{"type":"input_text","text":"Hi"}]}`},
			{"content", `CALL,{"role":"tool","tool_call_id":"c1","content":{}}`},
		}},
		{provider.OpenAIResponses, "input", []string{
			"USER", `{"role":"user","content":"Hi"}`,
			"CALL", `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`,
			"RESULT", `{"type":"function_call_output","call_id":"c1","output":""}`,
			"REASONING", `{"type":"reasoning","id":"rs_1","summary":[]}`,
		}, []oracleRow{
			{"", ``},
			{"", `CALL,USER,RESULT,CALL,RESULT`},
			{"", `REASONING,CALL,RESULT`},
			{"", `REASONING,{"type":"message","id":"msg_1","role":"assistant","content":"Hi"}`},
			{"reasoning", `REASONING,{"role":"assistant","content":"Hi"}`},
			{"", `{"type":"tool_search_call","call_id":"c1","arguments":{}},RESULT`},
			{"unanswered-call", `CALL`},
			{"unanswered-call", `CALL,USER`},
			{"orphan-result", `RESULT,CALL`},
			{"orphan-result", `CALL,RESULT,RESULT`},
			{"duplicate-id", `CALL,CALL,RESULT,RESULT`},
			{"role", `{"role":"tool","content":"Hi"}`},
			{"name", `{"type":"function_call","call_id":"c1","name":"","arguments":"{}"}`},
			{"id", `{"type":"function_call","name":"f","arguments":"{}"}`},
			{"id", `{"type":"function_call_output","output":""}`},
			{"shape", `{"type":"function_call","call_id":"c1","name":"f","arguments":{}}`},
			{"content", `{"role":"user","content":[{"type":"output_text","text":"Hi"}]}`},
			{"content", `{"role":"assistant","content":[{"type":"input_text","text":"Hi"}]}`},
			{"content", `{"role":"user"}`},
			{"content", `CALL,{"type":"function_call_output","call_id":"c1","output":{}}`},
			{"", `{"type":"reasoning","id":"other_1"},USER`},
			{"reasoning", `USER,REASONING`},
			{"reasoning", `REASONING,USER`},
			{"reasoning", `CALL,REASONING,RESULT`},
			{"duplicate-item", `REASONING,REASONING,CALL,RESULT`},
		}},
		{provider.Anthropic, "messages", []string{
			"USER", `{"role":"user","content":"Hi"}`,
			"CALL", `{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]}`,
			"RESULT", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}`,
			"TEXT", `{"role":"assistant","content":[{"type":"text","text":"Hi"}]}`,
			"SERVED", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]}`,
		}, []oracleRow{
			{"", ``},
			{"", `USER,CALL,TEXT,RESULT,USER,TEXT,{"role":"assistant","content":""}`},
			{"", `USER,{"role":"system","content":"Be brief."},TEXT`},
			{"", `USER,SERVED`},
			{"", `TEXT,USER,CALL,RESULT,CALL,RESULT`},
			{"", `USER,{"role":"system","content":"Be brief."},{"role":"system","content":"Be kind."}`},
			{"unanswered-call", `USER,CALL`},
			{"unanswered-call", `USER,CALL,USER`},
			{"not-adjacent", `USER,CALL,USER,RESULT`},
			{"orphan-result", `USER,RESULT`},
			{"orphan-result", `USER,CALL,RESULT,RESULT`},
			{"role", `{"role":"tool","content":"Hi"}`},
			{"name", `USER,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f.f","input":{}}]},RESULT`},
			{"id", `USER,{"role":"assistant","content":[{"type":"tool_use","id":"c:1","name":"f","input":{}}]}`},
			{"duplicate-id", `USER,CALL,CALL,RESULT`},
			{"shape", `USER,{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":"{}"}]},RESULT`},
			{"shape", `{"role":"user","content":[{"type":"image_url","image_url":{}}]}`},
			{"shape", `USER,CALL,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":{}}]}`},
			{"system", `{"role":"system","content":"Hi"},USER`},
			{"system", `USER,TEXT,{"role":"system","content":"Hi"}`},
			{"", `USER,{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}]},{"role":"system","content":"Hi"},TEXT`},
			{"content", `USER,{"role":"assistant","content":[{"type":"image","source":{"type":"url","url":"https://e.org/a.png"}}]}`},
			{"empty", `{"role":"user","content":" \n"}`},
			{"", `USER,{"role":"assistant","content":[{"type":"text","text":" "},{"type":"tool_use","id":"c1","name":"f","input":{}}]},RESULT`},
			{"empty", `{"role":"user","content":[]}`},
			{"empty", `{"role":"user","content":[{"type":"text","text":""}]}`},
			{"empty", `USER,{"role":"assistant","content":""},USER`},
			{"server-tool", `USER,{"role":"assistant","content":[{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}]}`},
			{"server-tool", `USER,SERVED,USER`},
		}},
		{provider.Gemini, "contents", []string{
			"USER", `{"role":"user","parts":[{"text":"Hi"}]}`,
			"CALL", `{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`,
			"RESULT", `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}`,
			"TEXT", `{"role":"model","parts":[{"text":"Hi"}]}`,
		}, []oracleRow{
			{"", ``},
			{"", `USER,CALL,RESULT,CALL,RESULT,TEXT,TEXT`},
			{"", `USER,{"role":"model","parts":[{"text":"Hi"},{"function_call":{"name":"f"}}]},RESULT`},
			{"unanswered-call", `USER,CALL`},
			{"", `USER,TEXT,CALL,CALL,RESULT,RESULT,USER`},
			{"", `{"parts":[{"text":""}]}`},
			{"not-adjacent", `USER,CALL,USER,RESULT`},
			{"", `USER,CALL,{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"text":"Hi"}]}`},
			{"not-adjacent", `USER,CALL,CALL,{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"f","response":{}}},{"text":"Hi"}]}`},
			{"unanswered-call", `USER,CALL,CALL,RESULT`},
			{"unanswered-call", `USER,CALL,USER,TEXT`},
			{"orphan-result", `RESULT`},
			{"orphan-result", `USER,CALL,RESULT,RESULT`},
			{"orphan-result", `USER,CALL,{"role":"user","parts":[{"functionResponse":{"name":"g","response":{}}}]}`},
			{"call-turn", `CALL,RESULT`},
			{"role", `{"role":"assistant","parts":[{"text":"Hi"}]}`},
			{"name", `USER,{"role":"model","parts":[{"functionCall":{"name":"1"}}]},RESULT`},
			{"first", `TEXT`},
			{"content", `{"role":"user","parts":[]}`},
			{"content", `{"role":"user","parts":[{}]}`},
			{"shape", `{"role":"user","parts":[{"type":"text","text":"Hi"}]}`},
			{"shape", `USER,{"role":"model","parts":[{"functionCall":{"name":"f","args":"{}"}}]},RESULT`},
			{"shape", `USER,CALL,{"role":"user","parts":[{"functionResponse":{"name":"f","response":"Hi"}}]}`},
		}},
	} {
		for _, row := range table.rows {
			t.Run(table.format.String()+"/"+row.rule+"/"+row.entries, func(t *testing.T) {
				body := `{"` + table.member + `":[` + strings.NewReplacer(table.words...).Replace(row.entries) + `]}`
				err := refused(table.format, []byte(body), false)
				if row.rule == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorContains(t, err, "["+row.rule+"]")
			})
		}
	}
}

func TestOracleOfWhatGoesOn(t *testing.T) {
	body := []byte(`{"input":[{"type":"function_call_output","call_id":"c1","output":""}]}`)
	require.NoError(t, refused(provider.OpenAIResponses, body, true))
	require.ErrorContains(t, refused(provider.OpenAIResponses, body, false), "[orphan-result]")
}
