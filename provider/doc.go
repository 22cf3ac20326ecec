// Package provider reads and writes the JSON of model providers. It turns the
// conversation of a request into messages, a response into an
// [state.InferenceResult], and messages into the conversation of a request, for
// the provider that they came from or for another.
//
//	request, err := provider.OpenAI.DecodeRequest(body)
//	…
//	body, omitted, err := provider.Anthropic.EncodeRequest(provider.Request{
//		Messages: request.Messages,
//		Settings: `{"model":"…","max_tokens":1024}`,
//	})
//
// The package takes and returns bodies. It has no client and needs no SDK.
//
// # Entries and messages
//
// Text and parts that a participant wrote become a [state.TextMessage], in the
// form that the provider sent. Images and thinking are parts. Calls and results
// become a [state.ToolCallMessage] and a [state.ToolResultMessage]. An entry of
// another type becomes a [state.UnknownMessage] that holds the entry. One entry
// of the provider's conversation may thus become several messages, in its
// order, and these become one entry again.
//
// A message keeps the rest of its entry in a member named after the format:
// unknown members, null as opposed to a missing member, other spellings. The
// same format gets all of it back: a request that is decoded and encoded is
// equal as JSON, with numbers spelled as they were. Another format gets what it
// can express, and each [Omission] reports something that it cannot express.
//
// A program may make messages with parts in the words of any format, or of the
// Model Context Protocol; see [state.Parts]. A part in the words of the format
// that is written stays as it is, with members such as cache_control. Other
// parts are converted. The member cache_control of a result or a call is for
// Anthropic, thoughtSignature of a call for Gemini, and the members name,
// refusal, audio, reasoning, reasoning_content and reasoning_details of a
// message for Chat Completions.
//
// # Other formats
//
// [New] makes a format of a [Table], for an API that this package does not know.
// Messages of such a format keep the rest of an entry in a member named
// "format:" and the name of the format. Their parts are in the words of the Model
// Context Protocol and of Chat Completions, so that every format reads them,
// also in a program that does not have the table.
//
// # Validity
//
// An encoder does not check the conversation. The provider may reject a
// conversation that was trimmed, interrupted or carried over from another
// provider. Package transcript finds and repairs what the provider would
// reject: what is encoded after a repair is accepted, whatever is left out.
package provider

// How it is built, and why: for those who change the package.
//
// A format's JSON has more in it than any neutral message: signatures, unknown
// members, null as distinct from missing, two spellings of one name. A message
// that keeps its entry as received stores everything twice, and the two may
// disagree. Instead a decoder derives the messages of an entry, an encoder
// derives the plainest entry from messages, and the decoder keeps the
// *difference* between that entry and the one received. The round trip is
// therefore exact by construction, whatever a provider adds. The difference is
// in a member of the message that is named after the format, which other
// formats do not see.
//
//   - Nothing is left out in silence. A part says which of its members were
//     read from it, and an encoder reports the others, as it reports the
//     members of entries and calls that only another format has. A law with
//     random bodies finds each text of a message in the output or in an
//     Omission that names it.
//   - The encoder writes the placeholder for a message or a result of which
//     nothing would be left. Repair would have to know what an encoder can
//     express, and EncodeRequest without Repair would still lose turns.
//   - A format is a table of words. codec.Table reads and writes a conversation
//     on the objects of a body: in which members it is, how an API says a call
//     or a result (Word), and a few rules. Chat Completions, Anthropic, Gemini
//     and each provider.Table of another API run on it, with code for media,
//     responses, usage and streams only. What is kept of an id, a name or a
//     value holds as long as reading it gives what the message says, so that a
//     changed message is never overruled.
//   - Responses is written by hand. Its calls, results and messages are
//     separate items, successive calls are one message, and whether an output
//     is the client's depends on the items before it. A table for that would be
//     code in another place.
