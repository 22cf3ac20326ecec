// Package aguistate serves workspaces to pages by AG-UI, the Agent-User Interaction
// protocol, which CopilotKit, assistant-ui and other front ends speak.
//
//	http.Handle("POST /agent", aguistate.New(m, &aguistate.Options{
//		User:  func(r *http.Request) (string, error) { return session(r) },
//		Agent: "ui",
//	}))
//
// A page shows what is committed, by whatever process, and the text that a model
// is streaming. So what it shows in the end is what Manager.View shows to Agent,
// also if it was closed, or its connection has broken off: a page that comes back
// sends its request again, or one without a new message.
//
// The request is the whole of what a client says: the server takes from it the
// messages of the user at the end that it does not have. The id of such a message
// is that of a workspace.Message: one that is sent twice is handled once. A client
// that goes away ends nothing: its message is handled all the same.
//
// A request without a new message follows the thread until it is closed: each time
// that something happens is a run of its own in the stream, which is open as long as
// a message is being handled or waits. The first run begins at once, with a snapshot
// of the state and of the messages.
//
// Secrets never leave: a page has neither the fields nor what other texts repeat of
// them.
package aguistate
