// Package aisdkstate serves workspaces to pages that are written with useChat of the
// AI SDK of Vercel: the UI message stream, version 1, of version 7 of the package ai.
//
//	h, err := aisdkstate.New(m, &aisdkstate.Options{Who: session})
//	http.Handle("/api/chat/", http.StripPrefix("/api/chat", h))
//
//	const { messages, sendMessage } = useChat({
//		id, messages: initial.messages, resume: true,
//		transport: new DefaultChatTransport({ api: "/api/chat/" }),
//		sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
//	});
//
// It has these routes, in which id is the id of the chat and the name of a thread of
// the user:
//
//	POST /             what useChat sends: a message, an edit, decisions, regenerate
//	GET  /{id}         {"messages": […], "state": {…}} to begin with; the answer that is being made is not among them
//	GET  /{id}/stream  the answer that is being made from its beginning, or 204: for resume
//	POST /{id}/fields  {"title": "…", "note": null}: new values of fields, and those to delete
//	POST /{id}/stop    {} ends the run; stop() of useChat only stops to read
//
// What agents do for one message of a person is one message, with a step for each
// answer of a model. Its text, thoughts and arguments of calls come as a model streams
// them. Its metadata has the usage, and how the answer has ended if the model has not
// said all. A call that waits is a part of the state approval-requested, whose
// approval has the key of the call as its id. The fields that the agent may read are
// a transient part data-state, whole, whenever they change.
//
// The server takes from a request the last message, the decisions in all of them, and
// the results of tools of the page. An edit and regenerate make a branch, see
// [page.Source.Send]: the ids of answers say in which branch they are, and the chat
// keeps its id. What is loaded is the branch that was used last.
//
// A stream is about one answer. What happens to earlier ones meanwhile, such as to a
// call that waits and is not made in a branch, is shown when the chat is loaded.
//
// Errors have the status of [statehttp.Status] as long as nothing is streamed, and are
// then a part error. Guards and limits are those of package statehttp.
package aisdkstate
