// Package turns says whose turn it is within one process: a line lets some callers in
// at a time, slots bound the runs of a Manager and of each user, a Lock is held while
// its holder waits, and a goroutine that waits for a while can be woken.
//
// It knows no workspace and no store.
package turns
