package mcpstate_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The clients of TypeScript list, call and read what an agent may, with sessions and
// without. If the server says that clients may keep what they read, they do not see
// what their own call has changed, at any version.
func TestClientsOfTypeScript(t *testing.T) {
	if _, err := os.Stat("clients/node_modules"); err != nil {
		if strings.Contains(os.Getenv("STATE_TEST_REQUIRE"), "mcp") {
			t.Fatal("clients/node_modules is missing")
		}
		t.Skip("NOT TESTED: no npm ci in clients")
	}
	for _, c := range []struct {
		kind              string
		stateless, cached bool
		version           string
	}{
		{"sdk", true, false, "2025-11-25"},
		{"sdk", false, false, "2025-11-25"},
		{"legacy", true, false, "2025-11-25"},
		{"legacy", false, false, "2025-11-25"},
		{"legacy", true, true, "2025-11-25"},
		{"auto", true, false, "2026-07-28"},
		{"auto", false, false, "2025-11-25"},
		{"auto", true, true, "2026-07-28"},
	} {
		url := replicas(t, served{n: 1, stateless: c.stateless, cached: c.cached}, tools(func() {})...)
		output, err := exec.CommandContext(t.Context(), "node", "clients/clients.mjs", url, c.kind).CombinedOutput()
		if err != nil {
			t.Fatalf("%+v: %v: %s", c, err, output)
		}
		var got struct {
			Tools, Resources             []string
			Called, Read, Again, Version string
			Hidden                       int
		}
		if err := json.Unmarshal(output, &got); err != nil {
			t.Fatalf("%+v: %v: %s", c, err, output)
		}
		equal(t, []string{"note"}, got.Tools)
		equal(t, "a", got.Called)
		equal(t, `["a"]`, got.Read)
		equal(t, map[bool]string{false: `["a","b"]`, true: `["a"]`}[c.cached], got.Again)
		equal(t, -32602, got.Hidden)
		equal(t, []string{"state://ann/notes"}, got.Resources)
		equal(t, c.version, got.Version)
	}
}
