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
// Shutdown refuses messages, waits for the runs and closes the Manager. Close and
// the end of the context of Handle end the contexts of runs.
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

// The files, by what they are about, for those who change the package. What needs
// no Manager is in packages of its own, none of which imports this one: work has the
// types that all share, internal/turns says whose turn it is, internal/document has
// the content, and internal/ledger the protocol.
//
//   - A Manager: manager.go, open.go, options.go, core.go, settings.go, info.go,
//     schema.go, names.go, errors.go, stats.go, logger.go, alarm.go.
//   - A message on its way: message.go, handle.go, await.go, join.go, do.go,
//     drain.go, code.go, finish.go.
//   - A run: newrun.go, run.go, phase.go, context.go, commit.go, transaction.go, loop.go,
//     unfinished.go, windows.go.
//   - Who holds it: lease.go, renewal.go, holder.go, recovery.go, clock.go.
//   - Calls that wait: suspended.go, decide.go, notice.go.
//   - The content: workspace.go, memory.go, memorytools.go, prompt.go, records.go,
//     revert.go, fork.go, thread.go, users.go, shared.go, sharing.go.
//   - What is shown: view.go, reader.go, summary.go, masked.go, redaction.go,
//     watch.go, event.go, feed.go, live.go, livefeed.go, runchanges.go.
//   - Operators: operator.go, maintenance.go, verify.go, transfer.go, tidy.go,
//     operation.go, tracer.go.

