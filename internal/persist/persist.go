// Package persist has a map and a list that share structure between versions.
//
// A [Map] is a hash trie from strings to pointers: a copy costs one pointer,
// and a writer changes in place the nodes that only it can reach. A [List] is a
// header on chunks of elements: appending costs what is added, and every
// earlier version stays as it was.
package persist

import "sync/atomic"

var lastOwner atomic.Uint64

// NewOwner returns a unique owner number for writers of maps.
func NewOwner() uint64 { return lastOwner.Add(1) }
