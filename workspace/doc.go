// Package workspace keeps one durable state per user, in any store of package
// store, and lets one run at a time change it, whatever processes there are and
// whenever they die.
//
//	m, err := workspace.Open(ctx, db, &workspace.Options{Schema: schema, Run: answer})
//	out, err := m.Handle(ctx, "ann", workspace.Message{ID: "17", Content: state.UserText("Hello!")})
//
//	func answer(ctx context.Context, run *workspace.Run) error {
//		st := run.State() // with all that the runs before have left
//		…
//		run.Reply("Hello, Ann!")
//		return nil
//	}
//
// A workspace consists of a State, a Memory of what the user wants remembered,
// and Settings. It is there from the first message on.
//
// # Runs
//
// A run is the handling of one message. Handle begins one, calls Options.Run, and
// stores what that has changed, marks the message as done and begins the next run,
// all in one write. Submit does not wait for it. Run.Commit stores what there is so far. Begin, Finish and Fail
// do the same for those who do not want to be called.
//
// There is one run at a time in a workspace. What becomes of a message that comes
// meanwhile is said by Busy: it waits in a durable queue, is rejected, interrupts the
// run, or interrupts it and takes back what it has committed. A message with an id
// that the workspace knows is not handled twice.
//
// # When a process dies
//
// Who holds a run shows signs of life. If they stay away for one and a half times
// Options.TTL, another Manager that knows of the run takes it over: one that has
// queued a message there, or Recover, which looks at all workspaces. It
// goes on with what was committed, or takes that back, as Options.Takeover says; calls
// of tools that were left without a result are answered as package transcript
// does it, so that the next prompt is accepted. A run that was begun too often is
// given up, and its message is kept with the dead.
//
// So what a run commits takes effect once, but what its tools do outside may
// happen more than once. Run.ID stays the same; with it those who are called can tell
// that they were called before.
//
// A holder that was only slow, or cut off, cannot do harm: everything that it writes
// is refused with ErrFenced, whatever its clock says, and its context ends.
//
// # What is stored
//
// The key agent:workspace:USER has the head: who runs, what waits, and the newest
// records of what has changed. It is only ever replaced by who has read it. Older
// records and snapshots are in values of their own, which never change. All of it is
// JSON. Effects in records are edits of JSON values from a closed set, so that
// reading a workspace calls no handler, and a program keeps fields that it does not
// know. Ephemeral fields are not stored, nor is the journal of the State.
//
// With Options.Keys all values are sealed: AES-256-GCM, with a key derived for each
// workspace, and each value bound to its place. Verify tells whether everything is
// what was written.
//
// # Messages and results
//
// A finished run leaves the last Options.Messages of the conversation, cut where
// package transcript allows it, and the last Options.Results of the history. Within
// a run nothing is cut.
package workspace
