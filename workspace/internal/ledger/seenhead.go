package ledger

import "sync"

// writeMark identifies one write of a workspace.
type writeMark struct {
	Seq   uint64 // the number of writes so far
	Nonce string
}

// seenHead remembers the newest head that a ledger has seen: a store that shows
// an older one has lost a write. It is safe for concurrent use.
type seenHead struct {
	mu      sync.Mutex
	newest  writeMark
	epoch   uint64 // of the newest head
	deleted bool   // the newest head says that the workspace was deleted
}

// mark returns the mark of the newest head that was seen.
func (s *seenHead) mark() writeMark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// note notes that a head was seen. It reports false if the head does not follow
// the newest one seen before the read began: it is older, or its operations show
// that it comes from another one. A newer one that another goroutine has seen
// since does not count, nor does an older one if another goroutine has found
// since that the workspace has expired.
func (s *seenHead) note(h *Head, before writeMark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deleted && h.Epoch > s.epoch { // the deleted workspace has expired
		s.replace(h)
		return true
	}
	if h.Epoch < s.epoch { // a workspace that has expired
		return false
	}
	known := h.nonceAt(s.newest.Seq)
	if h.Seq < min(before.Seq, s.newest.Seq) || s.newest.Seq > 0 && known != "" && known != s.newest.Nonce {
		return false
	}
	if h.Seq >= s.newest.Seq {
		s.replace(h)
	}
	return true
}

// replace makes a head the newest one. The caller holds mu.
func (s *seenHead) replace(h *Head) {
	s.newest, s.deleted = h.mark(), !h.Deleted.IsZero()
	if h.Seq > 0 { // else it has no Epoch yet
		s.epoch = h.Epoch
	}
}

// overtake makes a head follow all heads that were seen.
func (s *seenHead) overtake(h *Head) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Seq, h.Epoch, h.Ops = max(h.Seq, s.newest.Seq)+acceptLead, max(h.Epoch, s.epoch), ""
}

// forget forgets the head, which was removed.
func (s *seenHead) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.deleted, s.epoch = writeMark{}, false, 0
}

// mark returns the mark of the write that made the head.
func (h *Head) mark() writeMark { return writeMark{h.Seq, h.nonce()} }

// acceptLead is the number of writes by which other Managers may have seen more
// of what was lost than the one that accepts the loss.
const acceptLead = 1 << 20
