package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/agentstate/state/workspace"
)

// statusKinds are the kinds of status, what needs a person most first.
var statusKinds = []string{"suspended", "dead", "damaged", "stuck", "long", "waiting", "running", "idle"}

// kindWords name the kinds above a list.
var kindWords = map[string]string{
	"suspended": "Waiting for a person", "dead": "Dead letters", "damaged": "Damaged", "stuck": "Without a holder",
	"long": "Running for long", "waiting": "Messages wait", "running": "Running",
}

// KindWords names a kind of status for people.
func KindWords(kind string) string { return kindWords[kind] }

// longRun is the time after which a run is long under way.
const longRun = 10 * time.Minute

// status is what a workspace is doing, in words and a shape, so that it does not
// take a color to see it.
type status struct {
	Kind  string `json:"kind"` // one of statusKinds
	Count int    `json:"count,omitempty"`
	// Since is when the run has begun.
	Since   time.Time `json:"since,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
	Why     string    `json:"why,omitempty"` // of a damaged workspace
}

// urgency returns the place of a status among statusKinds.
func (s status) urgency() int { return slices.Index(statusKinds, s.Kind) }

// statusOf returns what a summary says, at least one status, the most urgent
// first.
func statusOf(s workspace.Summary) []status {
	if s.Err != nil {
		_, why := Explain(s.Err)
		if detail := detailOf(s.Err, workspace.ErrCorrupt); detail != "" {
			why = detail // the kind of the status says the rest
		}
		return []status{{Kind: "damaged", Why: visible(why, false)}}
	}
	var list []status
	if s.Suspended > 0 {
		list = append(list, status{Kind: "suspended", Count: s.Suspended})
	}
	if s.DeadLetters > 0 {
		list = append(list, status{Kind: "dead", Count: s.DeadLetters})
	}
	if s.Queued > 0 {
		list = append(list, status{Kind: "waiting", Count: s.Queued})
	}
	if r := s.Run; r != nil {
		kind := "running"
		switch age := time.Since(r.Began); {
		case r.LeaseID == "" && age > r.TTL:
			kind = "stuck"
		case age > longRun:
			kind = "long"
		}
		list = append(list, status{Kind: kind, Since: r.Began, Attempt: r.Attempt + 1})
	}
	if list == nil {
		list = []status{{Kind: "idle"}}
	}
	slices.SortStableFunc(list, func(a, b status) int { return cmp.Compare(a.urgency(), b.urgency()) })
	return list
}
