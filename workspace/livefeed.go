package workspace

import (
	"context"
	"time"

	"github.com/agentstate/state/internal/backoff"
	"github.com/agentstate/state/workspace/internal/ledger"
)

// liveSeen is how much of a text a follower was told.
type liveSeen struct {
	leaseID        string
	attempt, begun int
	length         int
}

// followLive tells the texts of runs that other processes hold, as long as the
// feed has followers.
func (f *feed) followLive() {
	for backoff.Sleep(f.ctx, liveInterval/2) == nil {
		f.mu.Lock()
		h, watched := f.head, f.isWatched()
		f.mu.Unlock()
		r := runOf(h)
		if r == nil || !watched || f.changesOf(r.RunID) != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(f.ctx, f.m.patience())
		live, ok, err := f.ledger.Live(ctx, h)
		cancel()
		if err != nil || !ok { // what is committed is told in any case
			continue
		}
		f.mu.Lock()
		for w := range f.followers {
			if e, more := w.live.event(r, live); more && w.messageID == "" {
				w.add(item{Event: e, head: h})
			}
		}
		f.mu.Unlock()
	}
}

// event returns what a text has more than what was seen, if it has.
func (s *liveSeen) event(r *ledger.Run, live ledger.Live) (e Event, more bool) {
	same := s.leaseID == live.LeaseID && s.attempt == live.Attempt && s.begun == live.Begun
	end := live.Offset + len(live.Text)
	from := live.Offset
	if same && s.length > live.Offset && s.length <= end {
		from = s.length
	}
	more = !same || from < end
	*s = liveSeen{live.LeaseID, live.Attempt, live.Begun, end}
	return Event{
		Kind: EventDelta, MessageID: r.Message.ID, Delta: live.Text[from-live.Offset:], Offset: from, Message: live.Message,
		Attempt: live.Attempt, Begun: live.Begun,
	}, more
}

// liveInterval is the least time between two writes of a text, and between two
// looks at one.
const liveInterval = 500 * time.Millisecond
