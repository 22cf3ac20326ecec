package state

import (
	"reflect"

	"github.com/agentstate/state/internal"
	"github.com/agentstate/state/internal/form"
	"github.com/agentstate/state/internal/persist"
	"github.com/agentstate/state/internal/redact"
)

// A variable initialiser runs before every init function and before the
// packages that import this one are initialised, so that no plan of a type is
// made too early.
var _ = fillInternal()

// bodied is every message: the types of messages embed *messageBody.
type bodied interface {
	checkCalls() error
	extraMember(k int) (name, value string, ok bool)
	callExtra(k int) (string, bool)
	sharedCalls() *[]ToolCall
}

// fillInternal sets the variables of package internal.
func fillInternal() bool {
	persist.Declare[Message]()
	internal.SharedNames = func(schema any) map[string]bool {
		if s, _ := schema.(*Schema); s != nil {
			return s.shared
		}
		return nil
	}
	internal.KeepShared = func(st any) { st.(*State).on().branch.Keep() }
	internal.SharedWrites = func(st any, from int) ([]internal.SharedWrite, error) { return st.(*State).on().sharedWrites(from) }
	internal.RedoShared = func(st any, writes []internal.SharedWrite) error { return st.(*State).on().redoShared(writes) }
	internal.ImportForm = func(schema any, in *form.State, c any) (any, []form.Moved, error) {
		kept, _ := c.(*conversation)
		return importForm(schema.(*Schema), in, kept)
	}
	internal.Windows, internal.WindowsName = windows, windowsName
	internal.Branch = func(st any) any { return st.(*State).on().branch }
	internal.IsWritable = func(st any) bool { return st.(*State).on().branch.Alive() == nil }
	internal.Conversation = func(st any) any { return conversationOf(st.(*State)) }
	internal.ConversationMessages = func(c any) *persist.List { return c.(*conversation).list() }
	internal.ShortenConversation = func(c any, messages, results []int) any {
		return c.(*conversation).shorten(messages, results)
	}
	internal.DecodeChecked = func(data []byte) (any, error) { return decodeChecked(data) }
	internal.IsReference = func(st any, field string) bool {
		sp, ok := st.(*State).on().schema.byName[field]
		return ok && sp.form.Reference
	}
	internal.CheckField = func(st, field any) error {
		h := st.(*State).on()
		if h.family == nothing.family { // every field is unset there
			return nil
		}
		if f, ok := field.(interface{ declared(st *State) error }); ok {
			return f.declared(st.(*State))
		}
		_, _, err := h.locate(field.(string))
		return err
	}
	internal.IsKey = func(st any, name string) bool {
		h := st.(*State).on()
		sp, _, err := h.locate(name)
		return err == nil && sp.slot.Keyed && checkName(name, h.schema.limits.NameBytes) == nil
	}
	internal.Hidden = func(st any, agent string, yield func(field string, secret bool, value any)) {
		st.(*State).on().hiddenFrom(agent, yield)
	}
	internal.Redact = func(st any, text string) string { return st.(*State).hostRedactor().Redact(text) }
	internal.ParseSchemaByName = func(data []byte) (any, error) { return parseSchemaByName(data) }
	internal.NewRedactor = func(texts []string) any {
		secrets := make([]redact.Secret, len(texts))
		for i, text := range texts {
			secrets[i].Text = text
		}
		return newRedactor(secrets)
	}
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

// Insider is what the other packages of this module see of messages beside the
// exported methods.
type Insider struct{}

// Inside is for packages of this module.
func Inside(internal.Key) Insider { return Insider{} }

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

// WithKey returns a result whose call has a key.
func (Insider) WithKey(m ToolResultMessage, key string) ToolResultMessage { return keyedResult(m, key) }

// WithoutKeys returns a message without the keys of its calls.
func (Insider) WithoutKeys(m Message) Message { return withoutKeys(m) }
