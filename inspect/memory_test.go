package inspect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentstate/state/workspace"
	"github.com/stretchr/testify/require"
)

type memoryJSON struct {
	Memory struct {
		Entries []struct {
			Key    string
			Secret bool
			Value  struct{ Text string }
		}
		Settings struct {
			ChatID     string   `json:"chat_id"`
			MCPServers []string `json:"mcp_servers"`
		}
	}
}

func TestMemoryShowsEntriesAndSettings(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, nil)
	var data memoryJSON
	jsonOf(t, h, "/workspace?user=alice", &data)
	require.Len(t, data.Memory.Entries, 2)
	require.Equal(t, "Alice", data.Memory.Entries[0].Value.Text)
	require.True(t, data.Memory.Entries[1].Secret)
	require.Equal(t, "[SECRET]", data.Memory.Entries[1].Value.Text)
	require.Equal(t, "7", data.Memory.Settings.ChatID)
	require.Equal(t, []string{"mail"}, data.Memory.Settings.MCPServers)
	p := get(t, h, "/workspace?user=alice")
	require.NotContains(t, p.body, "key-of-the-server")
	require.NotContains(t, p.body, mailToken)
	require.Contains(t, get(t, h, "/workspace?user=carol").body, "Nothing is remembered")
	require.Contains(t, get(t, h, "/workspace?user=alice&filter=zzz").body, "No key contains")

	p = get(t, newHandler(t, f.open(t, nil), nil), "/workspace?user=alice")
	require.NotContains(t, p.body, "Alice")
	require.Contains(t, p.body, "No schema.")
}

func TestMemoryIsBoundedAndEscaped(t *testing.T) {
	f := newFixture(t, 0)
	require.NoError(t, f.manager.Update(t.Context(), "alice", func(w *workspace.Workspace) error {
		var errs []error
		for i := range 200 {
			errs = append(errs, w.Memory().Set(fmt.Sprintf("key %03d", i), strings.Repeat(`<b>"`, 15000)+"\u202e"+cardNumber))
		}
		return errors.Join(append(errs, w.Memory().Set("mail "+mailToken, "<script>"+cardNumber))...)
	}))
	h := f.handler(t, nil)
	for _, target := range []string{"", "&open=key+000", "&skip=150", "&open=" + "mail+" + mailToken + "&skip=150"} {
		p := get(t, h, "/workspace?user=alice"+target)
		require.LessOrEqual(t, len(p.body), 128<<10, target)
		require.NotContains(t, p.body, "<b>\"")
		require.NotContains(t, p.body, "<script>")
		if !strings.Contains(target, mailToken) { // which the address itself has
			require.NotContains(t, p.body, mailToken)
		}
		require.NotContains(t, p.body, cardNumber)
	}
	var data memoryJSON
	jsonOf(t, h, "/workspace?user=alice&skip=150", &data)
	require.Len(t, data.Memory.Entries, 50)
	jsonOf(t, h, "/workspace?user=alice&filter=KEY+019", &data)
	require.Len(t, data.Memory.Entries, 1)
}
