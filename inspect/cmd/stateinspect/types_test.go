package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTypes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schema.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"fields": [
		{"name": "title", "type": "string", "description": "What it is\nabout. */", "owner": "desk", "read": "public", "write": "public"},
		{"name": "count", "type": "integer", "owner": "desk", "read": "public"},
		{"name": "due-at", "type": "date"}, {"name": "done", "type": "boolean"}, {"name": "list", "type": "list"},
		{"name": "object", "type": "object"}, {"name": "any", "type": "any"}, {"name": "price", "type": "number"},
		{"name": "card", "type": "string", "secret": true},
		{"name": "own", "type": "string", "owner": "desk"}
	], "team": {"desk": ["page"]}}`), 0o600))
	print := func(args ...string) string {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), append([]string{"types", "-schema", file}, args...), os.Getenv, &out, &out))
		return out.String()
	}
	require.Equal(t, `export interface State {
  /** What it is about. *\/ */
  title?: string;
  readonly count?: number;
  readonly $version: string;
}
`, print("-agent", "page"))
	require.Contains(t, print(), `  count?: number;
  "due-at"?: string;
  done?: boolean;
  list?: unknown[];
  object?: Record<string, unknown>;
  any?: unknown;
  price?: number;
  own?: string;
  readonly $version: string;
`)
	var out bytes.Buffer
	require.ErrorIs(t, run(t.Context(), []string{"types"}, os.Getenv, &out, &out), errUsage)
}
