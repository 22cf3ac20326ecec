package providertest_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/agentstate/state/provider"
	"github.com/agentstate/state/provider/providertest"
	"github.com/stretchr/testify/require"
)

// The laws of other formats hold for those of package provider. Folder recordings
// has exchanges, and folder bodies all that can be said in each format.
func TestBuiltInFormats(t *testing.T) {
	for file, format := range map[string]*provider.Format{
		"openai_chat.json":            provider.OpenAI,
		"openai_responses.json":       provider.OpenAIResponses,
		"anthropic_messages.json":     provider.Anthropic,
		"gemini_generateContent.json": provider.Gemini,
	} {
		t.Run(format.String(), func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{}
			for _, folder := range []string{"recordings", "bodies"} {
				data, err := os.ReadFile("../testdata/" + folder + "/" + file)
				require.NoError(t, err)
				files[folder+"/"+file] = &fstest.MapFile{Data: data}
			}
			providertest.Run(t, format, files)
		})
	}
}
