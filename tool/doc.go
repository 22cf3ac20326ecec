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
// [Loop] lets agents work on a state: it asks their models, makes the calls, and
// goes on where an earlier process has stopped. [Run] makes the calls of one message
// of a model, in a safe order. Programs that make them one by one use [Begin],
// [Step.Call] and [Step.End]. [NeedsApproval] lets calls wait for a person.
package tool
