// Package workspace keeps one durable state per user in a store, and lets one
// run at a time change it, across processes and across their crashes.
//
//	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema, Run: answer})
//	out, err := m.Handle(ctx, "ann", workspace.Message{ID: "17", Content: state.UserText("Hello!")})
//
//	func answer(ctx context.Context, run *workspace.Run) error {
//		st := run.State() // contains what earlier runs have left
//		…
//		run.SetReply("Hello, Ann!")
//		return nil
//	}
//
// For a model with tools, [Loop] is such a function.
//
// A workspace consists of a State, a Memory of what the user wants remembered,
// and Settings. The first message creates it. A user may have several of them,
// called threads: see [Thread]. They run at the same time, and share the fields
// that the schema declares to be Shared.
//
// # Runs
//
// A run is the handling of one message. Handle begins a run, calls Options.Run,
// and then stores the changes, marks the message as done and begins the next
// run, all in one write. Submit does the same without waiting. Run.Commit
// stores the changes so far.
//
// A workspace has one run at a time. WhenBusy determines what happens to a
// message that arrives during a run: it waits in a durable queue, is rejected,
// interrupts the run, interrupts the run and undoes its committed changes, or joins
// the run of a Loop. A message whose id the workspace knows is not handled twice.
//
// A Manager holds at most Options.Runs runs at once; the others wait in the
// store. Within a process, messages that are sent to one user at once are handled
// in the order of their arrival.
//
// Handle waits for its message, also if it is queued. Await waits for any
// message, in any process, and Watch yields what happens in a workspace.
//
// Do is for work that no message asks for, such as a scheduled job or the call
// of a tool server: it calls a function with a run, in its turn. Update changes
// a workspace that has no run.
//
// # When a process ends
//
// Shutdown refuses messages, waits for the runs and closes the Manager. Close,
// the end of the context of Handle and that of Open end the contexts of runs.
// When its function has returned, such a run is released: its lease is vacant.
// Any Manager with Options.Run that comes across the run, because a message for
// the user arrives or is waiting there, or because it looks for runs every TTL,
// continues it. No attempt is counted.
//
// # When the store is away
//
// A call that begins, commits or ends a run is tried again until its context ends
// or another holder has the run. Time for which a Manager could not reach the store
// does not count towards a takeover. An error that cannot pass, such as that of a
// value that is too large, fails the run at once. A function whose work may succeed
// later returns an error of RetryAfter.
//
// # When a process dies
//
// The holder of a run renews its lease. If the lease is not renewed for 1.5 ×
// Options.TTL, another Manager that knows of the run takes it over: one that
// has queued a message there, or any with Options.Run, which lists the runs of
// all others every TTL. Idle workspaces are not in that list. The new holder
// continues with the committed changes or undoes them, depending on
// Options.Takeover. Tool calls of the run without a result stay open, and Loop
// makes them again, with their keys. If a run was begun too often, its message
// becomes a dead letter.
//
// Committed changes take effect exactly once. The effects of tools outside the
// workspace may happen more than once. The Key of tool.CallOf is their
// idempotency key.
//
// A holder that was merely slow or partitioned can do no harm: its writes fail
// with ErrFenced, whatever its clock says, and its context ends.
//
// # When a person has to decide
//
// A call that waits is suspended: because tool.NeedsApproval says so, by
// tool.Suspend, or by Run.Suspend. It stays open when the run ends, however it
// ends, while other messages are handled, in which the model is told that it
// waits. Workspace.Suspended returns such calls. The Decisions of a message say
// what a person has decided, by the keys of the calls: its run makes the approved
// ones. Refusals, and results from outside, are in the conversation, behind the
// calls, when Options.Run is called.
//
// # Operation
//
// View shows a workspace, and List finds those that exist. A dead letter stays
// until Retry handles it again, Discard drops it, or it is sent again. Cancel
// ends a run. Delete deletes a workspace, and Expire, called from time to time,
// removes what Delete has left. Export and ImportWorkspace carry a workspace to
// another store. AcceptRollback ends ErrRolledBack for an operator who knows its cause.
//
// # What is stored
//
// The key agent:workspace:USER has the head: the run with its lease, the queue,
// and the newest records of changes. It is replaced by compare-and-set only.
// Older records and snapshots are separate immutable values. All of them are
// JSON. The effects in records are edits of JSON values, so that reading a
// workspace calls no handler, and a program preserves fields that it does not
// know. Ephemeral fields and the journal of the State are not stored.
//
// With Options.Keys, all values are sealed with AES-256-GCM, by a key derived
// for each workspace, and each value is bound to its key in the store. Verify
// checks that all data is authentic.
//
// # Messages and results
//
// A finished run keeps the last Options.KeepMessages of the conversation, cut
// where package transcript allows it, and the last Options.KeepResults of the
// history. During a run nothing is cut.
package workspace
