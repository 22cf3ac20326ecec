package state

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/callkey"
	"github.com/agentstate/state/internal/engine"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/jsontext"
	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/internal/redact"
	"github.com/agentstate/state/internal/value"
)

// Insider has methods for the other packages of this module. No other module
// can make the key with which Inside returns one.
type Insider struct{}

// Inside is for the other packages of this module.
func Inside(internal.Key) Insider { return Insider{} }

// bodied is every message: the types of messages embed *messageBody.
type bodied interface {
	checkCalls() error
	extraMember(k int) (name, value string, ok bool)
	callExtra(k int) (string, bool)
	sharedCalls() *[]ToolCall
}

// IsMessage reports whether m may be stored.
func (Insider) IsMessage(m Message) bool { return isMessage(m) }

// ExtraMember returns the k-th member without an accessor.
func (Insider) ExtraMember(m Message, k int) (name, value string, ok bool) {
	return m.(bodied).extraMember(k)
}

// CallExtra returns the Extra of the k-th call.
func (Insider) CallExtra(m Message, k int) (string, bool) { return m.(bodied).callExtra(k) }

// SharedCalls returns the calls of a message, which must not be changed.
func (Insider) SharedCalls(m ToolCallMessage) []ToolCall { return m.toolCalls() }

// CallsOf returns the calls in messages, in their order.
func (Insider) CallsOf(msgs ...Message) (calls []ToolCall) {
	for _, m := range msgs {
		if m, ok := m.(ToolCallMessage); ok {
			calls = append(calls, m.toolCalls()...)
		}
	}
	return calls
}

// RecordedCalls returns the calls in said as the agent of a handle has recorded
// them last, with their keys, or as they are in said if it has not.
func (i Insider) RecordedCalls(st *State, said []Message) []ToolCall {
	calls := i.CallsOf(said...)
	if len(calls) == 0 {
		return nil
	}
	seen, agent := st.History().seen(), st.Agent()
	for n := seen.len() - 1; n >= 0; n-- {
		r := seen.at(n)
		if r.agent != agent {
			continue
		}
		recorded := i.CallsOf(seen.stack.messages(r.output)...)
		if slices.EqualFunc(recorded, calls, func(a, b ToolCall) bool { return a.ID == b.ID && a.Name == b.Name && a.Input == b.Input }) {
			return recorded
		}
	}
	return calls
}

// DecodeChecked is [DecodeMessage] for JSON that has been checked, by
// jsontext.Check or because it was made of parts that were. Package provider
// makes messages of a body that is checked as a whole. It does not retain data.
func (Insider) DecodeChecked(data []byte) (Message, error) { return decodeChecked(data) }

// ParseSchemaByName is [ParseSchema] for a program that does not have the
// handlers. A handler that is not of this package has its name and merges
// nothing: a write that needs it fails.
func (Insider) ParseSchemaByName(data []byte) (*Schema, error) { return parseSchemaByName(data) }

// Branch returns what identifies the branch of a State: all handles on it have
// the same.
func (Insider) Branch(st *State) *engine.Branch { return st.on().branch }

// Encoded returns where package wire keeps what it has made of the conversation of a
// State for the last request. It ends with the State and its forks, which share it,
// and is no part of any of them.
func (Insider) Encoded(st *State) *atomic.Value { return &st.on().family.encoded }

// IsWritable reports whether the branch of a State can be written at all.
func (Insider) IsWritable(st *State) bool { return st.on().branch.Alive() == nil }

// Windows returns the field that has the windows of the agents, by agent, in
// every State. The readers of the messages may read and write it. Set keeps
// whichever of two windows begins later. The field is not listed, and none of
// its changes are told.
func (Insider) Windows() *Field[map[string]internal.Window] { return windows }

// TellLacking returns a handle that calls told with the error of each field that
// the schema does not have, or has in another form, also where nobody returns it.
func (Insider) TellLacking(st *State, told func(error)) *State {
	h := *st.on()
	h.lacks = told
	return &State{handle: h}
}

// WarnLacking is TellLacking for the one who is told of a field that [Field.GetOr] reads and
// that the schema does not have, unless somebody else is told already.
func (i Insider) WarnLacking(st *State) *State {
	h := *st.on()
	if h.lacks != nil {
		return st
	}
	return i.TellLacking(st, h.tellLacking)
}

// OnLacking lets tell be told of fields that are read and that the schema of a State
// does not have, once each, in place of the default Logger. Nobody may use the State, or
// one that was derived of it, yet.
func (Insider) OnLacking(st *State, tell func(field string, err error)) { st.on().family.tell = tell }

// OnFork lets told be called with each fork of a State, and of those that were derived of
// it. Nobody may use them yet.
func (Insider) OnFork(st *State, told func(*State)) { st.on().family.forked = told }

// Unjoined returns the names of the fields that a fork has written, and of the history,
// if it can be joined and was not.
func (Insider) Unjoined(st *State) []string { return addressNames(st.on().branch.Unjoined()) }

// SaysState reports whether NewContext has made a context or one that it is made of,
// if only with nil, which says that there is to be no State.
func (Insider) SaysState(ctx context.Context) bool { return ctx.Value(contextKey{}) != nil }

