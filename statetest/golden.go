package statetest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/statetest/internal/kit"
)

// Golden fails the test if got is not the text of the file testdata/name, and
// reports whether it is. Line endings do not count, and the keys of calls in JSON
// of messages, which are random, are key_1, key_2 … in the order in which they
// appear. With the flag update, or STATETEST_UPDATE=1, it writes the file
// instead. A name that leaves testdata is misuse.
func Golden(t testing.TB, name, got string) bool {
	t.Helper()
	if !filepath.IsLocal(filepath.FromSlash(name)) || filepath.Clean(name) == "." {
		t.Fatalf("statetest: Golden: %q is no name of a file below testdata", name)
	}
	file := filepath.Join("testdata", filepath.FromSlash(name))
	got = new(callkey.Masks).Mask(got)
	if kit.Updating() {
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644))
		if err != nil {
			t.Errorf("statetest: Golden: %v", err)
		}
		return err == nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("statetest: %s is missing, or cannot be read\n    to write it: %s", filepath.ToSlash(file), writeAgain(t))
		return false
	}
	want := unixLines(string(data))
	if diff := cmp.Diff(want, unixLines(got)); diff != "" {
		t.Errorf("statetest: %s differs (want -, got +):\n%s\n    %s\n    to write it: %s",
			filepath.ToSlash(file), indented(strings.ReplaceAll(diff, "\u00a0", " ")), rerun(t), writeAgain(t))
		return false
	}
	return true
}

func unixLines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// writeAgain returns the command that writes the files of a test.
func writeAgain(t testing.TB) string {
	return "STATETEST_UPDATE=1 " + kit.Again(t.Name())
}
