package transcript

import (
	"slices"

	"github.com/agentstate/state"
)

// Trim shortens a conversation. It returns some of the messages, unchanged and
// in their order, in a new slice. It does not change its argument and is safe
// for concurrent use. The methods of [Shapes] return indexes instead, and trim
// messages of other types.
//
// A Trim of this package drops the oldest groups, as defined by [Groups], and
// keeps the latest. A call never loses its result, and a result never loses its
// call. Whatever the limit, these messages are kept, and count:
//   - the system prompt at the beginning,
//   - calls without a result, with their group, so that a later result finds them,
//   - the latest group,
//   - the last request of the user before any other message that is kept.
//
// A Trim preserves validity: if [Check] finds nothing in the conversation, it
// finds nothing in the result.
type Trim func([]state.Message) []state.Message

// KeepLast returns the Trim that keeps at most n messages. It keeps more than n
// only if more messages must always be kept. A negative n counts as 0.
func KeepLast(n int) Trim {
	return func(msgs []state.Message) []state.Message {
		if len(msgs) <= n { // as long as the window is not full, as a handler at each write
			return slices.Clone(msgs)
		}
		return Select(msgs, packShapes(msgs).keep(n, countOne))
	}
}

// Handler returns the handler that appends messages and then trims, for the
// field of the messages. Unlike the default handler, which only appends, it
// copies the messages that are kept with each write.
func (t Trim) Handler() state.Handler[[]state.Message] {
	if t == nil {
		return state.NewHandler[[]state.Message]("trim", nil) // which a schema refuses
	}
	trim := func(current []state.Message, _ bool, update []state.Message) ([]state.Message, error) {
		return t(slices.Concat(current, update)), nil
	}
	return state.NewHandler("trim", trim)
}
