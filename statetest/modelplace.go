package statetest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// clientPlace returns the line of the test that is waiting for an HTTP client,
// or "". The testing package names a line of net/http in its stead.
func clientPlace() string {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	inClient := false
	for {
		frame, more := frames.Next()
		if inClient && strings.HasSuffix(frame.File, "_test.go") {
			return fmt.Sprintf("%s:%d: ", filepath.Base(frame.File), frame.Line)
		}
		inClient = inClient || strings.HasPrefix(frame.Function, "net/http.")
		if !more {
			return ""
		}
	}
}
