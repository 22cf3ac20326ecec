package providertest_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/provider/providertest"
	"github.com/stretchr/testify/require"
)

// The laws of other formats hold for those of package provider.
func TestBuiltInFormats(t *testing.T) {
	for file, format := range map[string]*provider.Format{
		"openai_chat.json":      provider.OpenAI,
		"openai_responses.json": provider.OpenAIResponses,
		"anthropic.json":        provider.Anthropic,
		"gemini.json":           provider.Gemini,
	} {
		t.Run(format.String(), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile("../testdata/recordings/" + file)
			require.NoError(t, err)
			providertest.Run(t, format, fstest.MapFS{file: {Data: data}})
		})
	}
}
