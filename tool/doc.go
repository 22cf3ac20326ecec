// Package tool binds Go functions to a state: what a model may fill in, what is
// injected from fields, and which fields the result is written to.
//
//	search, err := tool.New("search", "Search the documents.", searchDocuments,
//		tool.From(UserName, "user"),     // field to parameter, unseen by the model
//		tool.To(Documents, "documents")) // key of the result to field
//	out, err := search.Call(ctx, st.As("support"), args)
//	results := tool.Run(ctx, st.As("support"), tools, calls)
//
// The model is shown [Tool.Schema]. It can neither see nor fill in a parameter
// that is injected: such an argument is an [ArgumentError], which is written for
// the model to read, as are those for arguments that are unknown, missing or of
// the wrong type. Names count in their exact case.
//
// A call has the rights of the state that it is given. Its outputs are one
// version, signed with that state's agent and cause; a call that fails writes
// nothing. Texts of errors hold no injected value and nothing that validation or
// a handler said about a field; errors.As and errors.Is find what is behind them.
package tool
