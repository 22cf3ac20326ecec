// Package transcript keeps conversations in a shape that providers accept.
//
// A provider refuses a request if a call of a tool has no result, a result no
// call, or either is in the wrong place. Conversations get there easily: a run is
// broken off between a call and its result, the oldest messages are cut away, a
// conversation goes on with another provider.
//
//	if findings := transcript.Check(msgs, transcript.Anthropic); len(findings) > 0 {
//		msgs, changes = transcript.Repair(msgs, transcript.Anthropic, transcript.PolicyAnswerCalls)
//	}
//
// [Check] tells what a provider would refuse, and [Repair] mends it and tells how.
// [KeepLast] and [KeepTokens] shorten a conversation without cutting through what
// belongs together, which is what [Groups] returns. [Pending] returns the calls
// that wait for a result.
//
// # Calls and results
//
// A result answers a call before it, with whatever is between them, that has its
// id, or its name if the provider gives calls no ids. The place counts as well,
// since models use an id again: a result answers the call that waits for one, and
// a second result answers none. If several calls with one id wait and there are
// fewer results, it is open which ones they answer. They answer none then, unless
// the names tell.
//
// # Providers
//
// A [Profile] has the rules of a provider's API. They are what the providers'
// errors say, so they change with the providers, and they concern the conversation
// only: not the settings, not the size, and not what images or schemas may contain.
//
// All functions take messages of any origin, decoded by package provider or made
// otherwise, and change none of them. They take time in proportion to the messages,
// and may be called by many goroutines.
package transcript
