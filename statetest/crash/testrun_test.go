package crash_test

import (
	"flag"
	"testing"
)

// passes reports whether a test passes, for examples and benchmarks, which have
// no *testing.T. With go test -v and -json, the lines of the test would be part
// of the output of an example, so it runs without.
func passes(test func(t *testing.T)) bool {
	verbose := flag.Lookup("test.v").Value
	defer func(before string) { _ = verbose.Set(before) }(verbose.String())
	_ = verbose.Set("false")
	return testing.RunTests(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "Test", F: test}})
}
