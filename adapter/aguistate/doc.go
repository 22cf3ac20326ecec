// Package aguistate serves workspaces to pages by AG-UI, the Agent-User Interaction
// protocol, which CopilotKit, assistant-ui and other front ends speak.
//
//	h, err := aguistate.New(m, &aguistate.Options{
//		Who: func(r *http.Request, thread string) (statehttp.Who, error) { return session(r) },
//	})
//	http.Handle("/agent", h)
//
// A page shows what any process has committed, and what a model is saying. A page
// that was closed, or whose connection broke off, sends its request again, or one
// without a new message. In the end it shows what [page.Source.Read] returns for its
// agent.
//
// A request has all messages of the client. The server takes from it the last
// messages of the user that it does not have. The id of such a message is that of a
// workspace.Message: one that is sent twice is handled once. If a client goes away,
// its message is still handled. If the client has dropped or replaced what it had
// seen, that is an edit, or a wish for another answer, and makes a branch, as
// [page.Source.Send] does.
//
// A request without a new message shows the thread: a run with a snapshot of the state
// and of the messages, which ends at once, or with what is under way. Members of its
// forwardedProps that are true ask for more: "follow" follows the thread until the
// request is closed: each time that something happens is a run in its stream, which is
// open as long as a message is being handled or waits. "stop" ends the run that is
// under way. "retry" handles the last message again, which has failed.
//
// A page gets no Secret field, and no text that repeats a secret. Of pages of other
// origins, only those of Options.TrustedOrigins may send requests.
package aguistate
