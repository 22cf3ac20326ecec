// Package transcript keeps conversations in a shape that providers accept.
//
// A provider rejects a request if a tool call has no result, if a result has no
// call, or if either is in the wrong place. This happens easily: a run stops
// between a call and its result, the oldest messages are cut off, or a
// conversation continues with another provider.
//
//	if findings := transcript.Check(msgs, transcript.Anthropic); len(findings) > 0 {
//		msgs, changes = transcript.Repair(msgs, transcript.Anthropic, transcript.Policy{AnswerCalls: true})
//	}
//
// [Check] returns what a provider would reject. [Repair] mends it and returns
// what it changed. A [Window] decides what a model is shown of a
// conversation, and [KeepLast] shortens one, without separating messages that
// belong together; [Groups] returns these. [Pending] returns the calls that wait
// for a result, and [Answer] inserts results.
//
// # Calls and results
//
// A result answers an earlier call that has its id, or its name if the provider
// gives calls no ids. A result without an id, which Gemini takes, answers the first
// open call of its name in the turn before it, also if that has one. Other messages may be between the two. Models reuse ids,
// and therefore the position counts: a result answers the call that waits for
// one, and a second result answers nothing. If several calls with one id wait
// and there are fewer results, it is unknown which calls they answer. They
// answer none of them then, unless their names decide it.
//
// # Messages of other types
//
// Trims, groups and pending calls need of a message who says it, which calls it
// makes and which it answers. A [Shape] has these. [ShapesFunc] makes the
// [Shapes] of a conversation in the message type of a framework. Their methods
// return indexes, and [Select] returns the messages, which are not converted.
//
//	shapes := transcript.ShapesFunc(msgs, shapeOf) // shapeOf is yours
//	msgs = transcript.Select(msgs, shapes.KeepLast(20))
//
// Check and Repair read the content of messages and make new ones. They need
// messages of package state, such as a MessageFormat of package provider makes.
//
// # Providers
//
// A [Profile] has the rules of a provider's API, taken from the errors of the
// provider. They change when the provider changes. They are about the
// conversation only: not about settings, sizes, or the content of images and
// schemas. Rules of some models or requests only are fields of a Profile.
// [Profile.At] has those of known servers and models, and [NewProfile] makes the
// profile of another provider.
//
// All functions take messages of any origin, decoded by package provider or
// made otherwise, and change none of them. Their time is proportional to the
// messages. They are safe for concurrent use.
package transcript

// How it is built, and why: for those who change the package.
//
// Calls and results are paired by key, and by position and id where one has no
// key: ids repeat, and some providers send none. Where it is undecidable which
// of several calls a result answers, it answers none of them, because a wrong
// guess tells a model that a call did what it did not do.
//
// Everything else builds on groups, the sets of messages that a provider
// accepts together or not at all. Trims drop whole groups and keep the request
// that the rest answers. Check is a list of rules per provider, each with the
// documentation or the issue where it was seen. Repair is a sequence of passes,
// each of which removes what one kind of rule finds. Its laws: the result has
// no findings, a valid history stays as it is, and a second repair changes
// nothing.
//
// A Window is a view, and cuts nothing: the page of the user shows the whole
// conversation. Its beginning is a count and the hash of a message's content,
// which frameworks leave alone. It is stored in a hidden slot of the State,
// because a closure would forget it with the process. It moves in steps, since
// a limit that is held exactly misses the cache at every message. The messages
// in front of it that it always shows are stored as well: a call that waited at
// the move is shown until the next, even when its result has come. Tokens are
// those that the provider has reported, and an estimate of what is new. The
// ratio of estimate and report is damped by 2 000 tokens, because the
// provider's own prompt is most of a short request. The table of a real
// tokenizer has megabytes and is right for one provider. What is shown of a
// large result is its two ends: files begin with what they are, and logs end
// with what went wrong. The State decides how much, in Limits, when it records
// the result, and stores a number: all results pass through it, also those of
// adapters and of people's decisions, and a limit of each request would change
// old results with the program, so that the cache misses. Shown makes the text
// last, behind the masks, because the note names recall only for agents that
// have it. The number is such that no secret is cut: no redactor finds half of
// one.
