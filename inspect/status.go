package inspect

import (
	"time"

	"github.com/agentstate/state/inspect/internal/safetext"
	"github.com/agentstate/state/workspace"
)

// status is what a workspace is doing, in words and a shape, so that it does not
// take a color to see it.
type status struct {
	Kind  string `json:"kind"` // running, waiting, dead, damaged or idle
	Count int    `json:"count,omitempty"`
	// Since is when the run has begun.
	Since   time.Time `json:"since,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
	Why     string    `json:"why,omitempty"` // of a damaged workspace
}

// statusOf returns what a summary says, at least one status.
func statusOf(s workspace.Summary) []status {
	if s.Err != nil {
		_, why := explain(s.Err)
		if detail := detailOf(s.Err, workspace.ErrCorrupt); detail != "" {
			why = detail // the kind of the status says the rest
		}
		return []status{{Kind: "damaged", Why: safetext.Visible(why, false)}}
	}
	var list []status
	if s.Run != nil {
		list = append(list, status{Kind: "running", Since: s.Run.Began, Attempt: s.Run.Attempt + 1})
	}
	if s.Queued > 0 {
		list = append(list, status{Kind: "waiting", Count: s.Queued})
	}
	if s.DeadLetters > 0 {
		list = append(list, status{Kind: "dead", Count: s.DeadLetters})
	}
	if list == nil {
		list = []status{{Kind: "idle"}}
	}
	return list
}
