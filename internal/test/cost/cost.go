// Package cost has the tests of what a State costs, in memory and in work, and
// what they measure with.
package cost

import "runtime"

// Allocated returns how many bytes fn allocates.
func Allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Live returns the bytes of the heap that are reachable.
func Live() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools have let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Grew returns the growth of the live heap by what fn makes.
func Grew(fn func() any) int {
	before := Live()
	kept := fn()
	after := Live()
	runtime.KeepAlive(kept)
	return int(after) - int(before)
}
