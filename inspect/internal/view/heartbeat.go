package view

import (
	"sync"
	"time"
)

// maxLeases is the number of leases whose heartbeats a Handler remembers.
const maxLeases = 1024

// heartbeats remembers when the heartbeats of leases were first seen: a
// heartbeat is a count, whose age is known from two looks.
type heartbeats struct {
	mu   sync.Mutex
	seen map[string]seenHeartbeat // by lease
}

type seenHeartbeat struct {
	count uint64
	at    time.Time
}

// age returns how long a count has been the same, and whether this is the first
// look at the lease.
func (b *heartbeats) age(lease string, count uint64, now time.Time) (age time.Duration, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.seen[lease]
	if known && before.count == count {
		return now.Sub(before.at), false
	}
	if b.seen == nil || len(b.seen) == maxLeases {
		b.seen = map[string]seenHeartbeat{}
	}
	b.seen[lease] = seenHeartbeat{count, now}
	return 0, !known
}
