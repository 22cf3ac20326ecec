package workspace

import (
	"time"

	"github.com/agentstate/state"
	"github.com/agentstate/state/workspace/internal/ledger"
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
	// Ending, Reason and Reply are set in the last record of a run.
	Ending  Ending         `json:"ending,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Reply   string         `json:"reply,omitempty"`
	Effects []state.Effect `json:"effects,omitempty"`
	Chain   string         `json:"-"` // the hash of all records up to this one
}

// newRecord returns a record of the ledger.
func newRecord(r *ledger.Record) Record {
	return Record{
		Version: r.Version, Kind: Kind(r.Kind), Time: r.Time, RunID: r.RunID, Lease: r.Lease, Message: r.Message,
		Ending: Ending(r.Ending), Reason: r.Reason, Reply: r.Reply, Effects: r.Effects, Chain: r.Chain,
	}
}
