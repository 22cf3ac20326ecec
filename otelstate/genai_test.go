package otelstate_test

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/semconv/v1.41.0/genaiconv"
)

// The names of the conventions are those of testdata/genai.txt, and of the
// version that the schema URL names.
func TestNamesOfTheConventions(t *testing.T) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), "genai.go", nil, 0)
	require.NoError(t, err)
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			name := spec.Names[0].Name
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			if strings.HasPrefix(name, "key") || strings.HasPrefix(name, "metric") {
				names = append(names, value)
			}
			if name == "schemaURL" {
				require.Equal(t, semconv.SchemaURL, value)
			}
		}
		return true
	})
	slices.Sort(names)
	want, err := os.ReadFile("testdata/genai.txt")
	require.NoError(t, err)
	require.Equal(t, strings.Fields(string(want)), names)

	known := []string{
		string(semconv.GenAIOperationNameKey), string(semconv.GenAIProviderNameKey), string(semconv.GenAIConversationIDKey),
		string(semconv.GenAIWorkflowNameKey), string(semconv.GenAIAgentNameKey), string(semconv.GenAIToolNameKey),
		string(semconv.GenAIToolTypeKey), string(semconv.GenAIToolCallIDKey), string(semconv.GenAIToolCallArgumentsKey),
		string(semconv.GenAIToolCallResultKey), string(semconv.GenAIResponseModelKey), string(semconv.GenAIResponseIDKey),
		string(semconv.GenAIResponseFinishReasonsKey), string(semconv.GenAIUsageInputTokensKey), string(semconv.GenAIUsageOutputTokensKey),
		string(semconv.GenAIUsageCacheReadInputTokensKey), string(semconv.GenAIUsageCacheCreationInputTokensKey),
		string(semconv.GenAIUsageReasoningOutputTokensKey), string(semconv.GenAIInputMessagesKey), string(semconv.GenAIOutputMessagesKey),
		string(semconv.GenAITokenTypeKey), string(semconv.ErrorTypeKey),
		genaiconv.ClientOperationDuration{}.Name(), genaiconv.ClientTokenUsage{}.Name(),
	}
	slices.Sort(known)
	require.Equal(t, known, names)
}
