package ledger

import (
	"strings"

	"github.com/agentstate/state/store"
)

// A BusyList is a prefix of keys, each followed by EncodeUser of a user. A
// workspace has the key of a list, without a value, exactly as long as its head
// says so: the key is written and deleted in the batch of the head. So those who
// look for work list few keys, and not all workspaces.
type BusyList string

const (
	// Running lists the workspaces with a run, for which messages may wait.
	Running BusyList = "agent:busy:run:"
	// Waiting lists the workspaces with dead letters, and with calls that wait
	// for a result from outside.
	Waiting BusyList = "agent:busy:wait:"
)

// listed says which lists have a workspace.
type listed struct{ running, waiting bool }

func (h *Head) listed() listed {
	return listed{h.Run != nil, h.DeadLetters.Count > 0 || h.Suspended > 0}
}

// appendBusy appends the writes after which the lists have a workspace as its new
// head says. was says which have it now; if that is not known, both are written.
func appendBusy(writes []store.Write, headKey string, was, is listed, known bool) []store.Write {
	if !known || was.running != is.running {
		writes = append(writes, Running.write(headKey, is.running))
	}
	if !known || was.waiting != is.waiting {
		writes = append(writes, Waiting.write(headKey, is.waiting))
	}
	return writes
}

func (b BusyList) write(headKey string, has bool) store.Write {
	return store.Write{Key: string(b) + strings.TrimPrefix(headKey, headPrefix), Delete: !has}
}
