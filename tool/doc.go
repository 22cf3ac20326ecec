// Package tool binds Go functions to a state. A binding says which arguments a
// model fills in, which are injected from fields, and which fields the result
// is written to.
//
//	search, err := tool.New("search", "Search the documents.", searchDocuments,
//		tool.From(UserName, "user"),     // field to parameter, hidden from the model
//		tool.To(Documents, "documents")) // key of the result to field
//	out, err := search.Call(ctx, st.As("support"), args)
//	results, err := tool.Run(ctx, st.As("support"), tools, calls)
//
// The model is shown [Tool.Schema]. It can neither see nor fill in an injected
// parameter: such an argument is an [ArgumentError], in every spelling that a
// decoder takes for the parameter, and so is an argument that is unknown,
// missing or of the wrong type. An ArgumentError is written for the model to
// read.
//
// A call has the rights of the state that it is given. Its outputs are one
// version, signed with the agent and the cause of that state. A call that fails
// writes nothing. Results and errors have [SECRET] in place of the values of
// secrets, see [Reveal]. Error texts contain no injected value, and nothing that
// a handler or a validation said about a field; errors.As and errors.Is find the
// underlying errors.
//
// [Run] makes the calls of one message of a model, in a safe order. Programs that
// make them one by one use [BeginStep], [Step.Call] and [Step.End]. [NeedsApproval]
// lets calls wait for a person. Package loop asks models, and makes their calls.
package tool

// How it is built, and why: for those who change the package.
//
// A tool is a function, a JSON Schema and a binding. A call has four phases, a
// file each: *prepare* checks the arguments and injects fields, *invoke* runs
// the function, *outputs* makes of the result what is written to fields,
// *write* writes it. Tool.Call does them on one state.
//
// Frameworks call tools one by one, some at the same time, and stop in the
// middle for a person. A Step therefore holds outputs until each call in front
// has returned, failed or been suspended, and writes them in call order: fields
// do not depend on timing. When a function returns, its outputs are tried on a
// fork, so that a refusal is an error of this call and not of the step. Run is
// a step in batches; it returns nothing before its end, so it needs no trial.
//
//   - An argument for an injected parameter is an error that the model reads.
//     Elsewhere the model wins, which is a hole, or the argument is ignored,
//     which makes the model believe that it was accepted. The same holds for
//     every name that a common decoder folds to an injected one. If taking the
//     name out of the schema would change its meaning, as in oneOf, the tool is
//     refused.
//   - The order within a step follows the declared reads and writes, as in
//     Haystack: a reader runs after all writers of its field, in whatever order
//     the model asked. A tool that takes the State could read and write
//     anything, so it is a barrier at its place.
//   - A field that a tool names and the schema lacks is a mistake of the
//     program: Run and BeginStep return it before any function is called.
//     Rights are not checked there, because they depend on the agent.
