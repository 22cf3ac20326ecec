// Package loop lets agents work on a State: a [Loop] asks their models, makes the
// calls, and goes on where an earlier process has stopped. A [Turn] does the steps one
// by one, for programs with a loop of their own.
package loop

// How it is built, and why: for those who change the package.
//
// A Turn is what one agent does on a State, and a Loop is turns until no agent
// has anything left to do. Both know a run of a workspace by the context alone,
// through internal/runctx.
//
//   - The end of the answers is noted, not guessed. The head of a run says how
//     many answers are committed, and whether the last one has no calls. The
//     last message of the conversation does not tell: after an approval with a
//     message in between it is a text, and there is something to answer. A
//     plain State has no such note, so Run asks there once.
//   - A bad end is not an error of the request. The answer was paid for and is
//     content: it is recorded, and the run ends well, with the Stop in its
//     outcome. Only an answer without anything to keep is asked for again. The
//     calls of a cut answer have results before they are committed, so no
//     process makes them.
//   - Persons decide before the model is asked. No model is asked while calls
//     wait that were made since the user spoke last. Of two calls that need an
//     approval, both are decided first, as in OpenAI's Agents SDK and
//     LangGraph. A user who says more is answered, with the calls as waiting.
//   - A late result is at the end of a request, with its call, if the model has
//     spoken since. In the conversation it stays behind the call. Otherwise the
//     request would end with the model's own text.
//   - Failed requests are made again in place, in a workspace as well.
//     RetryAfter would load the content anew and count an attempt, which is for
//     deaths. The lease is held in both cases.
//   - NeedsApproval holds the call back, Suspend its result. An approval is
//     content, and holds for the arguments and injected values that were shown.
//     A call that is approved and not made when its run ends waits again, and a
//     call that is suspended again uses the approval up.
//   - Calls are left open at a takeover, since their keys are those of their
//     effects. An option that answered them with an error let models make them
//     again, with other keys.
