// Package tool binds Go functions to a state. A binding says which arguments a
// model fills in, which are injected from fields, and which fields the result
// is written to.
//
//	search, err := tool.New("search", "Search the documents.", searchDocuments,
//		tool.From(UserName, "user"),     // field to parameter, hidden from the model
//		tool.To(Documents, "documents")) // key of the result to field
//	out, err := search.Call(ctx, st.As("support"), args)
//	results := tool.Run(ctx, st.As("support"), tools, calls)
//
// The model is shown [Tool.Schema]. It can neither see nor fill in an injected
// parameter: such an argument is an [ArgumentError], as is an argument that is
// unknown, missing or of the wrong type. An ArgumentError is written for the
// model to read. Names are compared in their exact case.
//
// A call has the rights of the state that it is given. Its outputs are one
// version, signed with the agent and the cause of that state. A call that fails
// writes nothing. Error texts contain no injected value, and nothing that a
// handler or a validation said about a field; errors.As and errors.Is find the
// underlying errors.
package tool
