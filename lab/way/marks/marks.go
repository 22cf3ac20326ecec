// Package marks notes which functions a program enters. Command way adds a call of
// Pass to the beginning of each function of the library.
package marks

import (
	"runtime"
	"strings"
	"sync"
)

// Call is a call of a function.
type Call struct {
	Goroutine string
	Function  string // FILE:NAME, or what Literal returns
}

// Literal returns the name of a function literal: that of the function that it is
// in, and its number there.
func Literal(function, number string) string { return function + ":" + number }

// IsLiteral reports whether the function is a literal.
func (c Call) IsLiteral() bool { return strings.Count(c.Function, ":") > 1 }

// File returns the file of the function.
func (c Call) File() string {
	file, _, _ := strings.Cut(c.Function, ":")
	return file
}

var (
	mu     sync.Mutex
	noting bool
	passed []Call
)

// Pass notes a call of a function, between Begin and End.
func Pass(function string) {
	mu.Lock()
	defer mu.Unlock()
	if noting {
		passed = append(passed, Call{goroutine(), function})
	}
}

// Begin forgets all calls, and begins to note them.
func Begin() {
	mu.Lock()
	defer mu.Unlock()
	noting, passed = true, nil
}

// End returns the calls since Begin, in their order.
func End() []Call {
	mu.Lock()
	defer mu.Unlock()
	noting = false
	return passed
}

// goroutine returns the number of the goroutine, with which its stack begins.
func goroutine() string {
	var stack [64]byte
	text := string(stack[:runtime.Stack(stack[:], false)])
	number, _, _ := strings.Cut(strings.TrimPrefix(text, "goroutine "), " ")
	return number
}
