// Package page is what pages of any protocol show of a workspace, and what they
// send to it. A program that serves pages uses package statehttp, or an adapter
// such as aguistate, which are made of it.
//
//	pages := &page.Source{Manager: m, Agent: "ui"}
//	for c, err := range pages.Follow(ctx, workspace.Thread(user, "1"), from) {
//		… // send it to the page, as JSON
//	}
//
// A [Page] has the conversation as items with parts, what waits and is being
// answered behind them, and fields. It is what [workspace.View.As] shows to the
// Agent of the Source, and nothing else: no Secret field, and no text that repeats
// a secret.
//
// [Source.Follow] yields a Page, and then its changes: what any process has stored,
// and the answer of a model as it comes. [Page.Apply] makes them. Each Change has a
// Version. A page that has lost its connection goes on behind the one that it has
// seen last: what it shows in the end is what [Source.Read] returns, wherever it
// was cut off.
//
// Errors are those of [workspace.Manager]. All methods are safe for concurrent use.
package page