// IsReference reports whether a field holds references: Go values that no code
// may look into.
func (Insider) IsReference(st *State, field string) bool {
	sp, ok := st.on().schema.byName[field]
	return ok && sp.form.Reference
}

// IsKey reports whether a State may hold an undeclared key with a name.
func (Insider) IsKey(st *State, name string) bool {
	h := st.on()
	sp, _, err := h.locate(name)
	return err == nil && sp.slot.Keyed && checkName(name, h.schema.limits.NameBytes) == nil
}

// CheckField returns the error of using a field with a State whose schema does
// not have it, and that of writing it by a handler that is not for it. f is the
// *Field, or nil if only its name is known. by may be nil. Rights to the field do
// not matter.
func (Insider) CheckField(st *State, name string, f Part, by AnyHandler) error {
	h := st.on()
	if h.isNil() { // every field is unset there
		return nil
	}
	if f, ok := f.(interface{ declared(h *handle) error }); ok {
		if err := f.declared(h); err != nil {
			return err
		}
	}
	sp, _, err := h.locate(name)
	if err != nil || by == nil || by.erased() == nil {
		return err
	}
	return sp.accepts(by.erased())
}

// Hidden calls yield with each value that texts for an agent must not hold: the
// values of Secret fields and, unless agent is "", those of the fields that the
// agent may not read. The rights of the handle do not count. Values that were
// given to With, and those that they cover, are among them. References are not.
// value is a copy, of the type of the field.
func (Insider) Hidden(st *State, agent string, yield func(field string, secret bool, value any)) {
	st.on().hiddenFrom(agent, yield)
}

// HostRedactor is [State.Redactor] of the host's handle, whatever rights st has.
// It is for what operators see, and not for code of agents.
func (Insider) HostRedactor(st *State) *Redactor { return st.hostRedactor() }

// Finds reports whether text may have something to mask.
func (Insider) Finds(r *Redactor, text []byte) bool { return r.hidden().masks.Finds(text) }

// NewRedactor returns a Redactor for some texts, nil if there is nothing to mask.
func (Insider) NewRedactor(texts []string) *Redactor {
	secrets := make([]redact.Secret, len(texts))
	for i, text := range texts {
		secrets[i].Text = text
	}
	return newRedactor(secrets)
}

// SharedNames returns the present and former names of the Shared fields of a
// schema, or nil. The caller must not change the map.
func (Insider) SharedNames(s *Schema) map[string]bool {
	if s == nil {
		return nil
	}
	return s.shared
}

// KeepShared lets a State keep what is written to Shared fields from now on.
func (Insider) KeepShared(st *State) { st.on().branch.Keep() }

// SharedWrites returns, of a snapshot, what KeepShared has kept from an index on.
func (Insider) SharedWrites(st *State, from int) ([]internal.SharedWrite, error) {
	return st.on().sharedWrites(from)
}

// RedoShared does writes again on the content of another State, which nobody
// else uses. If an update, or what follows a read, cannot be done again, because
// the field is not as it was read, the error matches [internal.ErrSharedStale]
// and [ErrConflict].
func (Insider) RedoShared(st *State, writes []internal.SharedWrite) error {
	return st.on().redoShared(writes)
}

// Conversation returns the conversation and the results of a State, which must
// not be written during the call.
func (Insider) Conversation(st *State) internal.Conversation { return conversationOf(st) }

// ImportForm makes a State with the content of a form, as [Import] does for the
// JSON of a form. Package workspace has forms that were never encoded. The JSON
// inside the form must have been checked. moved are the fields whose stored names
// or forms are former ones.
//
// A conversation that is not nil takes the place of the conversation and the
// results in the form. It is that of a State of the same schema.
func (Insider) ImportForm(
	s *Schema, in *form.State, c internal.Conversation,
) (st *State, moved []form.Moved, err error) {
	kept, _ := c.(*conversation)
	return importForm(s, in, kept)
}

// A variable initialiser runs before every init function and before the
// packages that import this one are initialised, so that no plan of a type is
// made too early.
var _ = declareTypes()

// declareTypes tells internal/persist and internal/value, which cannot import
// this package, of its types.
func declareTypes() bool {
	persist.Declare[Message]()
	internal.OpaqueTypes = []internal.OpaqueType{{
		Type:   reflect.TypeFor[Message](),
		Encode: func(m any) ([]byte, error) { return []byte(m.(Message).Raw()), nil },
		Decode: func(data []byte) (any, error) { return DecodeMessage(data) },
		Size: func(m any) (int, error) {
			if m := m.(Message); isMessage(m) {
				return m.size(), m.(bodied).checkCalls()
			}
			return -1, nil
		},
	}}
	internal.TypeNames = map[reflect.Type]string{
		reflect.TypeFor[Message](): "message",
		reflect.TypeFor[Time]():    "date",
	}
	internal.RefusedTypes = map[reflect.Type]bool{
		reflect.TypeFor[Masked](): true,
		reflect.TypeFor[State]():  true,
	}
	return true
}

