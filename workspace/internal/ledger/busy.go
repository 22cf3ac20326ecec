package ledger

import (
	"strings"

	"github.com/agentstate/state/store"
)

// A BusyList is a prefix of keys, each followed by EncodeUser of a user. A
// workspace has the key of a list exactly as long as its head says so: the key is
// written and deleted in the batch of the head. So those who look for work list
// few keys, and not all workspaces. A key has no value but that of Live.
type BusyList string

const (
	// Running lists the workspaces with a run, for which messages may wait, and
	// the user parts of users who are being deleted.
	Running BusyList = "agent:busy:run:"
	// Waiting lists the workspaces with dead letters, and with calls that wait
	// for a result from outside.
	Waiting BusyList = "agent:busy:wait:"
)

// listed says which lists have a workspace.
type listed struct {
	running, waiting bool
	live             Live  // of the run, without text
	expires          int64 // when a call expires; the key has that time
}

func (h *Head) listed() (l listed) {
	l.waiting, l.running, l.expires = h.DeadLetters.Count > 0 || h.Suspended > 0, h.Sweeping, h.Expires
	if h.Run != nil {
		l.running, l.live = true, h.Run.live()
	}
	return l
}

// appendBusy appends the writes after which the lists have a workspace as its new
// head says. was says which have it now; if that is not known, both are written.
func (l *Ledger) appendBusy(writes []store.Write, was, is listed, known bool) []store.Write {
	if !known || was.running != is.running || l.isLive && was.live != is.live {
		w := Running.write(l.key, is.running)
		if l.isLive && is.running {
			w.Value = l.sealer.seal(l.key, w.Key, is.live.encode())
		}
		writes = append(writes, w)
	}
	if !known || was.waiting != is.waiting {
		writes = append(writes, Waiting.write(l.key, is.waiting))
	}
	if was.expires != is.expires {
		if was.expires > 0 {
			writes = append(writes, store.Write{Key: expiringKey(l.key, was.expires), Delete: true})
		}
		if is.expires > 0 {
			writes = append(writes, store.Write{Key: expiringKey(l.key, is.expires)})
		}
	}
	return writes
}

func (b BusyList) key(headKey string) string {
	return string(b) + strings.TrimPrefix(headKey, headPrefix)
}

func (b BusyList) write(headKey string, has bool) store.Write {
	return store.Write{Key: b.key(headKey), Delete: !has}
}
