// Package aguistate serves workspaces to pages by AG-UI, the Agent-User Interaction
// protocol, which CopilotKit, assistant-ui and other front ends speak.
//
//	http.Handle("/agent", aguistate.New(m, &aguistate.Options{
//		User:  func(r *http.Request) (string, error) { return session(r) },
//		Agent: "ui",
//	}))
//
// A page shows what any process has committed, and the text that a model is
// streaming. A page that was closed, or whose connection broke off, sends its
// request again, or one without a new message. In the end it shows what
// Manager.View shows to Agent.
//
// A request has all messages of the client. The server takes from it the last
// messages of the user that it does not have. The id of such a message is that of a
// workspace.Message: one that is sent twice is handled once. If a client goes away,
// its message is still handled.
//
// A request without a new message shows the thread: a run with a snapshot of the state
// and of the messages, which ends at once, or with what is under way. With
// {"follow": true} as its forwardedProps, it follows the thread until the request is
// closed: each time that something happens is a run in its stream, which is open as
// long as a message is being handled or waits.
//
// A page gets no Secret field, and no text that repeats a secret. Of pages of other
// origins, only those of Options.TrustedOrigins may send requests.
package aguistate
