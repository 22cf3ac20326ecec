package storetest

import (
	"os"
	"time"
)

// In a process that tests a broken store, some calls hang, and the test must fail.
func init() {
	if os.Getenv("STORETEST_FAULT") != "" {
		patience = 2 * time.Second
	}
}
