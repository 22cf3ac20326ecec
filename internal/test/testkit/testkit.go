// Package testkit contains helpers that the tests of several modules share.
// Only tests import it.
package testkit

import (
	"bytes"
	"sync"
	"time"
)

// Until waits until ready returns true. It has no deadline: the -timeout of go
// test ends a test that hangs, and prints where it waits.
func Until(ready func() bool) {
	for !ready() {
		time.Sleep(5 * time.Millisecond)
	}
}

// Buffer is a bytes.Buffer that is safe for concurrent use, for logs.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
