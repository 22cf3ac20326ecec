// Package statetest tests the workflows of agents in-process: offline,
// deterministically and in milliseconds, with plain test functions.
//
// It has four nouns:
//
//   - A [Model] answers by a script, in place of a provider. It checks each
//     request as the provider would.
//   - An assertion compares what is left: fields, journal, conversation, and
//     what each agent could read.
//   - A case is one way in which a run can go: a crash at one point, one order
//     of branches, one version that stored a workspace. The kit runs all of
//     them, each as a subtest.
//   - A failure shows what was asserted, the difference (want -, got +), where
//     in the conversation or schedule it is, and the command that runs this
//     case again. It never contains the value of a Secret field.
//
// # Which part answers which question
//
//	Would a provider have accepted these requests?      NewModel, Model.Next, Model.Client
//	What did the run write, say and store?              Equal, Journal, Transcript, Golden
//	Does a text tell what an agent may not read?        NoLeak
//	Does the result depend on which branch was first?   Orders
//	Was each branch that has written something joined?  Joined
//	Is each effect made once, wherever a process dies?  package crash
//	Does the new version resume what the old stored?    package crash
//
// The kit does not judge how good answers are, and it is no runner. Functions
// take [testing.TB], report with Errorf and return whether all was well. They
// call Fatal for misuse only, such as an empty script: a check that could not
// have failed is a failure.
//
// Files of testdata are written if the test binary defines a boolean flag
// update that is set, or with STATETEST_UPDATE=1.
package statetest

// How it is built, and why: for those who change the package.
//
// The kit answers what a test with a stub model cannot: whether a provider
// would have accepted a request, and whether a run survives what happens to
// processes.
//
//   - A Model checks like a provider. It uses package transcript on each
//     request, in the format of the request.
//   - Package crash compares what a loop asks with what it asks undisturbed. A
//     committed answer is in the next request. A request that the undisturbed
//     case does not have, or more requests than faults explain, was therefore
//     made after the last word or for an answer that was there. Only turns of
//     package tool are compared: what other programs ask may depend on the
//     time.
//   - Failures have no secrets. Values of Secret fields are masked before
//     printing, and equal values have equal numbers, so that a difference stays
//     readable.
//
// Its tests are a table of programs (internal/test/mistakes), each with one
// mistake or none, and mutants of the kit itself.
