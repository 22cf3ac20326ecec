// Package state holds the state of AI agents: the data that the agents, tools
// and routers of one network share while they work. It does no I/O and starts
// no goroutines.
//
// There is one type, [State], a handle on shared data. As, With, Fork,
// Snapshot, At, WithCause and Update each return or pass another *State: code
// that takes a *State works with a restricted one, one with the values of a
// request, a branch, a frozen one or a transaction. A State consists of
//
//   - fields, which a [Schema] declares, accessed through a typed [Field] or by
//     name through [KV];
//   - the conversation, which is the field [Messages];
//   - a stack of inference results, the [History];
//   - a journal of all changes and their authors, read with [State.Changes] and
//     [State.Watch].
//
// # Fields
//
// A field is declared as a package variable, which is then its accessor:
//
//	var OrderID = &state.Field[string]{
//		Name:        "order_id",
//		Description: "The order the customer is asking about.",
//		UpdateRules: "Set it as soon as the customer names it. Never guess.",
//		Owner:       "support",
//		Read:        state.Public,
//	}
//
//	err := OrderID.Set(st, "#W2378156")
//	id, err := OrderID.Get(st)
//
// An unset field has no value, which is different from holding the zero value.
// Get returns [ErrNotFound]; GetOr returns a default. Access by name converts a
// value of another type if the conversion is lossless. Otherwise it returns a
// [TypeError] with the path of the part that does not fit. Without a schema,
// New(nil), any name is accepted.
//
// # Handlers
//
// Set goes through the schema: the field's [Handler] combines the value with
// the current one. Lists append, and everything else is replaced, unless the
// field declares another handler ([Sum], [Union], [MergeByID], [MergeMap],
// [KeepLast], your own with [NewHandler], …). Replace overwrites the value,
// whatever the handler is. To change a value that was read before, use Update:
// it loses no write in between.
//
// # Copies
//
// Values are copied on the way in and on the way out: no caller can bypass a
// lock or a right and change the stored value. Scalars and strings cost
// nothing, and a list costs only the elements that are added to it. [ListItems] and
// [ListLen] read a list without copying it. A field with NoCopy leaves this to its
// users.
//
// # Access
//
// A schema with a [Team] has access control. [New] returns the host's handle,
// which may do everything. [State.As] returns one with the rights of an agent:
//
//	billing := st.As("billing")
//	token, err := PaymentToken.Get(billing)
//
// A handle can be narrowed but never widened. What an agent observes (values,
// names, counts, errors, texts) does not depend on the values of fields that it
// may not read. Versions are common to all handles. Reading a hidden field
// returns [ErrDenied] through a Field and nothing through KV. Writing one returns
// an [AccessError].
//
// # Transactions, branches, versions
//
// Every write is atomic and takes the next version. [State.Update] commits
// several writes as one version, after reading one consistent state.
// [State.Fork] starts a branch and [State.Join] applies it: writes through
// handlers merge, in the order of Join's arguments whatever the timing, and
// overwrites that collide are a [ConflictError]. The cost of Fork and
// [State.Snapshot] does not depend on the size of the state. [State.At] shows a
// past version and [State.Revert] makes one the next.
//
// # Conversation and history
//
// [History.Append] records one call of a model, an [InferenceResult], and
// appends its output to Messages in the same version. [History.Answer] adds the
// results of tool calls when they arrive. A [Message] is immutable and keeps
// every member that it came with. It is held once, however many results refer
// to it.
//
// # Secrets
//
// The value of a Secret field is masked in everything that is printed, logged,
// encoded or listed. Only Get returns it, to a handle that may read the field.
// [State.Redact] masks the values of secrets in a text before it leaves the
// process, a [Redactor] in a stream, and package redactlog in logs.
//
// # Text, export
//
// [State.Describe] renders what a handle may read for a prompt. [State.Export]
// and [Import] carry the whole state, secrets included, between processes.
// [Field].Was and Convert load what was stored with an older schema. The JSON
// of a State itself is a masked view that cannot be read back.
//
// # Concurrency and errors
//
// Everything in this package is safe for concurrent use. Functions given to
// Update, handlers and validation run without a lock and may run more than
// once. Those for one field of one state or branch take turns. They may read
// the state and write other fields; a write of the field itself fails after a
// second with a [ConflictError]. No failed operation changes anything. Errors
// match the sentinels of this package with [errors.Is] and hold no values.
//
// # What this is not
//
// This is not an agent runtime or a model client, and it stores nothing by
// itself.
package state

