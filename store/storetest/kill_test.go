//go:build unix

package storetest_test

import (
	"path/filepath"
	"testing"

	"github.com/agentstate/state/store/storetest"
)

func TestKill(t *testing.T) {
	storetest.Kill(t, ":"+filepath.Join(t.TempDir(), "toy"), 20)
}

func TestKillDetectsFaults(t *testing.T) {
	for fault, want := range map[string]string{
		"forgets": "the write is lost",
		"tears":   "a torn value",
		"dies":    "a worker ended by itself",
		"half":    "only a part of a batch is there",
	} {
		t.Run(fault, func(t *testing.T) {
			requireDetected(t, fault, func(address string) { storetest.Kill(t, address, 60) }, want, "STATE_SEED=")
		})
	}
}
