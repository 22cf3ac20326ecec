// Package pages measures what the pages of package inspect cost on SQLite, with
// 100 000 workspaces and with 10 000 records of one:
//
//	go -C lab test ./pages -run '^$' -bench . -cpu 1
package pages
