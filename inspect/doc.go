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

// How it is built, and why: for those who change the package.
//
//   - Three packages. inspect serves. internal/view makes pages as plain masked
//     structs, for format=json and the command's text. internal/html makes HTML
//     of them. Open pages ask every two seconds with the name of the last write
//     as ETag, without streams.
//   - One type for what may be shown. Pages have the type text, which only a
//     masker makes of what is in the store: secrets are masked, then the text
//     is clipped, then invisible characters are escaped. Long values go through
//     Redactor.Writer, so that a preview of 16 MiB costs what its first
//     kilobyte costs.
//   - Without a schema, more than values is hidden. Ids of messages and calls,
//     causes, names of tools and keys of the memory are chosen by programs,
//     people and models, and may repeat a secret that only the schema marks.
//     Names of fields, agents and runs are shown.
