package fault_test

import (
	"fmt"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state/internal/fault"
)

func TestAStackIsCutOffWhereItsLineBegins(t *testing.T) {
	stack := string(debug.Stack())
	for text, before := range map[string]string{
		"bank is down": "bank is down",
		"bad arguments:\n- \"a\": missing\n- \"b\": missing":                    "bad arguments:\n- \"a\": missing\n- \"b\": missing",
		fmt.Sprintf("[run] panic error: down, \nstack: %s\n---\nnode a", stack): "[run] panic error: down",
		fmt.Sprintf("panic: %s", stack):                                         "panic",
		"down\nmain.pay\n\t/srv/desk/pay.go:12\nmain.main\n\t/srv/main.go:3":    "down",
		"a goroutine was lost":                                                  "a goroutine was lost",
	} {
		got, cut := fault.CutStack(text)
		require.Equal(t, before, got)
		require.Equal(t, before == text, cut == "")
		require.Contains(t, text, cut)
	}
}

func TestALineHasNoBreaks(t *testing.T) {
	require.Equal(t, "two  blanks", fault.Line("two  blanks"))
	require.Equal(t, `400 { "message": "wrong" }`, fault.Line("400 {\n  \"message\": \"wrong\"\r\n}\n"))
}
