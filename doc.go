// Package state holds the state of AI agents: what the agents, tools and routers
// of one network share while they work. It does no I/O and starts no goroutines.
//
// There is one type, [State], a handle on shared data. As, Fork, Snapshot, At,
// WithCause and Update each return or pass another *State, so that whatever takes
// one works with a restricted one, a branch, a frozen one or a transaction. A
// State consists of
//
//   - fields, which a [Schema] declares, reached through a typed [Field] or by
//     name through [KV];
//   - the conversation, which is the field [Messages];
//   - a stack of inference results, the [History];
//   - a journal of who changed what, read with [State.Changes] and [State.Watch].
//
// # Fields
//
// A field is declared as a package variable, which then is the typed door to it:
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
// A field that is unset has no value, which is not the zero value: Get returns
// [ErrNotFound], Or a default. By name, values of other types are converted where
// nothing is lost, and refused with a [TypeError] that says where in the value
// where something would be. Without a schema, New(nil), any name is accepted.
//
// # Handlers
//
// Set goes through the schema: the field's [Handler] combines the value with what
// is there. Lists append, all else is replaced, unless the field says otherwise
// ([Sum], [Union], [MergeByID], [MergeMap], [KeepLast], your own with
// [NewHandler], …). Replace overwrites whatever the handler is. To change a value
// that was read before, use Update: it loses no write of others in between.
//
// # Copies
//
// What goes in is copied and what comes out is a copy, so nobody can change what
// is stored behind the lock or behind a right. Scalars and strings cost nothing
// and a list only what is added to it; [Items] and [Len] read a list without
// copying it. A field with NoCopy leaves this to its users.
//
// # Access
//
// A schema with a [Team] has access control. [New] returns the host's handle,
// which may do everything; [State.As] one with the rights of an agent:
//
//	billing := st.As("billing")
//	token, err := PaymentToken.Get(billing)
//
// Rights can only be narrowed. What an agent observes — values, names, counts,
// versions, errors, texts — does not depend on the values of fields that it may
// not read. Reading a hidden field is [ErrDenied] through a Field and nothing
// through KV; writing one is an [AccessError].
//
// # Transactions, branches, versions
//
// Every write is atomic and takes the next version. [State.Update] commits several
// as one, after reading one consistent state. [State.Fork] starts a branch that
// [State.Join] brings back: writes through handlers merge, in the order of Join's
// arguments and never in that of time; overwrites that collide are a
// [ConflictError]. Fork and [State.Snapshot] cost the same however much there is.
// [State.At] shows a past version and [State.Revert] makes one the next.
//
// # Conversation and history
//
// [History.Append] records one call of a model, an [InferenceResult], and appends
// what it said to Messages in the same version. A [Message] is immutable and keeps
// everything it came with; it is held once, however many results refer to it.
//
// # Secrets
//
// The value of a Secret field is masked in whatever is printed, logged, encoded or
// listed. Only Get returns it, to those who may read the field. [State.Redact]
// masks the values of secrets in any text before it leaves the process.
//
// # Text, export
//
// [State.Describe] renders what a handle may read for a prompt. [State.Export] and
// [Import] carry the whole state, secrets included, between processes; a State's
// own JSON is a masked view that cannot be read back.
//
// # Concurrency and errors
//
// Everything here is safe for concurrent use. Functions given to Update, handlers
// and validation run without a lock and may run more than once. No failed
// operation changes anything. Errors match the sentinels of this package with
// [errors.Is] and hold no values.
//
// # What this is not
//
// It is no agent runtime and no model client, and it stores nothing by itself.
package state
