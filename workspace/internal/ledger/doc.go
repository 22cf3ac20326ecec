// Package ledger keeps one workspace in a store: the protocol below package
// workspace.
//
// The head (head.go) is the one value that is replaced, by compare-and-set
// (ledger.go reads it, commit.go replaces it). A transition (transition.go) is a
// function from one head to the next. The operations are made of transitions:
// those of senders (submission.go), holders of a run (holder.go), contenders for
// it (takeover.go) and operators (operation.go).
//
// Everything that grows is in blobs (blobs.go), which never change: records of
// changes of the content (record.go), messages (message.go), the outcomes of
// those that were handled (ending.go) and dead letters (deadletter.go). A list of
// their names (bloblist.go) takes little room in the head. content.go makes the
// content of records; compaction (compact.go) replaces them by a snapshot. Blobs
// are written and deleted in one batch with the head, so that none is left over.
// Files of a user (filestore.go), to which messages of all threads refer, are values
// beside the head. All values may be sealed (seal.go). verify.go checks everything.
//
// What has happened is told in one place, as a Notice (notice.go). It is no result of
// the methods: a head is also seen by reads and by goroutines that watch, an error
// matters while the write is tried again, perhaps for minutes, and only within the
// turn of a write do notices have the order of the writes.
package ledger
