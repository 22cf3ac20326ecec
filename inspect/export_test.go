package inspect_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExportIsTheMaskedWorkspace(t *testing.T) {
	f := newFixture(t, 0)
	h := f.handler(t, nil)
	p := get(t, h, "/workspace/export?user=alice")
	require.Equal(t, "application/json", p.header.Get("Content-Type"))
	require.Equal(t, `attachment; filename=workspace-v5.json`, p.header.Get("Content-Disposition"))
	var data struct {
		Format   int
		User     string
		Version  int
		State    map[string]any
		Memory   map[string]struct{ Value string }
		Settings struct {
			MCPServers []string `json:"mcp_servers"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(p.body), &data))
	require.Equal(t, 1, data.Format)
	require.Equal(t, "alice", data.User)
	require.Equal(t, 5, data.Version)
	require.Equal(t, "Alice", data.Memory["name"].Value)
	require.Equal(t, "[SECRET]", data.Memory["token"].Value)
	require.Equal(t, []string{"mail"}, data.Settings.MCPServers)
	require.Contains(t, p.body, "#W2378156")
	require.Contains(t, p.body, "paid with [SECRET]")
	for _, secret := range []string{cardNumber, mailToken, "key-of-the-server"} {
		require.NotContains(t, p.body, secret)
	}

	p = get(t, h, "/workspace/export?user=alice&as=search")
	require.NotContains(t, p.body, "refund\"") // of plan, which only billing may read
	require.NotContains(t, p.body, `"memory"`)
	p = get(t, h, "/workspace/export?user=alice&at=1")
	require.NotContains(t, p.body, "#W2378156")
	require.Contains(t, get(t, h, "/workspace/export?user=bob").body, "Anybody there?")
	require.Contains(t, get(t, h, "/workspace/export?user=carol").body, errRefused.Error())
	require.Equal(t, http.StatusNotFound, get(t, h, "/workspace/export?user=nobody").code)
}

func TestExportOfOneValue(t *testing.T) {
	h := newFixture(t, 0).handler(t, nil)
	p := get(t, h, "/workspace/export?user=alice&field=notes")
	require.Equal(t, "text/plain; charset=utf-8", p.header.Get("Content-Type"))
	require.Equal(t, `["refunds within 30 days","paid with [SECRET]"]`, p.body)
	require.Contains(t, get(t, h, "/workspace/export?user=alice&message=0").body, "Where is my order?")
	require.Contains(t, get(t, h, "/workspace/export?user=alice&result=0").body, `"agent": "support"`)
	for _, none := range []string{"field=card", "field=none", "field=plan&as=search", "message=99", "message=x", "message=0&as=stranger", "result=99", "result=-1", "result=x"} {
		require.Equal(t, http.StatusNotFound, get(t, h, "/workspace/export?user=alice&"+none).code, none)
	}
}

func TestWithoutASchemaNothingIsDownloaded(t *testing.T) {
	blind := newHandler(t, newFixture(t, 0).open(t, nil), nil)
	for _, target := range []string{"/workspace/export?user=alice", "/workspace/export?user=alice&field=notes"} {
		require.Equal(t, http.StatusForbidden, get(t, blind, target).code, target)
	}
}
