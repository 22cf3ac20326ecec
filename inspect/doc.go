// Package inspect shows the workspaces of a store in a browser: what is in
// them, who changed it, and what is running. It is an [http.Handler] for a
// program that has a [workspace.Manager]:
//
//	h, err := inspect.New(m, nil)
//	…
//	mux.Handle("/debug/state/", http.StripPrefix("/debug/state", h))
//
// The pages are rendered on the server and can be read without JavaScript. All
// links are relative, so a Handler works under any prefix. A page with the query
// parameter format=json is the same data as JSON.
//
// # Rights
//
// Options.Authorize determines what a request may do. By default, requests from
// the same machine may read, and nothing else is possible. The routes of
// actions do not exist for requests that may not use them.
//
// # Secrets
//
// The values of secret fields and of secret entries of the memory are not read.
// In every other string of the store, the values of secrets are masked, before
// the string is shortened or escaped. These are the secrets of the present
// content and of each version that a page shows. A replaced secret that the
// conversation repeats is no longer known, and is shown. If the Manager has no
// schema, any value may be a secret, and the pages show none.
package inspect