// How it is built, and why: for those who change the package.
//
// One user's state, on any store, changed by one run at a time. Three things
// are kept apart: what is stored, who may change it, and what a run makes of
// it.
//
// What becomes of a message, the changes of a workspace, operations, counters
// and the errors are types of package work, so that the packages of a workspace
// share them without knowing each other. Package workspace has aliases for what
// a program names every day, and only for that: who writes a page of operators
// or a Tracer imports work.
//
//   - One head, replaced by compare-and-set. The run, the queue, the ids of
//     handled messages and the newest records change together or not at all. A
//     log of create-only keys that is pruned loses acknowledged commits: a
//     writer that was paused creates a pruned key again, and nobody reads it.
//   - A lost reply is resolved. Each operation has an id, and the head
//     remembers the last 16. A writer that does not know whether its write was
//     made reads again: either the id is there, and on a store of the class
//     failover acknowledged by a write of the same head behind it, or the head
//     has moved on and the write can no longer be made. Only if 16 others wrote
//     in between does the caller get store.ErrUnknownOutcome. On such a store,
//     what was only shown may be taken back by a failover, and does not count
//     as seen; a head notes up to which record its writer had an
//     acknowledgement (kept), so that only what comes behind costs another
//     process a write before it tells a duplicate or an end. The same ids show
//     that a head does not follow one that was seen before, however far it has
//     come: that is how a failover that lost a write is found.
//   - Fencing is by identity. A holder has a random lease id and writes only if
//     that id is in the head that it replaces. No clock is involved; clocks
//     only decide when a contender considers the lease expired, and each
//     contender uses its own.
//   - Effects are edits of JSON. A record says that an element was appended,
//     not that a handler is to be called. Replay therefore runs no user code,
//     an old binary keeps what a newer one wrote, and rollback is a difference
//     of two documents.
//   - A run has one life here: its phase, with the table of what may follow each.
//     Its contexts end with it, and every method asks for the phase.
//   - Each run has its own State, made from the document when it begins.
//     Goroutines of a finished or fenced run that still hold it do no harm, and
//     ephemeral fields are gone by construction.
//   - Blobs and head are written and deleted in one batch, which every engine
//     has. A blob to which no head refers cannot arise, and nothing has to look
//     for one.
//   - The head does not grow. Records, waiting messages, outcomes, dead letters
//     and snapshots are blobs. The head has the names of the newest three of a
//     list; four names move to a blob, of which the head has the name, and so
//     on, as a tree. A head has 0.5 KB at first, 1.3 KB after 10 000 records,
//     and 1.9 KB with 10 000 messages in the queue and 500 records.
//   - A message that joins a run waits in the queue until a commit takes it in.
//     The head says with one word of the queue's entry that it wants to join,
//     so a holder whose head is the newest knows without a read that nobody
//     does. The message is in the State before the commit, which fails without
//     a write if others want to join by then, and it is in the head's run until
//     that ends: whoever undoes the run knows what goes back. Alternatives were
//     a list of its own, which would need a place in every law of the queue,
//     and a write that takes messages in.
//   - Who cancels a run ends it, with what was said in the same write. Storing
//     a wish and leaving the end to the holder would keep the text of a run in
//     another process without Options.Live, at the price of a state between
//     running and ended that each writer would have to know, and of a wait of
//     TTL/3 wherever the store reports no changes.
//   - A failed run leaves a dead letter, like one whose holders died too often.
//     The same id takes it out again, so that a sender may repeat what has
//     failed.
//   - A message that is not accepted yet waits for StoreTimeout, a held run
//     waits for the store. Errors that cannot pass, by each engine's codes, are
//     returned at once: each sentinel of work and store is declared as final or
//     passing, and what wraps it is the same. One wrapper of the store ends
//     each call that hangs. A holder does not end its run when it cannot renew:
//     only the store knows whether somebody else has the run, and a Manager
//     that watches a run does not count the time for which it could not reach
//     the store. A failover of a minute therefore ends no run, and a process
//     that alone is cut off works in vain until it reaches the store. A run is
//     given up if the store refuses its writes while it takes heartbeats.
//   - Lists say where something is to be done. A key under agent:busy:run: is
//     there exactly while the head has a run, one under agent:busy:wait: while
//     it has dead letters or suspended calls, both written in the head's own
//     batch. So is one under agent:busy:expire:, with the time at which the
//     first call expires, so that a Manager reads nothing that is due later. An
//     ordinary message answers a call that has expired, and no approval can
//     race with its acceptance. Managers find the runs whose holders have died
//     with two Lists for each TTL, whatever the number of idle workspaces.
//     Calls that wait for a person have a separate list, because they may be
//     many and no Manager looks for them.
//   - A message of the conversation has a number. It is given when the message
//     is first stored, rises by one and is never used again: an edit, a late
//     result, a shorter window or an undone run change no number. The text is
//     stored under it, and messages that only results hold have negative
//     numbers. New messages at the end are numbered before late results, so
//     that a run knows the number of an answer before it is whole. The record
//     says when and by which run, and a snapshot keeps that in 10 to 25 bytes a
//     message. Messages that a window has dropped are deleted together, after
//     16 short runs.
//   - A streamed answer is sent to watchers under the number that its message
//     will get. It is masked as one text and is no part of the content: a page
//     that comes late gets the text so far from the process that has the run,
//     and the message when it is committed. For other processes it is the value
//     of the workspace's key in the list of runs: written empty and deleted in
//     the batch of the head whenever the run gets another holder or ends, and
//     replaced under its own revision only, so that a holder that was paused
//     brings nothing back.
//   - A page applies only values to its view, not edits of lists, which are
//     relative to uncommitted changes that a view does not have. Package
//     workspace/page takes a view after each commit. It reads what an agent
//     may read, with the masks of the host, who knows all secrets: View.As.
//     Watch returns events that cannot be read before As or AsHost says for
//     whom, because each page that filtered by itself forgot something: a
//     delta, a reply and a call are of the conversation, and a title is made
//     of everything.
//   - Endings are packed until their records are dropped. The record of a run
//     has its outcome; the head and one blob have a hash of the id and the
//     version. A compaction writes the outcomes whose records it may drop.
//   - A function that ignores its context is left behind after a grace of one
//     TTL, because Go cannot end a goroutine. Its run is fenced, and the
//     attempt counts unless a person or a deployment has ended it.
//   - The head counts suspended calls, so that a list need not read content.
//     Caches of a head are kept under its revision, because numbers of writes
//     begin again with a new workspace.
//   - A lease can be vacant. A run that was released, retried or queued as a
//     ticket has no holder, and any Manager that looks takes it at once,
//     without counting an attempt. Nothing else differs.
//   - What threads share is written with the end of a run, both heads in one
//     batch; commits keep it in the thread, so CommitTx needs one head. A run
//     reads it once, when it begins. Memory is the thread's without shared
//     fields.
//   - A Manager renews its leases together, by one record outside of
//     workspaces, under agent:holder:. 200 runs cost one write in a third of
//     the TTL, and heartbeats take no turn among the writes of a workspace. A
//     run names the incarnation of its holder. The record is replaced under the
//     revision that the holder wrote last, so that it notices at once when
//     somebody else has replaced it.
//   - An incarnation that has ended never comes back. It ends when its record
//     is replaced, by a successor with the same Options.Name, or deleted, by
//     Close or by a contender. A contender that has read of an end may
//     therefore act late. A contender that has waited for 1.5 × TTL deletes the
//     record under the revision that it has seen before it takes the first run:
//     then all runs of that holder are free at once, and no record of it is
//     left. A record whose first write is in doubt is not used, because that
//     write might bring it back. Only the lease id in the head keeps a run from
//     two writers. Locks and subscriptions, by which a store reported the end
//     of a process at once, held a connection each and took 2 000 lines; a
//     lease of 4 s and the name of a Manager replace them.
//   - Code of users runs in separate goroutines. A panic or Goexit in it does
//     not end the goroutine that owns the lease. The next run is held, and its
//     lease renewed, before hooks are called. Waiting for a commit is waiting
//     for a channel and not for a Mutex, for which time stands still in
//     synctest. A panic of the store is an error of the call, and a summary
//     ends like a run: it is left behind if it does not. What panics in the
//     background all the same ends that work and not the process.
//   - Suspended calls are content, so that records, rollbacks and takeovers
//     carry them. The transition that accepts a message checks its decisions
//     against the content and against the decisions of messages that wait: two
//     people cannot approve one call. A call that is open but not suspended is
//     answered only if the run that ends has made it.
//   - Deletion leaves a head that has only its numbers, so that earlier writers
//     are still fenced. Expire removes it. The head of a deleted user's part
//     also keeps threads from being made anew: the batch that makes a thread
//     replaces that head, as a condition, and no other batch of a thread does.
//     A user without threads has no user part, and the user's own workspace has
//     the tombstone. An id that Thread does not return is refused, so that no
//     two ids name one thread. Who finds no head after a deletion keeps the
//     deletion in mind: it may have expired, or the read is stale, and what
//     comes next is the deletion, follows it, or is of a later workspace.
//   - What is made beside a run belongs to an epoch. Reset, Delete,
//     AcceptRollback and a beginning from nothing give the head a new one: the
//     time with random bits, greater than the last. A summary that is made for
//     minutes after a run is stored only in the epoch of that run, which its
//     write checks. So it comes back neither in the emptied workspace nor in
//     that of a user who returns, and it makes no workspace. Live texts, leases
//     and expiries are known by their own random ids; titles are written with
//     the content that they name; a compaction and the sweep after DeleteUser
//     read the head that they change, and make none.
//   - The head authenticates everything else: records by a chain of hashes,
//     blobs by their hashes. Without a key a checksum guards it against damage;
//     with one it is sealed. Only a process outside the store can notice that
//     older data was put back.
//
// The protocol is tested by schedules: processes that are goroutines of which
// one runs at a time, on a store whose every call may crash its caller before
// or after, lose the reply, drop the request or delay it, read stale, or return
// to an earlier state as a whole, and a ghost that has its own model of each
// transition. Some hundred mistakes that are put into the code, one at a time,
// are all found, by these schedules or by the tests that a live workspace
// equals a loaded one. On real stores, processes are killed and stopped, and
// what they had been told is compared with what is stored.
//
// *Rejected:* locks with an expiry in the store (a holder with a slow clock
// writes after it); a run that its caller ends, besides Options.Run (each rule
// of a run was told twice, and only tests began one); storing the exported
// state with each commit (bytes quadratic in the length of a run); replaying
// handlers (a changed program reads another past); an export as the raw entries
// of a workspace, in 120 lines in place of 250 (the names of blobs have hashes
// without keys and none with keys, so it could not carry a workspace to its
// first key, which is what it is for); a queue whose order is in separate keys
// (enqueue and finish race: a message is left behind or handled twice).
