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
// Get returns [ErrNotFound]; Or returns a default. Access by name converts a
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
