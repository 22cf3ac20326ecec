package ledger

import (
	"context"
	"maps"
	"strings"
	"sync"
)

// enqueue adds a message that is in a blob to the queue.
func (t *transition) enqueue(m Message) {
	t.QueueBytes += m.BodyBytes
	t.Queue.push(queueEntry(m), t.addBlob)
}

// dequeue removes the first message from the queue and returns it.
func (t *transition) dequeue() (Message, error) {
	m, err := t.reader.firstQueued(t.ctx, t.Head)
	if err != nil {
		return Message{}, err
	}
	t.QueueBytes -= m.BodyBytes
	return m, t.dropQueued(t.Queue.First + 1)
}

// dropQueued removes the entries below a number from the queue. The messages
// stay.
func (t *transition) dropQueued(first uint64) error {
	if first >= t.Queue.Next {
		t.QueueBytes = 0
	}
	return t.Queue.dropTo(t.ctx, first, t.reader.readLists, func(n listNode) {
		if n.level > 0 {
			t.dropBlob(n.text)
		}
	})
}

// removeQueued removes one message from anywhere in the queue. It writes the
// whole list again.
func (t *transition) removeQueued(id string) (found bool, err error) {
	var kept []string
	bytes := t.QueueBytes
	for entry, err := range t.reader.queueEntries(t.ctx, t.Head) {
		if err != nil {
			return false, err
		}
		if name, hash := cutQueueEntry(entry); !found && hash == idHash(id) {
			m, err := t.reader.readMessage(t.ctx, name)
			if err != nil {
				return false, err
			}
			if m.ID == id {
				found = true
				bytes -= len(m.Body)
				t.dropBlob(name)
				continue
			}
		}
		kept = append(kept, entry)
	}
	if !found {
		return false, nil
	}
	if err := t.dropQueued(t.Queue.Next); err != nil {
		return false, err
	}
	for _, entry := range kept {
		t.Queue.push(entry, t.addBlob)
	}
	t.QueueBytes = bytes
	return true, nil
}

// firstQueued returns the next message of the queue, without its body.
func (c *contentReader) firstQueued(ctx context.Context, h *Head) (Message, error) {
	for n, err := range h.Queue.walk(ctx, h.Queue.First, h.Queue.First+1, c.readLists) {
		if err != nil {
			return Message{}, err
		}
		return c.queued(ctx, n.text)
	}
	return Message{}, corrupt(c.key, "the queue is empty")
}

// queued returns the message of an entry, without its body.
func (c *contentReader) queued(ctx context.Context, entry string) (Message, error) {
	name, _ := cutQueueEntry(entry)
	m, err := c.readMessage(ctx, name)
	m.Blob, m.BodyBytes, m.Body = name, len(m.Body), nil
	return m, err
}

// queueEntries yields the entries of the queue, the next first.
func (c *contentReader) queueEntries(ctx context.Context, h *Head) func(func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for n, err := range h.Queue.all(ctx, c.readLists) {
			if (err != nil || n.level == 0) && !yield(n.text, err) {
				return
			}
		}
	}
}

// Waiting returns the number of messages in the queue.
func (h *Head) Waiting() int { return int(h.Queue.len()) }

// queueIndex knows the hashes of the ids in the lists of a queue, so that a
// message is not compared with all that wait. A list never changes, so what is
// known of one stays right for all heads whose queue does not begin earlier.
type queueIndex struct {
	mu    sync.Mutex
	lists map[string]queueHashes // by the name of the list blob
}

// queueHashes are the hashes of the ids in a list and in the lists below it,
// from an entry on.
type queueHashes struct {
	first uint64
	set   map[string]bool
}

// mayHave reports whether an id with the hash is in the queue, or was before.
func (x *queueIndex) mayHave(ctx context.Context, h *Head, hash string, read readBlob) (bool, error) {
	lists := map[string]queueHashes{} // those that the head names
	found := false
	for level := range h.Queue.Levels {
		for _, n := range nodes(h.Queue.names(level), level, h.Queue.Next) {
			if level == 0 {
				_, entryHash := cutQueueEntry(n.text)
				found = found || entryHash == hash
				continue
			}
			hashes, err := x.hashes(ctx, n, h.Queue.First, read)
			if err != nil {
				return false, err
			}
			lists[n.text] = hashes
			found = found || hashes.set[hash]
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lists = lists
	return found, nil
}

func (x *queueIndex) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.lists = nil
}

// hashes returns the hashes in a list and in the lists below it, except for
// entries and lists before first: those may be gone. What an index has learnt
// from a newer head does not do for an older one, which a goroutine may still be
// reading.
func (x *queueIndex) hashes(ctx context.Context, list listNode, first uint64, read readBlob) (queueHashes, error) {
	x.mu.Lock()
	known, ok := x.lists[list.text]
	x.mu.Unlock()
	if ok && known.first <= first {
		return known, nil
	}
	data, err := read(ctx, list.text)
	if err != nil {
		return queueHashes{}, err
	}
	all := queueHashes{first, map[string]bool{}}
	for _, n := range nodes(strings.Split(string(data), listSeparator), list.level-1, list.to) {
		switch {
		case n.to <= first:
		case n.level == 0:
			_, hash := cutQueueEntry(n.text)
			all.set[hash] = true
		default:
			below, err := x.hashes(ctx, n, first, read)
			if err != nil {
				return queueHashes{}, err
			}
			maps.Copy(all.set, below.set)
		}
	}
	return all, nil
}
