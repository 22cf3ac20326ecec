// Package document holds the content of a workspace as JSON: parts, each with
// named fields. It applies effects to a document, makes the effects that store
// what changed in a State, and makes a State of a document.
//
// It knows nothing of stores, heads and runs. Parts and fields that it does not
// know stay as they are, so that a program preserves what a newer one wrote.
//
// A document (document.go) has values (value.go), which effects edit (edits.go).
// The conversation (conversation.go) refers to messages (messages.go) by their
// numbers (numbers.go), of which references.go says which are needed. save.go makes
// effects of a State and load.go the State; keptconversation.go spares loading what
// has not changed. After a run, window.go says what leaves the conversation.
// suspended.go has the calls that wait, secret.go the secrets that no schema knows
// any more, fork.go a part of a conversation for another workspace, and shared.go
// what threads share.
package document
