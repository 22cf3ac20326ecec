// Package wire connects a State with any client of a model provider that lets
// its user set an http.Client. It needs no SDK and no adapter for one.
//
//	client := anthropic.NewClient(option.WithHTTPClient(
//		&http.Client{Transport: &wire.Transport{}}))
//
// A [Transport] looks at each request whose context carries a State, as
// [state.NewContext] and the contexts of package workspace do. It sends the
// conversation of the State, and records what the model answers as an
// [state.InferenceResult]. A call of a model without one is an error, unless
// [state.NewContext] with nil says that there is none.
//
// # What is sent
//
// The State has the conversation. The messages of the request are instructions
// that come first. The messages of the State that the Window shows follow,
// repaired by the rules of the provider, and encoded for it. What Context says
// stands behind them. Tools whose names the provider refuses are sent with
// others, and the answer has the names of the program again, in its bytes as
// well. The program adds the turn of the user with [state.Messages], and sends
// a request without it.
//
// With RecordOnly, the program has the conversation. Its requests are sent as
// they are, byte for byte, unless Prompt or Redact change them.
//
// # In turns and runs
//
// In the context of a turn of package loop, as a [loop.Loop] gives it to Ask,
// the tools of the agent are offered in the format of the request, calls whose
// results have come late are at the end, the answer is recorded by
// [loop.Turn.Said], and the turn is told whether a request that has failed may
// succeed later. In a run of package workspace, calls that wait are said to
// wait, what is remembered of the user is at the end of the system prompt, and
// those who watch the workspace are told what is streamed. RecordOnly does none of this.
//
// # What is recorded
//
// Prompt has the messages of the request, and History the messages of the
// State, both as they were sent. The answer is appended to the conversation by
// [state.History.Append]. With RecordOnly it is recorded by
// [state.History.AppendOutside], which leaves the conversation as it is, and so
// is the answer to a request in the context of [OutsideConversation]. Raw has
// the bytes of the response as the program reads them, without the comments of
// a stream. Usage has the tokens that the response reports. StartedAt is when
// the request was sent, and CreatedAt when the answer was complete. Headers and
// the URL, and thus keys, are never recorded.
//
// Only a complete answer is recorded, and only once: no response with a status
// other than 200, such as one that an SDK repeats, and no part of a stream that
// broke off or that the reader left. Answers are recorded in the order in which
// they are complete, also those to parallel requests of one State. Answers to
// requests of forks are recorded in the forks, and get the order of the joins.
//
// A stream is passed on as it comes. Its answer is recorded when the last event
// has come, before the reader gets it: a reader may stop there, and close the
// body late or never. Gemini has no last event. There, and in streams that the
// client has asked to be compressed, the answer is recorded at the end of the
// body or when the body is closed.
//
// # Errors
//
// A stream that ends before its last event is an error for its reader,
// [provider.ErrIncomplete], instead of the end that SDKs take for success. An
// answer that cannot be read or recorded is an error for the reader of its
// body: no program goes on with an answer that the State does not have. So is one
// that is longer than Transport.MaxBytes. An SDK does not repeat the call then,
// since it has been paid for. Closing the body of a stream returns the error too,
// but most SDKs drop it.
//
// A redirect of a call that a client follows with a GET (301, 302 or 303) is an
// error, and so is one to another host unless Transport.Redirect allows it.
//
// Events of OpenAI are passed on without "error":null, which openai-go takes for an
// error.
package wire

// How it is built, and why: for those who change the package.
//
// Every SDK has its own types for messages, and none of them is lossless: a
// member that a release does not know is dropped, large integers are rounded,
// an item without a type makes the whole input vanish. An adapter per SDK would
// convert to and from these types, and follow a release a week. All SDKs let
// their user set an http.Client, and package provider reads and writes the
// bytes there without loss. One http.RoundTripper therefore replaces all
// adapters.
//
//   - The context carries the State. All users of a program share a client, and
//     every SDK passes its context on. Without a State, the answer would be
//     plausible and wrong: that is an error, unless it is said by NewContext
//     with nil.
//   - RecordOnly says who has the conversation: the program, and by default the
//     State. Then the messages of the request come first because they are
//     instructions. The whole is repaired, since ids must not repeat between
//     examples in a prompt and the conversation. With RecordOnly, the purpose
//     of the request is unknown, so the answer is pushed, and the body stays
//     byte for byte for the prompt cache.
//   - What changes stands behind what stays. With a description of the state in
//     the system prompt, 1 to 12 % of the bytes began the next request, and the
//     provider's cache missed. Context stands at the end of what the user said
//     last, since servers refuse two messages of the user in a row. The memory
//     of a workspace changes rarely, and is in the system prompt.
//   - A stream is recorded at its last event, before its reader gets the event.
//     openai-go stops at [DONE], many loops break there and close late or
//     never, and nobody reads the error of Close: waiting for the end of the
//     body would record nothing. Once an answer is recorded, an error of the
//     connection is the end of the body, so that reader and State agree on
//     whether there is an answer.
//   - An answer that cannot be recorded is an error of the body, with its last
//     bytes: what was paid for reaches the reader. A Loop hears of it besides,
//     since many readers stop before the end. From RoundTrip the error would
//     make SDKs repeat the call. anthropic-sdk-go repeats even after an error
//     of the body, unless the response has the header x-should-retry: false,
//     which it gets.
//   - genai does not go on with an answer by itself. Its second request, with a
//     continuation token, would have to replace an answer that is recorded,
//     charged to a budget, shown and perhaps committed: nothing in the first
//     request says whether a second one will come. It is refused, with what to
//     set; the answer then ends with StopLength.
//   - A cut stream is an error. Six of the seven clients take an orderly end of
//     the body in the middle of an answer for success.
//   - A refused picture is withheld, and not removed. One that the provider
//     refuses makes every later request fail, which is the most reported fault
//     of agents. The conversation keeps it, and requests have a text in its
//     place. A piece is known by what it holds, or by the key of its call, so
//     that trims, windows and forks find it without places. What is withheld is
//     stored beside the windows and not in results, which workspaces drop, and
//     in the commit of the answer that was accepted without it: after a crash
//     before that, the provider refuses it once more. The retry is inside
//     RoundTrip, below every SDK and loop.
//   - What was encoded of the conversation for the last request is kept with the
//     State and its forks, and the next request goes on with it. It is compared with
//     the messages that are to be sent, after window, repair, masks and all that was
//     withheld: no change of these, of rights or of an agent has to be known, and
//     nothing is sent that the handle does not send. What a message becomes depends
//     on nothing else but the format, on whether the request offers recall, and on
//     whether its model reads pictures. It has about the size of the request and a
//     third, and ends with the State.
//   - The files of a user are put in behind everything else. Until then a mark stands
//     for the data of each: base64, or a text for a format that takes the words of a
//     text file. It begins with what this process has drawn, so that no message can
//     have one. So what is kept, masked and compared does not grow by files, and what
//     is refused is found by the reference that the message has.
//   - Only errors that are known are acted on, by words with a source, or
//     because they name a part. A guess at any other 400 would hide what the
//     user said because a schema was wrong.
