package workspace

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/agentstate/state/workspace/internal/ledger"
)

// Times that one process stores are compared with the clock of another one: until
// when a call waits, above all. No process knows which clock is right, but each
// finds out that they differ: a record that appears, or changes, between two looks
// was written between them.

// clockLeeway is by how much clocks may differ, in TTLs.
const clockLeeway = 3

// clockMemory is how long it counts that clocks have differed, in TTLs.
const clockMemory = 100

// clocks knows which holders have a clock that differs from that of this process.
type clocks struct {
	mu     sync.Mutex
	differ map[string]time.Time // when that was seen last, by holder
}

// differs reports whether a clock has differed lately.
func (c *clocks) differs(ttl time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.differ, func(_ string, seen time.Time) bool { return time.Since(seen) > clockMemory*ttl })
	return len(c.differ) > 0
}

// note notes whether the clock of a holder differs.
func (c *clocks) note(holder string, differs bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !differs {
		delete(c.differ, holder)
		return
	}
	if c.differ == nil {
		c.differ = map[string]time.Time{}
	}
	c.differ[holder] = time.Now()
}

// compareClocks compares the clock of a holder that has made a heartbeat, at wrote
// in Unix milliseconds, between two looks, whose times are those of this clock.
func (h *holder) compareClocks(holder string, wrote int64, after, before time.Time) {
	if wrote == 0 {
		return
	}
	leeway, at := clockLeeway*h.m.ttl, time.UnixMilli(wrote)
	var by time.Duration
	switch {
	case at.Before(after.Add(-leeway)):
		by = after.Sub(at)
	case at.After(before.Add(leeway)):
		by = at.Sub(before)
	}
	h.clocks.note(holder, by > 0)
	if by > 0 {
		h.m.warnLater(h.m.ctx, "", alarmClock, fmt.Errorf("workspace: the clock of %s differs from this one by %v", holder,
			by.Round(time.Millisecond)))
	}
}

// arrivals knows which keys of calls that are due were in the store at the look
// before.
type arrivals struct {
	looked time.Time // when the look before began, by this clock
	seen   map[ledger.Expiry]bool
	odd    map[ledger.Expiry]bool // the clock of the process that has written them differs
}

// next returns what is known at the next look.
func (a *arrivals) next() *arrivals {
	return &arrivals{ledger.CurrentTime(), map[ledger.Expiry]bool{}, map[ledger.Expiry]bool{}}
}

// note notes that a key is there now, of a workspace whose content is v. It returns
// an error if a call there was suspended, as the process that has done it says,
// before the look at which it was not there yet.
func (a *arrivals) note(e ledger.Expiry, v *View, before *arrivals, leeway time.Duration) error {
	a.odd[e] = before.odd[e]
	if a.odd[e] || before.looked.IsZero() || before.seen[e] || !time.UnixMilli(e.At).Before(before.looked) {
		return nil // it is known, or has become due
	}
	for _, s := range v.Suspended() {
		if by := before.looked.Sub(s.Since); by > leeway && !s.again &&
			(s.Until.UnixMilli() == e.At || s.noticeAt.UnixMilli() == e.At) {
			a.odd[e] = true
			return fmt.Errorf("workspace: call %s came into the store %v after it was suspended: the clock of the process that has done it differs from this one",
				s.Key, by.Round(time.Millisecond))
		}
	}
	return nil
}