// How it is built, and why: for those who change the package.
//
// Cells. One write makes one immutable cell: the value, its version, and the
// versions at which the field was last set from unset and last overwritten. A
// join needs nothing else about the parent's side.
//
// Tree. Declared fields lie by slot on pages of 32, undeclared keys in a hash
// trie. A read is an atomic load of the tree, of the page and of the cell,
// without a lock. A writer holds the branch's lock and changes in place what
// carries the branch's owner number; it copies everything else on the way. A
// snapshot or a fork takes the pointer and gives the branch a new owner number,
// at a cost that does not depend on the number of keys. A commit of several
// fields writes to a copied tree that is published by one atomic store, so that
// a reader without a lock sees all of its edits or none.
//
// Isolation. A plan per type, compiled once, says how values are checked,
// copied, converted and encoded. Types that could not be read back from an
// export are refused when the schema is made. Values in any fields are
// normalised when they are stored, so that a live and a reloaded state are
// equal.
//
// Secrets are stored behind a func, through which printers that walk memory by
// reflection, such as the diffs of test libraries, do not get. The texts to
// mask are the leaves of the value, found by a walk over the value and not over
// its JSON: keys at any depth, bytes of any type, what a coding method writes
// and what it hides.
//
// JSON. Every member name that this project defines is snake_case. The JSON of
// messages is AgentKit's (type, role, content, stop_reason, tools), so that
// recordings of AgentKit load unchanged. Members that a provider sent are kept
// as they came.
//
// Rights are compiled with the schema into bits by slot, one set per agent; a
// check is a bit test. Fields with the same readers form a visibility class.
// Each record of the journal has its classes, and a reader skips those that it
// does not see. Only fields that the writer sees count towards Limits.Keys.
// Versions are common to all handles: an agent can tell that something was
// written, but not what. Separate numbers for each agent would cost a journal
// and counts for each class.
//
// A transaction is a branch that notes what it reads. When fn has returned,
// each field that it read or overwrote must be unchanged. Fields that it only
// wrote through handlers are merged by running the handlers again on the
// current value. All of this is computed without the lock and then checked and
// published under it.
//
// A branch keeps a net write per field: merge or overwrite, with the ops. Join
// then decides per field over the sides that wrote it. The result depends only
// on the order of the arguments.
//
// Handlers, Validate and the functions given to Field.Update are code of the
// user and run without the lock. Those of one field of one branch take turns.
// Without turns, concurrent writes of one field overtake each other and run
// their functions again. If one function has a turn for a second, all that wait
// for it get a ConflictError, because no State knows which goroutine calls it.
// A long queue of quick functions does not fail.
//
// A write without a turn may still overtake another one, which then runs again.
// After eight attempts, or 50 ms, others wait until it is done before they
// write what it was overtaken at.
//
// A change holds what was written, not the result. Its record points to the
// cells before and after. At undoes what came later, and therefore costs as
// much as was changed since. For secrets the record holds neither value nor
// cells: At shows them as they are now, and Revert leaves them unchanged. The
// journal is bounded by count (Limits.Journal) and by 8 MiB of values per
// state.
//
// Every result holds its prompt and history, and those repeat. All messages of
// all results are in one table, and a result holds ranges of it, so memory and
// export are linear. Messages are compared by their exact text, not by JSON
// value, so that nothing is lost. The index of the table is a hint that all
// versions share and every use checks. An unchanged beginning of the
// conversation is compared by address. What remains of popped results is
// bounded by bytes.
//
// A model's answer comes before its tools have run. Answer therefore completes
// a result later: it finds the latest result in which the calls are open, pins
// it by a number, and puts the answers behind the calls in the conversation, in
// call order. It merges across branches as Append does. An output has at most
// 256 calls, because results find theirs by comparing each with each.
//
// A Redactor is an automaton over the spellings of all secrets: as they are,
// escaped as encoders of JSON do, in base64 and in hex. It runs over the text
// and over views that undo one kind of escapes each. Each decision depends on a
// bounded part of the text, so that one search serves Redact, which has the
// whole text, and Writer, which searches again what it holds: the output is the
// same for every chunking. The search is linear in the text. A mask that is
// already in the text is never part of a secret, and a short secret next to it
// is part of its word; otherwise the search would have to repeat until nothing
// changes.
//
// Claims of a write that was overtaken are for addresses, not for the branch: a
// function of Update that writes another field through the outer handle, which is
// allowed, would wait for itself.
