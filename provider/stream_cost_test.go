package provider_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/agentstate/state/internal/test/effort"
	"github.com/agentstate/state/provider"
	"github.com/stretchr/testify/require"
)

// Memory is bounded by the size of the body.
func TestStreamMemoryIsBoundedByInput(t *testing.T) {
	effort.Cost(t)
	const n = 30_000
	wide := make([]string, n)
	for i := range wide {
		wide[i] = fmt.Sprintf(`"m%d":%d`, i, i)
	}
	for name, body := range map[string]string{
		"newlines":       strings.Repeat("\n", n),
		"pieces of text": strings.Repeat("data: "+delta(`{"content":"abc"}`)+"\n\n", n/10),
		"calls":          strings.Repeat("data: "+delta(`{"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`)+"\n\n", n/10),
		"parts":          "data: " + delta(`{"content":[{}`+strings.Repeat(",{}", n)+`]}`) + "\n\n",
		"members":        "data: " + delta(`{`+strings.Join(wide, ",")+`}`) + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s := provider.OpenAI.Stream()
			for i := 0; i < len(body); i += 7 {
				_, _ = io.WriteString(s, body[i:min(i+7, len(body))])
			}
			result, err := s.Result()
			require.ErrorIs(t, err, provider.ErrIncomplete)
			if len(result.Output) > 0 {
				_, _ = chatEntries(t, result.Output)
			}
			runtime.ReadMemStats(&after)
			t.Logf("%d bytes for %d", after.TotalAlloc-before.TotalAlloc, len(body))
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1000*len(body)))
		})
	}
}
