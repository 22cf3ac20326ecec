package sdks

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The servers are strict: these are refused.
func TestTheServersRefuse(t *testing.T) {
	for api, bodies := range map[string][]string{
		"chat": {
			`{"messages":[]}`,
			`{"messages":[{"role":"user","content":null}]}`,
			`{"messages":[{"role":"robot","content":"x"}]}`,
			`{"messages":[{"role":"tool","tool_call_id":"a","content":"x"}]}`,
			`{"tools":[{"function":{"name":"f"}}],"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}]}`,
			`{"tools":[{"function":{"name":"f"}}],"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}]}`,
			`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`,
		},
		"responses": {
			`{"input":[]}`,
			`{"input":[{"type":"function_call_output","call_id":"a","output":"x"}]}`,
			`{"tools":[{"name":"f"}],"input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}`,
			`{"input":[{"id":"i","role":"user"},{"id":"i","role":"user"}]}`,
			`{"input":[{"type":"reasoning","id":"i"}]}`,
		},
		"anthropic": {
			`{"messages":[{"role":"user","content":"x"}]}`,
			`{"max_tokens":1,"messages":[{"role":"assistant","content":"x"}]}`,
			`{"max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"x"}]}`,
			`{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}`,
			`{"max_tokens":1,"tools":[{"name":"f"}],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":"x"}]}`,
			`{"max_tokens":1,"tools":[{"name":"f"}],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}`,
			`{"max_tokens":1,"thinking":{"type":"enabled"},"tools":[{"name":"f"}],"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}]}`,
		},
		"gemini": {
			`{"contents":[]}`,
			`{"contents":[{"role":"model","parts":[{"text":"x"}]}]}`,
			`{"contents":[{"role":"user","parts":[]}]}`,
			`{"contents":[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`,
			`{"tools":[{"functionDeclarations":[{"name":"f"}]}],"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"text":"x"}]}]}`,
		},
	} {
		for _, body := range bodies {
			var request object
			require.NoError(t, json.Unmarshal([]byte(body), &request))
			_, err := apiRules[api](request)
			require.Error(t, err, "%s: %s", api, body)
		}
	}
}
