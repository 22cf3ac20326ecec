// Package adaptertest is the scenario that the tests of all adapters share. It
// shows what a state adds to a framework: rights of agents, injected arguments,
// parallel writers, windows, the approval of a person, and runs that survive the
// death of their process. Only tests import it.
//
// A customer sends four messages to the workspace of [UserID]:
//
//  1. The agent search looks up two topics with two parallel calls, of which the
//     first is slower. Before that its model tries to set the injected user, and
//     to use a tool that needs the card, to which search has no right.
//  2. The agents stock and policy look up a topic each, at the same time, in
//     branches of the state that are joined in this order.
//  3. The agent billing asks a person for approval. The call is suspended, and
//     the run ends.
//  4. The message has the answer of the person. The model then refunds, and says
//     so.
//
// An adapter is a function that answers the message of a run with its framework.
// It gets the tools and the model from a [Desk], and has four duties:
//
//   - to let the agents of [Agents] answer, in parallel if there are two,
//   - to append what is said and called, and the results, to state.Messages, and
//     to commit after each step,
//   - to show each model what [Window] shows, with the description of the State,
//   - to pass the context of the run on to the tools.
//
// [Run] plays the scenario in the test, and [Killed] in processes that are killed
// at each point of it. [Sequence] and [Nested] play another one, of two agents that
// answer one message together. [OwnCalls] lets another agent speak in between.
// [Plain] is the adapter without a framework.
package adaptertest
