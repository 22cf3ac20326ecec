// Package testkit contains helpers that the tests of several modules share.
// Only tests import it.
package testkit

import "time"

// Until waits until ready returns true. It has no deadline: the -timeout of go
// test ends a test that hangs, and prints where it waits.
func Until(ready func() bool) {
	for !ready() {
		time.Sleep(5 * time.Millisecond)
	}
}
