package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// After a wanted change: go run . > testdata/output.txt
func TestOutputIsTheSameEachTime(t *testing.T) {
	want, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	for range 20 {
		var out bytes.Buffer
		require.NoError(t, run(&out))
		require.Equal(t, string(want), out.String())
	}
}

func TestOutputFitsOnOneScreen(t *testing.T) {
	out, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	require.LessOrEqual(t, bytes.Count(out, []byte("\n")), 45)
	for line := range bytes.Lines(out) {
		require.LessOrEqual(t, len(line), 110, "%s", line)
	}
}

func TestOutputHoldsNoSecret(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out))
	require.Contains(t, out.String(), `"token":"[SECRET]"`)
	require.Contains(t, out.String(), "token=[SECRET]")
	for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), hex.EncodeToString([]byte(secret))} {
		require.NotContains(t, out.String(), form)
	}
}
