package state_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agentstate/state"
	"github.com/agentstate/state/internal/test/effort"
)

// Old secrets must not stay in memory with their Redactors.
func TestRedactorsAreForgotten(t *testing.T) {
	effort.Cost(t)
	key := &state.Field[[]byte]{Name: "key", Secret: true}
	st := state.New(state.MustSchema(key, state.Limits{Journal: 1}))
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 200 {
		require.NoError(t, key.Set(st, bytes.Repeat([]byte{byte(i)}, 1<<18)))
		st.Redact("text")
	}
	require.Less(t, heap()-before, uint64(32<<20))
	runtime.KeepAlive(st)
}

func TestRedactAllocates(t *testing.T) {
	effort.Cost(t)
	keys := &state.Field[[]string]{Name: "keys", Secret: true}
	st := state.New(state.MustSchema(keys))
	for i := range 100 {
		require.NoError(t, keys.Set(st, []string{fmt.Sprintf("sk-live-%032d", i)}))
	}
	line := strings.Repeat("the customer agreed to the refund ", 6)
	found := line + "sk-live-" + strings.Repeat("0", 31) + "7"
	require.Equal(t, line+"[SECRET]", st.Redact(found))
	requireAllocs(t, 0, func() { st.Redact(line) })
	requireAllocs(t, 1, func() { st.Redact(found) })
}
