// Package statehttp serves the threads of users to pages: a plain http.Handler with
// JSON and server-sent events, for pages that use no framework.
//
//	h, err := statehttp.New(m, &statehttp.Options{Who: session})
//	http.Handle("/api/", http.StripPrefix("/api", h))
//
//	func session(r *http.Request, thread string) (statehttp.Who, error) {
//		user, err := … // by the cookie
//		return statehttp.Who{User: user, Agent: "ui"}, err
//	}
//
// It has these routes. Bodies are JSON of the type application/json, and answers are
// JSON, but for files:
//
//	GET    /threads                     the threads of the user, the latest first: see [Thread]
//	POST   /threads                     {"thread": name} of a new one, which the first message creates
//	GET    /threads/{thread}            a [page.Page]
//	GET    /threads/{thread}/view       the JSON of [workspace.View.As]
//	GET    /threads/{thread}/events     each [page.Change] as an event, whose id is its version
//	GET    /threads/{thread}/branches   a list of [page.Branch]
//	POST   /threads/{thread}/messages   a [Message]: answers with [Sent]
//	POST   /threads/{thread}/decisions  the same
//	POST   /threads/{thread}/fields     {"title": "…", "note": null}: new values of fields, and those to delete
//	POST   /threads/{thread}/stop       {"turn": id}, or {} for what is under way
//	POST   /threads/{thread}/retry      {"turn": id} of a message that has failed
//	POST   /threads/{thread}/discard    {"turn": id} of one that has failed or waits
//	POST   /threads/{thread}/title      {"title": text}, or {} for that of [workspace.Options].Title
//	POST   /threads/{thread}/notes      {"message": number, "text": text} about a message, such as a thumb
//	POST   /threads/{thread}/fork       {"message": number} in front of which the fork ends, or {}: {"thread": name}
//	DELETE /threads/{thread}
//	POST   /files?name=…                a file with its type: answers with a [page.Media] for Parts
//	GET    /files/{file}                the file: pictures, sound and video as they are, others as downloads
//	GET    /events                      each [Thread] of the user that changes, as an event
//
// An EventSource that has lost its connection sends the id of the last event as
// Last-Event-ID, and gets what has changed behind it. A page that has taken a Page
// gives its version as the parameter from. A thread that does not exist has events as
// well: its first message may come. One stream of events for a thread and one for all
// threads are enough: browsers have six connections to a server.
//
// Errors are JSON, {"error": text}, with the status of [Status]. A body with a member
// that the route does not know is a 400. A thread that does not exist is a 404, and so
// is that of another user: the names of threads are those of the user who asks. The
// events of one are a 404 for a page that has seen it, since it was deleted. A file of
// another user is a 404 too. What agents may read does not count for files: an id
// cannot be guessed.
//
// A Handler refuses the requests of the pages of other sites, as
// [http.CrossOriginProtection] defines them, bodies of other types, that are too
// large or take more than 30 seconds, more than 32 requests at once of one user
// (429), more than 1 000 streams (503), and on a loopback address names of the server
// that Options.Hosts does not have. A page that takes nothing for ten seconds is
// disconnected.
package statehttp
