package storetest

import (
	"os"
	"time"
)

// In a process that tests a broken store some calls hang and some changes stay
// half made, and the test is meant to fail.
func init() {
	if os.Getenv("STORETEST_FAULT")+os.Getenv("STORETEST_FAULTY") != "" {
		patience, looks = 2*time.Second, 10
	}
}
