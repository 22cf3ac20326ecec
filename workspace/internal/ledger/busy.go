package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/store"
	"github.com/agentstate/state/workspace/work"
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

// in reports whether a list has the workspace.
func (l listed) in(b BusyList) bool { return b == Running && l.running || b == Waiting && l.waiting }

// maxBusyWrites is how many writes appendBusy appends at most.
const maxBusyWrites = 4

// appendBusy appends the writes after which the lists have a workspace as its new
// head says. was says which have it now; if that is not known, both are written.
func (l *Ledger) appendBusy(writes []store.Write, was, is listed, known bool) []store.Write {
	if !known || was.running != is.running || l.opts.Live && was.live != is.live {
		w := Running.write(l.key, is.running)
		if l.opts.Live && is.running {
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

// expiring is the list of the workspaces in which calls expire, in the order of
// time. It is a busy list, but that a time stands in front of the user: so those
// who look for what is due read nothing of what is due later.
const expiring = "agent:busy:expire:"

func expiringKey(headKey string, at int64) string {
	return fmt.Sprintf("%s%016x:%s", expiring, at, strings.TrimPrefix(headKey, headPrefix))
}

// Live is the text that a model is about to have said in a run. It is the value of
// the workspace's key in the list Running, and so comes and goes with the run: the
// batch of a head that begins a run, gives it another lease or counts an attempt
// writes it without text, and that which ends the run deletes it.
type Live struct {
	LeaseID string `json:"lease,omitempty"` // of the holder whose text it is
	Attempt int    `json:"attempt,omitempty"`
	Begun   int    `json:"begun,omitempty"`   // the texts of the attempt that were begun
	Message int    `json:"message,omitempty"` // the number that the message gets
	Offset  int    `json:"offset,omitempty"`  // how many bytes are in front of Text
	Text    string `json:"text,omitempty"`
}

// live returns the Live of a run that has said nothing.
func (r *Run) live() Live { return Live{LeaseID: r.LeaseID, Attempt: r.Attempt} }

func (l Live) encode() []byte {
	data, err := jsontext.Marshal(l)
	if err != nil { // strings and numbers
		panic(err)
	}
	return data
}

// liveKey is the key of the text.
func (l *Ledger) liveKey() string { return Running.key(l.key) }

func (l *Ledger) decodeLive(data []byte) (live Live, err error) {
	if len(data) == 0 { // of a Manager without Options.Live
		return live, nil
	}
	plain, err := l.sealer.open(l.key, l.liveKey(), data)
	if err != nil {
		return live, err
	}
	if json.Unmarshal(plain, &live) != nil {
		return live, fmt.Errorf("%w: %s: not a text that is said", work.ErrCorrupt, l.liveKey())
	}
	return live, nil
}

// Live returns the text of the run that a head shows, or false if there is none.
func (l *Ledger) Live(ctx context.Context, h *Head) (live Live, ok bool, err error) {
	if h.Run == nil {
		return live, false, nil
	}
	e, err := store.Get(ctx, l.db, l.liveKey())
	if errors.Is(err, store.ErrNotFound) {
		return live, false, nil
	}
	if err != nil {
		return live, false, err
	}
	live, err = l.decodeLive(e.Value)
	own := live.LeaseID == h.Run.LeaseID && live.Attempt == h.Run.Attempt
	return live, err == nil && own && live.Text != "", err
}

// LiveWriter writes the text of a run for its holder. It is for one goroutine.
type LiveWriter struct {
	ledger  *Ledger
	leaseID string
	attempt int
	last    store.Revision // of its last write, or ""
}

// NewLiveWriter returns a writer for an attempt of the holder of a lease.
func (l *Ledger) NewLiveWriter(leaseID string, attempt int) *LiveWriter {
	return &LiveWriter{ledger: l, leaseID: leaseID, attempt: attempt}
}

// Write replaces the text, as that of the writer's lease and attempt. Each write
// is conditional on the one before, and the first on what the batch of the head
// has written for the lease. So a holder that was paused cannot bring a text
// back: the error is ErrFenced then, and no later Write succeeds.
func (w *LiveWriter) Write(ctx context.Context, live Live) error {
	l := w.ledger
	live.LeaseID, live.Attempt = w.leaseID, w.attempt
	if w.last == "" {
		e, err := store.Get(ctx, l.db, l.liveKey())
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: the run has ended", work.ErrFenced)
		}
		if err != nil {
			return err
		}
		switch before, err := l.decodeLive(e.Value); {
		case err != nil:
			return err
		case before.LeaseID != w.leaseID || before.Attempt != w.attempt:
			return fmt.Errorf("%w: the text is that of another holder", work.ErrFenced)
		}
		w.last = e.Revision
	}
	sealed := l.sealer.seal(l.key, l.liveKey(), live.encode())
	rev, err := store.Put(ctx, l.db, l.liveKey(), sealed, store.IfRevision(w.last))
	if errors.Is(err, store.ErrConflict) {
		return fmt.Errorf("%w: the text is that of another holder", work.ErrFenced)
	}
	if err != nil {
		return err
	}
	w.last = rev
	return nil
}
