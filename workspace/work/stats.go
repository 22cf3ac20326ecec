package work

// Stats counts what a Manager has done since Open.
type Stats struct {
	Held       int `json:"held"`       // runs that it holds now
	Workspaces int `json:"workspaces"` // that it remembers now

	Started     int64 `json:"started"`     // attempts that it has begun, also after a takeover
	Done        int64 `json:"done"`        // runs that were finished
	Failed      int64 `json:"failed"`      // runs that have failed
	Interrupted int64 `json:"interrupted"` // runs held here that another caller has ended
	Fenced      int64 `json:"fenced"`      // runs held here whose leases were taken over or had expired
	TakenOver   int64 `json:"taken_over"`  // runs whose leases had expired, also its own
	DeadLetters int64 `json:"dead_letters"`
	Abandoned   int64 `json:"abandoned"` // functions that were left behind, because they had not returned

	Queued     int64 `json:"queued"`     // messages that had to wait
	Rejected   int64 `json:"rejected"`   // messages that were not accepted because of a run
	Duplicates int64 `json:"duplicates"` // messages that were accepted before

	Commits         int64 `json:"commits"`          // writes of Commit, and of the ends of runs
	Conflicts       int64 `json:"conflicts"`        // attempts to write that another writer has overtaken
	StoreErrors     int64 `json:"store_errors"`     // errors of the store after which an operation was tried again
	UnknownOutcomes int64 `json:"unknown_outcomes"` // operations of which it is not known whether they took effect
	Heartbeats      int64 `json:"heartbeats"`       // renewals of leases
	LateHeartbeats  int64 `json:"late_heartbeats"`  // those with less than a third of the lease left
	Compactions     int64 `json:"compactions"`
	BytesWritten    int64 `json:"bytes_written"` // heads and blobs, without the values of Manager.Store
}
