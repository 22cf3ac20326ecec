package work

import (
	"time"

	"github.com/agentstate/state"
)

// Kind is the kind of operation that a Record comes from: "step" of Run.Commit,
// "finish", "fail", "update", "revert", "cancel" and "import" of the methods of
// these names, "interrupt", which answers tool calls that a run left without a
// result, and "rollback", which undoes what a run has committed.
type Kind string

// Record is one change of the content of a workspace.
//
// Its effects edit the stored content, so their parts are "field", "key",
// "message", "conversation", "memory", "setting" and "suspended", or parts that
// a newer version of this package defines. The part "message" holds messages
// under their numbers, which are negative for those that only results hold;
// "conversation" refers to messages by their numbers.
type Record struct {
	Version uint64    `json:"version"`
	Kind    Kind      `json:"kind"`
	Time    time.Time `json:"time"`
	RunID   string    `json:"run_id,omitempty"`
	Lease   string    `json:"lease_id,omitempty"`   // of the holder of the run
	Message string    `json:"message_id,omitempty"` // of the message that the run handles
	// Ending, Reason, Reply and Stop are set in the last record of a run.
	Ending  Ending         `json:"ending,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Reply   string         `json:"reply,omitempty"`
	Stop    state.Stop     `json:"stop,omitempty"` // as in [Outcome]
	Effects []state.Effect `json:"effects,omitempty"`
	Chain   string         `json:"-"` // the hash of all records up to this one
}

// Report is the result of Verify.
type Report struct {
	Version uint64   `json:"version"`        // of the content
	Oldest  uint64   `json:"oldest"`         // the oldest version that ViewAt can show
	Records int      `json:"records"`        // after that version
	Blobs   int      `json:"blobs"`          // to which the head refers
	Bytes   int      `json:"bytes"`          // of the head and these blobs, before they were sealed
	Data    int      `json:"data"`           // values of Manager.Store
	Files   int      `json:"files"`          // of the user
	Keys    []string `json:"keys,omitempty"` // the ids of the keys with which the values are sealed, sorted
}
