package provider_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/provider"
)

// The name of a member may be content: no error of a body shows it.
func TestErrorsShowNoNamesOfMembers(t *testing.T) {
	for _, name := range []string{"TOPSECRET", "TOPSECRET-123456", `TOPSECRET \"]. x`, "é.TOPSECRET[0]"} {
		for place, want := range map[string]string{
			`{"NAME":1,"NAME":2}`:                                                  "$[…]",
			`{"messages":[{},{"content":{"NAME":1,"NAME":2}}]}`:                    "$.messages[1].content[…]",
			`{"NAME":{"messages":[1e]}}`:                                           "",
			`{"NAME":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`: "",
		} {
			body := []byte(strings.ReplaceAll(place, "NAME", name))
			for _, f := range []*provider.Format{provider.OpenAI, provider.OpenAIResponses, provider.Anthropic, provider.Gemini} {
				_, err := f.DecodeRequest(body)
				require.Error(t, err)
				require.NotContains(t, err.Error(), "TOPSECRET")
				_, failed := f.DecodeResponse(body)
				require.NotContains(t, failed.Error(), "TOPSECRET")
				if want != "" {
					var wrong *provider.Error
					require.ErrorAs(t, err, &wrong)
					require.Equal(t, want, wrong.Path)
				}
			}
		}
	}
}