// Members returns the agents of a team, sorted.
func (Insider) Members(t Team) []string { return t.members() }

// Admitted returns the agents of the team of a State that are in a scope. Without
// a team, they are those that the scope names.
func (Insider) Admitted(st *State, s Scope) []string {
	team := st.on().schema.team
	if team == nil {
		return append([]string{}, s.agents()...)
	}
	return append([]string{}, s.admitted(team.members(), "")...)
}

// CheckAnswers returns the error that [History.Answer] would return for results of
// these calls, and changes nothing.
func (Insider) CheckAnswers(st *State, calls []ToolCall) error {
	h := st.on()
	d := answersDraft{handle: h, stack: h.schema.history.stackIn(h.branch.Slot(&h.schema.history.slot))}
	for _, c := range calls {
		if err := d.add(ToolResult(c, "")); err != nil {
			return err
		}
	}
	return nil
}

// CheckWrite returns the error of a write to a field that the handle may not
// write.
func (Insider) CheckWrite(st *State, field string) error {
	h := st.on()
	if sp, ok := h.schema.byName[field]; ok && !h.mayWrite(sp) {
		return h.denied(string(OpSet), field)
	}
	return nil
}

// ResultOf returns a message as the result of a call: with its key, and with its id
// and name if the message knows it by its key.
func (Insider) ResultOf(m ToolResultMessage, c ToolCall) ToolResultMessage { return resultOf(m, c) }

// TextAndFiles returns the Text of a result, and its parts that are no texts.
func (Insider) TextAndFiles(m ToolResultMessage) (string, [][]byte) { return m.textAndFiles() }

// Sized returns a result as it is recorded in a State: see [Limits].ResultBytes.
func (Insider) Sized(st *State, m Message) Message { return st.on().sized(m) }

// ResultBytes returns how much of a result a model is shown at the most.
func (Insider) ResultBytes(st *State) int {
	return cmp.Or(st.on().schema.limits.ResultBytes, messageBytes)
}

// WithKey returns a result whose call has a key.
func (Insider) WithKey(m ToolResultMessage, key string) ToolResultMessage { return keyedResult(m, key) }

// WithoutKeys returns a message without the keys of its calls.
func (Insider) WithoutKeys(m Message) Message { return withoutKeys(m) }

// MayRead reports whether a handle may read the field or the key with a name.
func (Insider) MayRead(st *State, name string) bool {
	_, _, err := st.on().toRead(name)
	return err == nil
}

// JSONWithout returns the JSON of a handle without the value of a field.
func (Insider) JSONWithout(st *State, field string) ([]byte, error) { return st.json(field) }

// WithWireIDs returns messages whose calls, and results, have the ids by which
// requests name them, where their own are missing or repeat.
func (Insider) WithWireIDs(msgs []Message) []Message {
	named := make([]Message, len(msgs))
	for i, m := range msgs {
		named[i] = withWireIDs(m)
	}
	return named
}

// EndWrites makes further writes to a State fail with an error that matches
// ErrReadOnly and err.
func (Insider) EndWrites(st *State, err error) {
	st.on().branch.End(fmt.Errorf("%w: %w", ErrReadOnly, err))
}

// KeepSecrets makes a State that nobody uses yet mask the texts of values that its
// schema does not know as secret, whatever the rights of a handle.
func (Insider) KeepSecrets(st *State, values []JSON) error {
	for _, v := range values {
		tree, err := jsontext.Decode([]byte(v), jsontext.Limits{})
		if err != nil {
			return err
		}
		for _, leaf := range value.Leaves(reflect.ValueOf(&tree).Elem()) {
			st.on().family.strange = append(st.on().family.strange, redact.Secret(leaf))
		}
	}
	return nil
}

// WithKeys returns messages of a framework, which keeps no keys, in which the calls
// and the results have the keys of the recorded calls that requests name by their
// ids.
func (Insider) WithKeys(st *State, msgs []Message) []Message {
	keys := keysByID(st)
	msgs = slices.Clone(msgs)
	for i, m := range msgs {
		switch m := m.(type) {
		case ToolCallMessage:
			calls := m.Calls()
			for n, c := range calls {
				calls[n].Key = cmp.Or(c.Key, keys[c.ID])
			}
			msgs[i] = keyedCalls(m, calls)
		case ToolResultMessage:
			msgs[i] = keyedResult(m, cmp.Or(m.Call().Key, keys[m.Call().ID]))
		}
	}
	return msgs
}

// KeyOfID returns the key of the recorded call that requests name by an id, or "".
func (Insider) KeyOfID(st *State, id string) string { return keysByID(st)[id] }

// keysByID returns the keys of the recorded calls by the ids by which requests name
// them. Of calls with one id, those of the handle's agent come before those of
// agents that do not see them, and then the latest.
func keysByID(st *State) map[string]string {
	others, own := map[string]string{}, map[string]string{}
	for _, r := range st.History().All() {
		keys := others
		if r.Agent == st.Agent() {
			keys = own
		}
		for _, c := range callsIn(r.Output) {
			keys[callkey.IDOf(c.ID, c.Key)] = c.Key
		}
	}
	maps.Copy(others, own)
	return others
}
